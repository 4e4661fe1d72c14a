"""Circles of imports inside a room, also those that `import_module` hides."""

import ast
from pathlib import Path

import npformer

PACKAGE = Path(npformer.__file__).parent


def imports_by_name(package: Path = PACKAGE) -> set[tuple[str, str]]:
    """Return (importer, imported) of each `import_module("package.module")` of a package."""
    pairs = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            module = module_asked_for(node)
            if module.startswith(f"{package.name}."):
                pairs.add((module_of(file, package), module))
    return pairs


def module_asked_for(node: ast.AST) -> str:
    """Return the name for which a node calls `import_module` or `__import__`, or ""."""
    if not isinstance(node, ast.Call) or not node.args:
        return ""
    function, name = node.func, node.args[0]
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if called not in ("import_module", "__import__") or not isinstance(name, ast.Constant):
        return ""
    return str(name.value)


def module_of(file: Path, package: Path) -> str:
    """Return the dotted name of a package's file."""
    path = file.relative_to(package.parent).with_suffix("")
    if path.name == "__init__":
        path = path.parent
    return ".".join(path.parts)


def circles(package: Path = PACKAGE) -> list[str]:
    """Return the imports without which no room had a circle, as "importer -> imported".

    Files and folders inside a room, and inside each of its folders, form a circle if they import
    each other, wherever in a file the import is. Needs import-linter's library, grimp.
    """
    try:
        import grimp
    except ModuleNotFoundError as error:
        raise SystemExit(
            "circles are found by import-linter: python -m pip install --group dev"
        ) from error
    graph = grimp.build_graph(package.name, cache_dir=None)
    for importer, imported in imports_by_name(package):
        if imported in graph.modules:
            graph.add_import(importer=importer, imported=imported)
    return sorted(
        f"{importer} -> {imported}"
        for parent in graph.modules - {package.name}
        if len(graph.find_children(parent)) > 1
        for importer, imported in graph.nominate_cycle_breakers(parent)
    )
