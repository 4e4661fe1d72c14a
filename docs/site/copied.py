"""What a copy button copies: a block of Python, below the blocks of its page that it goes on from.

A block goes on from the last one that makes a name that it uses, or puts it into a table, and from
what that one goes on from. The rule is here alone: on the site the class of a block says which
blocks these are, and `copy.js` reads it.
"""

from __future__ import annotations

import builtins
import dis
import re
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what the tests paste needs no Sphinx
    from docutils import nodes
    from sphinx.application import Sphinx

CLASS = "goes-on-from"
REGISTERED = re.compile(r'\.register\(("\w+)"')
"""A name in a table, with its opening quote: whoever says it needs the block that put it there."""


def needed(codes: list[str]) -> list[list[int]]:
    """Return, for each block of a page, the numbers of the blocks that it goes on from."""
    names = [_used_and_made(compile(code, f"block {k}", "exec")) for k, code in enumerate(codes)]
    for (names_read, names_set), code in zip(names, codes, strict=True):
        names_set |= {*REGISTERED.findall(code)}
        for word in {*REGISTERED.findall("\n".join(codes))} - names_set:
            names_read |= {word} if re.search(rf"{word}\b", code) else set()
    blocks_needed = []
    for k, (missing, _) in enumerate(names):
        above: list[int] = []
        for j in reversed(range(k)):
            names_read, names_set = names[j]
            if missing & names_set:
                above.insert(0, j)
                missing = (missing - names_set) | names_read
        if missing:
            raise ValueError(f"no block above makes {', '.join(sorted(missing))}:\n{codes[k]}")
        blocks_needed.append(above)
    return blocks_needed


def _used_and_made(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the names that code uses before it makes them, and those that it makes."""
    names_read: set[str] = set()
    names_set: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
            names_read |= {step.argval} - names_set
        elif step.opname == "STORE_NAME":
            names_set.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names_read |= _used_and_made(inner)[0] - names_set
    return names_read - {*dir(builtins)}, names_set


def copied(codes: list[str]) -> list[str]:
    """Return what the buttons of a page's blocks copy."""
    return [
        "\n\n".join(codes[j].strip() for j in [*above, k]) for k, above in enumerate(needed(codes))
    ]


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Give each block of Python a class with the numbers of the blocks that it goes on from."""
    literal_blocks = [node for node in doctree.findall() if node.tagname == "literal_block"]
    blocks = [node for node in literal_blocks if node.get("language") == "python"]
    run_blocks = [k for k, block in enumerate(blocks) if not _is_quotation(block)]
    for k, above in zip(run_blocks, needed([blocks[k].astext() for k in run_blocks]), strict=True):
        if above:
            blocks[k]["classes"].append("-".join([CLASS, *(str(run_blocks[j]) for j in above)]))


def _is_quotation(block: nodes.literal_block) -> bool:
    """Return whether a block quotes the package, with the imports that it needs."""
    before = block.parent[: block.parent.index(block)][-1:]
    return any(node.astext().startswith("<!-- source:") for node in before)


def setup(app: Sphinx) -> dict[str, Any]:
    """Handle every page that is read."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
