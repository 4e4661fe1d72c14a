"""A file of the page is read as the command line reads it."""

import pytest

import npformer as nf
from npformer.learn.play.tasks import choices, defaults, work_of

LINES = "".join(f"good film {k},yes\nbad film {k},no\n" for k in range(12))


@pytest.fixture
def incomplete_table(tmp_path):
    """Return the task of a table of repeated texts, of which 2 rows lack a text or a label."""
    file = tmp_path / "a.csv"
    file.write_text(f"text,label\n{LINES * 3} ,yes\nodd film,\n")
    with pytest.warns(UserWarning, match="2 of 74 rows of .* have no text or no label"):
        return work_of(defaults("file", file=str(file)))


def test_repeated_texts_are_left_out(incomplete_table):
    """Else a text would be in both parts."""
    assert len(incomplete_table.parts["train"]) == 22
    assert len(incomplete_table.parts["validation"]) == 2
    assert len(incomplete_table) == 2


def test_rows_without_a_text_or_label_are_left_out(incomplete_table):
    assert {*incomplete_table.parts["train"].labels} == {"no", "yes"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (LINES.replace("no", "yes"), "only the class 'yes'; expected at least 2 classes"),
        ("".join(f"film {i},{i}\n" for i in range(12)), "12 different labels .* Choose another"),
    ],
)
def test_labels_that_are_no_classes_are_refused(tmp_path, lines, said):
    file = tmp_path / "a.csv"
    file.write_text(f"text,label\n{lines}")
    with pytest.raises(ValueError, match=said):
        work_of(defaults("file", file=str(file)))


def test_a_long_text_is_cut(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("to be or not to be\n" * 20_000)
    work = work_of(defaults("text", file=str(file)))
    assert [len(work.parts[name]) for name in ("train", "validation")] == [270_000, 30_000]


@pytest.mark.parametrize("word", ["24", "-1", "\u00b2", "\u0663", "9" * 5000])
def test_a_word_that_is_no_number_of_the_task_is_named(word):
    with pytest.raises(ValueError, match=f"^the text has '{word}'; expected 1 to 17 numbers from"):
        work_of(defaults("pointer")).arrays(f"1 {word}")


def test_a_table_is_what_the_page_opens_with(tmp_path):
    rows = [f"{k % 2},the news number {k} of today,{k}" for k in range(20)]
    (tmp_path / "news.csv").write_text("\n".join(["topic,headline,number", *rows * 9]), "utf-8")
    form = choices(str(tmp_path / "news.csv"))
    assert (form["first"], form["columns"]) == ("file", ["topic", "headline", "number"])
    defaults = next(task for task in form["tasks"] if task["name"] == "file")["defaults"]
    assert (defaults["text_column"], defaults["label_column"]) == ("headline", "topic")
    assert defaults["file"] == form["file"]
    classifier = nf.TextClassifier(members=1)  # as npformer train has it
    classifier.fit([f"text {k}" for k in range(18)], [k % 2 for k in range(18)], progress=False)
    for name in ("epochs", "batch_size", "lr"):
        assert defaults[name] == classifier.settings_[name]
    (tmp_path / "book.txt").write_text("a text", "utf-8")
    assert choices(str(tmp_path / "book.txt"))["first"] == "text"
    (tmp_path / "none.csv").write_text("a,b\n1,2,3\n", "utf-8")
    assert choices(str(tmp_path / "none.csv"))["columns"] == []
    assert choices()["first"] is None


@pytest.mark.parametrize(
    ("lines", "columns"),
    [
        ("a,b\n1,2\n3,4\n", ("a", "b")),  # never one for both
        ("text,notes\nA,A long note\nB,A note\nA,No\n", ("text", "notes")),
        ("year,topic,title\n2026,x,A long one\n2026,y,Another\n2026,y,C\n", ("title", "topic")),
        ("text,label,topic\nA,1,x\nB,1,y\nC,1,y\n", ("text", "topic")),
        ("text,source\nA,web\nB,\n", ("text", "")),  # a single value is no label
    ],
)
def test_a_label_that_is_guessed_has_two_values_at_least(tmp_path, lines, columns):
    (tmp_path / "a.csv").write_text(lines, "utf-8")
    defaults = choices(str(tmp_path / "a.csv"))["tasks"][-1]["defaults"]
    assert (defaults["text_column"], defaults["label_column"]) == columns


def test_fasttext_s_lines_are_labelled_texts(tmp_path):
    lines = [f"__label__{'ab'[k % 2]} the news number {k}" for k in range(20)]
    (tmp_path / "news.txt").write_text("\n".join(lines), "utf-8")
    form = choices(str(tmp_path / "news.txt"))
    assert (form["first"], form["columns"]) == ("file", ["label", "text"])
