"""The mathematics: pure pairs of functions, forward and backward, one idea a file.

    y, cache = layer_norm(x, gamma, beta)
    dx, dgamma, dbeta = layer_norm_backward(dy, cache)

`name` returns its result and a cache that only `name_backward` opens: what is in it is nobody
else's business. `name_backward` takes dy, the gradient of the loss with respect to y, and returns
one gradient for each differentiable array argument, in their order; a single one stands alone, not
in a tuple. It changes neither `dy` nor the cache, so it may be called twice. No function keeps
state. (`split_heads`, `merge_heads` and `averaging_weights` are parts of pairs, not pairs.)

How to read them: `xp` is the module that the arrays belong to, NumPy or CuPy. Shapes stand at line
ends; ``[.., Lq, d]`` is any leading axes, query length and features. In a backward pass, a comment
quotes the forward line whose gradient follows.
"""

from npformer.functional.activations import (
    gelu,
    gelu_backward,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    tanh,
    tanh_backward,
)
from npformer.functional.attention import (
    attention_scores,
    attention_scores_backward,
    blockwise_attention,
    blockwise_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from npformer.functional.averaging import average, average_backward, averaging_weights
from npformer.functional.conv1d import conv1d, conv1d_backward
from npformer.functional.dense_synthesizer import (
    dense_scores,
    dense_scores_backward,
    dense_synthesizer,
    dense_synthesizer_backward,
    factorized_dense_scores,
    factorized_dense_scores_backward,
    factorized_dense_synthesizer,
    factorized_dense_synthesizer_backward,
)
from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.embedding import embedding, embedding_backward
from npformer.functional.fourier import fourier_mixing, fourier_mixing_backward
from npformer.functional.hartley import hartley_mixing, hartley_mixing_backward
from npformer.functional.heads import merge_heads, split_heads
from npformer.functional.layer_norm import layer_norm, layer_norm_backward
from npformer.functional.linear import linear, linear_backward
from npformer.functional.linear_mixing import linear_mixing, linear_mixing_backward
from npformer.functional.losses import (
    NO_LABEL,
    binary_cross_entropy_with_logits,
    binary_cross_entropy_with_logits_backward,
    mean_squared_error,
    mean_squared_error_backward,
    softmax_cross_entropy,
    softmax_cross_entropy_backward,
)
from npformer.functional.mixture import mixture_scores, mixture_scores_backward
from npformer.functional.pooling import mean_pooling, mean_pooling_backward
from npformer.functional.random_synthesizer import (
    factorized_random_scores,
    factorized_random_scores_backward,
    factorized_random_synthesizer,
    factorized_random_synthesizer_backward,
    random_scores,
    random_scores_backward,
    random_synthesizer,
    random_synthesizer_backward,
)
from npformer.functional.softmax import softmax, softmax_backward

__all__ = [
    "NO_LABEL",
    "attention_scores",
    "attention_scores_backward",
    "average",
    "average_backward",
    "averaging_weights",
    "binary_cross_entropy_with_logits",
    "binary_cross_entropy_with_logits_backward",
    "blockwise_attention",
    "blockwise_attention_backward",
    "conv1d",
    "conv1d_backward",
    "dense_scores",
    "dense_scores_backward",
    "dense_synthesizer",
    "dense_synthesizer_backward",
    "dropout",
    "dropout_backward",
    "embedding",
    "embedding_backward",
    "factorized_dense_scores",
    "factorized_dense_scores_backward",
    "factorized_dense_synthesizer",
    "factorized_dense_synthesizer_backward",
    "factorized_random_scores",
    "factorized_random_scores_backward",
    "factorized_random_synthesizer",
    "factorized_random_synthesizer_backward",
    "fourier_mixing",
    "fourier_mixing_backward",
    "gelu",
    "gelu_backward",
    "hartley_mixing",
    "hartley_mixing_backward",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "linear_mixing",
    "linear_mixing_backward",
    "mean_pooling",
    "mean_pooling_backward",
    "mean_squared_error",
    "mean_squared_error_backward",
    "merge_heads",
    "mixture_scores",
    "mixture_scores_backward",
    "random_scores",
    "random_scores_backward",
    "random_synthesizer",
    "random_synthesizer_backward",
    "relu",
    "relu_backward",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "sigmoid",
    "sigmoid_backward",
    "softmax",
    "softmax_backward",
    "softmax_cross_entropy",
    "softmax_cross_entropy_backward",
    "split_heads",
    "tanh",
    "tanh_backward",
]
