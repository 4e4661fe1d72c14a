"""What evaluate and predict say about a MODEL that is damaged or doubtful."""

import numpy as np
import pytest

import npformer as nf
from tests.cli.conftest import run


@pytest.fixture
def path(tmp_path, trained):
    """Return a copy of a trained model."""
    copy = tmp_path / "model.safetensors"
    copy.write_bytes((trained / "model.safetensors").read_bytes())
    return copy


def damage(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_damaged_model_is_refused(path, fails, command):
    damage(path)
    assert "or --force on the command line" in fails(command, path)


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_damaged_model_is_loaded_with_force(path, capsys, command):
    damage(path)
    assert run(command, path, "--force") == 0
    err = capsys.readouterr().err
    assert f"warning: {path}: it does not match its checksum; it was loaded" in err
    assert ".py" not in err


def test_damaged_notes_need_force_too(path, fails, capsys):
    path.write_bytes(path.read_bytes().replace(b'\\"seed\\": 0', b'\\"seed\\": 1'))
    assert "it does not match its checksum" in fails("evaluate", path)
    assert run("evaluate", path, "--force") == 0
    assert "it does not match its checksum" in capsys.readouterr().err


@pytest.mark.parametrize(
    "notes", [{"task": ["digits"]}, {"task": "chess"}, {"split": 3}, {"seed": "0"}, {"seed": None}]
)
def test_notes_that_name_no_task_are_refused_in_words(path, fails, notes):
    nf.save(nf.load(path), path, notes={**nf.read_notes(path), **notes})
    assert "does not say which task, split and seed it was trained on" in fails("evaluate", path)


def test_nan_in_weights_is_told_in_a_line(path, capsys):
    model = nf.load(path)
    model.parameters()["classify.bias"][1] = np.nan
    nf.save(model, path, notes=nf.read_notes(path))
    assert run("predict", path, "--samples", 1) == 2  # the probabilities are NaN
    first = capsys.readouterr().err.splitlines()[0]
    warning = (
        f"npformer predict: warning: {path}: NaN or infinity is in classify.bias (1 of 10), so"
    )
    assert first.startswith(warning)


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_device_is_no_model(fails, command):
    assert "/dev/zero is not a regular file" in fails(command, "/dev/zero")


@pytest.mark.parametrize("shape", ["(1000000000000, 6)", "(6,), 'more': (", "(-1,)", "9" * 30])
def test_an_input_that_lies_about_its_shape_is_refused(tokens, fails, tmp_path, shape):
    path, _ = tokens
    np.save(tmp_path / "x.npy", np.zeros((2, 6), "int64"))
    data = (tmp_path / "x.npy").read_bytes()
    header = data[10:128].replace(b"(2, 6)", shape.encode())[:117] + b"\n"
    (tmp_path / "x.npy").write_bytes(data[:10] + header + data[128:])
    assert "is not an array of numbers in .npy format" in fails("predict", path, tmp_path / "x.npy")
