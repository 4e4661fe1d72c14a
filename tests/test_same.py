"""`python -m benchmarks same` notices a changed number, and its trainings meet every part."""

import shutil

import pytest

import npformer as nf
from benchmarks import same
from benchmarks.trainings import TASKS, TRAININGS, results_of
from npformer.layers import ACTIVATIONS, FFNS, NORMS, POOLINGS
from npformer.models import POSITIONS
from npformer.models.losses import LOSSES

ADAM = "npformer/optim/adam.py"


def test_the_trainings_meet_every_part():
    configs = [training.config for training in TRAININGS.values()]
    mixers = {nf.MIXERS.parse(mixer, "mixer")[0] for config in configs for mixer in config.mixers()}
    assert mixers == set(nf.MIXERS)
    for name, choices in {
        "activation": ACTIVATIONS,
        "ffn": FFNS,
        "norm": ("post", "pre"),
        "norm_kind": NORMS,
        "padding": ("refuse", "per_length", "zero"),
        "positions": POSITIONS,
    }.items():
        assert {getattr(config, name) for config in configs} == set(choices), name
    for name, choices in {
        "dtype": ("float32", "float64"),
        "output": LOSSES,
        "pooling": POOLINGS,
        "task": TASKS,
        "workers": (1, 2),
    }.items():
        assert {getattr(training, name) for training in TRAININGS.values()} == set(choices), name


@pytest.mark.parametrize("name", ["attention", "accumulating"])
def test_a_training_gives_the_same_digests_again(name):
    digests, _ = results_of(TRAININGS[name])
    assert digests == results_of(TRAININGS[name])[0]
    assert set(digests) == {"weights", "losses", "outputs", "tokens"}


@pytest.mark.parametrize("name", ["attention", "accumulating"])
def test_a_training_is_long_enough(name):
    _, history = results_of(TRAININGS[name])
    assert sum(history["workers"].values()) >= 20
    assert len(history["train_loss"]) >= 2


@pytest.mark.processes
def test_a_changed_number_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.delitem(same.WAYS, "loops compiled")  # which takes a while
    shutil.copytree(same.ROOT / "npformer", tmp_path / "npformer")
    words = ["--in", str(tmp_path), "--only", "rms-gated"]
    same.run(words)
    assert capsys.readouterr().out.endswith("1 trainings: all equal\n")
    text = (same.ROOT / ADAM).read_text("utf-8")
    assert text.count("eps: float = 1e-8") == 1
    (tmp_path / ADAM).write_text(text.replace("eps: float = 1e-8", "eps: float = 1e-6"), "utf-8")
    with pytest.raises(SystemExit, match=r"^1$"):
        same.run(words)
    assert capsys.readouterr().out.endswith(
        "rms-gated, loops not compiled: weights, losses, outputs\n"
        "rms-gated, kernels off: weights, losses, outputs\n"
        "1 trainings: 1 differ\n"
    )
