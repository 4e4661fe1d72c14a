"""Pages, and how what their code prints is written into them. `test_pasted` runs the code."""

import re

import pytest

from docs.site.pages import DOCS, pages, rewritten, same

PAGES = pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_has_one_title(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^# .+$", text, re.MULTILINE)
    assert len(titles) == 1
    assert text.startswith("# ")


def test_what_a_block_prints_stands_below_it():
    page = "# T\n\n```python\nx = 2\nprint(x / 3)\n```\n\nThen\n\n```python\nprint(x + 1)\n```\n\n"
    once = rewritten(page, "page")
    assert "```\n\n```text\n0.6666666666666666\n```\n\nThen" in once
    assert once.endswith("```text\n3\n```\n\n")
    assert rewritten(once, "page") == once
    assert rewritten(once.replace("print(x + 1)", "x + 1"), "page").count("```text") == 1


def test_an_error_names_the_line_of_the_page():
    with pytest.raises(ZeroDivisionError) as error:
        rewritten("# T\n\n```python\nx = 0\n1 / x\n```\n", "page")
    assert error.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("[0.1250 1.]", "[0.1251 1.]", True),
        ("[0.1250 1.]", "[0.1252 1.]", False),
        ("[0.6931]", "[0.69314718]", False),  # other print options
        ("-0.00 x", " 0.00 x", True),
        ("1.00e-06", "1.01e-06", True),
        ("1.00e-06", "1.00e-07", False),
        ("error 3.4e-16", "error 0.0e+00", True),
        ("error 3.4e-16", "error 1.1e-03", False),
        ("no sum 4e-16", "no sum 5e-16", True),
        ("4e-06", "6e-06", False),
        ("[3, 4]", "[3, 5]", False),
        ("loss 1.5", "lost 1.5", False),
        ("1.5", "1.5 2.5", False),
    ],
)
def test_only_last_digits_may_differ(one, other, expected):
    assert same(one, other) == expected


def test_of_a_gradcheck_what_was_checked_is_compared():
    report = "passed\n  tensor  shape  checked         error    at   backward\n"
    row = "  x       (2,)   all {} entries   {}  [{}]  -2.1\n\nThen"
    one = report + row.format(2, "5.5e-11", 0)
    assert same(one, report + row.format(2, "4.1e-12", 1))
    assert not same(one, report + row.format(3, "5.5e-11", 0))
    assert not same(one, one.replace("passed", "failed"))


def test_source_is_included_without_its_docstring():
    name = "npformer/functional/linear.py"
    page = f"# T\n\n<!-- source: {name} linear_backward -->\n\n```python\nold\n```\n"
    text = rewritten(page, "page")
    assert "def linear_backward(dy: Array, cache: Any)" in text
    assert "dW = rows.T @ drows" in text
    assert '"""' not in text
    assert "```text" not in text
    with pytest.raises(ValueError, match="defines no lineal"):
        rewritten(page.replace("linear_backward", "lineal"), "page")
