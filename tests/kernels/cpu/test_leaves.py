"""Leaves: both bodies compute the same, and compiled code on disk is never wrong or an error."""

import os
import re
import subprocess
import sys
from functools import partial
from itertools import permutations, product

import numpy as np
import pytest

import npformer.engine.cpu as cpu
from npformer.engine.cpu.loops import VARIABLE, loops_are_off, numba_options
from npformer.engine.cpu.rows import LEAVES

loops = pytest.mark.skipif(bool(cpu.WHY_NO_LOOPS), reason=cpu.WHY_NO_LOOPS)

SIZES = [(0, 4), (1, 1), (3, 7), (5, 64), (2, 257)]
"""Rows and features."""


def normals(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def activation(n, d):
    return [normals(n, d), normals(d), np.zeros((n, d)), normals(n, d) + 2.0]


def activation_in_place(n, d):
    x = normals(n, d)
    return [x, normals(d), x, None]


def norm(n, d):
    x = normals(n, d)
    return [x, normals(n, d), normals(d), normals(d), 1e-5, True, x * 0, x[:, :1] * 0, x * 0]


def scores(n, d):
    """Three samples of two heads, with n queries and d keys."""
    return normals(3, 2, n, d)


def gradients_of_weights(n, d):
    return normals(3, 2, n, d) + 2.0


def shifted_scores_and_gradients(n, d):
    e, shift, weight, masked, band, _, _ = large_scores(n, d)
    return [e, gradients_of_weights(n, d), shift, weight, masked, band, None, None]


def causal_scores(n):
    """Two heads of one sample, where a query sees no later key."""
    return [normals(1, 2, n, n), None, None, False, (-n, 0), None, np.zeros((1, 2, n, 1))]


def large_scores(n, d):
    e, weight, sums = 30.0 * scores(n, d), np.ones((3, 1, 1, d)), np.zeros((3, 2, n, 1))
    weight[0, ..., : d // 2], weight[1] = 0.0, 0.0
    return [e, e.max(axis=-1, keepdims=True, initial=0.0), weight, True, (-1, 2), None, sums]


def loss_gradients(n, d, smoothing):
    counted = np.arange(n) % 3 > 0
    return [
        normals(n, d),
        np.arange(n) % d,
        counted,
        normals(n) ** 2,
        0.3,
        smoothing,
        normals(n, d),
    ]


def weights(*shape):
    return normals(*shape) / np.sqrt(shape[-2])


def short_samples(n, d):
    """Two sequences of at least one token, and what becomes of them."""
    return normals(2, max(n, 1), 2 * d), np.zeros((2, max(n, 1), 2 * d))


def short_attention(n, d, causal):
    x, z = short_samples(n, d)
    maps = [array for _ in range(4) for array in (weights(2 * d, 2 * d), normals(2 * d))]
    return [x, *maps, 2, causal, z]


def short_dense_synthesizer(n, d, causal):
    x, z = short_samples(n, d)
    W1, W_value, W_output = (weights(2 * d, 2 * d) for _ in range(3))
    b1, b_value, b_output = (normals(2 * d) for _ in range(3))
    W2, b2 = weights(2, d, max(n, 1) + 3), normals(2, max(n, 1) + 3)
    return [x, W1, b1, W2, b2, W_value, b_value, W_output, b_output, causal, z]


def short_network(n, d, activation):
    x, y, z = normals(3, max(n, 1), d)
    W1, b1, W2, b2 = weights(d, 3 * d), normals(3 * d), weights(3 * d, d), normals(d)
    gamma, beta = normals(2, d)
    return [x, y, gamma, beta, 1e-3, W1, b1, W2, b2, activation, gamma + 1, beta + 1, 1e-3, z]


def short_network_with_norms_first(n, d):
    x, y, _, _, _, *rest = short_network(n, d, activation=1)
    return [x, y, None, None, 0.0, *rest]


def losses(n, d, smoothing=0.0, scale=1.0):
    logits = scale * normals(n, d)
    right, top = np.arange(n) % d, logits.max(axis=1, keepdims=True)
    return [logits, top, right, smoothing, np.zeros((n, d)), np.zeros(n)]


CASES = {
    **dict.fromkeys(("bias_relu", "bias_gelu", "bias_gelu_tanh", "bias_silu"), activation),
    "bias_relu, in place": activation_in_place,
    "bias_gelu, in place": activation_in_place,
    "bias_gelu_tanh, in place": activation_in_place,
    "bias_silu, in place": activation_in_place,
    "norm_rows": norm,
    "norm_rows, alone": lambda n, d: [norm(n, d)[0], None, *norm(n, d)[2:6], None, *norm(n, d)[7:]],
    "norm_rows, of a sum": lambda n, d: [*norm(n, d)[:6], None, *norm(n, d)[7:]],
    "norm_rows_backward": lambda n, d: [
        normals(n, d),
        normals(n, d),
        1.0 + normals(n, 1) ** 2,
        normals(d),
        True,
        np.zeros((n, d)),
        normals(2, d),
    ],
    "exponentiate": lambda n, d: [
        scores(n, d),
        None,
        None,
        False,
        None,
        None,
        large_scores(n, d)[-1],
    ],
    "exponentiate, after other tiles": lambda n, d: [
        scores(n, d),
        None,
        None,
        False,
        None,
        1.0 + normals(3, 2, n, 1) ** 2,
        large_scores(n, d)[-1],
    ],
    "exponentiate, below": lambda n, d: causal_scores(d),
    "exponentiate, shifted": large_scores,
    "norm_rows, not centred": lambda n, d: [*norm(n, d)[:5], False, *norm(n, d)[6:]],
    "gated_product": lambda n, d: [*normals(2, n, d), normals(d)],
    "softmax_backward_of_tile": lambda n, d: [scores(n, d), normals(3, 2, n, d) + 1.0],
    "softmax_backward_of_scores": lambda n, d: [
        scores(n, d),
        gradients_of_weights(n, d),
        None,
        None,
        False,
        None,
        None,
        None,
    ],
    "softmax_backward_of_scores, shifted": shifted_scores_and_gradients,
    "softmax_backward_of_scores, tiles": lambda n, d: [
        scores(n, d),
        gradients_of_weights(n, d),
        None,
        None,
        False,
        (-1, 2),
        1.0 + normals(3, 2, n, 1) ** 2,
        normals(3, 2, n, 1),
    ],
    "add_bias": lambda n, d: [normals(n, 7 * d), normals(7 * d), d, 3 * d, 2 * d, False],
    "add_bias, rectified": lambda n, d: [normals(n, 7 * d), normals(7 * d), d, 3 * d, 2 * d, True],
    "rotary_of_rows": lambda n, d: [normals(n, 12 * d), *normals(2, 5, d), 3, 8 * d],
    "add_to_rows": lambda n, d: [normals(9, d), np.arange(n) % 3, normals(n, d)],
    "softmax_cross_entropy_of_rows": losses,
    "softmax_cross_entropy_of_rows, smoothed": lambda n, d: losses(n, d, 0.1),
    "softmax_cross_entropy_of_rows, sure": lambda n, d: losses(n, d, scale=30.0),
    "softmax_cross_entropy_backward_of_rows": lambda n, d: loss_gradients(n, d, 0.0),
    "softmax_cross_entropy_backward_of_rows, smoothed": lambda n, d: loss_gradients(n, d, 0.1),
    "attention_of_short": partial(short_attention, causal=False),
    "attention_of_short, causal": partial(short_attention, causal=True),
    "dense_synthesizer_of_short": partial(short_dense_synthesizer, causal=False),
    "dense_synthesizer_of_short, causal": partial(short_dense_synthesizer, causal=True),
    "network_of_short, ReLU": partial(short_network, activation=0),
    "network_of_short, GELU": partial(short_network, activation=1),
    "network_of_short, GELU by tanh": partial(short_network, activation=2),
    "network_of_short, SiLU": partial(short_network, activation=3),
    "network_of_short, norms first": short_network_with_norms_first,
    "adam_step": lambda n, d: [
        normals(n * d),
        normals(n * d),
        normals(n * d),
        normals(n * d) ** 2,
        0.9,
        0.999,
        0.01,
        1e-8,
        0.99,
    ],
}


def test_every_leaf_is_here():
    assert {name.partition(",")[0] for name in CASES} == set(LEAVES)


@loops
@pytest.mark.parametrize("odd", [None, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("case", CASES)
def test_both_bodies_compute_the_same(case, odd):
    leaf = LEAVES[case.partition(",")[0]]
    for dtype, bound in (("float64", 1e-13), ("float32", 5e-6)):
        for size in SIZES:
            argument_lists = [CASES[case](*size) for _ in range(2)]
            results = []
            for run, arguments in zip((leaf.run, leaf.passes), argument_lists, strict=True):
                same = {id(a): a.astype(dtype) for a in arguments if isinstance(a, np.ndarray)}
                for a in arguments:
                    if isinstance(a, np.ndarray) and a.dtype.kind in "ib":
                        same[id(a)] = a
                arrays = list(same.values())
                if odd is not None and arrays[0].size:
                    arrays[0].flat[0] = odd
                with np.errstate(all="ignore"):
                    result = run(*(same.get(id(a), a) for a in arguments))
                results.append(arrays if result is None else [*arrays, np.asarray(result)])
            for one, other in zip(*results, strict=True):
                zeros = np.zeros(other.shape)
                scale = np.abs(other, where=np.isfinite(other), out=zeros).max(initial=1.0)
                np.testing.assert_allclose(one, other, rtol=bound, atol=bound * scale)


def results(leaf, arguments, arrays):
    """Return the bytes of all arrays, and of what is returned, after a leaf has run."""
    result = leaf.run(*(arrays.get(id(a), a) for a in arguments))
    return [a.tobytes() for a in (*arrays.values(), np.asarray(result))]


def next_to_each_other(first, second, gap):
    """Return copies of two arrays in one buffer, with so many bytes between them."""
    buffer = np.zeros(first.nbytes + gap + second.nbytes + 64, "uint8")
    start = -buffer.ctypes.data % 64
    copies = []
    for array in (first, second):
        copy = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        copies.append(copy)
        start += array.nbytes + gap
    return copies


@loops
@pytest.mark.parametrize("case", CASES)
def test_no_bit_depends_on_where_arrays_lie_in_memory(case):
    """Nor on what lies behind them. LLVM may ask how near two arrays are, up to 256 bytes."""
    leaf = LEAVES[case.partition(",")[0]]
    for dtype, size in product(("float64", "float32"), [(1, 8), (1, 33), (2, 20)]):
        arguments = CASES[case](*size)
        arrays = {id(a): a for a in arguments if isinstance(a, np.ndarray)}
        arrays = {i: a.astype(dtype) if a.dtype.kind == "f" else a for i, a in arrays.items()}
        expected = results(leaf, arguments, {i: a.copy() for i, a in arrays.items()})
        for first, second in permutations(arrays, 2):
            for gap in (0, 8, 16, 32, 64, 120, 200, 256):
                pair = next_to_each_other(arrays[first], arrays[second], gap)
                copies = {i: a.copy() for i, a in arrays.items()}
                copies[first], copies[second] = pair
                assert results(leaf, arguments, copies) == expected, (dtype, size, gap)


SAME_CODE = {
    "attention_of_short, causal",
    "dense_synthesizer_of_short, causal",
    "network_of_short, GELU",
    "network_of_short, GELU by tanh",
    "network_of_short, SiLU",
}
"""Cases that differ from another one in a number only, so that they would be compiled for twice."""


@loops
@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [c for c in CASES if "reassoc" in LEAVES[c.partition(",")[0]].fastmath and c not in SAME_CODE],
)
def test_no_sum_depends_on_where_arrays_lie_in_memory(case):
    """LLVM asks before a loop that also writes how near its arrays are; if so, it sums in order."""
    import numba

    leaf, summed = LEAVES[case.partition(",")[0]], re.compile(r"bin\.rdx|vector\.reduce\.f").search
    for dtype in ("float64", "float32"):
        loop = numba.njit(leaf.loop, **numba_options(leaf.fastmath))
        case_arguments = CASES[case](3, 7)
        loop(
            *(
                a.astype(dtype) if getattr(a, "dtype", None) == "float64" else a
                for a in case_arguments
            )
        )
        code = loop.inspect_llvm(loop.signatures[0])
        _, *checked_loops = re.split(r"\nvector\.memcheck\d*:", code)
        until_next = [
            re.split(r"\n(?:scalar\.ph|iter\.check)\d*:", code_of_loop)[0]
            for code_of_loop in checked_loops
        ]
        assert not [code_of_loop for code_of_loop in until_next if summed(code_of_loop)]
        assert leaf is not LEAVES["norm_rows"] or (
            checked_loops and summed(code)
        )  # there LLVM does both


@pytest.mark.parametrize("x", [-1e4, -200.0, -1.0, 0.0, 0.3, 100.0, 1e4])
def test_powers_of_2_in_a_loop_are_those_of_numpy(x):
    from npformer.engine.cpu.loops import exp2

    with np.errstate(over="ignore"):
        np.testing.assert_allclose(exp2(np.float64(x)), np.exp2(x), rtol=4e-16, atol=1e-300)


# Compiled code on disk ----------------------------------------------------------------------------
SCRIPT = """
import numpy as np
import npformer.engine.cpu as cpu
from npformer.engine.cpu.norms import layer_norm
from npformer.engine import EngineContext
x = np.arange(12.0, dtype="float32").reshape(3, 4)
print(layer_norm(x, x[0], x[1], context=EngineContext())[0].sum(), cpu.WHY_NO_LOOPS)
"""


def run(folder, **environment):
    """Return what the script prints, and what it says about compiling."""
    environment = {"NPFORMER_CACHE": str(folder), VARIABLE: "1", **environment}
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    return subprocess.Popen(
        command,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process):
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return out.strip(), errors.strip()


SAID = "npformer compiles its loops, once on this machine"


@loops
@pytest.mark.processes
def test_only_damaged_code_is_compiled_again(tmp_path):
    first, second = [run(tmp_path) for _ in range(2)]  # at the same time
    out, messages = answer(first)
    assert out == answer(second)[0]
    assert messages == SAID
    assert answer(run(tmp_path)) == (out, "")
    files = [file for file in tmp_path.rglob("*.nb?") if file.is_file()]
    assert files
    damages = (lambda code: code[:100], lambda code: b"", lambda code: b"\x80\xff" * 50)
    for damage in damages:  # the last is no text, where the index begins with one
        for file in files:
            file.write_bytes(damage(file.read_bytes()))
        assert answer(run(tmp_path)) == (out, SAID)


@loops
@pytest.mark.processes
def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    expected, _ = answer(run(tmp_path / "there"))
    (tmp_path / "file").write_text("no folder")
    assert answer(run(tmp_path / "file")) == (expected, SAID)


@pytest.mark.parametrize(
    ("word", "off"),
    [("0", True), ("no", True), (" Off ", True), ("FALSE", True), ("", False), ("yes", False)],
)
def test_words_for_no_switch_loops_off(monkeypatch, word, off):
    monkeypatch.setenv(VARIABLE, word)
    assert loops_are_off() is off


def test_other_words_are_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, "none")
    with pytest.raises(ValueError, match=r"NPFORMER_LOOPS is 'none'; expected 0 .* or 1"):
        loops_are_off()


@pytest.mark.processes
def test_passes_run_if_the_environment_says_so(tmp_path):
    out, messages = answer(run(tmp_path, **{VARIABLE: "0"}))
    assert out == f"79.41635 {VARIABLE} is 0"
    assert messages == ""


@pytest.mark.processes
def test_passes_run_if_numba_compiles_nothing(tmp_path):
    out, _ = answer(run(tmp_path, NUMBA_DISABLE_JIT="1"))
    assert out == "79.41635 numba compiles nothing, because NUMBA_DISABLE_JIT is set"


@pytest.mark.processes
def test_passes_run_if_numba_is_broken(tmp_path):
    (tmp_path / "numba.py").write_text("raise SystemError('LLVM')")
    out, messages = answer(run(tmp_path, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])))
    assert out == "79.41635 numba cannot be imported: SystemError: LLVM"
    assert messages == ""
