"""npformer predict and evaluate: what they read, print and write, and their errors."""

import numpy as np
import pytest

import npformer as nf
from tests.cli.conftest import metrics_of, names, run


@pytest.fixture
def held_out():
    return nf.data.digits().test


@pytest.fixture
def model(trained):
    return nf.load(trained / "model.safetensors")


def labels_of(model, x):
    return [str(label) for label in model.predict(x)]


def test_without_input_it_predicts_test_data(trained, model, capsys, held_out):
    assert run("predict", trained, "--samples", 3) == 0
    x, y = held_out
    predicted = labels_of(model, x[:3])
    expected = [f"{p}   label {label}" for p, label in zip(predicted, y[:3], strict=True)]
    out, err = capsys.readouterr()
    assert out.splitlines() == expected
    assert err.startswith("3 samples on CPU (")
    assert err.count("\n") == 1


# Files --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_it_reads_npy(trained, model, prints, tmp_path, held_out, dtype):
    x = np.rint(held_out[0][:4]).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    expected = labels_of(model, x.astype("float32"))
    assert prints("predict", trained, tmp_path / "x.npy").split() == expected


@pytest.mark.parametrize("samples", [1, 4])
def test_it_reads_csv(trained, model, prints, tmp_path, held_out, samples):
    x = held_out[0][:samples]
    np.savetxt(tmp_path / "x.csv", x.reshape(samples, -1), delimiter=",")
    expected = labels_of(model, x)
    assert prints("predict", trained, tmp_path / "x.csv").split() == expected


@pytest.mark.parametrize("text", [b"0,1,2\n6,5,4\n", b"\xef\xbb\xbf0,1,2\r\n6,5,4\r\n\r\n"])
def test_it_reads_token_ids_from_csv(tokens, prints, tmp_path, text):
    path, model = tokens
    (tmp_path / "x.csv").write_bytes(text)
    expected = labels_of(model, np.array([[0, 1, 2], [6, 5, 4]]))
    assert prints("predict", path, tmp_path / "x.csv").splitlines() == expected


def test_it_takes_a_mask(tokens, prints, tmp_path, token_batch):
    path, model = tokens
    ids, _, mask = token_batch
    np.save(tmp_path / "x.npy", ids)
    np.save(tmp_path / "mask.npy", mask)
    lines = prints(
        "predict", path, tmp_path / "x.npy", "--probabilities", "--mask", tmp_path / "mask.npy"
    ).splitlines()
    printed = np.array([line.split() for line in lines], float)
    np.testing.assert_allclose(printed, model.predict_probabilities(ids, mask), atol=6e-5)


def test_probabilities_sum_to_one(trained, prints):
    for line in prints("predict", trained, "--samples", 4, "--probabilities").splitlines():
        numbers = [float(word) for word in line.partition("label")[0].split()]
        assert len(numbers) == 10
        assert sum(numbers) == pytest.approx(1.0, abs=6e-4)


@pytest.mark.parametrize("probabilities", [False, True])
def test_it_writes_npy(trained, model, prints, tmp_path, held_out, probabilities):
    out = tmp_path / "out.npy"
    words = ["--probabilities"] if probabilities else []
    printed = prints("predict", trained, "--samples", 6, "--out", out, *words)
    expected = (model.predict_probabilities if probabilities else model.predict)(held_out[0][:6])
    np.testing.assert_array_equal(np.load(out), expected)
    assert printed.startswith(f"{out}: {expected.dtype} {expected.shape}")


def test_several_files_are_one(trained, model, prints, tmp_path, held_out):
    x = held_out[0].astype(model.dtype)[:50]
    for k, rows in enumerate(np.array_split(x, 3)):
        np.save(tmp_path / f"x-{k}.npy", rows)
    expected = labels_of(model, x)
    assert prints("predict", trained, tmp_path / "x-*.npy").split() == expected
    out = tmp_path / "out.npy"
    assert prints("predict", trained, tmp_path / "x-*.npy", "--out", out).startswith(f"{out}: int")
    assert [str(label) for label in np.load(out)] == expected


def test_with_a_mask_in_several_files(tokens, prints, tmp_path, token_batch):
    path, model = tokens
    ids, _, mask = token_batch
    for name, array in (("x", ids), ("mask", mask)):
        for k, rows in enumerate(np.array_split(array, 2)):
            np.save(tmp_path / f"{name}-{k}.npy", rows)
    out = tmp_path / "out.npy"
    prints(
        "predict",
        path,
        tmp_path / "x-*.npy",
        "--mask",
        tmp_path / "mask-*.npy",
        "--out",
        out,
        "--probabilities",
    )
    expected = model.predict_probabilities(ids, mask)
    np.testing.assert_allclose(np.load(out), expected, atol=1e-6)


def test_a_large_file_is_not_read_at_once(trained, model, prints, tmp_path, held_out, monkeypatch):
    monkeypatch.setattr("npformer.data.stored_samples.MOST_AT_ONCE", 7)
    lengths = []
    predict = nf.SequenceClassifier.predict

    def noted(self, x, *arguments):
        lengths.append(len(x))
        return predict(self, x, *arguments)

    monkeypatch.setattr(nf.SequenceClassifier, "predict", noted)
    x = held_out[0].astype(model.dtype)[:20]
    np.save(tmp_path / "x.npy", x)
    prints("predict", trained, tmp_path / "x.npy", "--out", tmp_path / "out.npy")
    assert lengths == [1, 7, 7, 6]  # the first tells the shape


def test_batches_are_chosen(trained, prints, monkeypatch):
    sizes = []
    forward = nf.SequenceClassifier.forward

    def noted(self, x, context):
        sizes.append(len(x))
        return forward(self, x, context)

    monkeypatch.setattr(nf.SequenceClassifier, "forward", noted)
    prints("predict", trained, "--samples", 5, "--batch-size", 2)
    assert sizes == [2, 2, 1]


# Mistakes -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npy", None, "x.npy: No such file"),
        ("x.csv", None, "x.csv does not exist; expected a file"),
        ("x.npy", "", "x.npy is not an array of numbers in .npy format"),
        ("x.npy", "some text", "x.npy is not an array of numbers in .npy format"),
        ("x.npy", np.array([{"a": 1}]), "x.npy is not an array of numbers"),  # never unpickled
        ("x.npy", np.zeros((2, 8, 9)), "x has shape (2, 8, 9); expected (batch, length, 8)"),
        ("x.csv", "", "x.csv: line 1 is empty; expected one sample per line"),
        ("x.csv", "\n\n", "x.csv: line 1 is empty; expected one sample per line"),
        ("x.csv", "1,2\n\n3,4\n", "x.csv: line 2 is empty; expected one sample per line"),
        ("x.csv", "#1,2\n", "x.csv: could not convert string '#1' to float64 at row 0"),
        ("x.csv", "a,b\n1,2\n", "could not convert string 'a' to float64 at row 0, column 1; exp"),
        ("x.csv", "1,2\n1\n", "x.csv: the number of columns changed from 2 to 1 at row 2; expect"),
        ("x.csv", "1,2,3\n", "x.csv has 3 numbers a line; expected a multiple of the model's 8 f"),
        ("x.csv", ",".join(["0"] * 72), "x has length 9; expected at most max_len = 8"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_input_that_does_not_fit_is_one_line(trained, fails, tmp_path, name, content, message):
    if isinstance(content, str):
        (tmp_path / name).write_text(content)
    elif content is not None:
        np.save(tmp_path / name, content, allow_pickle=True)
    assert message in fails("predict", trained, tmp_path / name)


IDS = "expected whole numbers from 0 to 6"
DTYPE = "x has dtype float64; expected whole numbers"


@pytest.mark.parametrize(("text", "message"), [("0,7", IDS), ("0,-1", IDS), ("0,1.5", DTYPE)])
def test_token_ids_that_do_not_fit_are_one_line(tokens, fails, tmp_path, text, message):
    (tmp_path / "x.csv").write_text(text)
    assert message in fails("predict", tokens[0], tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # An error before anything is read:
        ("x.npy --out nowhere/y.npy", "--out nowhere/y.npy is in a folder that does not exist"),
        ("--out y", "--out is y; expected the name of a file that ends in .npy"),
        ("--out folder.npy", "folder.npy is a folder; expected the name of a file"),
    ],
)
def test_a_wrong_option_is_one_line(trained, fails, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.npy").mkdir()
    assert message in fails("predict", trained, *words.split())
    assert names(tmp_path) == {"folder.npy"}


@pytest.mark.parametrize(
    ("words", "split"),
    [
        (["."], "stratified"),
        (["model.safetensors"], "stratified"),
        (["model-ordered.safetensors"], "ordered"),
        ([".", "--split", "ordered"], "ordered"),
        (["model-ordered.safetensors", "--split", "ordered"], "ordered"),
    ],
)
def test_it_measures_the_same_as_training(trained, prints, words, split):
    file, *options = words
    out = prints("evaluate", trained / file, *options)
    result = metrics_of(trained)["splits"][split]
    assert f"digits, {split} split, 360 labels, on CPU (" in out
    assert f"accuracy {result['test_accuracy']:.4f}, loss {result['test_loss']:.4f} nats" in out
    assert "trained on" not in out


def test_it_prints_the_accuracy_of_each_class(trained, prints):
    rows = [line.split() for line in prints("evaluate", trained).splitlines()[-10:]]
    assert [int(row[0]) for row in rows] == list(range(10))
    assert sum(int(labels) for _, labels, *_ in rows) == 360
    hits = sum(int(labels) * float(recall) for _, labels, _, recall, _ in rows)
    accuracy = metrics_of(trained)["splits"]["stratified"]["test_accuracy"]
    assert hits / 360 == pytest.approx(accuracy, abs=1e-3)


def test_it_warns_about_a_split_that_may_have_been_trained_on(trained, prints):
    out = prints("evaluate", trained / "model.safetensors", "--split", "ordered")
    assert "trained on the stratified split and may have seen" in out


@pytest.mark.parametrize("split", ["both", "nope"])
def test_an_unknown_split_is_refused(trained, fails, split):
    line = fails("evaluate", trained, "--split", split)
    assert f"--split of task digits is {split!r}; expected one of 'stratified', 'ordered'" in line


def test_a_model_that_is_not_a_classifier_is_refused(tmp_path, small_config, fails):
    nf.save(nf.Encoder(small_config()), tmp_path / "encoder.safetensors")
    line = fails("evaluate", tmp_path / "encoder.safetensors")
    assert "holds a model of the class Encoder; expected one" in line
