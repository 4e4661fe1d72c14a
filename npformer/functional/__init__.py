"""The mathematics: pure pairs of functions, forward and backward, one idea a file.

    y, cache = layer_norm(x, gamma, beta)
    dx, dgamma, dbeta = layer_norm_backward(dy, cache)

`name` returns its result and a cache that only `name_backward` opens. dy is the gradient of the
loss with respect to y; `name_backward` returns one gradient for each differentiable array argument,
in the order and with the shapes of the arguments. A single gradient is returned without a tuple.
The backward pass changes neither `dy` nor the cache, so it may be called twice. No function keeps
state. Mixed dtypes or backends are a TypeError; shapes that do not fit, and numbers out of range,
are a ValueError.

How to read them: `xp` is the module of the arrays, NumPy or CuPy. Comments at the end of a line
give shapes; ``[.., Lq, d]`` is any leading axes, query length and features. In a backward pass, a
comment quotes the forward line whose gradient follows.
"""

from npformer.core.support.missing_names import lead_to_names
from npformer.functional.activations import (
    gelu,
    gelu_backward,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    silu,
    silu_backward,
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
from npformer.functional.causal_convolution import (
    causal_convolution,
    causal_convolution_backward,
    short_convolution,
    short_convolution_backward,
)
from npformer.functional.conv1d import conv1d, conv1d_backward
from npformer.functional.dense_synthesizer import (
    dense_scores,
    dense_scores_backward,
    dense_synthesizer,
    dense_synthesizer_backward,
)
from npformer.functional.dropout import (
    dropout,
    dropout_backward,
    token_dropout,
    token_dropout_backward,
)
from npformer.functional.embedding import embedding, embedding_backward
from npformer.functional.factorized_dense_synthesizer import (
    factorized_dense_scores,
    factorized_dense_scores_backward,
    factorized_dense_synthesizer,
    factorized_dense_synthesizer_backward,
)
from npformer.functional.factorized_random_synthesizer import (
    factorized_random_scores,
    factorized_random_scores_backward,
    factorized_random_synthesizer,
    factorized_random_synthesizer_backward,
)
from npformer.functional.fourier import fourier_mixing, fourier_mixing_backward
from npformer.functional.gated import gated, gated_backward
from npformer.functional.hartley import hartley_mixing, hartley_mixing_backward
from npformer.functional.heads import (
    merge_heads,
    repeat_heads,
    repeat_heads_backward,
    split_heads,
)
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
from npformer.functional.pooling import (
    max_pooling,
    max_pooling_backward,
    mean_pooling,
    mean_pooling_backward,
)
from npformer.functional.random_synthesizer import (
    random_scores,
    random_scores_backward,
    random_synthesizer,
    random_synthesizer_backward,
)
from npformer.functional.rms_norm import rms_norm, rms_norm_backward
from npformer.functional.rotary import rotary, rotary_backward
from npformer.functional.softmax import softmax, softmax_backward
from npformer.functional.state_space import (
    state_space_kernel,
    state_space_kernel_backward,
    state_space_step,
)

# First what is not a pair, then one line for each pair.
__all__ = ["NO_LABEL", "averaging_weights", "merge_heads", "split_heads"]
__all__ += ["linear", "linear_backward"]
__all__ += ["state_space_step"]
__all__ += ["conv1d", "conv1d_backward"]
__all__ += ["causal_convolution", "causal_convolution_backward"]
__all__ += ["short_convolution", "short_convolution_backward"]
__all__ += ["state_space_kernel", "state_space_kernel_backward"]
__all__ += ["relu", "relu_backward"]
__all__ += ["gelu", "gelu_backward"]
__all__ += ["tanh", "tanh_backward"]
__all__ += ["sigmoid", "sigmoid_backward"]
__all__ += ["silu", "silu_backward"]
__all__ += ["layer_norm", "layer_norm_backward"]
__all__ += ["rms_norm", "rms_norm_backward"]
__all__ += ["rotary", "rotary_backward"]
__all__ += ["repeat_heads", "repeat_heads_backward"]
__all__ += ["gated", "gated_backward"]
__all__ += ["softmax", "softmax_backward"]
__all__ += ["attention_scores", "attention_scores_backward"]
__all__ += ["average", "average_backward"]
__all__ += ["scaled_dot_product_attention", "scaled_dot_product_attention_backward"]
__all__ += ["blockwise_attention", "blockwise_attention_backward"]
__all__ += ["dense_scores", "dense_scores_backward"]
__all__ += ["dense_synthesizer", "dense_synthesizer_backward"]
__all__ += ["factorized_dense_scores", "factorized_dense_scores_backward"]
__all__ += ["factorized_dense_synthesizer", "factorized_dense_synthesizer_backward"]
__all__ += ["random_scores", "random_scores_backward"]
__all__ += ["random_synthesizer", "random_synthesizer_backward"]
__all__ += ["factorized_random_scores", "factorized_random_scores_backward"]
__all__ += ["factorized_random_synthesizer", "factorized_random_synthesizer_backward"]
__all__ += ["mixture_scores", "mixture_scores_backward"]
__all__ += ["fourier_mixing", "fourier_mixing_backward"]
__all__ += ["hartley_mixing", "hartley_mixing_backward"]
__all__ += ["linear_mixing", "linear_mixing_backward"]
__all__ += ["dropout", "dropout_backward", "token_dropout", "token_dropout_backward"]
__all__ += ["embedding", "embedding_backward"]
__all__ += ["max_pooling", "max_pooling_backward", "mean_pooling", "mean_pooling_backward"]
__all__ += ["softmax_cross_entropy", "softmax_cross_entropy_backward"]
__all__ += ["binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward"]
__all__ += ["mean_squared_error", "mean_squared_error_backward"]

lead_to_names(__name__)
