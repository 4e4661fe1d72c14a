"""fit says before the first step that the memory will not do."""

import warnings

import numpy as np
import pytest

import npformer as nf
from npformer.core.support import free_memory
from npformer.training import memory_check

LARGE = 64 * 2**20


def classifier():
    config = nf.EncoderConfig(64, 2, 4, 256, max_len=128, dropout=0.1)
    return nf.SequenceClassifier(config, 3, vocab_size=50, seed=0)


def labelled_ids(samples=64):
    rng = np.random.default_rng(0)
    return rng.integers(50, size=(samples, 128)), rng.integers(3, size=samples)


def train_once(model, **options):
    return nf.fit(
        model, labelled_ids(), epochs=1, batch_size=64, progress=False, workers=1, **options
    )


@pytest.fixture
def left(monkeypatch):
    def set_free(n_bytes):
        monkeypatch.setattr(memory_check, "free_memory", lambda: n_bytes)

    return set_free


def test_a_step_that_does_not_fit_is_announced_with_numbers(left):
    left(32 * 2**20)
    with pytest.warns(UserWarning, match=r"64 samples with 128 tokens each will take about 0\.\d+"):
        train_once(classifier())


def test_the_advice_is_a_micro_batch_that_fits(left):
    left(32 * 2**20)
    with pytest.warns(UserWarning, match="micro_batch=") as caught:
        train_once(classifier())
    size = int(str(caught[0].message).partition("micro_batch=")[2].split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train_once(classifier(), micro_batch=size)


@pytest.mark.parametrize("n_bytes", [LARGE * 64, None], ids=["enough", "unknown"])
def test_nothing_is_said_otherwise(left, n_bytes):
    left(n_bytes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train_once(classifier())


def test_the_check_changes_no_number(left):
    left(LARGE * 64)
    expected, model = classifier(), classifier()
    train_once(expected)
    left(2**20)
    with pytest.warns(UserWarning, match="will take"):
        train_once(model)
    np.testing.assert_array_equal(model.parameters().flat, expected.parameters().flat)


@pytest.mark.parametrize("sizes", [(64, 2, 256), (128, 1, 128), (32, 4, 512)])
@pytest.mark.parametrize("kernels", [True, False], ids=["fast", "plain"])
def test_the_glance_says_more_than_the_estimate(sizes, kernels):
    d_model, n_layers, length = sizes
    config = nf.EncoderConfig(d_model, n_layers, 4, 4 * d_model, max_len=length, dropout=0.1)
    model = nf.SequenceClassifier(config, 3, vocab_size=50, seed=0)
    x, y = np.zeros((16, length), int), np.zeros(16, int)
    with nf.use_kernels(kernels):
        estimate = nf.step_memory(model, x, y, micro_batches=()).peak
    assert memory_check.most_bytes(model, model.batch(x, y)) > estimate - 2**25


def test_a_container_may_have_less_than_the_machine(tmp_path, monkeypatch):
    info = tmp_path / "meminfo"
    info.write_text("MemTotal:  8000000 kB\nMemAvailable:    4000000 kB\n", "utf-8")
    monkeypatch.setattr(free_memory, "MEMORY_INFO", info)
    monkeypatch.setattr(free_memory, "CONTROL_GROUP", tmp_path)
    monkeypatch.setattr(free_memory.sys, "platform", "linux")
    assert free_memory.free_memory() == 4000000 * 1024
    (tmp_path / "memory.max").write_text("1000000", "utf-8")
    (tmp_path / "memory.current").write_text("400000", "utf-8")
    assert free_memory.free_memory() == 600000
    (tmp_path / "memory.max").write_text("max", "utf-8")
    assert free_memory.free_memory() == 4000000 * 1024
