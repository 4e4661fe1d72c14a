import abc
import functools
import operator

import pytest

import npformer as nf
from npformer.core import INITIALIZERS, Registry, parse_spec, split_names
from npformer.core.support.builders import check_takes
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS, ReLU
from npformer.mixers import Identity, Mixer
from npformer.models.losses import LOSSES, Loss, SoftmaxCrossEntropy
from npformer.optim import SCHEDULES

TABLES = [ACTIVATIONS, FFNS, NORMS, POOLINGS, nf.MIXERS, INITIALIZERS, SCHEDULES, LOSSES]
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)


class Shape:
    def __init__(self, width=1, *, height=1):
        self.size = width, height


@pytest.fixture
def shapes():
    return Registry("shape", {"box": Shape}, table="here.SHAPES", makes=Shape)


# Registering --------------------------------------------------------------------------------------
def test_a_class_is_registered_by_a_call(shapes):
    class Round(Shape):
        pass

    assert shapes.register("round", Round) is Round
    assert type(shapes.make("round")) is Round
    assert list(shapes) == ["box", "round"]
    assert shapes.user_builders() == {"round": Round}


def test_a_function_is_registered_by_a_decorator(shapes):
    @shapes.register("flat")
    def flat(width=2):
        return Shape(width, height=0)

    assert flat(3).size == (3, 0)  # it stays what it was
    assert shapes.make("flat(width=5)").size == (5, 0)
    assert list(shapes) == ["box", "flat"]
    assert shapes.user_builders() == {"flat": flat}


def test_nothing_is_added_at_first(shapes):
    assert shapes.user_builders() == {}
    assert [table.user_builders() for table in TABLES] == [{}] * len(TABLES)


@pytest.mark.parametrize("name", ["", "two words", "my-shape", "box(a=1)", "1st", 5, None])
def test_a_name_is_an_identifier(shapes, name):
    with pytest.raises(ValueError, match=r"letters, digits and underscores, .*'my_shape'"):
        shapes.register(name, Shape)


def test_a_name_that_is_taken_is_refused(shapes):
    class Other(Shape):
        pass

    with pytest.raises(ValueError, match=r"'box' is already registered, as .*Shape") as error:
        shapes.register("box", Other)
    assert str(error.value).startswith("the shape 'box'")
    assert "del here.SHAPES['box']" in str(error.value)
    del shapes["box"]
    shapes.register("box", Other)
    assert type(shapes.make("box")) is Other
    assert shapes.user_builders() == {"box": Other}


def run_cell(shapes, size):
    """Define and register, as a cell of a notebook does each time that it is run."""

    @shapes.register("mine")
    class Mine(Shape):
        def __init__(self):
            super().__init__(size)

    @shapes.register("made")
    def made():
        return Shape(size)

    def with_width(width):
        return Shape(width)

    shapes.register("part", functools.partial(with_width, size))
    shapes.register("short", lambda: Shape(size))


def test_a_notebooks_cell_may_be_run_again(shapes):
    for size in (1, 2):
        run_cell(shapes, size)
        for name in ("mine", "made", "part", "short"):
            assert shapes.make(name).size[0] == size


class NoLayer:
    pass


class HalfMixer(Mixer):
    def forward(self, x, context):
        return x, None

    def backward(self, dy, cache, gradients):
        return dy


class HalfLoss(Loss):
    def forward(self, outputs, y):
        return outputs.sum(), None


@pytest.mark.parametrize(
    ("table", "builder", "message"),
    [
        (ACTIVATIONS, NoLayer, "the activation 'mine' is the class NoLayer, which is not derived"),
        (ACTIVATIONS, NoLayer, r"expected a class that is: class NoLayer\(npformer"),
        (ACTIVATIONS, ReLU(), "is an object of the class ReLU; expected the class or a function"),
        (ACTIVATIONS, "relu", "is 'relu'; expected a class or a function to call"),
        (POOLINGS, 3, "the pooling 'mine' is 3; expected a class or a function"),
        (nf.MIXERS, ReLU, "is the class ReLU, which is not derived from npformer.mixers.mixer.Mix"),
        (nf.MIXERS, lambda settings: None, "the function <lambda>; expected a class derived from"),
        (nf.MIXERS, Identity(), "is an object of the class Identity; expected the class"),
        (nf.MIXERS, HalfMixer, "is the class HalfMixer, which lacks build, explain; expected all"),
        (LOSSES, HalfLoss, "loss 'mine' is the class HalfLoss, which lacks backward; expected"),
        (LOSSES, SoftmaxCrossEntropy(), "is an object of the class SoftmaxCrossEntropy"),
        (SCHEDULES, 0.5, "the schedule 'mine' is 0.5; expected a class or a function"),
    ],
)
def test_what_is_of_the_wrong_kind_is_refused(table, builder, message):
    with pytest.raises(TypeError, match=message):
        table.register("mine", builder)
    assert "mine" not in table


def test_abstract_methods_of_others_count_too(shapes):
    class Abstract(Shape, abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    with pytest.raises(TypeError, match="the class Abstract, which lacks area"):
        shapes.register("abstract", Abstract)


# Making -------------------------------------------------------------------------------------------
def test_an_unknown_name_lists_what_there_is_and_how_to_add_to_it(shapes):
    with pytest.raises(ValueError, match="size is 'bx'") as error:
        shapes.parse("bx(width=2)", "size")
    assert str(error.value) == (
        "size is 'bx'; expected one of 'box'. Did you mean 'box'? Register your own first: "
        "here.SHAPES.register('bx', ...)"
    )
    with pytest.raises(ValueError, match=r"shape is 'sphere'; expected one of 'box'\. Register"):
        shapes.parse("sphere")
    with pytest.raises(ValueError, match=r"^size is 'box\('; expected a name, or a name and"):
        shapes.parse("box(", "size")
    with pytest.raises(ValueError, match=r"shape is None; .*SHAPES\.register\('my_shape', "):
        shapes.parse(None)


@each_table
def test_the_place_that_is_named_is_where_the_table_is(table):
    path = table.table.removeprefix("npformer.")
    assert operator.attrgetter(path)(nf) is table


def test_options_reach_the_builder(shapes):
    assert shapes.make("box(width=3, height=4)").size == (3, 4)
    assert shapes.make("box", 5).size == (5, 1)
    assert shapes.make("box(height=4)", 5).size == (5, 4)
    assert shapes.make("box(width=3)", height=4).size == (3, 4)


def call(*arguments, **keywords):
    return arguments, keywords


@pytest.mark.parametrize(
    ("spec", "given", "message"),
    [
        ("box(widht=3)", call(), "'widht'; expected width or height. Did you mean 'width'"),
        ("box(far=3)", call(), "the shape 'box' has no option 'far'; expected width or height$"),
        ("box(width=3)", call(5), "the shape 'box' has no option 'width'; expected height"),
        ("box(height=3)", call(5, height=2), "'box' has no option 'height'; it has none"),
        ("box", call(1, 2), r"'box' is built by .*, which takes \(width=1, .*; expected a builder"),
        ("box", call(seed=0), r"takes \(width=1, \*, height=1\); .* their options alone"),
        ("needy", call(), r"'needy' needs a, b; expected 'needy\(a=\.\.\., b=\.\.\.\)'"),
        ("needy(a=1)", call(), r"the shape 'needy' needs b; expected 'needy\(b=\.\.\.\)'"),
        ("needy", call(seed=0), r"'needy' is built by .*, which takes \(a, \*, b\); expected a"),
        ("any(a=1)", call(a=2), "the shape 'any' has no option 'a'; it has none"),
        ("wrong", call(), "'wrong' made 5; expected an object of tests.core.test_registry.Shape"),
        ("nothing", call(), "the shape 'nothing' made None; expected an object"),
    ],
)
def test_options_that_do_not_fit_are_named(shapes, spec, given, message):
    shapes.register("needy", lambda a, *, b: Shape())
    shapes.register("any", lambda **options: Shape())
    shapes.register("wrong", lambda: 5)
    shapes.register("nothing", lambda: None)
    arguments, keywords = given
    with pytest.raises(TypeError, match=message):
        shapes.make(spec, *arguments, **keywords)


def test_an_error_inside_a_builder_is_not_changed(shapes):
    @shapes.register("strict")
    def strict(width=1):
        raise TypeError(f"width is {width}; expected a text")

    with pytest.raises(TypeError, match=r"^width is 5; expected a text$"):
        shapes.make("strict(width=5)")


def test_a_builder_without_a_signature_is_called():
    numbers = Registry("number", {"least": min})
    assert numbers.make("least", [3, 2]) == 2


def test_add_options_adds_what_is_taken_and_not_set(shapes):
    assert shapes.add_options("box", width=3, depth=5) == "box(width=3)"
    assert shapes.add_options("box(width='a')", width=3, height=5.0) == "box(width='a', height=5.0)"
    assert shapes.add_options("box") == "box"


@pytest.mark.parametrize("table", [INITIALIZERS, SCHEDULES], ids=lambda table: table.kind)
def test_a_builder_of_functions_returns_one(table, monkeypatch):
    monkeypatch.setitem(table, "mine", lambda: 0.5)
    with pytest.raises(TypeError, match=r"'mine' made 0\.5; expected a function"):
        table.make("mine")
    # The function itself, instead of what makes it.
    monkeypatch.setitem(table, "mine", lambda rng, shape: 0.0)
    with pytest.raises(TypeError, match=r"needs rng, shape; .*called with their options alone"):
        table.make("mine")


def test_a_builder_that_does_not_take_what_its_table_gives_is_named(monkeypatch):
    monkeypatch.setitem(FFNS, "mine", lambda d_model, d_ff: ReLU())
    with pytest.raises(TypeError, match=r"'mine' is built by .* passes: d_model, d_ff, act"):
        nf.EncoderBlock(nf.EncoderConfig(ffn="mine"), seed=0)


# In a model ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "spec",
    [
        "box(",
        "box)(",
        "box(2)",
        "box(width)",
        "box(width=2",
        "box(width=2))",
        "box(width==2)",
        "box(**{'a': 1})",
        "box(a=1, a=2)",
        "box(a=b)",
        "box(a=1)(b=2)",
        "box.x(a=1)",
        "(a=1)",
        " box(a=1)",
        "box(a=__import__('os'))",
        "box(a=1); box(a=2)",
        "box(a=1)\n+ 2",
        "box(a=" + "(" * 5000,
        "box(a={[]: 1})",
        "box(a='\0')",
    ],
)
def test_a_text_that_is_no_spec_is_refused(spec):
    with pytest.raises(ValueError, match=r"^size is .*; expected a name, or a name and o") as error:
        parse_spec(spec, "size")
    assert type(error.value) is ValueError


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("function", [lambda x, y: x, lambda *all_of_them: 0, max, print])
def test_what_takes_as_many_arguments_is_taken_and_so_is_what_has_no_signature(function):
    check_takes("f", function, 2, "x and y", "two")


@pytest.mark.parametrize("function", [lambda x: x, lambda x, y, z: x, lambda *, x, y: x])
def test_what_takes_fewer_or_more_is_refused(function):
    with pytest.raises(TypeError, match=r"^f cannot be called with x and y \(.*\); expected two$"):
        check_takes("f", function, 2, "x and y", "two")
