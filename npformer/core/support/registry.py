"""Registries: tables of what a configuration can name.

Users can add to them::

    @npformer.layers.ACTIVATIONS.register("silu")
    class SiLU(npformer.Layer):
        ...

    EncoderConfig(activation="silu")
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

from npformer.core.support.builders import (
    builder_problem,
    call_problem,
    full_name,
    same_definition,
)
from npformer.core.support.specs import parse_spec
from npformer.core.support.wording import describe, did_you_mean

PLUGIN_FILE = "__npformer_plugin__"
"""In a module read from a plugin file: the attribute that holds the name of the file."""

Item = TypeVar("Item")
Builder = TypeVar("Builder", bound=Callable[..., Any])


class Registry(dict[str, Any], Generic[Item]):
    """Builders by name.

    Parameters
    ----------
    kind, table : str
        What is registered and where, for messages: "activation", "npformer.layers.ACTIVATIONS".
    items : mapping of str to callable
        The builders that are there from the start.
    makes : type, optional
        The class of what builders return.
    function : str
        A description of what builders return, if that is a function.
    gets : str
        A description of what builders are called with, besides their options.
    method : str
        The class method that is called instead of the registered class itself. Only subclasses of
        `makes` can then be registered.
    hint : bool
        Whether an error may suggest a name that is close to an unknown one. False for functions
        with short names, where another name is another function: then only what users registered.

    Examples
    --------
    >>> from npformer.core import Registry
    >>> shapes = Registry("shape", {})
    >>> @shapes.register("box")
    ... def box(width=1, height=1):
    ...     return width, height
    >>> shapes.make("box(height=2)")
    (1, 2)
    """

    def __init__(
        self,
        kind: str,
        items: Mapping[str, Callable[..., Item]],
        *,
        table: str = "",
        makes: type | None = None,
        function: str = "",
        gets: str = "their options alone",
        method: str = "",
        hint: bool = True,
    ) -> None:
        super().__init__(items)
        self.kind = kind
        self.table = table or "the table"
        self.gets = gets
        self._makes = makes
        self._function = function
        self._method = method
        self._hint = hint
        self._built_in = dict(items)

    @overload
    def register(self, name: str) -> Callable[[Builder], Builder]: ...

    @overload
    def register(self, name: str, builder: Builder) -> Builder: ...

    def register(self, name: str, builder: Any = None) -> Any:
        """Add a builder under a name and return it. Without `builder` this is a decorator.

        What builders are called with is documented beside each table; options come as keywords. A
        definition that is run again, as in a notebook cell, replaces the earlier one.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"name is {describe(name)}; expected letters, digits and underscores, such as "
                f"{self._example()!r}"
            )
        if builder is None:
            return lambda decorated: self.register(name, decorated)
        if problem := builder_problem(name, builder, self._makes, self._method):
            raise TypeError(f"the {self.kind} {describe(name)} {problem}")
        known = self.get(name)
        if known is not None and not same_definition(known, builder):
            raise ValueError(
                f"the {self.kind} {name!r} is already registered, as {known!r}; expected a free "
                f"name. Choose another, or remove the old one: del {self.table}[{name!r}]"
            )
        self[name] = builder
        return builder

    def user_builders(self) -> dict[str, Any]:
        """Return what users have registered, by name."""
        return {name: b for name, b in self.items() if self._built_in.get(name) is not b}

    def parse(self, spec: object, what: str = "") -> tuple[str, dict[str, Any]]:
        """Return name and options of ``"name"`` or ``"name(option=value)"``.

        The name must be registered. `what` is what the user calls this setting.
        """
        what = what or self.kind
        name, options = parse_spec(spec, what) if isinstance(spec, str) else (spec, {})
        if not isinstance(name, str) or name not in self:
            known_names = ", ".join(repr(word) for word in self)
            hint = did_you_mean(name, self if self._hint else self.user_builders()) or "."
            example = name if isinstance(name, str) and name.isidentifier() else self._example()
            raise ValueError(
                f"{what} is {describe(name)}; expected one of {known_names}{hint} Register your "
                f"own first: {self.table}.register({describe(example)}, ...)"
            )
        return name, options

    def check(self, what: str, spec: str) -> str:
        """Return a spec after checking its name; `what` is what the user calls this setting."""
        self.parse(spec, what)
        return spec

    def make(self, spec: str, *arguments: Any, **keywords: Any) -> Item:
        """Return what the builder of ``"name"`` or ``"name(option=value)"`` makes.

        All builders of this table get `arguments` and `keywords`, besides the options. Raises
        ValueError if the name is not registered, and TypeError if its builder does not take these
        options or makes something else.
        """
        name, options = self.parse(spec)
        build = self._build(name)
        if problem := call_problem(name, build, arguments, keywords, options, self.gets):
            raise TypeError(f"the {self.kind} {describe(name)} {problem}")
        item: Item = build(*arguments, **keywords, **options)
        expected = f"an object of {full_name(self._makes)}" if self._makes else self._function
        of_its_kind = isinstance(item, self._makes) if self._makes else callable(item)
        if expected and not of_its_kind:
            raise TypeError(
                f"the {self.kind} {name!r} made {describe(item)}; expected {expected}. Its "
                f"builder is {self[name]!r}"
            )
        return item

    def add_options(self, spec: str, **values: Any) -> str:
        """Add `values` to a spec: those that its builder takes and that it does not set itself.

        Examples
        --------
        >>> from npformer.optim import SCHEDULES
        >>> SCHEDULES.add_options("cosine(warmup=5)", total=100, warmup=10)
        'cosine(total=100, warmup=5)'
        """
        name, options = self.parse(spec)
        takes = inspect.signature(self._build(name)).parameters
        options = {key: value for key, value in values.items() if key in takes} | options
        inside = ", ".join(f"{key}={value!r}" for key, value in options.items())
        return f"{name}({inside})" if inside else name

    def _build(self, name: str) -> Callable[..., Any]:
        builder = self[name]
        return getattr(builder, self._method) if self._method else builder  # type: ignore[no-any-return]

    def _example(self) -> str:
        """Return a name that a user could register."""
        return "my_" + re.sub(r"\W", "_", self.kind)
