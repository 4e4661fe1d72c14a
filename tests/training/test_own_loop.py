"""save_checkpoint and load_checkpoint, for training loops of one's own."""

import subprocess
import sys

import numpy as np
import pytest

import npformer as nf
from npformer.optim import cosine
from npformer.training.storage.checkpoint_folder import CHECKPOINT
from tests.training.common import assert_same_weights, fit


def steps(model, optimizer, rng, data, n):
    """Take n steps on random samples, with dropout."""
    x, y = data
    for _ in range(n):
        rows = rng.integers(0, len(x), 8)
        _, gradients = model.loss_and_gradients(x[rows], y[rows], seed=rng)
        optimizer.step(gradients)


def begun(make, schedule=None, **options):
    model = make(dropout=0.2, **options)
    return model, nf.Adam(model.parameters(), schedule=schedule), np.random.default_rng(5)


@pytest.mark.parametrize(
    ("schedule", "dtype"),
    [(None, "float32"), ("cosine(total=9, warmup=2)", "float64"), (cosine(9), "float32")],
)
def test_a_loop_goes_on_bit_for_bit(make, data, tmp_path, schedule, dtype):
    data = (data[0].astype(dtype), data[1])
    model, optimizer, rng = begun(make, schedule, dtype=dtype)
    steps(model, optimizer, rng, data, 4)
    nf.save_checkpoint(tmp_path, model, optimizer, generators={"rows": rng}, notes={"step": 4})
    steps(model, optimizer, rng, data, 5)

    checkpoint = nf.load_checkpoint(tmp_path)
    assert checkpoint.notes == {"step": 4}
    assert checkpoint.history is None
    assert checkpoint.optimizer.steps == 4
    steps(checkpoint.model, checkpoint.optimizer, checkpoint.generators["rows"], data, 5)
    assert_same_weights(checkpoint.model, model)
    assert checkpoint.optimizer.current_lr() == optimizer.current_lr()


def test_children_that_were_spawned_are_counted(make, tmp_path):
    model, optimizer, rng = begun(make)
    rng.spawn(3)
    nf.save_checkpoint(tmp_path, model, optimizer, generators={"rng": rng})
    loaded = nf.load_checkpoint(tmp_path).generators["rng"]
    assert loaded.spawn(1)[0].integers(1 << 60) == rng.spawn(1)[0].integers(1 << 60)
    assert loaded.integers(1 << 60) == rng.integers(1 << 60)


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_generator_of_numpy_comes_back(make, tmp_path, bits):
    model, optimizer, _ = begun(make)
    rng = np.random.Generator(getattr(np.random, bits)(7))
    rng.random(3, dtype="float32")  # leaves half a number behind
    nf.save_checkpoint(tmp_path, model, optimizer, generators={"rng": rng})
    loaded = nf.load_checkpoint(tmp_path).generators["rng"]
    np.testing.assert_array_equal(loaded.random(9, dtype="float32"), rng.random(9, dtype="float32"))


def test_the_checkpoint_of_fit_opens_too(make, data, tmp_path):
    model = make()
    history = fit(model, data, checkpoint=tmp_path)
    checkpoint = nf.load_checkpoint(tmp_path)
    assert_same_weights(checkpoint.model, model)
    assert checkpoint.history.train_loss == history.train_loss
    assert set(checkpoint.generators) == {"shuffle", "dropout"}
    with pytest.raises(nf.CheckpointError, match=r"Checkpoint.*load_checkpoint"):
        nf.load(tmp_path / CHECKPOINT)


LOAD = """
import sys
import npformer
print(type(npformer.load_checkpoint(sys.argv[1]).model).__name__)
"""


def test_another_process_opens_a_checkpoint(make, tmp_path):
    """It has imported no class of models before."""
    model, optimizer, _ = begun(make)
    nf.save_checkpoint(tmp_path, model, optimizer)
    command = [sys.executable, "-c", LOAD, str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert finished.stdout.split() == ["SequenceClassifier"]


def test_fit_refuses_the_checkpoint_of_a_loop(make, data, tmp_path):
    model, optimizer, _ = begun(make)
    nf.save_checkpoint(tmp_path, model, optimizer)
    with pytest.raises(nf.CheckpointError, match="and not by fit; expected one"):
        fit(make(), data, checkpoint=tmp_path, resume=True)


def test_a_schedule_of_ones_own_is_passed_again(make, data, tmp_path):
    def half(step):
        return 0.5

    model, optimizer, _ = begun(make, half)
    nf.save_checkpoint(tmp_path, model, optimizer)
    with pytest.raises(ValueError, match=r"expected one of constant.*load_checkpoint\(folder, sch"):
        nf.load_checkpoint(tmp_path)
    assert nf.load_checkpoint(tmp_path, schedule=half).optimizer.current_lr() == 5e-4


def test_wrong_arguments_are_explained(make, tmp_path):
    model, optimizer, _ = begun(make)
    with pytest.raises(TypeError, match="optimizer is a str; expected an"):
        nf.save_checkpoint(tmp_path, model, "adam")
    with pytest.raises(ValueError, match="optimizer's parameters are not this model's"):
        nf.save_checkpoint(tmp_path, make(), optimizer)
    with pytest.raises(TypeError, match="folder is 3; expected a text or"):
        nf.save_checkpoint(3, model, optimizer)
    with pytest.raises(FileNotFoundError, match=f"there is no {CHECKPOINT} in"):
        nf.load_checkpoint(tmp_path / "nowhere")
    for wrong in (3, [np.random.default_rng(0)], {"rng": 3}):
        with pytest.raises(TypeError, match=r"generators is .*; expected a dict of numpy"):
            nf.save_checkpoint(tmp_path, model, optimizer, generators=wrong)
    with pytest.raises(TypeError, match=r"history is a dict; expected a History\. fit"):
        nf.save_checkpoint(tmp_path, model, optimizer, history={})
    with pytest.raises(TypeError, match="notes is"):
        nf.save_checkpoint(tmp_path, model, optimizer, notes=[])
    assert list(tmp_path.iterdir()) == []
