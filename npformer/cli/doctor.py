"""npformer doctor: show what npformer finds on this machine, and whether it works."""

import argparse
import importlib
import importlib.metadata
import json
import platform
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import npformer
from npformer.cli.options import Commands, add_command, output_path
from npformer.cli.parser import Parser
from npformer.cli.shared_options import add_overwrite
from npformer.cli.speed import median_ms
from npformer.core import (
    PRECISIONS,
    BackendUnavailableError,
    asarray,
    cores,
    get_backend,
    to_numpy,
    use_precision,
)
from npformer.engine.trusted_kernels import CHECK_VARIABLE, describe_verdict, kernel_verdict
from npformer.models import EncoderConfig
from npformer.models.trainable import SequenceClassifier
from npformer.training.distributed import Communicator
from npformer.training.storage.outputs import write_output

MARKS = {True: "ok", False: "PROBLEM", None: "--"}


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command."""
    parser = add_command(
        commands, "doctor", summary="show what npformer finds on this machine", run=run
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        type=output_path,
        help="also write the findings to a file, for a bug report",
    )
    add_overwrite(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each finding."""
    healthy, report = True, []
    for line in diagnose(options.ranks):
        words = f"{MARKS[line.ok]:<8} {line.what:<12} {line.found}"
        print(words)
        report += [words, line.details] if line.details else [words]
        healthy = healthy and line.ok is not False
    if options.report is not None and options.ranks.rank == 0:
        words = "\n".join([*report, ""])
        write_output(options.report, words.encode(), overwrite=options.overwrite)
    return 0 if healthy else 1


class Finding(NamedTuple):
    """One line of the diagnosis; `ok` is None for what is optional and missing."""

    what: str
    found: str
    ok: bool | None = True
    details: str = ""  # for the report


def diagnose(ranks: Communicator) -> Iterator[Finding]:
    """Yield what is installed, and whether each backend works."""
    yield Finding("npformer", npformer.__version__)
    yield Finding("Python", f"{platform.python_version()}, {platform.platform()}")
    yield from map(_package, ("numpy", "scipy", "safetensors", "tqdm", "threadpoolctl"))
    yield Finding("CPU", f"{cores()} cores")
    yield _blas()
    yield _package("numba", "fast")
    why_not = importlib.import_module("npformer.engine.cpu").WHY_NO_LOOPS
    yield Finding("loops", why_not or "compiled by numba", ok=None if why_not else True)
    yield _package("matplotlib", "plot")
    if ranks.size == 1:
        yield _package("mpi4py", "mpi")
    else:
        reports = ranks.gather((platform.node(), cores(), _gpu()))
        for rank, (node, n, gpu_of_rank) in enumerate(reports):
            yield Finding(f"rank {rank}", f"on {node}, {n} core{'s' * (n != 1)}{gpu_of_rank}")
    yield _self_test("numpy")
    try:
        gpu = get_backend("cupy")
    except BackendUnavailableError as error:
        # CuPy has a package for each version of CUDA.
        packages = {name: _version(name) for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy")}
        versions = [f"{version} ({name})" for name, version in packages.items() if version]
        yield Finding("CuPy", versions[0] if versions else "not installed", ok=None)
        yield Finding("GPU", str(error), ok=None)
        return
    for what, description in gpu.details():
        yield Finding(what, description)
    if gpu.link is not None:
        there = gpu.link().nccl.available
        missing = 'not installed, for several GPUs; python -m pip install "npformer[nccl13]"'
        yield Finding("NCCL", "available" if there else missing, ok=there or None)
    yield from _kernels()
    try:
        yield _gradients_agree("cupy")
        for precision in PRECISIONS:
            yield _product("cupy", precision)
        yield _self_test("cupy")
    except Exception as error:  # drivers and libraries that do not match raise all kinds
        yield Finding("self-test", f"cupy: {type(error).__name__}: {error}", ok=False)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _package(name: str, extra: str = "") -> Finding:
    """Return the version of a package, or that it is missing: a problem, unless it is an extra."""
    if version := _version(name):
        return Finding(name, version)
    hint = f'; python -m pip install "npformer[{extra}]"' if extra else ""
    return Finding(name, f"not installed{hint}", ok=None if extra else False)


def _gpu() -> str:
    """Return which GPU this rank has, for a list; "" without one."""
    try:
        gpu = get_backend("cupy")
    except BackendUnavailableError:
        return ""
    return "" if gpu.link is None else f", GPU {gpu.link().device()}"


def _blas() -> Finding:
    from threadpoolctl import ThreadpoolController

    np.ones((2, 2)) @ np.ones((2, 2))  # some libraries load at first use
    line = "{internal_api} {version}, kernels for {architecture}, threads: {num_threads}"
    libraries = [
        line.format_map({"version": "", "architecture": "any"} | {k: v for k, v in of.items() if v})
        for of in ThreadpoolController().select(user_api="blas").info()
    ]
    return Finding(
        "BLAS", "; ".join(libraries) or "none that threadpoolctl knows", bool(libraries) or None
    )


def _self_test(backend: str) -> Finding:
    """Train a small model briefly: does it learn, and how long does a step take?"""
    x = np.random.default_rng(0).integers(8, size=(64, 16))
    config = EncoderConfig(d_model=32, n_layers=1, n_heads=2, d_ff=64, max_len=16)
    model = SequenceClassifier(config, 8, vocab_size=8, pooling="first").to(backend)
    optimizer = npformer.Adam(model.parameters(), lr=3e-3)
    first, _ = model.loss_and_gradients(x, x[:, 0])
    loss, steps, began = first, 30, time.perf_counter()
    for _ in range(steps):
        loss, gradients = model.loss_and_gradients(x, x[:, 0])
        optimizer.step(gradients)
    ms = 1e3 * (time.perf_counter() - began) / steps
    words = f"{backend}: loss {first:.3f} -> {loss:.3f} in {steps} steps of {ms:.1f} ms"
    return Finding("self-test", words, ok=loss < 0.5 * first)


def _kernels() -> Iterator[Finding]:
    """Yield whether kernels on the GPU compute what the plain functions do; all are run again."""
    for dtype, precision in (("float32", "float32"), ("float32", "tf32"), ("float64", "float32")):
        try:
            with use_precision(precision):
                comparison = kernel_verdict(dtype, precision, again=True)
        except ValueError:  # this GPU has no TF32
            continue
        if comparison["seconds"] is None and not comparison["problems"]:
            yield Finding("kernels", f"not checked: {CHECK_VARIABLE} is 0", ok=None)
            return
        words = (
            describe_verdict(comparison)
            if comparison["problems"]
            else f"checked in {comparison['seconds']:.1f} s"
        )
        words = f"{dtype}, {precision} products: {words}"
        yield Finding(
            "kernels", words, not comparison["problems"], json.dumps(comparison, indent=1)
        )


def _gradients_agree(backend: str) -> Finding:
    """Compare a small model's float32 gradients with NumPy's, which differ by rounding alone."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(8, size=(16, 32)), rng.integers(4, size=16)
    mask = np.arange(32) < rng.integers(1, 33, size=16)[:, None]
    mixers = ("attention", "dense_synthesizer", "fourier")
    config = EncoderConfig(32, 3, 2, 64, max_len=32, mixer=mixers, padding="per_length")
    model = SequenceClassifier(config, 4, vocab_size=8)
    plain = {name: g.copy() for name, g in model.loss_and_gradients(x, y, mask)[1].items()}
    _, gradients = model.to(backend).loss_and_gradients(x, y, mask)
    largest = max(float(np.abs(g).max()) for g in plain.values())
    errors = {
        n: float(np.abs(to_numpy(gradients[n]) - g).max()) / largest for n, g in plain.items()
    }
    worst = max(errors, key=errors.__getitem__)
    words = f"differ by at most {errors[worst]:.1e} of the largest, in {worst}"
    return Finding("gradients", f"{backend} and NumPy {words}", ok=errors[worst] <= 1e-4)


def _product(backend: str, precision: str, size: int = 4096, seconds: float = 0.3) -> Finding:
    """Time products of large matrices."""
    rng = np.random.default_rng(0)
    a, b = (asarray(rng.random((size, size), dtype="float32"), backend) for _ in range(2))
    try:
        with use_precision(precision, backend):
            ms = median_ms(lambda: to_numpy((a @ b)[:1, :1]), seconds)  # waits for the device
    except ValueError as error:  # this GPU has no TF32
        return Finding("products", str(error), ok=None)
    rate = 2e-9 * size**3 / ms
    return Finding("products", f"{precision}: {rate:.3g} TFLOP/s, matrices of size {size}")
