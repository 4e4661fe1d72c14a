"""Registries: tables of what a configuration can name, open to whoever has more to offer.

::

    @npformer.layers.ACTIVATIONS.register("silu")
    class SiLU(npformer.Layer):
        ...

    EncoderConfig(activation="silu")

Options are written behind the name, as in a call: ``activation="swish(beta=2.0)"``. A configuration
stays plain text that way, and travels through files and the command line.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, Generic, TypeVar, overload

PLUGIN_FILE = "__npformer_plugin__"
"""Under this name a module that was read from a plugin's file has the name of that file."""

Item = TypeVar("Item")
Builder = TypeVar("Builder", bound=Callable[..., Any])


class Registry(dict[str, Any], Generic[Item]):
    """Builders by name.

    Parameters
    ----------
    kind : str
        What is registered here, in words: "activation".
    items : mapping of str to callable
        What there is from the start.
    table : str
        Where a user finds this table: "npformer.layers.ACTIVATIONS".
    makes : type, optional
        What builders return, an object of this class; anything if not given.
    function : str
        What builders return, a function; in words.
    gets : str
        What builders are called with beside their options, in words.
    method : str
        The class method of what is registered that builds; then only subclasses of `makes` can be
        registered. Without it the class or function itself is called.

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
    ) -> None:
        super().__init__(items)
        self.kind = kind
        self.table = table or "the table"
        self.gets = gets
        self._makes = makes
        self._function = function
        self._method = method
        self._first = dict(items)

    # Registering --------------------------------------------------------------------------------

    @overload
    def register(self, name: str) -> Callable[[Builder], Builder]: ...

    @overload
    def register(self, name: str, builder: Builder) -> Builder: ...

    def register(self, name: str, builder: Any = None) -> Any:
        """Add a builder under a name: a function call, or a decorator without `builder`.

        Registering again what was defined anew under its old name, as a notebook does whose cell
        is run twice, replaces it.

        Parameters
        ----------
        name : str
            An identifier: letters, digits and underscores.
        builder : callable, optional
            Makes what the configuration names; what it takes is said where the table stands.
            Options of its own come as keywords.

        Returns
        -------
        builder : callable
            The same, so that a decorated class stays what it is.

        Raises
        ------
        ValueError
            The name is no identifier, or something else has it.
        TypeError
            The builder is of the wrong kind.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                f"name is {name!r}; expected letters, digits and underscores, such as "
                f"'my_{self._word()}'"
            )
        if builder is None:
            return lambda decorated: self.register(name, decorated)
        self._check_builder(name, builder)
        known = self.get(name)
        if known is not None and not same(known, builder):
            raise ValueError(
                f"the {self.kind} {name!r} is registered already, as {known!r}; expected a name "
                f"that is free. Choose another, or take the old one out: del {self.table}[{name!r}]"
            )
        self[name] = builder
        return builder

    def _check_builder(self, name: str, builder: Any) -> None:
        """Check that a builder can make what this table is for."""
        wanted, of = self._makes, f"the {self.kind} {name!r}"
        if not isinstance(builder, type):
            if wanted is not None and isinstance(builder, wanted):
                raise TypeError(
                    f"{of} is an object, of the class {type(builder).__name__}; expected the class "
                    "or a function that makes one, for each model has its own: "
                    f"register({name!r}, {type(builder).__name__})"
                )
            if not callable(builder):
                raise TypeError(
                    f"{of} is {_described(builder)}; expected a class or a function to call"
                )
        if wanted is None:
            return
        is_class = isinstance(builder, type)
        if is_class and not issubclass(builder, wanted):
            raise TypeError(
                f"{of} is {_described(builder)}, which is not derived from {_full_name(wanted)}; "
                f"expected a class that is: class {builder.__name__}({_full_name(wanted)})"
            )
        if self._method and not is_class:
            raise TypeError(
                f"{of} is {_described(builder)}; expected a class derived from "
                f"{_full_name(wanted)}, whose class method {self._method} makes it"
            )
        left_out = [n for n in dir(builder) if _is_abstract(getattr(builder, n, None))]
        if left_out:
            raise TypeError(
                f"{of} is {_described(builder)}, which has no {', '.join(left_out)}; expected all "
                f"that {_full_name(wanted)} asks for"
            )

    def added(self) -> dict[str, Any]:
        """Return what was registered from outside, by name."""
        return {n: builder for n, builder in self.items() if self._first.get(n) is not builder}

    # Making -------------------------------------------------------------------------------------

    def parse(self, spec: object, what: str = "") -> tuple[str, dict[str, Any]]:
        """Return the name and the options of ``"name"`` or ``"name(option=value)"``.

        Parameters
        ----------
        spec : str
        what : str
            What the user calls this setting; the kind if not given.

        Raises
        ------
        ValueError
            Not such a text, or a name that is not registered.
        """
        what = what or self.kind
        name, options = (spec, {}) if not isinstance(spec, str) else parsed(spec, what)
        if not isinstance(name, str) or name not in self:
            words = ", ".join(repr(word) for word in self)
            close = get_close_matches(str(name), list(self), n=1)
            hint = f". Did you mean {close[0]!r}?" if close else "."
            own = name if isinstance(name, str) and name.isidentifier() else f"my_{self._word()}"
            raise ValueError(
                f"{what} is {name!r}; expected one of {words}{hint} One of your own has to be "
                f"registered first: {self.table}.register({own!r}, ...)"
            )
        return name, options

    def make(self, spec: str, *arguments: Any, **keywords: Any) -> Item:
        """Return what the builder of a name makes.

        Parameters
        ----------
        spec : str
            ``"name"`` or ``"name(option=value)"``.
        *arguments, **keywords
            For the builder, before the options.

        Raises
        ------
        ValueError
            The name is not registered.
        TypeError
            The builder does not take these options, or makes something else.
        """
        name, options = self.parse(spec)
        build = self._build(name)
        self._check_call(name, build, arguments, keywords, options)
        made = build(*arguments, **keywords, **options)
        wanted = f"an object of {_full_name(self._makes)}" if self._makes else self._function
        of_its_kind = isinstance(made, self._makes) if self._makes else callable(made)
        if wanted and not of_its_kind:
            raise TypeError(
                f"the {self.kind} {name!r} made {_described(made)}; expected {wanted}. Its builder "
                f"is {self[name]!r}"
            )
        return made  # type: ignore[no-any-return]

    def filled(self, spec: str, **values: Any) -> str:
        """Return a text with options that its builder takes and that it does not say.

        Parameters
        ----------
        spec : str
            ``"name"`` or ``"name(option=value)"``.
        **values
            Plain values. One that the builder does not take is left out.

        Examples
        --------
        >>> from npformer.optim import SCHEDULES
        >>> SCHEDULES.filled("cosine(warmup=5)", total=100, warmup=10)
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

    def _check_call(
        self,
        name: str,
        build: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        """Check that a builder takes what it is called with, and say what it does not take.

        Asked before the call: an error of the builder itself is told as it is.
        """
        try:
            signature = inspect.signature(build)
        except (TypeError, ValueError):  # code that is not Python's does not say
            return
        try:
            if not set(options) & set(keywords):
                signature.bind(*arguments, **keywords, **options)
                return
        except TypeError:
            pass
        of = f"the {self.kind} {name!r}"
        takes = signature.parameters
        named = [
            p.name for p in takes.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        by_place = [p.name for p in takes.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        given = {*by_place[: len(arguments)], *keywords}
        own = [key for key in named if key not in given]
        any_key = any(p.kind is p.VAR_KEYWORD for p in takes.values())
        unknown = [k for k in options if k in given or not (k in own or any_key)]
        if unknown:
            close = get_close_matches(unknown[0], own, n=1)
            hint = f". Did you mean {close[0]!r}?" if close else ""
            has = f"expected {' or '.join(own)}" if own else "it has none"
            raise TypeError(f"{of} has no option {unknown[0]!r}; {has}{hint}")
        required = [key for key in own if takes[key].default is inspect.Parameter.empty]
        missing = [key for key in required if key not in options]
        refused = [key for key in keywords if not (key in named or any_key)]
        if missing and not refused:
            example = ", ".join(f"{key}=..." for key in missing)
            raise TypeError(
                f"{of} needs {', '.join(missing)}; expected '{name}({example})'. (Builders of this "
                f"table are called with {self.gets}.)"
            )
        raise TypeError(
            f"{of} is built by {self[name]!r}, which takes {signature}; expected a builder that "
            f"takes what this table's are called with: {self.gets}"
        )

    def _word(self) -> str:
        return re.sub(r"\W", "_", self.kind)


def names_in(text: str) -> list[str]:
    """Return the names of a list with commas, ``"mean(power=2, floor=0),attention"``.

    Parameters
    ----------
    text : str
        Commas in brackets do not part names.
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def parsed(spec: str, what: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a text, without asking what is registered.

    Parameters
    ----------
    spec, what : str
        As in `Registry.parse`.
    """
    name, bracket, _ = spec.partition("(")
    if not bracket:
        return spec, {}
    try:
        call = ast.parse(spec, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError("options have names")
        options: dict[str, Any] = {}
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg in options:
                raise ValueError("options have names, each another one")
            options[keyword.arg] = ast.literal_eval(keyword.value)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(
            f"{what} is {spec!r}; expected a name, or a name and options such as "
            f"'{name.strip() or 'name'}(option=1.0)', whose values are numbers, texts in quotes, "
            "True, False, None, or lists of them"
        ) from error
    return call.func.id, options


def same(one: Any, other: Any) -> bool:
    """Whether two classes or functions are one, also where its module was run twice."""
    if one is other:
        return True
    if isinstance(one, partial) and isinstance(other, partial):
        return same(one.func, other.func)
    names = [
        (getattr(b, "__module__", None), getattr(b, "__qualname__", None)) for b in (one, other)
    ]
    return names[0] == names[1] and None not in names[0]


def _is_abstract(method: Any) -> bool:
    return bool(getattr(method, "__isabstractmethod__", False))


def _described(value: Any) -> str:
    """Return what something is, in words for a message."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, bool | int | float | str | list | tuple | dict):
        return repr(value)
    if inspect.isfunction(value) or inspect.isbuiltin(value):
        return f"the function {value.__name__}"
    return f"a {type(value).__name__}"


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"
