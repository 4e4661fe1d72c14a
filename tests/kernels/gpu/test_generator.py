"""Random numbers drawn on the device: those of the published generator, repeatable, no upload."""

import json
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.core import part_generator, step_key
from npformer.core.cut_masks import Cut
from npformer.engine import gpu
from npformer.functional.dropout import draw_kept
from tests import fake_device
from tests.device import cases
from tests.kernels.gpu.helpers import TRAIN, asarray, download
from tests.kernels.helpers import normals

pytestmark = pytest.mark.usefixtures("cupy")
in_emulation = pytest.mark.usefixtures("emulation")


def philox(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Philox4x32-10 as Salmon et al. (2011) define it; counter and result are (n, 4) words."""
    c = [counter[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = (np.uint64(k) for k in key)
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ k0,
            second & low,
            (first >> np.uint64(32)) ^ c[3] ^ k1,
            first & low,
        ]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack(c, axis=1).astype(np.uint32)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_the_reference_gives_the_published_numbers(counter, key, words) -> None:
    random_words = philox(np.array([counter]), (key[0], key[1]))[0]
    assert " ".join(f"{word:08x}" for word in random_words) == words


def reference(n: int, draw: int, seed: int) -> np.ndarray:
    """Return n words: four of each counter (position, draw)."""
    position = np.arange(-(-n // 4), dtype=np.uint64)
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    rest = np.full((len(position), 2), [draw & 0xFFFFFFFF, draw >> 32], dtype=np.uint64)
    counter = np.column_stack([position & low, position >> high, rest])
    return philox(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:n]


@pytest.fixture
def single() -> Any:
    """An array on the device, for its backend and dtype."""
    return asarray(np.zeros(1, dtype="float32"))


@pytest.mark.parametrize("draw", [0, 1, 2**33 + 5])
@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
@pytest.mark.parametrize("n", [1, 4, 5, 1023, 2049])
def test_masks_of_the_device_are_those_of_the_reference(n, seed, draw, single) -> None:
    generator = gpu.DeviceGenerator(seed)
    generator.n_draws = draw
    words = reference(n, draw, seed)
    is_kept = download(generator.dropout_mask((n,), 0.3, single))
    assert is_kept.dtype == bool
    np.testing.assert_array_equal(is_kept, words >= round(0.3 * 2**32))
    assert generator.n_draws == draw + 1
    uniform = download(generator.random((n,)))
    np.testing.assert_array_equal(uniform, (reference(n, draw + 1, seed) >> 8) * 2.0**-24)


def test_a_device_generator_works_without_the_host() -> None:
    x = asarray(normals((6, 50))[0])
    generator = gpu.DeviceGenerator(1)
    with fake_device.count() as counted:
        y, _ = gpu.dropout(x, 0.5, generator, context=TRAIN)
        plain, _ = F.dropout(x, 0.5, generator)
    assert (counted.uploads, counted.synchronisations) == (0, 0)
    assert not np.array_equal(download(y), download(plain))  # two draws


@in_emulation
def test_a_training_run_may_draw_its_masks_on_the_device() -> None:
    runs, uploads = {}, {}
    for name, masks in (("host", "host"), ("device", "device"), ("again", "device")):
        model = cases.classifier("float32", dropout=0.3).to("cupy")
        data = cases.batch(model)
        with fake_device.count() as counted:
            history = nf.fit(model, data, epochs=1, batch_size=2, masks=masks, progress=False)
        runs[name], uploads[name] = history.train_loss, counted.uploads
    assert runs["again"] == runs["device"] != runs["host"]
    assert uploads["device"] < uploads["host"]


@pytest.mark.parametrize("share", [[3, 4], [1, 1, 5], [1] * 7], ids=str)
def test_masks_of_a_part_are_those_of_its_samples_in_the_whole_batch(share, single) -> None:
    shapes = [(7, 5, 3), (14, 9), (7,), (7, 0)]

    def masks(share: list[int]) -> list[list[np.ndarray]]:
        generator, drawn, first = gpu.DeviceGenerator(5), [], 0
        key = step_key(generator)
        for n in share:
            part_of_batch = part_generator(key, first, n)
            sizes = [(rows * n // 7, *rest) for rows, *rest in shapes]
            part_masks = [download(part_of_batch.dropout_mask(size, 0.4, single)) for size in sizes]
            drawn.append(part_masks + [download(part_of_batch.random(size)) for size in sizes])
            first += n
        assert generator.n_draws == 1
        return [np.concatenate(of_parts) for of_parts in zip(*drawn, strict=True)]

    batch_masks = masks([7])
    for mask, expected in zip(masks(share), batch_masks, strict=True):
        np.testing.assert_array_equal(mask, expected)
    words = reference(105, 1 << 32, 5)
    np.testing.assert_array_equal(batch_masks[0].ravel(), words >= round(0.4 * 2**32))


def test_a_part_without_padding_has_the_masks_of_the_tokens_that_are_left(single) -> None:
    key, length, cut_length = step_key(gpu.DeviceGenerator(5)), 11, 6
    everything = part_generator(key, 0, 7)
    shapes = [(7, 11, 5), (7, 3, 11, 11)]
    masks = [download(everything.dropout_mask(shape, 0.4, single)) for shape in shapes]
    folded = download(everything.dropout_mask((7 * length, 5), 0.4, single)).reshape(7, length, 5)
    for first, n in ((0, 3), (3, 1), (4, 3)):
        part_of_batch, rows = (
            part_generator(key, first, n, Cut((cut_length,), (length,))),
            slice(first, first + n),
        )
        cut_masks = [
            download(part_of_batch.dropout_mask(shape, 0.4, single))
            for shape in [(n, 6, 5), (n, 3, 6, 6)]
        ]
        np.testing.assert_array_equal(cut_masks[0], masks[0][rows, :cut_length])
        np.testing.assert_array_equal(cut_masks[1], masks[1][rows, :, :cut_length, :cut_length])
        cut_masks = [
            download(part_of_batch.dropout_mask((n * cut_length, 5), 0.4, single)).reshape(
                n, cut_length, 5
            )
        ]
        np.testing.assert_array_equal(cut_masks[0], folded[rows, :cut_length])


def test_what_is_shared_is_drawn_alike_in_all_parts(single) -> None:
    key, drawn = step_key(gpu.DeviceGenerator(5)), []
    for first, n in ((0, 3), (3, 1), (4, 3)):
        part_of_batch = part_generator(key, first, n)
        part_of_batch.dropout_mask((n, 2), 0.5, single)
        drawn.append(
            [download(part_of_batch.shared.dropout_mask((3, 64), 0.5, single)) for _ in range(2)]
        )
    assert (drawn[0][0] != drawn[0][1]).any()
    np.testing.assert_array_equal(drawn[1], drawn[0])
    np.testing.assert_array_equal(drawn[2], drawn[0])


def test_a_generator_continues_from_a_state_in_json(single) -> None:
    generator, other = gpu.DeviceGenerator(5), gpu.DeviceGenerator(6)
    for _ in range(3):
        generator.dropout_mask((4, 9), 0.5, single)
    other.restore(json.loads(json.dumps(generator.state())))
    for _ in range(2):
        keys = step_key(other), step_key(generator)
        mask, expected = (key.dropout_mask((4, 9), 0.5, single) for key in keys)
        np.testing.assert_array_equal(download(mask), download(expected))


@pytest.mark.slow
@in_emulation
def test_micro_batches_change_only_the_order_of_sums() -> None:
    runs = []
    for micro_batch in (None, 1, 2):
        model = cases.classifier("float64", dropout=0.3).to("cupy")
        runs.append(
            nf.fit(
                model,
                cases.batch(model),
                micro_batch=micro_batch,
                epochs=2,
                batch_size=4,
                masks="device",
                progress=False,
            )
        )
    for run in runs[1:]:
        np.testing.assert_allclose(run.train_loss, runs[0].train_loss, rtol=1e-10)


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5, True])
def test_a_device_generator_refuses_a_seed_that_is_none(seed) -> None:
    with pytest.raises(ValueError, match="seed is"):
        gpu.DeviceGenerator(seed)


def test_other_generators_of_the_device_are_taken() -> None:
    class Uniform:
        def random(self, shape: tuple[int, ...], dtype: str) -> Any:
            return asarray(np.random.default_rng(3).random(shape, dtype=dtype))

    x = normals((5, 9))[0]
    y, _ = gpu.dropout(asarray(x), 0.4, Uniform(), context=TRAIN)
    is_kept = draw_kept(x.shape, 0.4, Uniform())
    np.testing.assert_allclose(download(y), np.where(download(is_kept), x / 0.6, 0.0), rtol=1e-15)
