"""What the referee says: to blanks, to solutions, and to typical wrong answers."""

import ast
import re

import pytest

from npformer.learn.exercises.answer import MODULE, Answer
from npformer.learn.exercises.table import NAMES, every, exercise, stem
from npformer.learn.exercises.yours import yours
from npformer.learn.museum import BUGS as MUSEUM
from tests.learn.exercises.answers import MIXER, WRONG, WRONG_MIXERS, verdict, with_body
from tests.sampling import mark_others

MISTAKES = [(exercise.name, i) for exercise in every() for i in range(len(exercise.wrong))]
TRAINED = [(name, i) for name, i in MISTAKES if name == "own_encoder"]
"""Mistakes whose check trains a model: only the first of them is checked by default."""


def message_of(answer):
    return "\n".join(answer.says)


def test_there_is_every_blank_that_the_chapters_name():
    assert len(NAMES) == len(set(NAMES)) == 27


@pytest.mark.parametrize("name", NAMES)
def test_a_blank_is_not_begun(name):
    answer = verdict(name, exercise(name).blank)
    assert (answer.state, answer.says) == ("not begun", [])


@pytest.mark.parametrize("name", NAMES)
def test_a_blank_with_another_comment_is_unfinished(name):
    answer = verdict(name, exercise(name).blank.replace("# your code", "# on Sunday"))
    expected = "not begun" if exercise(name).breaks else "unfinished"
    assert answer.state == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_is_right(name):
    answer = verdict(name, exercise(name).solution)
    assert answer.state == "right"
    assert (answer.says == []) == (name != "own_encoder")


@pytest.mark.parametrize("name", NAMES)
def test_a_blank_has_no_line_of_its_solution(name):
    one = exercise(name)
    assert one.blank != one.solution
    for lines in one.parts():
        assert lines not in one.blank


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_has_no_marks_of_its_blank(name):
    solution = exercise(name).solution
    assert "NotImplementedError" not in solution
    assert "your code" not in solution


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("attribute", ["blank", "solution"])
def test_what_is_handed_out_is_python_without_marks_of_ours(name, attribute):
    text = getattr(exercise(name), attribute)
    assert "mypy" not in text
    assert "end of your code" not in text
    ast.parse(text)


@pytest.mark.parametrize(("name", "body", "expected"), WRONG)
def test_a_wrong_answer_gets_the_message_that_is_meant_for_it(name, body, expected):
    answer = verdict(name, with_body(name, body))
    assert answer.state == "wrong"
    for words in expected:
        assert words in message_of(answer)


def test_each_blank_has_wrong_answers():
    counted = {name: sum(name == one for one, *_ in WRONG) for name in NAMES}
    rest = {"own_mixer", "broken_model", "own_encoder"}  # have tests of their own below
    assert {name for name, count in counted.items() if count < 2} == rest


@pytest.mark.parametrize(
    ("name", "i"),
    mark_others([mistake for mistake in MISTAKES if mistake not in TRAINED[1:]], MISTAKES),
)
def test_each_mistake_that_the_referee_knows_is_recognised(name, i):
    one = exercise(name)
    mistake = one.wrong[i]
    text = one.add_foot(one.solved)
    assert mistake.right in text
    answer = verdict(name, text.replace(mistake.right, mistake.wrong))
    assert answer.state == "wrong"
    assert mistake.says in message_of(answer)


# Never the answer ---------------------------------------------------------------------------------
def expressions(source):
    """Return the products, sums and calls of a solution, without blanks."""
    texts = set()
    for blank in source:
        lines = blank.splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip())
        tree = ast.parse("def f():\n" + "\n".join(" " + line[indent:] for line in lines))
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.Compare):
                texts.add(plain(ast.unparse(node)))
    return {text for text in texts if len(text) > 6}


def plain(text):
    return re.sub(r"\s", "", text)


def test_expressions_of_a_solution_are_found():
    texts = expressions(exercise("softmax_backward").parts())
    assert {"y*(dy-inner)", "(dy*y).sum(axis=-1,keepdims=True)"} <= texts


@pytest.mark.parametrize("name", mark_others([n for n in NAMES if n != "own_encoder"], NAMES))
def test_no_message_holds_an_expression_of_the_solution(name):
    one = exercise(name)
    answer = expressions(one.parts())
    texts = [mistake.says for mistake in one.wrong]
    for mistake in one.wrong:
        text = one.add_foot(one.solved).replace(mistake.right, mistake.wrong)
        texts += verdict(name, text).says
    for kind, body, _ in WRONG:
        if kind == name:
            texts += [says for says in verdict(name, with_body(name, body)).says if "`" not in says]
    texts.append(one.title)
    for text in texts:
        assert not [expression for expression in answer if expression in plain(text)], text


@pytest.mark.parametrize("name", NAMES)
def test_an_exercise_has_two_or_three_hints(name):
    assert len(exercise(name).hints) in (2, 3)


@pytest.mark.parametrize("name", NAMES)
def test_hints_refer_to_other_exercises_by_their_numbers(name):
    hints = " ".join(exercise(name).hints)
    for other, number in re.findall(r"(\w+_backward) of exercise (\d+)", hints):
        assert NAMES[int(number) - 1] == other


# The right way, and other ways --------------------------------------------------------------------
SOFTMAX = "return y * (dy - (dy * y).sum(axis=-1, keepdims=True))"

BY_DIFFERENCES = """
x, dx = np.log(y), np.zeros_like(y)
for at in np.ndindex(x.shape):
    ends = []
    for h in (1e-5, -1e-5):
        moved = x.copy()
        moved[at] += h
        ends.append((FORWARD * dy).sum())
    dx[at] = (ends[0] - ends[1]) / 2e-5
return dx
"""


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        (
            "softmax_backward",
            "import npformer as nf\nreturn nf.functional.softmax_backward(dy, (y, -1, None))",
            "it calls npformer.functional.softmax.softmax_backward; can you do without?",
        ),
        (
            "adam_update",
            "from npformer.optim.adam import adam_update as update\n"
            "theta, m, v = theta.copy(), m.copy(), v.copy()\n"
            "update(theta, g, m, v, t=t, lr=lr, betas=(beta1, beta2), eps=eps)\n"
            "return theta, m, v",
            "it calls npformer.optim.adam.adam_update",
        ),
        (
            "softmax_backward",
            BY_DIFFERENCES.replace("FORWARD", "softmax(moved)[0]"),
            "over and over",
        ),
        (
            "softmax_backward",
            BY_DIFFERENCES.replace(
                "FORWARD", "np.exp(moved) / np.exp(moved).sum(-1, keepdims=True)"
            ),
            "digits, where a formula gives 15: differences, or a constant that is cut short?",
        ),
    ],
)
def test_a_right_answer_is_told_if_it_is_not_by_hand(name, body, expected):
    answer = verdict(name, with_body(name, body))
    assert answer.state == "right, but not by hand"
    assert expected in message_of(answer)


def test_what_is_given_is_no_borrowing():
    """attend_backward is npformer's own, and the file imports it for the reader."""
    assert "attend_backward" in exercise("multi_head_backward").solution
    answer = verdict("multi_head_backward", exercise("multi_head_backward").solution)
    assert answer.state == "right"


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_backward")])
def test_a_formula_that_fails_on_larger_arrays_alone_is_found(name):
    """It has a factor too many where an array has more than 100 entries."""
    head = re.search(rf"def {name}\((\w+), cache\):\n", exercise(name).solution)
    wrong = f"{head[0]}    {head[1]} = {head[1]} * (1 + large(({head[1]}, cache)))\n"
    large = """
def large(found):
    if isinstance(found, tuple | list | dict):
        return any(map(large, getattr(found, "values", lambda: found)()))
    return getattr(found, "size", 0) > 100"""
    text = exercise(name).solution.replace(head[0], wrong).replace("np\n", f"np\n{large}\n", 1)
    answer = verdict(name, text)
    assert answer.state == "wrong"
    assert "but for larger arrays:" in message_of(answer)


def test_a_gradient_that_is_float32_or_was_on_its_way_is_told_so():
    body = SOFTMAX.replace("return ", "return (") + ").astype('f4')"
    answer = verdict("softmax_backward", with_body("softmax_backward", body))
    says = "dx is float32; expected float64, as all arrays that came in are."
    assert message_of(answer).startswith(says)
    answer = verdict("softmax_backward", with_body("softmax_backward", f"{SOFTMAX}.astype('f4')"))
    assert answer.state == "wrong"
    words = r"dx: right to [78] digits, where a formula gives 15. Is something rounded to"
    assert re.match(words, message_of(answer))


# A mixer of one's own -----------------------------------------------------------------------------
def test_another_mixer_is_right_as_well():
    answer = verdict("own_mixer", MIXER)
    assert (answer.state, answer.says) == ("right", [])


@pytest.mark.parametrize(("right", "wrong", "expected"), WRONG_MIXERS)
def test_a_wrong_mixer_is_told_which_rule_it_breaks(right, wrong, expected):
    assert MIXER.count(right) >= 1
    answer = verdict("own_mixer", MIXER.replace(right, wrong, 1))
    assert answer.state == "wrong"
    assert expected in message_of(answer)


LATER = "after another forward pass (the cache is for what a call needs later"
KEEPS = "        self.mask, self.length = context.mask, x.shape[1]\n        y = np.zeros_like(x)\n"


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("x, mask = cache", "x, mask = cache[0], self.mask", f"{LATER}, self for"),
        ("dx[:, :-1] = dy[:, 1:]", "dx[:, :-1] = x.shape[1] / self.length * dy[:, 1:]", LATER),
        (
            "context.mask is None else context.mask\n",
            "self.mask is None else self.mask\n",
            "line 37 failed, `return (np.eye",
        ),
    ],
)
def test_a_mixer_that_keeps_something_between_calls_is_found(right, wrong, expected):
    keeps = MIXER.replace("        y = np.zeros_like(x)\n", KEEPS)
    assert verdict("own_mixer", keeps).state == "right"  # to keep something does no harm by itself
    assert keeps.count(right) == 1
    answer = verdict("own_mixer", keeps.replace(right, wrong))
    assert answer.state == "wrong"
    assert expected in message_of(answer)


# The broken model ---------------------------------------------------------------------------------
FAILS = {
    "LayerNormWithoutGamma": "gradient_of_layer_norm",
    "DropoutThatScalesAtEvaluation": "dropout_does_nothing_at_evaluation",
    "attention_that_looks_ahead": "causal_attention_does_not_look_ahead",
    "BlockWithOneResidual": "each_residual_adds_its_own_input",
}


BUGS = tuple(FAILS)
"""Their names in the museum, in the order of the file."""


def broken(*indices):
    """Return the model with only some of its bugs."""
    one = exercise("broken_model")
    text = one.solution
    for i in indices:
        right, wrong = one.breaks[i].right, one.breaks[i].wrong
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    return text


def test_all_bugs_are_in_the_model_that_is_handed_out():
    assert broken(0, 1, 2, 3) == exercise("broken_model").blank


@pytest.mark.parametrize("i", range(4))
def test_each_bug_of_the_model_fails_the_invariant_that_the_museum_names(i):
    invariant = FAILS[BUGS[i]]
    assert invariant in MUSEUM[BUGS[i]].caught_by
    answer = verdict("broken_model", broken(i))
    assert answer.state == "wrong"
    assert [words for words in answer.says if words.startswith(f"{invariant} fails")]
    other_failures = [
        words for words in answer.says if " fails: " in words and invariant not in words
    ]
    assert other_failures == []
    caught_by_gradcheck = "differences" in MUSEUM[BUGS[i]].caught_by
    assert caught_by_gradcheck == ("gradcheck of a block fails" in message_of(answer))


def test_a_model_that_is_mended_in_part_is_told_how_far_it_is():
    assert "10 of 14 checks pass, 4 fail:" in message_of(verdict("broken_model", broken(0, 1)))
    for words in ("MyLayerNorm", "MyDropout", "line "):
        assert words not in message_of(verdict("broken_model", broken(0, 1)))


def test_a_dropout_that_is_mended_at_the_cost_of_training_is_noticed():
    text = exercise("broken_model").solution
    scale = "            scale = 1.0 / (1.0 - self.rate)\n"
    assert text.count(scale) == 1
    message = message_of(verdict("broken_model", text.replace(scale, "")))
    assert "13 of 14 checks pass, 1 fail" in message
    assert "dropout_keeps_the_mean fails" in message


def test_parts_may_not_be_replaced_by_npformers_own():
    text = exercise("broken_model").blank.replace("= MyDropout(rate)", "= Dropout(rate)")
    assert "the model has no MyDropout in it any more" in message_of(verdict("broken_model", text))


# The encoder of one's own -------------------------------------------------------------------------
def own_encoder(*changes):
    text = exercise("own_encoder").solution
    for right, wrong in changes:
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    return verdict("own_encoder", text)


BY_DEFAULT = ("d  #", "    return p", "    d", "from nowhere", "N_HEADS = 2, 1")
ENCODERS = [
    ("d.sum(axis=0)  #", "d  #", ["dpositions is not summed over the batch", "right: db, dW"]),
    ("d.sum(axis=0)  #", "d.mean(axis=0)  #", ["3 times too small, by the factor of the batch"]),
    ("block(h, p, i)\n", "block(h, p, 0)\n", ["does not use gamma1.1, beta1"]),
    ('    g["positions"] = d', "    d", ["encoder_backward gives no gradient of positions"]),
    ("    return g\n", "    return d\n", ["returned an ndarray; expected a dict of gradients"]),
    ("logits, (embedding,", "logits[:2], (embedding,", ["shape (2, 10); expected (3, 10)"]),
    ("    return p\n", "    return 1\n", ["train returns no parameters; expected p"]),
    ("p[name], m[name], v", "_, m[name], v", ["an epoch does not change the parameters: does"]),
    ("N_HEADS = 2, 4", "N_HEADS = 2, 1", ["encoder: the attention has 4 heads, not one"]),
    (
        'relu, relu_backward = yours("relu", "relu_backward")',
        "relu, relu_backward = (lambda x: (x, None)), (lambda dy, cache: dy)",
        ["the logits are not those of the formulas at the top of the file"],
    ),
    (
        "np.ones(n.shape[:2], dtype=bool)",
        "np.arange(8) % 2 == np.zeros((len(n), 1))",
        ["not those of the formulas at the top of the file, with 2 blocks and 4 heads"],
    ),
    (
        "    rng = np.random.default_rng(seed)\n\n",
        "    rng, d_ff = np.random.default_rng(seed), 2 * d_ff\n\n",
        ["parameters gives other names or shapes than the one you were given"],
    ),
    ("epochs=20,", "epochs=1,", ["of 360 digits that it has not seen", "expected 95%"]),
    ("from npformer.learn.exercises.yours", "from nowhere", ["No module named 'nowhere'"]),
]


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        pytest.param(*case, marks=[] if case[1] in BY_DEFAULT else pytest.mark.slow)
        for case in ENCODERS
    ],
)
def test_a_wrong_encoder_is_told_where(right, wrong, expected):
    answer = own_encoder((right, wrong))
    assert answer.state == "wrong"
    for words in expected:
        assert words in message_of(answer)


@pytest.mark.slow
def test_another_recipe_of_training_is_right_as_well():
    fewer_epochs = ("epochs=20,", "epochs=12,")
    twice_the_gradient = ("p[name], g[name]", "p[name], 2 * g[name]")
    assert own_encoder(fewer_epochs, twice_the_gradient).state == "right"


@pytest.mark.slow
def test_a_pair_of_npformer_is_no_pair_of_ones_own():
    ours = "from npformer.functional import relu, relu_backward\n"
    answer = own_encoder(('relu, relu_backward = yours("relu", "relu_backward")\n', ours))
    assert answer.state == "right, but not by hand"
    assert "it calls npformer.functional.activations.relu" in message_of(answer)


def test_of_an_unfinished_encoder_it_says_what_is_right():
    stop = "    raise NotImplementedError\n"
    answer = own_encoder(("    norm1, attention, norm2, first, active, second = cache\n", stop))
    assert answer.state == "unfinished"
    assert answer.says[1:] == ["right so far: the logits"]
    answer = own_encoder(("            logits, cache = enc", f"        {stop}#"))
    assert answer.says[1:] == ["right so far: the logits and the gradients"]
    answer = own_encoder(("    h, embedding = linear", f"{stop}#"))
    assert (answer.state, answer.says[1:]) == ("unfinished", [])


@pytest.fixture
def encoder_on(solved):
    """Mark the solved encoder, trained for some epochs, beside changed files of others."""
    originals = {path: path.read_text("utf-8") for path in solved.iterdir()}

    def mark(epochs, name, right, wrong):
        path = solved / f"{stem(name)}.py"
        assert right in originals[path]
        path.write_text(originals[path].replace(right, wrong), "utf-8")
        text = exercise("own_encoder").solution.replace("epochs=20,", f"epochs={epochs},")
        return verdict.__wrapped__("own_encoder", text)

    yield mark
    for path, text in originals.items():
        path.write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("relu_backward", "x > 0", "x < 0"),
        pytest.param("relu_backward", "return dy *", "return dy[0] *", marks=pytest.mark.slow),
        pytest.param("cross_entropy_backward", "return ", "return -1.0 * ", marks=pytest.mark.slow),
        pytest.param("adam_update", "theta - lr", "theta + lr", marks=pytest.mark.slow),
        ("adam_update", "(np.sqrt(v_hat) + eps)", "(v_hat + eps)"),
    ],
)
def test_whatever_fails_the_file_that_is_wrong_is_named(encoder_on, name, right, wrong):
    answer = encoder_on(2, name, right, wrong)
    assert answer.state == "wrong"
    words = f"{stem(name)} is not right itself; `npformer exercises check {name}`"
    assert answer.says[0] == words
    assert len(answer.says) > 1
    if "hardly learns" in answer.says[1]:
        assert "whether images and labels belong together" in answer.says[1]
        assert "the order of adam_update's results: theta, m, v" in answer.says[1]
    else:
        assert name == "relu_backward"


CALLED = "from npformer.functional import relu_backward as f\n    return f(dy, x)"
OTHERS_FAULT = "right, but not all that it uses", "not right itself"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "right", "wrong", "state", "what"),
    [
        (
            "pooling_backward",
            "np.where(mask[..., None], share, 0.0)",
            "share + np.zeros((*mask.shape, 1), share.dtype)",
            *OTHERS_FAULT,
        ),
        ("relu_backward", "return dy *", "dy *= x > 0.0\n    return dy *", *OTHERS_FAULT),
        (
            "relu_backward",
            "return dy * (x > 0.0)",
            CALLED,
            "right, but not by hand",
            "right, but not by hand",
        ),
    ],
)
def test_of_a_right_encoder_it_says_which_file_is_not(encoder_on, name, right, wrong, state, what):
    answer = encoder_on(12, name, right, wrong)
    expected = f"{stem(name)} is {what}; `npformer exercises check {name}`"
    assert (answer.state, answer.says[0]) == (state, expected)
    assert re.fullmatch(r"9\d\.\d% of 360 digits that it has not seen", answer.says[1])


@pytest.mark.parametrize("text", [None, exercise("relu_backward").blank])
def test_an_encoder_says_which_files_are_still_to_do(solved, encoder_on, text):
    blank = exercise("linear_backward").blank
    path = solved / "03_relu_backward.py"
    path.unlink() if text is None else path.write_text(text, "utf-8")
    answer = encoder_on(20, "linear_backward", exercise("linear_backward").solution, blank)
    assert answer.state == "unfinished"
    to_do = "still to do: 01_linear_backward, 03_relu_backward"
    assert answer.says == [f"it needs 01 03 06 07 13 16 17; {to_do}"]
    pair = 'relu, relu_backward = yours("relu", "relu_backward")\n'
    assert own_encoder((pair, "# " + pair)).says == [
        "it needs 01 06 07 13 16 17; still to do: 01_linear_backward"
    ]


def test_pairs_are_looked_for_beside_the_file_that_asks(solved, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    there = {"__file__": str(solved / "27_own_encoder.py"), "yours": yours}
    relu, relu_backward = eval('yours("relu", "relu_backward")', there)
    assert relu_backward(3.0, relu(2.0)[1]) == 3.0
    with pytest.raises(ValueError, match=r"03_relu_backward.py is not in .*start . relu_backward"):
        eval('yours("relu", "relu_backward")', {"yours": yours})
    monkeypatch.chdir(solved)
    assert eval('yours("adam_update")', {"yours": yours}).__name__ == "adam_update"


def test_a_pair_that_is_not_there_is_explained(solved, encoder_on):
    with pytest.raises(ValueError, match=r"'linear_bakward'. Did you mean 'linear_backward'"):
        eval('yours("linear", "linear_bakward")', {"yours": yours})
    with pytest.raises(ValueError, match="has no linaer any more; put it back, or write linaer"):
        eval('yours("linaer", "linear_backward")', {"yours": yours})
    (solved / "03_relu_backward.py").write_text(exercise("relu_backward").blank, "utf-8")
    with pytest.raises(ValueError, match=r"03_relu_backward.py is not solved yet; solve it first"):
        eval('yours("relu", "relu_backward")', {"yours": yours})


# What else can be wrong with a file ---------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return", "returned nothing; expected dx, dW, db. Is a `return` missing?"),
        ("return dy @ W.T", "returned one array; expected a tuple: dx, dW, db, in this order"),
        ("return dy @ W.T, None", "returned 2 results; expected 3"),
        ("return [dy, dy, dy]", "returned a list; expected a tuple"),
        ("return dy @ W.T, None, None", "dW is None: still to do"),
        ("return dy @ W.T, 'dW', None", "dW is a str; expected an array"),
        ("return -dy @ W.T, None, None", "dx has the wrong sign, everywhere"),
        ("return 3 * dy @ W.T, None, None", "dx is 3 times too large, everywhere"),
        ("return 0 * dy @ W.T, None, None", "dx is 0 everywhere"),
        ("return dy @ W.T * np.nan, None, None", "dx holds NaN or infinity, in 18 of its 18"),
        ("return dy @ W.T + 1j, None, None", "dx is complex"),
        ("return (dy @ W.T)[None], None, None", "dx is not summed over the batch"),
        ("return (dy @ W.T).ravel(), None, None", "dx has the wrong shape"),
        ("return (dy @ W.T).sum(0), None, None", "dx is summed over too many axes"),
        ("return dy @ W.T + np.eye(6, 3), None, None", "dx is wrong in 3 of its 18 entries"),
        ("return dW, dW, dW", "line 35 failed, `return dW, dW, dW`: NameError"),
        ("return 1 / 0", "ZeroDivisionError: division by zero [x (6, 3), W (3, 4), b (4,), dy (6"),
        ("raise SystemExit", "the file exits Python"),
        ("return linear_backward(dy, cache)", "RecursionError"),
        ("return input()", "failed"),
    ],
)
def test_what_came_back_is_explained(body, expected):
    assert expected in message_of(verdict("linear_backward", with_body("linear_backward", body)))


def test_a_second_call_may_not_differ():
    """The first calls are for the values and for float32; then gradcheck looks at the rules."""
    body = "calls.append(1)\nreturn np.where(x > 0, dy, 0) * (2.0 if len(calls) == 6 else 1.0)"
    text = with_body("relu_backward", body)
    text = text.replace("import numpy as np", "import numpy as np; calls = []")
    assert "called twice gave two results" in message_of(verdict("relu_backward", text))


def test_gradcheck_has_the_last_word():
    """A file that keeps its activations in a global is right for as long as it is used once."""
    text = exercise("softmax_backward").solution
    for right, wrong in [
        ("import numpy as np", "import numpy as np\n\nsaved = {}"),
        ("    return y, y", "    saved['y'] = y\n    return y, y"),
        ("    y = cache", "    y = saved['y']"),
    ]:
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    message = message_of(verdict("softmax_backward", text))
    rule = "applied twice, the second forward pass spoilt the first one's cache"
    assert message == f"gradcheck: {rule}"


@pytest.mark.parametrize(
    ("name", "invariant"),
    [
        ("softmax_backward", "gradient_of_softmax"),
        ("layer_norm_backward", "gradient_of_layer_norm"),
        ("dropout_backward", "gradient_of_one_dropout_used_twice"),
    ],
)
def test_the_museums_invariants_are_asked_as_well(name, invariant):
    """These are right for all shapes but the one that the invariant tries."""
    shape = {"softmax_backward": (2, 4), "layer_norm_backward": (3, 6)}.get(name, (4, 6))
    text = exercise(name).solution.replace(
        f"def {name}(dy, cache):\n",
        f"def {name}(dy, cache):\n    dy = dy * (1 + (dy.shape == {shape}))\n",
    )
    assert f"{invariant} fails: " in message_of(verdict(name, text))


def test_a_function_that_was_changed_or_is_gone_is_named():
    text = exercise("linear_backward").solution.replace("x @ W + b", "x @ W - b")
    message = message_of(verdict("linear_backward", text))
    assert "linear gives other numbers than the one you were given" in message
    assert "npformer exercises start DIR linear_backward --force" in message
    text = exercise("linear_backward").solution.replace("def linear_backward", "def backward")
    assert "linear_backward is not defined any more" in message_of(verdict("linear_backward", text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\nfor x in\n", "Python cannot read line 2, `for x in`: invalid syntax"),
        ("x = 1\n  y = 2\n", "Python cannot read line 2, `y = 2`: unexpected indent"),
        ("import numpi\n", "line 1 failed, `import numpi`: ModuleNotFoundError"),
        ("x = '\0'", "Python cannot read"),
        ("", "linear is not defined any more"),
    ],
)
def test_a_file_that_does_not_run_is_explained(text, expected):
    answer = verdict("linear_backward", text)
    assert answer.state == "wrong"
    assert expected in message_of(answer)


def test_files_do_not_see_each_other():
    first = Answer("mine = 1\nimport numpy as np\n", "a.py")
    first.run()
    second = Answer("theirs = 'mine' in globals()\n", "b.py")
    second.run()
    assert second.names["theirs"] is False
    assert first.names["__name__"] == second.names["__name__"] == MODULE


def test_what_a_file_prints_is_kept_without_the_calls_of_gradcheck():
    text = exercise("relu_backward").solution.replace(
        "    return dy", "    print('of shape', x.shape)\n    return dy"
    )
    printed = verdict("relu_backward", text).printed
    assert printed.startswith("of shape (4, 5)\n")
    assert len(printed.splitlines()) < 10


@pytest.mark.parametrize("body", ["for i in range(3000): print(i)", "print('0' * 3000)"])
def test_long_printing_is_cut_short(body):
    text = with_body("relu_backward", f"{body}\nreturn dy * (x > 0)")
    printed = verdict("relu_backward", text).printed
    assert printed.startswith("0")
    assert len(printed) < 2100
    assert len(printed.splitlines()) <= 21
    assert re.search(r"\n\.\.\. and so on, \d+ characters$", printed)


def test_a_long_error_is_cut_short():
    answer = verdict("relu_backward", with_body("relu_backward", "raise ValueError('no' * 5000)"))
    assert "nono... and so on, 10000 characters" in message_of(answer)
    assert len(message_of(answer)) < 500
