"""Every pair of npformer.functional beside PyTorch: the result and all gradients."""

import math

import numpy as np
import pytest

from npformer import functional as F

from .helpers import assert_pair_agrees, normals

torch = pytest.importorskip(
    "torch", reason="parity tests compare with PyTorch: python -m pip install '.[parity]'"
)

BATCH, LENGTH, D = 3, 5, 4
PADDING = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 0]], dtype=bool)


def torch_softmax(scores, mask=None, dim=-1):
    """Softmax with what is masked at -infinity: only for rows that keep something."""
    if mask is not None:
        scores = scores.masked_fill(~torch.tensor(mask), -math.inf)
    return torch.softmax(scores, dim=dim)


# Linear maps and convolutions ---------------------------------------------------------------------


@pytest.mark.parametrize("leading", [(), (6,), (2, 3), (2, 1, 3)])
def test_linear_agrees(leading):
    assert_pair_agrees(
        F.linear,
        F.linear_backward,
        lambda x, W, b: torch.nn.functional.linear(x, W.T, b),
        *normals((*leading, 4), (4, 7), (7,)),
    )


def test_linear_without_bias_agrees():
    assert_pair_agrees(
        F.linear,
        F.linear_backward,
        lambda x, W: torch.nn.functional.linear(x, W.T),
        *normals((2, 3, 4), (4, 7)),
    )


def torch_conv1d(x, W, b=None, padding="same"):
    """(batch, length, in), (kernel, in, out) -> PyTorch's channels first, and back."""
    y = torch.nn.functional.conv1d(x.transpose(1, 2), W.permute(2, 1, 0), b, padding=padding)
    return y.transpose(1, 2)


# PyTorch notes that an even kernel with "same" costs it a copy of the input. That is what we ask.
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_conv1d_agrees(kernel, padding):
    assert_pair_agrees(
        lambda x, W, b: F.conv1d(x, W, b, padding=padding),
        F.conv1d_backward,
        lambda x, W, b: torch_conv1d(x, W, b, padding),
        *normals((2, 6, 4), (kernel, 4, 3), (3,)),
    )


@pytest.mark.parametrize("kernel", [1, 3])
def test_conv1d_without_bias_agrees(kernel):
    x, W = normals((2, 6, 4), (kernel, 4, 3))
    assert_pair_agrees(F.conv1d, F.conv1d_backward, torch_conv1d, x, W)


def test_conv1d_agrees_where_the_kernel_is_longer_than_the_sequence():
    x, W, b = normals((2, 3, 4), (5, 4, 3), (3,))
    assert_pair_agrees(F.conv1d, F.conv1d_backward, torch_conv1d, x, W, b)


# Activations --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forward", "backward", "reference"),
    [
        (F.relu, F.relu_backward, torch.relu),
        (F.tanh, F.tanh_backward, torch.tanh),
        (F.sigmoid, F.sigmoid_backward, torch.sigmoid),
    ],
    ids=["relu", "tanh", "sigmoid"],
)
def test_activation_agrees(forward, backward, reference):
    (x,) = normals((3, 50))
    assert_pair_agrees(forward, backward, reference, 4.0 * x)


def test_relu_has_pytorchs_gradient_at_0():
    assert_pair_agrees(F.relu, F.relu_backward, torch.relu, np.array([-1.0, -0.0, 0.0, 1.0]))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_agrees(approximate):
    (x,) = normals((3, 50))
    assert_pair_agrees(
        lambda x: F.gelu(x, approximate),
        F.gelu_backward,
        lambda x: torch.nn.functional.gelu(x, approximate=approximate),
        4.0 * x,
    )


# Normalisation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [1e-5, 1e-12])
@pytest.mark.parametrize("leading", [(), (6,), (2, 3)])
def test_layer_norm_agrees(leading, eps):
    assert_pair_agrees(
        lambda x, gamma, beta: F.layer_norm(x, gamma, beta, eps),
        F.layer_norm_backward,
        lambda x, gamma, beta: torch.nn.functional.layer_norm(x, (8,), gamma, beta, eps),
        *normals((*leading, 8), (8,), (8,)),
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax_agrees_over_any_axis(axis):
    (x,) = normals((2, 3, 4))
    assert_pair_agrees(
        lambda x: F.softmax(x, axis),
        F.softmax_backward,
        lambda x: torch.softmax(x, dim=axis),
        3.0 * x,
    )


@pytest.mark.parametrize("axis", [0, -1])
def test_softmax_agrees_under_a_mask(axis):
    (x,) = normals(PADDING.shape)
    assert_pair_agrees(
        lambda x: F.softmax(x, axis, mask=PADDING),
        F.softmax_backward,
        lambda x: torch_softmax(x, PADDING, dim=axis),
        x,
    )


# Attention ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", [(), (3,), (3, 2), (2, 1, 3)])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_attention_agrees_with_any_leading_axes(leading, causal):
    shape = (*leading, LENGTH, D)
    assert_pair_agrees(
        lambda *qkv: F.scaled_dot_product_attention(*qkv, causal=causal),
        F.scaled_dot_product_attention_backward,
        lambda *qkv: torch.nn.functional.scaled_dot_product_attention(*qkv, is_causal=causal),
        *normals(shape, shape, shape),
    )


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("lengths", [(3, 6), (6, 3)], ids=["more keys", "more queries"])
def test_attention_agrees_where_lengths_differ(lengths, causal):
    n_queries, n_keys = lengths
    assert_pair_agrees(
        lambda *qkv: F.scaled_dot_product_attention(*qkv, causal=causal),
        F.scaled_dot_product_attention_backward,
        lambda *qkv: torch.nn.functional.scaled_dot_product_attention(*qkv, is_causal=causal),
        *normals((2, 2, n_queries, D), (2, 2, n_keys, D), (2, 2, n_keys, D + 3)),
    )


@pytest.mark.parametrize("n_queries", [LENGTH, 2])
def test_attention_agrees_under_a_padding_mask(n_queries):
    mask = PADDING[:, None, None, :]
    keys = (BATCH, 2, LENGTH, D)
    assert_pair_agrees(
        lambda *qkv: F.scaled_dot_product_attention(*qkv, mask=mask),
        F.scaled_dot_product_attention_backward,
        lambda *qkv: torch.nn.functional.scaled_dot_product_attention(
            *qkv, attn_mask=torch.tensor(mask)
        ),
        *normals((BATCH, 2, n_queries, D), keys, keys),
    )


def test_attention_agrees_under_padding_and_causal_masks_at_once():
    padding = PADDING[:2, None, None, :]  # the third would leave its first query nothing to see
    both = torch.tensor(padding & np.tri(LENGTH, dtype=bool))
    shape = (2, 2, LENGTH, D)
    assert_pair_agrees(
        lambda *qkv: F.scaled_dot_product_attention(*qkv, mask=padding, causal=True),
        F.scaled_dot_product_attention_backward,
        lambda *qkv: torch.nn.functional.scaled_dot_product_attention(*qkv, attn_mask=both),
        *normals(shape, shape, shape),
    )


def test_attention_agrees_that_a_query_with_nothing_to_see_gives_0():
    mask = PADDING[:, None, None, :] & np.tri(LENGTH, dtype=bool)
    assert not mask[2, 0, 0].any()
    shape = (BATCH, 2, LENGTH, D)
    assert_pair_agrees(
        lambda *qkv: F.scaled_dot_product_attention(*qkv, mask=mask),
        F.scaled_dot_product_attention_backward,
        lambda *qkv: torch.nn.functional.scaled_dot_product_attention(
            *qkv, attn_mask=torch.tensor(mask)
        ),
        *normals(shape, shape, shape),
    )


@pytest.mark.parametrize("n_keys", [LENGTH, 3])
def test_attention_scores_agree_with_the_formula(n_keys):
    assert_pair_agrees(
        F.attention_scores,
        F.attention_scores_backward,
        lambda q, k: q @ k.mT / math.sqrt(D),
        *normals((BATCH, 2, LENGTH, D), (BATCH, 2, n_keys, D)),
    )


@pytest.mark.parametrize("block", [1, 2, 100])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("lengths", [(5, 5), (3, 6), (6, 3)], ids=str)
def test_attention_in_blocks_agrees(lengths, causal, block):
    n_queries, n_keys = lengths
    assert_pair_agrees(
        lambda *qkv: F.blockwise_attention(*qkv, causal=causal, block=block),
        F.blockwise_attention_backward,
        lambda *qkv: torch.nn.functional.scaled_dot_product_attention(*qkv, is_causal=causal),
        *normals((2, 2, n_queries, D), (2, 2, n_keys, D), (2, 2, n_keys, D + 3)),
    )


@pytest.mark.parametrize("block", [2, 100])
def test_attention_in_blocks_agrees_under_a_mask_where_some_see_nothing(block):
    mask = PADDING[:, None, None, :] & np.tri(LENGTH, dtype=bool)
    shape = (BATCH, 2, LENGTH, D)
    assert_pair_agrees(
        lambda *qkv: F.blockwise_attention(
            *qkv, mask=PADDING[:, None, None, :], causal=True, block=block
        ),
        F.blockwise_attention_backward,
        lambda *qkv: torch.nn.functional.scaled_dot_product_attention(
            *qkv, attn_mask=torch.tensor(mask)
        ),
        *normals(shape, shape, shape),
    )


# Averages -----------------------------------------------------------------------------------------

KEPT = PADDING | (np.arange(LENGTH) == 0)
"""As PADDING, and every first token, so that every token has something to see, causal or not."""


def sights(padded, causal, heads=False):
    """Return the mask to hand over, and the one that PyTorch's formulas need beside it."""
    mask = KEPT[:, None, :] if padded else None
    triangle = np.tri(LENGTH, dtype=bool) if causal else np.ones((LENGTH, LENGTH), dtype=bool)
    both = triangle if mask is None else mask & triangle
    if heads:
        return None if mask is None else mask[:, None], np.expand_dims(both, -3)
    return mask, both


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize(
    "leading", [(), (2,), (1, 2), (BATCH, 1), (BATCH, 2)], ids=lambda leading: f"scores {leading}"
)
def test_average_agrees_whoever_shares_the_scores(leading, padded, causal):
    mask, both = sights(padded, causal, heads=True)
    each = BATCH, 2, LENGTH, LENGTH
    assert_pair_agrees(
        lambda s, v: F.average(s, v, mask, causal),
        F.average_backward,
        lambda s, v: torch_softmax(s.expand(each), both) @ v,
        *normals((*leading, LENGTH, LENGTH), (BATCH, 2, LENGTH, D)),
    )


def test_averaging_weights_agree_with_the_formula():
    mask = PADDING[:, None, :]
    assert_pair_agrees(
        lambda s: F.averaging_weights(s, mask),
        F.softmax_backward,
        lambda s: torch_softmax(s, mask),
        *normals((BATCH, LENGTH, LENGTH)),
    )


# Synthesizers: the formulas, written in PyTorch ---------------------------------------------------


def torch_dense_synthesizer(x, value, W1, b1, W2, b2, mask=None):
    """softmax(relu(x W1 + b1) W2 + b2) value, one head at a time."""
    length = x.shape[-2]
    hidden = torch.relu(x @ W1 + b1)
    if W2.ndim == 2:
        return torch_softmax(hidden @ W2[:, :length] + b2[:length], mask) @ value
    heads = []
    for h, part in enumerate(hidden.chunk(len(W2), dim=-1)):
        scores = part @ W2[h, :, :length] + b2[h, :length]
        heads.append(torch_softmax(scores, mask) @ value[:, h])
    return torch.stack(heads, dim=1)


SINGLE = ((BATCH, LENGTH, D), (BATCH, LENGTH, 3), (D, 6), (6,), (6, LENGTH), (LENGTH,))
HEADS = ((BATCH, LENGTH, D), (BATCH, 2, LENGTH, 3), (D, 6), (6,), (2, 3, LENGTH), (2, LENGTH))
SINGLE_LONGER = (*SINGLE[:4], (6, LENGTH + 3), (LENGTH + 3,))
HEADS_LONGER = (*HEADS[:4], (2, 3, LENGTH + 3), (2, LENGTH + 3))


@pytest.mark.parametrize(
    "shapes",
    [SINGLE, HEADS, SINGLE_LONGER, HEADS_LONGER],
    ids=["single", "heads", "single cropped", "heads cropped"],
)
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_dense_synthesizer_agrees_with_the_formula(shapes, padded, causal):
    ours, _ = sights(padded, causal, heads=shapes in (HEADS, HEADS_LONGER))
    _, theirs = sights(padded, causal)
    assert_pair_agrees(
        lambda *arrays: F.dense_synthesizer(*arrays, mask=ours, causal=causal),
        F.dense_synthesizer_backward,
        lambda *arrays: torch_dense_synthesizer(*arrays, mask=theirs),
        *normals(*shapes),
    )


def test_dense_synthesizer_of_one_sequence_without_a_batch_agrees():
    assert_pair_agrees(
        F.dense_synthesizer,
        F.dense_synthesizer_backward,
        torch_dense_synthesizer,
        *normals((LENGTH, D), (LENGTH, 3), *SINGLE[2:]),
    )


@pytest.mark.parametrize("columns", [2, LENGTH])
def test_dense_scores_agree_with_the_formula(columns):
    assert_pair_agrees(
        lambda *arrays: F.dense_scores(*arrays, columns),
        F.dense_scores_backward,
        lambda x, W1, b1, W2, b2: (torch.relu(x @ W1 + b1) @ W2 + b2)[..., :columns],
        *normals(SINGLE[0], *SINGLE[2:]),
    )


def torch_factorized_dense_scores(x, W1, b1, W2, b2, V1, c1, V2, c2):
    """H_B(F(x)) * H_C(G(x)): F(x) tiled as often as G(x) is long, G(x) repeated likewise."""
    short, long = torch.relu(x @ W1 + b1) @ W2 + b2, torch.relu(x @ V1 + c1) @ V2 + c2
    a, b = short.shape[-1], long.shape[-1]
    tiled = torch.tile(short, (*[1] * (short.ndim - 1), b))
    return (tiled * torch.repeat_interleave(long, a, dim=-1))[..., : x.shape[-2]]


def torch_factorized_dense_scores_by_head(x, W1, b1, W2, b2, V1, c1, V2, c2):
    heads = []
    for h in range(len(W2)):
        own = slice(3 * h, 3 * h + 3)
        first, second = (W1[:, own], b1[own], W2[h], b2[h]), (V1[:, own], c1[own], V2[h], c2[h])
        heads.append(torch_factorized_dense_scores(x, *first, *second))
    return torch.stack(heads, dim=1)


def factorized_shapes(a, b, heads):
    """Return the shapes of F with a columns and G with b."""
    if heads:
        return [s for n in (a, b) for s in ((D, 6), (6,), (2, 3, n), (2, n))]
    return [s for n in (a, b) for s in ((D, 6), (6,), (6, n), (n,))]


@pytest.mark.parametrize("columns", [(5, 1), (1, 5), (3, 2), (2, 3), (3, 4)], ids=str)
@pytest.mark.parametrize("heads", [False, True], ids=["single", "heads"])
def test_factorized_dense_scores_agree_with_tile_and_repeat(columns, heads):
    assert_pair_agrees(
        lambda *arrays: F.factorized_dense_scores(*arrays, LENGTH),
        F.factorized_dense_scores_backward,
        torch_factorized_dense_scores_by_head if heads else torch_factorized_dense_scores,
        *normals((BATCH, LENGTH, D), *factorized_shapes(*columns, heads)),
    )


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("heads", [False, True], ids=["single", "heads"])
def test_factorized_dense_synthesizer_agrees_with_the_formula(heads, padded, causal):
    mask, both = sights(padded, causal, heads)
    scores = torch_factorized_dense_scores_by_head if heads else torch_factorized_dense_scores
    value = (BATCH, 2, LENGTH, 3) if heads else (BATCH, LENGTH, 3)
    assert_pair_agrees(
        lambda *arrays: F.factorized_dense_synthesizer(*arrays, mask=mask, causal=causal),
        F.factorized_dense_synthesizer_backward,
        lambda x, v, *maps: torch_softmax(scores(x, *maps), both) @ v,
        *normals((BATCH, LENGTH, D), value, *factorized_shapes(3, 2, heads)),
    )


@pytest.mark.parametrize("max_len", [LENGTH, LENGTH + 3])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("heads", [False, True], ids=["single", "heads"])
def test_random_synthesizer_agrees_with_the_formula(heads, padded, causal, max_len):
    mask, both = sights(padded, causal, heads)
    table = (2, max_len, max_len) if heads else (max_len, max_len)
    value = (BATCH, 2, LENGTH, 3) if heads else (BATCH, LENGTH, 3)
    each = (*value[:-1], LENGTH)
    assert_pair_agrees(
        lambda v, R: F.random_synthesizer(v, R, mask, causal),
        F.random_synthesizer_backward,
        lambda v, R: torch_softmax(R[..., :LENGTH, :LENGTH].expand(each), both) @ v,
        *normals(value, table),
    )


@pytest.mark.parametrize("max_len", [LENGTH, LENGTH + 3])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("heads", [False, True], ids=["single", "heads"])
def test_factorized_random_synthesizer_agrees_with_the_formula(heads, padded, causal, max_len):
    mask, both = sights(padded, causal, heads)
    factor = (2, max_len, 3) if heads else (max_len, 3)
    value = (BATCH, 2, LENGTH, 3) if heads else (BATCH, LENGTH, 3)
    each = (*value[:-1], LENGTH)
    assert_pair_agrees(
        lambda v, R1, R2: F.factorized_random_synthesizer(v, R1, R2, mask, causal),
        F.factorized_random_synthesizer_backward,
        lambda v, R1, R2: torch_softmax((R1 @ R2.mT)[..., :LENGTH, :LENGTH].expand(each), both) @ v,
        *normals(value, factor, factor),
    )


def test_tables_of_scores_agree_with_their_crop():
    assert_pair_agrees(
        lambda R: F.random_scores(R, LENGTH),
        F.random_scores_backward,
        lambda R: R[..., :LENGTH, :LENGTH],
        *normals((2, LENGTH + 3, LENGTH + 3)),
    )
    assert_pair_agrees(
        lambda R1, R2: F.factorized_random_scores(R1, R2, LENGTH),
        F.factorized_random_scores_backward,
        lambda R1, R2: (R1 @ R2.mT)[..., :LENGTH, :LENGTH],
        *normals((2, LENGTH + 3, 3), (2, LENGTH + 3, 3)),
    )


def test_mixture_agrees_with_the_formula():
    def mixed(logits, *parts):
        alpha = torch.softmax(logits, dim=0)
        return sum(share * part for share, part in zip(alpha, parts, strict=True))

    assert_pair_agrees(
        F.mixture_scores,
        F.mixture_scores_backward,
        mixed,
        *normals((3,), (BATCH, 2, LENGTH, LENGTH), (2, LENGTH, LENGTH), (LENGTH, LENGTH)),
    )


# Transforms and matrices --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 4), (2, 6, 8), (3, 7, 5), (2, 2, 1, 9)])
def test_fourier_mixing_agrees(shape):
    assert_pair_agrees(
        F.fourier_mixing,
        F.fourier_mixing_backward,
        lambda x: torch.fft.fft2(x).real,
        *normals(shape),
    )


@pytest.mark.parametrize("shape", [(5, 4), (2, 6, 8), (3, 7, 5), (2, 2, 1, 9)])
def test_hartley_mixing_agrees(shape):
    def hartley(x):
        transform = torch.fft.fft2(x)
        return transform.real - transform.imag

    assert_pair_agrees(F.hartley_mixing, F.hartley_mixing_backward, hartley, *normals(shape))


@pytest.mark.parametrize("max_len", [LENGTH, LENGTH + 3])
def test_linear_mixing_agrees(max_len):
    assert_pair_agrees(
        F.linear_mixing,
        F.linear_mixing_backward,
        lambda x, W, V: W[:LENGTH, :LENGTH] @ x @ V,
        *normals((BATCH, LENGTH, D), (max_len, max_len), (D, D)),
    )


# Dropout, embedding, pooling ----------------------------------------------------------------------


def test_dropout_agrees_given_the_same_mask():
    (x,) = normals((4, 50))
    scaled, _ = F.dropout(np.ones_like(x), 0.3, np.random.default_rng(7))
    assert set(np.unique(scaled)) == {0.0, 1.0 / 0.7}
    assert_pair_agrees(
        lambda x: F.dropout(x, 0.3, np.random.default_rng(7)),
        F.dropout_backward,
        lambda x: x * torch.tensor(scaled),
        x,
    )


def test_embedding_agrees_where_ids_repeat():
    ids = np.array([[0, 3, 3, 5], [3, 0, 2, 3]])  # 1 and 4 never, 3 four times
    assert_pair_agrees(
        lambda table: F.embedding(ids, table),
        F.embedding_backward,
        lambda table: torch.nn.functional.embedding(torch.tensor(ids), table),
        *normals((6, D)),
    )


def test_mean_pooling_agrees():
    assert_pair_agrees(
        F.mean_pooling,
        F.mean_pooling_backward,
        lambda x: x.mean(dim=1),
        *normals((BATCH, LENGTH, D)),
    )


def test_mean_pooling_agrees_under_a_mask():
    def mean_of_kept(x):
        kept = [row[torch.tensor(keep)] for row, keep in zip(x, PADDING, strict=True)]
        return torch.stack([row.mean(dim=0) for row in kept])

    assert_pair_agrees(
        lambda x: F.mean_pooling(x, PADDING),
        F.mean_pooling_backward,
        mean_of_kept,
        *normals((BATCH, LENGTH, D)),
    )


# Losses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.3])
def test_cross_entropy_agrees(label_smoothing):
    labels = np.array([0, 6, 2, 2, 5])
    assert_pair_agrees(
        lambda logits: F.softmax_cross_entropy(logits, labels, label_smoothing),
        F.softmax_cross_entropy_backward,
        lambda logits: torch.nn.functional.cross_entropy(
            logits, torch.tensor(labels), label_smoothing=label_smoothing
        ),
        *normals((5, 7)),
    )


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.3])
def test_cross_entropy_agrees_where_positions_have_no_label(label_smoothing):
    labels = np.array([[0, -1, 2, -1], [-1, 6, 2, 5], [-1, -1, -1, -1]])
    assert_pair_agrees(
        lambda logits: F.softmax_cross_entropy(logits, labels, label_smoothing),
        F.softmax_cross_entropy_backward,
        lambda logits: torch.nn.functional.cross_entropy(
            logits.flatten(0, 1),
            torch.tensor(labels).flatten(),
            ignore_index=F.NO_LABEL,
            label_smoothing=label_smoothing,
        ),
        *normals((3, 4, 7)),
    )


def test_cross_entropy_agrees_on_logits_that_would_overflow():
    labels = np.array([0, 1, 2])
    (logits,) = normals((3, 4))
    assert_pair_agrees(
        lambda logits: F.softmax_cross_entropy(logits, labels),
        F.softmax_cross_entropy_backward,
        lambda logits: torch.nn.functional.cross_entropy(logits, torch.tensor(labels)),
        1000.0 * logits,
    )


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_binary_cross_entropy_agrees(scale):
    (logits,) = normals((6, 2))
    targets = np.random.default_rng(1).uniform(size=(6, 2))
    targets[0] = 0.0, 1.0
    assert_pair_agrees(
        lambda logits: F.binary_cross_entropy_with_logits(logits, targets),
        F.binary_cross_entropy_with_logits_backward,
        lambda logits: torch.nn.functional.binary_cross_entropy_with_logits(
            logits, torch.tensor(targets)
        ),
        scale * logits,
    )


def test_mean_squared_error_agrees():
    prediction, target = normals((6, 2), (6, 2))
    assert_pair_agrees(
        lambda prediction: F.mean_squared_error(prediction, target),
        F.mean_squared_error_backward,
        lambda prediction: torch.nn.functional.mse_loss(prediction, torch.tensor(target)),
        prediction,
    )
