import pytest

from npformer.core import parse_spec, split_names
from tests.in_turn import in_turn


@in_turn(
    ("spec", "options"),
    [
        ("box", {}),
        ("box()", {}),
        ("box(width=2)", {"width": 2}),
        ("box( width = -2.5e-3 , height=None,)", {"width": -2.5e-3, "height": None}),
        (
            "box(a='x, (y)', b=[1, 2], c=(True,), d={'e': 1})",
            {"a": "x, (y)", "b": [1, 2], "c": (True,), "d": {"e": 1}},
        ),
    ],
)
def test_a_spec_is_a_name_and_options(spec, options):
    assert parse_spec(spec, "size") == ("box", options)


@in_turn(
    "spec",
    [
        *("box(", "box)(", "box(2)", "box(width)", "box(width=2", "box(width=2))", "box(width==2)"),
        *("box(**{'a': 1})", "box(a=1, a=2)", "box(a=b)", "box(a=1)(b=2)", "box.x(a=1)", "(a=1)"),
        *(" box(a=1)", "box(a=__import__('os'))", "box(a=1); box(a=2)", "box(a=1)\n+ 2"),
        *("box(a=" + "(" * 5000, "box(a={[]: 1})", "box(a='\0')"),
    ],
)
def test_a_text_that_is_no_spec_is_refused(spec):
    with pytest.raises(ValueError, match=r"^size is .*; expected a name, or a name and o") as error:
        parse_spec(spec, "size")
    assert type(error.value) is ValueError


@in_turn(
    ("text", "names"),
    [
        ("attention", ["attention"]),
        ("fourier,attention", ["fourier", "attention"]),
        ("mean(a=1, b=[2, 3]), x", ["mean(a=1, b=[2, 3])", "x"]),
        ("", [""]),
        ("a,,b", ["a", "", "b"]),
        ("a),b", ["a)", "b"]),
    ],
)
def test_commas_in_brackets_do_not_split(text, names):
    assert split_names(text) == names
