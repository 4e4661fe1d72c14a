"""Specs: texts that name something and its options, such as ``"swish(beta=2.0)"``.

With them a configuration is plain text, in files and on the command line.
"""

import ast
from typing import Any

from npformer.core.support.wording import describe


def parse_spec(spec: str, what: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of ``"name"`` or ``"name(option=value)"``.

    `what` is what the user calls this setting. The name need not be registered anywhere.
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
                raise ValueError("each option must have a different name")
            options[keyword.arg] = ast.literal_eval(keyword.value)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(
            f"{what} is {describe(spec)}; expected a name, or a name and options such as "
            f"'{name.strip() or 'name'}(option=1.0)', whose values are numbers, texts in quotes, "
            "True, False, None, or lists of them"
        ) from error
    return call.func.id, options


def split_names(text: str) -> list[str]:
    """Split ``"mean(power=2, floor=0),attention"`` at commas that are not in brackets."""
    names, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            names.append("")
        else:
            names[-1] += letter
    return [name.strip() for name in names]
