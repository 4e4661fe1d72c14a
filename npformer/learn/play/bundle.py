"""The page's modules as one script, for a self-contained file."""

from __future__ import annotations

import re
from importlib.resources import files


def read(name: str) -> str:
    """Return the text of a file of the page."""
    return (files("npformer.learn.play") / "static" / name).read_text("utf-8")


IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\*? (\w+))", re.MULTILINE)


def bundle(entry: str) -> str:
    """Return a module and all that it imports as one script, each in a separate function."""
    visited: set[str] = set()
    texts = ["const modules = {};\n"]

    def add(name: str) -> None:
        if name in visited:
            return
        visited.add(name)
        source = read(name)
        for statement in IMPORT.finditer(source):  # what it imports comes before it
            add(statement[2])
        exported_names = ", ".join(EXPORT.findall(source))
        inner = IMPORT.sub(lambda m: f"const {{{_rename(m[1])}}} = modules[{m[2]!r}];\n", source)
        inner = EXPORT.sub("", inner)
        if left := re.search(r"^(?:import|export)\b.*", inner, re.MULTILINE):
            raise ValueError(f"{name} has {left[0]!r}, which cannot be put into one file")
        head = f"// {name}\nmodules[{name!r}] = await (async () => {{\n"
        texts.append(f"{head}{inner}return {{ {exported_names} }};\n}})();\n")

    add(entry)
    return "".join(texts).replace("</script", "<\\/script")


def _rename(names: str) -> str:
    """Return names of an import as those of an assignment: "a as b" is "a: b"."""
    return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)
