"""The engine's names lead back: each kernel names the functions that it replaces."""

import inspect
import re

import pytest

import npformer.functional as F
from npformer import optim
from npformer.engine import cpu, gpu
from npformer.engine.cpu.rows import LEAVES
from npformer.engine.gpu.source import FOLDER

NAME = re.compile(r"\b(functional|optim)\.(\w+)")
CUDA_KERNEL = re.compile(
    r'(?P<comment>(?:^//.*\n)*)^extern "C" __global__ void (?P<name>\w+)\(', re.MULTILINE
)

FORWARD, BACKWARD = (
    {
        f"{device.__name__} {name}": (name, pair[which])
        for device in (cpu, gpu)
        for name, pair in device.KERNELS.items()
        if pair[which] is not None
    }
    for which in (0, 1)
)
UPDATES = {
    f"{device.__name__} {name}": (name, update)
    for device in (cpu, gpu)
    for name, update in device.UPDATES.items()
}
CUDA = {
    f"{file.name} {kernel['name']}": kernel["comment"]
    for file in FOLDER.glob("*.cu")
    for kernel in CUDA_KERNEL.finditer(file.read_text("utf-8"))
}


def functions_in(text: str) -> list[str]:
    """Return the names of functions in a line "Replaces ...", which must exist."""
    line = text.partition("\n")[0]
    assert line.removeprefix("// ").startswith("Replaces "), line
    names = NAME.findall(line)
    for module, name in names:
        known = F.__all__ if module == "functional" else optim.__all__
        assert name in known, f"{module}.{name} does not exist: {line}"
    assert names, f"no function is named: {line}"
    return [name for _, name in names]


def first_line_of(kernel) -> str:
    return (inspect.getdoc(kernel) or "").partition("\n")[0]


@pytest.mark.parametrize(("name", "kernel"), FORWARD.values(), ids=FORWARD)
def test_a_forward_kernel_names_its_pair(name, kernel):
    functions = functions_in(first_line_of(kernel))
    assert not any(function.endswith("_backward") for function in functions)
    if hasattr(F, name):
        assert functions == [name]


@pytest.mark.parametrize(("name", "kernel"), BACKWARD.values(), ids=BACKWARD)
def test_a_backward_kernel_names_its_pair(name, kernel):
    functions = functions_in(first_line_of(kernel))
    assert all(function.endswith("_backward") for function in functions)
    if hasattr(F, name):
        assert f"{name}_backward" in functions


@pytest.mark.parametrize(("name", "kernel"), UPDATES.values(), ids=UPDATES)
def test_an_update_names_its_function(name, kernel):
    assert functions_in(first_line_of(kernel)) == [name]


@pytest.mark.parametrize("leaf", LEAVES.values(), ids=LEAVES)
def test_a_leaf_names_what_it_is_a_part_of(leaf):
    functions_in(first_line_of(leaf.passes))


@pytest.mark.parametrize("comment", CUDA.values(), ids=CUDA)
def test_a_cuda_kernel_names_what_it_is_a_part_of(comment):
    functions_in(comment)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Computes softmax.",
        "Replaces `linear_backward`.",
        "Replaces `functional.no_such_pair`.",
        "Replaces `optim.softmax`.",
        "Return y.\n\nStands for `functional.linear`.",
    ],
)
def test_a_line_that_leads_nowhere_fails(text):
    with pytest.raises(AssertionError):
        functions_in(text)


def test_every_table_was_read():
    assert len(FORWARD) == len(cpu.KERNELS) + len(gpu.KERNELS) >= 25
    assert len(BACKWARD) == len(FORWARD) - 3  # those for short samples, at evaluation only
    assert len(UPDATES) == 3
    assert len(CUDA) >= 26
