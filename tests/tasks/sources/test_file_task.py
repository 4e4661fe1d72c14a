"""What a file to train on is taken for; every task can be built and trained."""

import warnings

import numpy as np
import pytest

import npformer as nf
from npformer.tasks.sources.choose_task import choose_task
from npformer.tasks.sources.file_task import FileTask
from npformer.tasks.sources.recipes import RECIPES

WORDS = ["spam", "ham"] * 10


def texts(tmp_path, *labels):
    """Write texts with labels, and return the file."""
    path = tmp_path / "a.csv"
    rows = [f"text {i},{label}" for i, label in enumerate((*labels, *WORDS))]
    path.write_text("text,label\n" + "\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize("word", ["NaN", "nan", "", "<NA>", "null", " NaT ", r"\N"])
def test_a_word_for_no_label_is_no_class(tmp_path, word):
    file = texts(tmp_path, "ham", word)
    with pytest.raises(ValueError, match=r"1 of 22 labels are empty, the first is in line 3.*skip"):
        choose_task(file, {}).parts()
    with pytest.warns(UserWarning, match="1 of 22 rows"):
        splits, _ = choose_task(file, {"skip_empty": True}).parts()
    assert set(splits["train"].labels) == {"spam", "ham"}


@pytest.fixture
def table_with_a_short_row(tmp_path):
    """Return a table whose third line has a text alone, without a comma behind it."""
    file = texts(tmp_path, "ham", "spam")
    path = tmp_path / "a.csv"
    path.write_text(path.read_text().replace("text 1,spam", '"text 1"'))
    return file


def test_a_row_that_ends_before_its_label_is_skipped_if_asked(table_with_a_short_row):
    with pytest.warns(UserWarning, match="1 of 22 rows"):
        splits, _ = choose_task(table_with_a_short_row, {"skip_empty": True}).parts()
    assert sum(map(len, splits.values())) == 21


def test_a_row_that_ends_before_its_label_leads_to_the_option(table_with_a_short_row):
    with pytest.raises(ValueError, match=r"line 3 has 1 field .* 'label', .* --skip-empty"):
        choose_task(table_with_a_short_row, {}).parts()


def test_texts_are_not_their_own_labels(tmp_path):
    file = texts(tmp_path, "ham", "eggs")
    task = FileTask(kind="texts", file=file, text="text", label="text")  # as a page makes it
    for read in (task.parts, lambda: choose_task(file, {"label": "text"}).parts()):
        with pytest.raises(ValueError, match="'text' is named for the texts and for the labels"):
            read()


def test_a_word_that_may_be_a_class_is_doubted_while_it_is_rare(tmp_path):
    with pytest.warns(UserWarning, match=r"1 of 22 labels are 'None', the first in line 3"):
        choose_task(texts(tmp_path, "ham", "None"), {}).parts()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        splits, _ = choose_task(texts(tmp_path, *["none"] * 10), {}).parts()
    assert "none" in splits["train"].labels


@pytest.mark.parametrize(
    ("heading", "given", "expected"),
    [
        ("label,t0,t1", {}, ("series", "label", None)),
        ("t0,t1,gait", {}, ("series", "gait", None)),
        ("t0,t1,gait", {"label": "gait"}, ("series", "gait", None)),
        ("t0,t1,label", {"id": "t0"}, ("series", "label", ["t1"])),
        ("t0,t1,label", {"text": "t0"}, ("texts", "label", None)),
        ("text,t1,label", {}, ("texts", "label", None)),
    ],
)
def test_a_series_a_row_is_known_by_its_heading(tmp_path, heading, given, expected):
    (tmp_path / "a.csv").write_text(f"{heading}\n1,2,3\n4,5,6\n")
    task = choose_task(str(tmp_path / "a.csv"), given)
    assert (task.kind, task.label, task.features) == expected


@pytest.fixture
def row_task(tmp_path):
    """Return the task of a table with a series in each row."""
    (tmp_path / "a.csv").write_text("label,t0,t1\nup,1,2\ndown,2,1\n")
    return choose_task(str(tmp_path / "a.csv"), {})


@pytest.mark.parametrize(
    ("labelled", "labels"),
    [
        (False, None),
        (True, ["up", "down"]),
    ],
)
def test_a_row_is_a_series(row_task, labelled, labels):
    dataset = row_task.read(row_task.file, labelled=labelled)
    assert [series.ravel().tolist() for series in dataset.samples] == [[1, 2], [2, 1]]
    assert dataset.labels == labels


def test_rows_to_predict_need_no_column_of_labels(row_task, tmp_path):
    (tmp_path / "b.csv").write_text("t0,t1\n1,2\n2,1\n")
    dataset = row_task.read(str(tmp_path / "b.csv"), labelled=False)
    assert dataset.samples[1].tolist() == [[2], [1]]


def test_a_column_of_times_needs_one_of_ids(row_task):
    with pytest.raises(ValueError, match="time is given without id"):
        choose_task(row_task.file, {"time": "t0"}).parts()


ROWS_WITHOUT_HEADING = [f"1.0,{i / 7},{i / 9},{i % 2}" for i in range(12)]


@pytest.fixture
def task_without_heading(tmp_path):
    """Return the task of a table without a heading, as a run's notes give it back."""
    (tmp_path / "a.csv").write_text("\n".join(ROWS_WITHOUT_HEADING))
    task = choose_task(str(tmp_path / "a.csv"), {"label": "last"})
    return FileTask.from_notes(task.to_dict())


def test_notes_hold_the_columns_of_a_table_without_a_heading(task_without_heading):
    assert (task_without_heading.label, task_without_heading.n_columns) == ("last", 4)


@pytest.mark.parametrize("n_columns", [4, 3], ids=["labelled", "not labelled"])
def test_rows_without_a_heading_are_read(task_without_heading, tmp_path, n_columns):
    rows = [",".join(row.split(",")[:n_columns]) for row in ROWS_WITHOUT_HEADING[:2]]
    (tmp_path / "b.csv").write_text("\n".join(rows))
    dataset = task_without_heading.read(str(tmp_path / "b.csv"), labelled=False)
    assert dataset.labels is None
    assert dataset.samples[1].ravel().tolist() == [1.0, 1 / 7, 1 / 9]


def test_rows_without_a_heading_need_as_many_columns(task_without_heading, tmp_path):
    (tmp_path / "b.csv").write_text("1.0,0.5\n1.0,0.25\n")
    expected = r"has 2 columns and no heading; expected 4, .* or 3 without"
    with pytest.raises(ValueError, match=expected):
        task_without_heading.read(str(tmp_path / "b.csv"), labelled=False)


def test_without_a_heading_the_column_of_labels_must_be_told(tmp_path):
    (tmp_path / "c.csv").write_text("0.5,0.25,0.5\n0.25,0.5,0.5\n")
    with pytest.raises(ValueError, match=r"where does .* --label first, or --label last"):
        choose_task(str(tmp_path / "c.csv"), {})


@pytest.mark.parametrize("label", ["first", "last"])
@pytest.mark.parametrize("classes", [("1", "2"), ("up", "down")])
def test_series_with_labels_at_the_other_end_than_the_training_s(tmp_path, label, classes):
    def write(name, n, at_first):
        rows = [[classes[i % 2]] for i in range(n)]
        for i, row in enumerate(rows):
            row[at_first * len(row) : at_first * len(row)] = [f"{i + 0.25}", "0.5", f"{i + 0.75}"]
        (tmp_path / name).write_text("".join(",".join(row) + "\n" for row in rows))
        return str(tmp_path / name)

    task = choose_task(write("a.csv", 12, label == "first"), {})
    task = FileTask.from_notes(task.to_dict())
    assert task.label == label
    for n in (2, 12):
        same_end = task.read(write("b.csv", n, label == "first"), labelled=False)
        assert same_end.samples[1].ravel().tolist() == [1.25, 0.5, 1.75]
        with pytest.raises(ValueError, match=f"has values in its {label} column, where the train"):
            task.read(write("c.csv", n, label == "last"), labelled=False)


@pytest.mark.parametrize("word", ["1", "?", "", "NaN"])
def test_series_with_placeholders_for_labels(tmp_path, word):
    (tmp_path / "a.csv").write_text("".join(f"{i % 2},0.5,{i % 3}\n" for i in range(12)))
    task = choose_task(str(tmp_path / "a.csv"), {"label": "first"})
    (tmp_path / "b.csv").write_text("".join(f"{word},0.5,{i % 3}\n" for i in range(12)))
    dataset = task.read(str(tmp_path / "b.csv"), labelled=False)
    assert dataset.samples[1].ravel().tolist() == [0.5, 1]
    with_heading = f"first,t1,last\n{(tmp_path / 'b.csv').read_text()}".replace("last", "t2")
    (tmp_path / "b.csv").write_text(with_heading)
    dataset = task.read(str(tmp_path / "b.csv"), labelled=False)
    assert dataset.samples[1].ravel().tolist() == [0.5, 1]


def test_texts_without_labels_are_lines_or_a_column(tmp_path):
    (tmp_path / "in").mkdir()
    for file in (tmp_path / "in", tmp_path / "in" / "a.txt", tmp_path / "b.csv"):
        (tmp_path / "in" / "a.txt").write_text("one\n\n two words \none\n")
        (tmp_path / "b.csv").write_text("label,text\nx,one\ny,two words\nz,one\n")
        task = choose_task(str(file), {"test": "0"}, labelled=False)
        notes = task.to_dict()
        splits, _ = FileTask.from_notes(notes).parts()
        assert splits["train"].data() == (["one", "two words"],)
        changed = tmp_path / ("b.csv" if file.suffix == ".csv" else "in/a.txt")
        changed.write_text("others\n")
        with pytest.raises(ValueError, match="has changed since"):
            FileTask.from_notes(notes)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"without a file of text; expected some that end in .txt"):
        choose_task(str(tmp_path / "empty"), {}, labelled=False).parts()


@pytest.fixture(scope="module", params=list(RECIPES))
def built(request):
    """Return a recipe and its data."""
    recipe = RECIPES[request.param]
    return recipe, recipe.load(next(iter(recipe.splits)), 0)


def test_a_recipe_takes_a_training_step(built):
    recipe, data = built
    model = recipe.model(data)
    guessed = nf.evaluate(model, (data.test[0][:256], data.test[1][:256]))
    assert guessed.accuracy < 1.0 / data.n_classes + 0.2
    x, y = data.train[0][:8], data.train[1][:8]
    options = {n: v for n, v in recipe.training.items() if n not in ("epochs", "warmup")}
    before = model.parameters().flat.copy()
    assert np.isfinite(nf.fit(model, (x, y), epochs=1, progress=False, **options).train_loss).all()
    assert not np.array_equal(model.parameters().flat, before)


def test_another_seed_gives_another_model(built):
    recipe, data = built
    one, other = (recipe.model(data, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.parameters().flat, other.parameters().flat)


def test_a_model_has_positions_for_its_data(built):
    recipe, data = built
    assert recipe.model(data).config.max_len == data.length == data.test[0].shape[1]


def test_a_model_of_a_recipe_can_be_changed(built):
    recipe, data = built
    changed = recipe.model(data, dtype="float64", n_layers=1, mixer="identity", pooling="first")
    assert (changed.dtype, changed.config.mixers()) == ("float64", ("identity",))
    assert changed.pooling == "first"
    assert recipe.model(data).pooling == recipe.pooling


def test_a_recipe_has_a_name_with_a_summary(built):
    recipe, _ = built
    assert recipe.summary
    assert recipe is RECIPES[recipe.name]


def test_a_recipe_has_all_settings_of_the_training(built):
    recipe, _ = built
    names = "epochs batch_size lr warmup weight_decay label_smoothing clip_norm"
    assert set(recipe.training) == set(names.split())


def test_generated_data_follows_the_seed():
    one, other = (RECIPES["reverse"].load("generated", seed) for seed in (0, 1))
    assert not np.array_equal(one.train[0], other.train[0])


def parts_of(tmp_path, labels):
    """Return the parts of a file of texts with labels."""
    rows = [f'text {i},"{label}"' for i, label in enumerate(labels)]
    (tmp_path / "a.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return choose_task(str(tmp_path / "a.csv"), {}).parts()[0]


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (["a", "b", "a;b"] * 5, r"5 of 15 labels name several classes, such as 'a;b'"),
        (["a", "b", "b|c"] * 5, r"5 of 15 labels name several classes, such as 'b|c'"),
        (["a", "b"] * 9 + ["c"], r"1 class has only one or two texts: 'c' \(1\)\. .*ten or more"),
        (["a", "b"] * 9 + ["c", "d", "d"], r"2 classes .*: 'c' \(1\), 'd' \(2\)"),
        (["1", "1.5", "2"] * 5, r"are 3 numbers, such as 1, and are taken for names.*regression"),
        ([str(i % 30) for i in range(90)], r"are 30 numbers, such as 0, and are taken for names"),
    ],
)
def test_doubtful_labels_are_reported(tmp_path, labels, problem):
    with pytest.warns(UserWarning, match=problem):
        assert len(parts_of(tmp_path, labels)["test"]) > 0


@pytest.mark.parametrize(
    "labels",
    [
        ["yes", "no"] * 6,
        ["Portland, OR", "Salem, OR"] * 6,
        [str(i % 10) for i in range(60)],
        ["1.0", "2.0"] * 6,
    ],
    ids=["words", "names with a comma", "digits", "whole numbers as floats"],
)
def test_usual_labels_are_not_doubted(tmp_path, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = parts_of(tmp_path, labels)
    assert len(parts["train"]) + len(parts["test"]) == len(labels)


@pytest.mark.parametrize(
    "labels",
    [[f"{i / 7:.3f}" for i in range(20)], [f"{i % 25 / 4}" for i in range(100)]],
    ids=["each once", "many with fractions"],
)
def test_quantities_are_no_classes(tmp_path, labels):
    with pytest.raises(ValueError, match=r"different numbers, such as 0.*regression, which is not"):
        parts_of(tmp_path, labels)


def test_numbers_that_count_the_samples_are_no_quantities(tmp_path):
    with pytest.raises(ValueError, match="20 different labels for 20 samples"):
        parts_of(tmp_path, range(20))


def test_a_target_of_a_ts_file_is_no_class(tmp_path):
    rows = "\n".join(f"{i},2,3:{i / 7:.3f}" for i in range(20))
    (tmp_path / "a.ts").write_text(f"@targetLabel true\n@data\n{rows}\n")
    with pytest.raises(ValueError, match=r"labels of .*a\.ts are 20 different numbers"):
        choose_task(str(tmp_path / "a.ts"), {}).parts()


def split_table(tmp_path, parts):
    rows = [f"text {i},{'ab'[i % 2]},{part}" for i, part in enumerate(parts)]
    (tmp_path / "a.csv").write_text("text,label,subset\n" + "\n".join(rows) + "\n")
    return str(tmp_path / "a.csv")


@pytest.mark.parametrize("other", ["test", "Validation", "dev"])
def test_a_column_that_names_a_split_is_reported(tmp_path, other):
    file = split_table(tmp_path, ["train", other] * 6)
    problem = rf"column 'subset' of .*'{other.lower()}'.*, and is not used.*--test TEST"
    with pytest.warns(UserWarning, match=problem):
        task = choose_task(file, {})
    assert (task.text, task.label) == ("text", "label")


@pytest.mark.parametrize("values", [["train"], ["train", "bus"], ["test", "dev"]])
def test_a_column_with_other_words_names_no_split(tmp_path, values):
    file = split_table(tmp_path, values * 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task = choose_task(file, {})
    assert task.text == "text"
