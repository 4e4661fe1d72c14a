"""Every example has a picture in the gallery, and runs without matplotlib."""

import ast
import re

import pytest

from tests.examples.conftest import EXAMPLES

FILES = sorted(EXAMPLES.glob("*.py"))
THUMBNAIL = re.compile(r"^# sphinx_gallery_thumbnail_path = '(\S+)'$", re.MULTILINE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_draws_or_names_a_picture(file):
    text = file.read_text("utf-8")
    named = THUMBNAIL.findall(text)
    assert all((EXAMPLES.parent / "docs" / path).is_file() for path in named)
    assert len(named) + text.count("plt.show()") == 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_runs_without_matplotlib(file):
    tree = ast.parse(file.read_text("utf-8"))
    guarded = [
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.With)
        and ast.unparse(block.items[0].context_expr) == "suppress(ImportError)"
        for node in ast.walk(block)
    ]
    drawing = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and node.names[0].name.startswith("matplotlib"))
        or (isinstance(node, ast.Name) and node.id == "plt")
    ]
    assert [node.lineno for node in drawing if node not in guarded] == []
