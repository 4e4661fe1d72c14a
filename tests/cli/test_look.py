"""npformer look: it writes the report of a run, and says what is wrong in words."""

import re

import pytest

import npformer as nf
from npformer.tasks.sources.recipes import RECIPES
from tests.cli.conftest import TINY, metrics_of, run, train
from tests.tasks.reports.conftest import read


@pytest.fixture
def looked(trained, tmp_path, capsys):
    """Look at models and return the page; the path is what is printed."""

    def look(*words, status=0):
        out = tmp_path / "page.html"
        assert run("look", *words, "--out", out, "--overwrite") == status
        assert capsys.readouterr().out.splitlines()[-1] == str(out)
        return read(out)

    return look


def test_it_writes_the_report_beside_the_model(trained, prints):
    out = prints("look", trained)
    assert out == f"{trained / 'report.html'}\n"
    page = read(trained / "report.html")
    assert "digits, stratified split: a look inside" in page.text
    result = metrics_of(trained)["splits"]["stratified"]
    ((row,),) = page.table_after("model", "mixer")
    assert row[:4] == [
        trained.name,
        "attention",
        f"{result['test_accuracy']:.4f}",
        f"{result['test_loss']:.4f}",
    ]
    before = (trained / "report.html").read_bytes()
    prints("look", trained / "model.safetensors", "--overwrite")
    assert (trained / "report.html").read_bytes() == before.replace(
        f">{trained.name}".encode(), b">model.safetensors"
    )
    (trained / "report.html").unlink()


@pytest.mark.parametrize(("samples", "shown"), [("2", [0, 1]), ("7,3", [7, 3]), ("7,", [7])])
def test_samples_are_how_many_or_which(trained, looked, samples, shown):
    page = looked(trained, "--samples", samples)
    assert re.findall(r"^Sample (\d+): label", page.text, re.M) == [str(i) for i in shown]


def test_models_of_a_task_are_compared(trained, tmp_path, looked):
    other = train(tmp_path / "other", "--mixer", "fourier")
    page = looked(trained, "--compare", other, "--compare", trained / "model-ordered.safetensors")
    (rows,) = page.table_after("model", "mixer")
    assert [row[:2] for row in rows] == [
        [trained.name, "attention"],
        ["other", "fourier"],
        ["model-ordered.safetensors", "attention"],
    ]
    warned = "it was trained on the ordered split and may have seen some of the test data"
    assert page.text.count(f"other: {warned} of the stratified split") == 1
    assert f"{trained.name}: {warned}" not in page.text


def test_the_split_can_be_chosen(trained, looked):
    page = looked(trained, "--split", "ordered")
    ((row,),) = page.table_after("model", "mixer")
    assert row[2] == f"{metrics_of(trained)['splits']['ordered']['test_accuracy']:.4f}"
    assert "may have seen" not in page.text


@pytest.mark.parametrize("task", [name for name, recipe in RECIPES.items() if recipe.tokens])
def test_names_of_tokens_fit_the_task(task):
    dataset = RECIPES[task].load("generated", 0)
    tokens, classes = RECIPES[task].tokens, RECIPES[task].classes
    assert (len(tokens), len(classes)) == (dataset.vocab_size, dataset.n_classes)
    x, y = (array[0] for array in dataset.test)
    names = [tokens[i] for i in x]
    if task == "reverse":
        assert names[::-1] == [classes[i] for i in y]
    elif task == "pointer":
        assert names[int(names[-1].removeprefix("@"))] == classes[y[-1]]
    else:
        pairs = dict(pair.split("=") for pair in names[:8])
        assert [pairs[q.removesuffix("?")] for q in names[8:]] == [classes[i] for i in y[8:]]


@pytest.mark.parametrize("task", ["pointer", "majority"])
def test_every_kind_of_task_is_shown(task, tmp_path, looked):
    recipe = RECIPES[task]
    dataset = recipe.load("generated", 0)
    model = recipe.model(dataset, d_model=8, n_heads=1, d_ff=8)
    notes = {"task": task, "split": "generated", "seed": 0}
    nf.save(model, tmp_path / "model.safetensors", notes=notes)
    page = looked(tmp_path, "--samples", "1")
    assert page.of("ol", **{"class": "tokens"})
    assert ("@" in page.text) == (task == "pointer")
    assert page.text.startswith(f"{task}: a look inside")
    assert ("its label below" in page.text) == (task == "pointer")


def test_a_new_training_removes_the_report_of_the_old_one(tmp_path, prints, no_curves):
    folder = train(tmp_path / "run")
    prints("look", folder, "--overwrite")
    assert (folder / "report.html").exists()
    assert run("train", "digits", *TINY, "--split", "ordered", "--out", folder, "--overwrite") == 0
    assert not (folder / "report.html").exists()
    assert not list(folder.glob("replaced-*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--samples 0", "--samples is '0'; expected how many"),
        ("--samples 1,360", "a number in samples is 360; expected"),
        ("--samples 17", "at most 16"),
        ("--split random", "--split of task digits is 'random'"),
        ("--compare {run}", "expected different models to compare"),
        ("--compare {folder}/none", "there is no folder"),
        ("--compare {tokens}", "does not say which task"),
        ("--compare {parity}", "was trained on parity and"),
        ("--compare {wide}", "x has dtype float32 and the model float64"),
        ("--out {folder}", "is a folder; expected the name of a file"),
        (
            "--out {folder}/no/such.html",
            "/no/such.html is in a folder that does not exist; create it first",
        ),
        ("--plugin no_such_module", "no_such_module"),
    ],
)
def test_what_does_not_fit_is_refused(trained, tokens, tmp_path, fails, words, said):
    places = {"run": trained, "folder": tmp_path, "tokens": tokens[0]}
    for name, task, dtype in (("parity", "parity", "float32"), ("wide", "digits", "float64")):
        recipe = RECIPES[task]
        notes = {"task": task, "split": next(iter(recipe.splits)), "seed": 0}
        model = recipe.model(recipe.load(next(iter(recipe.splits)), 0), dtype=dtype)
        places[name] = tmp_path / f"{name}.safetensors"
        nf.save(model, places[name], notes=notes)
    line = fails("look", trained, "--overwrite", *(word.format(**places) for word in words.split()))
    assert said in line
    assert not (trained / "report.html").exists()
