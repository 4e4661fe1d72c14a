"""A kernel that is broken on this device is left out: what a user sees, and what it costs.

A child process finds it, with the same break in it as this process has: a kernel that were not left
out would show in the losses, or raise.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.core import arrays as backends
from npformer.engine import gpu, kernel_check, trusted_kernels
from npformer.engine.gpu.source import Source
from npformer.engine.updates import device_generator
from tests.kernels.gpu import child, emulated

pytestmark = pytest.mark.usefixtures("cupy", "emulation")

SUMMED = {"linear", "feed_forward", "attention_heads", "dense_heads"}
"""Kernels that add up columns of all rows."""

LEFT_OUT: dict[str, tuple[set[str], str]] = {
    "numbers": ({"adam_update"}, "y differs from that of NumPy by"),
    "compile": ({"fourier_mixing"}, "LaunchError: g++ refuses the source"),
    "exception": ({"clip_by_global_norm"}, "RuntimeError: an illegal memory access"),
    "outside": ({"layer_norm", "residual_norm"}, "norms.residual_norm wrote outside of its arrays"),
    "dies": ({"adam_update", "clip_by_global_norm", "DeviceGenerator"}, "ended with status 139"),
    "hangs": ({"adam_update", "clip_by_global_norm", "DeviceGenerator"}, "was ended after"),
    "start": ({""}, "ended with status 3"),
}
"""By break: which kernels are left out, and a part of what is said."""


@pytest.fixture
def check_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Any]:
    """Return a function that makes this a process that has just begun, in which a break is."""
    monkeypatch.delenv(trusted_kernels.CHECK_VARIABLE)
    monkeypatch.setenv(trusted_kernels.CACHE_VARIABLE, str(tmp_path / "cache"))
    backends.register(child.backend())
    monkeypatch.setattr(Source, "text", Source.text)
    monkeypatch.setattr(emulated, "Memory", emulated.Memory)
    for name, function in list(gpu.UPDATES.items()):
        monkeypatch.setitem(gpu.UPDATES, name, function)
    modules = [module for name, module in sys.modules.items() if "engine.gpu." in name]
    for source in {x for module in modules for x in vars(module).values() if type(x) is Source}:
        monkeypatch.setattr(source, "_modules", {})
        monkeypatch.setattr(source, "_kernels", {})

    def begin(what: str = "nothing") -> None:
        monkeypatch.setattr(trusted_kernels, "_verdicts", {})
        program = [sys.executable, "-P", "-m", "tests.kernels.gpu.child", what]
        monkeypatch.setattr(
            trusted_kernels, "command_of_check", lambda *arguments: program + list(arguments)
        )
        here = {"dies": "exception of adam", "hangs": "exception of adam", "start": "nothing"}
        child.BREAKS[here.get(what, what)]()

    return begin


def losses(mixer: str = "fourier") -> list[float]:
    """Train a small model with a kernel of each kind, and return its losses."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 7, (16, 6)), rng.integers(0, 3, 16)
    config = nf.EncoderConfig(
        d_model=8, n_layers=2, n_heads=2, d_ff=12, max_len=6, mixer=mixer, dropout=0.1
    )
    model = nf.SequenceClassifier(config, 3, vocab_size=7).to("cupy")
    return nf.fit(model, (x, y), epochs=3, batch_size=8, clip_norm=0.5, seed=1).train_loss


def rejected_kernels() -> set[str]:
    (verdict,) = trusted_kernels._verdicts.values()
    return set(verdict["problems"])


@pytest.mark.slow
@pytest.mark.parametrize("what", LEFT_OUT)
def test_a_broken_kernel_is_left_out(what, check_with, monkeypatch, tmp_path) -> None:
    names, words = LEFT_OUT[what]
    with nf.use_kernels(False):
        expected = losses()
    if what == "hangs":
        monkeypatch.setattr(trusted_kernels, "TIMEOUT", 12.0)
        for name in ("sums", "adam"):  # ahead of the child
            emulated.compile_library(Source(name).text("f"))
    check_with(what)
    with pytest.warns(UserWarning, match="are left out") as caught:
        computed_losses = losses()
    np.testing.assert_allclose(computed_losses, expected, rtol=1e-4)
    assert rejected_kernels() == names
    (warning,) = caught
    message = str(warning.message)
    for expected_text in (
        *names,
        words,
        "GPU an emulated GPU",
        "driver for CUDA 13.0",
        "cupy 14.2.0",
    ):
        assert expected_text in message
    (file,) = (tmp_path / "cache").iterdir()
    assert set(json.loads(file.read_text("utf-8"))["problems"]) == names

    # Another process reads the verdict, and warns again.
    monkeypatch.setattr(trusted_kernels, "_verdicts", {})
    monkeypatch.setattr(subprocess, "run", no_child)
    with pytest.warns(UserWarning, match="are left out") as caught:
        assert losses() == computed_losses
    assert len(caught) == 1


def no_child(*arguments: Any, **options: Any) -> None:
    raise AssertionError("a process was started")


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("nothing", set()),
        pytest.param("nothing, in full", set(), marks=pytest.mark.slow),
        pytest.param("large", SUMMED, marks=pytest.mark.slow),
    ],
)
def test_kernels_are_compared_once(what, names, check_with, monkeypatch, capsys) -> None:
    check_with(what)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if names else "error")
        losses()
        losses("attention")
    assert rejected_kernels() == names
    error_lines = capsys.readouterr().err.splitlines()
    assert [line for line in error_lines if "checks its kernels" in line] == [
        "npformer checks its kernels on an emulated GPU, in float32, once; compiling them may take "
        "a minute"
    ]
    monkeypatch.setattr(trusted_kernels, "_verdicts", {})
    monkeypatch.setattr(subprocess, "run", no_child)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if names else "error")
        assert trusted_kernels.is_trusted("fourier_mixing", "f")
    assert rejected_kernels() == names
    assert trusted_kernels.is_trusted("linear", "f") is (not names)
    assert "checks" not in capsys.readouterr().err


@pytest.mark.slow
def test_zones_alone_are_no_difference(check_with) -> None:
    check_with("nothing, on bare memory")
    assert trusted_kernels.is_trusted("linear", "d")
    assert rejected_kernels() == set()


def test_both_precisions_are_compared(check_with) -> None:
    check_with("numbers")
    with nf.use_precision("tf32"), pytest.warns(UserWarning, match="adam_update"):
        assert not trusted_kernels.is_trusted("adam_update", "f")
    assert list(trusted_kernels._verdicts) == [("float32", "tf32")]


def test_masks_of_the_host_replace_those_of_a_broken_generator(monkeypatch) -> None:
    broken = {"problems": {"DeviceGenerator": "differs"}}
    monkeypatch.setattr(trusted_kernels, "_verdicts", {("float32", "float32"): broken})
    assert device_generator("cupy", 0) is None


# The verdict on disk


@pytest.fixture
def child_says(monkeypatch: pytest.MonkeyPatch, check_with: Callable[[str], Any]) -> list[str]:
    """Have no child, but one that says that all is well; return the dtypes that were asked for."""
    checked_dtypes: list[str] = []

    def ask(dtype: str, precision: str) -> dict[str, Any]:
        checked_dtypes.append(dtype)
        return {"problems": {}, "seconds": 1.0, "compiling": 0.0}

    check_with("nothing")
    monkeypatch.setattr(trusted_kernels, "_verdict_of_child", ask)
    return checked_dtypes


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"about": 1}', "\0\xff"])
def test_a_damaged_verdict_is_replaced(text, child_says, tmp_path) -> None:
    expected = trusted_kernels.kernel_verdict("float32", "float32")
    (file,) = (tmp_path / "cache").iterdir()
    file.write_text(text, "latin-1")
    assert trusted_kernels.kernel_verdict("float32", "float32") == expected
    assert trusted_kernels.kernel_verdict("float32", "float32") == expected
    assert len(child_says) == 2
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [file.name]


def test_a_verdict_that_cannot_be_kept_is_no_error(child_says, monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(trusted_kernels.CACHE_VARIABLE, str(tmp_path / "file" / "inside"))
    for _ in range(2):
        assert trusted_kernels.kernel_verdict("float32", "float32")["problems"] == {}
    assert len(child_says) == 2


def test_each_device_dtype_and_source_has_a_verdict_of_its_own(child_says, monkeypatch) -> None:
    for dtype in ("float32", "float64", "float32"):
        trusted_kernels.kernel_verdict(dtype, "float32")
    assert child_says == ["float32", "float64"]
    monkeypatch.setattr(trusted_kernels, "digest", lambda: "other sources")
    trusted_kernels.kernel_verdict("float32", "float32")
    backends.register(emulated.backend())
    trusted_kernels.kernel_verdict("float32", "float32")
    assert len(child_says) == 4
    trusted_kernels.kernel_verdict("float32", "float32", again=True)
    assert len(child_says) == 5


def test_nothing_is_checked_on_request(check_with, monkeypatch, tmp_path) -> None:
    check_with("start")
    monkeypatch.setenv(trusted_kernels.CHECK_VARIABLE, "0")
    assert trusted_kernels.is_trusted("linear", "f")
    assert not (tmp_path / "cache").exists()


def test_the_folder_is_the_usual_one(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv(trusted_kernels.CACHE_VARIABLE, raising=False)
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    monkeypatch.setenv(variable, str(tmp_path))
    assert trusted_kernels.cache_folder() == tmp_path / "npformer"
    monkeypatch.delenv(variable)
    assert trusted_kernels.cache_folder() == Path.home() / ".cache" / "npformer"


def test_every_kernel_is_compared() -> None:
    assert set(kernel_check.CASES) == {*gpu.KERNELS, *gpu.UPDATES, "DeviceGenerator"}


@pytest.mark.slow
def test_a_case_beyond_one_grid_is_the_last_of_each_kernel() -> None:
    for name, cases in kernel_check.CASES.items():
        assert len(record_launches(cases[-1])), name


def record_launches(case: Any) -> list[str]:
    with emulated.launches() as names:
        case("cupy", "float32", True)
    return names
