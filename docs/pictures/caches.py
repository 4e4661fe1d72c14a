"""How many tokens are computed for each token written, and how large a state is."""

import matplotlib.pyplot as plt
import numpy as np

import npformer as nf
from npformer.training.generation.choosing import Choice
from npformer.training.generation.writing import write_tokens

MAX_LEN, PROMPT, N = 64, 16, 160


class Counting(nf.LanguageModel):
    """A model that records how many tokens of a row it computes at a time."""

    def next_logits(self, x, states, context):
        """Count, and continue."""
        self.computed.append(x.shape[1])
        return super().next_logits(x, states, context)


def draw():
    """Return both curves."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8))
    for cache, label, colour in (
        (False, "without a state", "#d55e00"),
        (True, "with a state", "#0072b2"),
    ):
        left.plot(computed(cache), label=label, color=colour)
    left.set(xlabel="token that is written", ylabel="tokens that are computed", ylim=(0, 80))
    left.legend(frameon=False, fontsize=9, loc="upper right", ncols=2)
    lengths = np.arange(1, 257)
    for name in ("attention", "gated_convolution", "random_synthesizer", "state_space", "identity"):
        config = nf.EncoderConfig(d_model=32, n_layers=2, max_len=256, causal=True, mixer=name)
        model = nf.LanguageModel(config, vocab_size=8)
        right.plot(lengths, [model.state_bytes(int(n)) / 1024 for n in lengths], label=name)
    right.set(xlabel="tokens", ylabel="KiB of a state", ylim=(-2, None))
    right.legend(frameon=False, fontsize=8)
    return {"costs": figure}


def computed(cache):
    """Return how many tokens were computed for each token written after a prompt."""
    config = nf.EncoderConfig(
        d_model=8, n_layers=1, n_heads=1, d_ff=8, max_len=MAX_LEN, causal=True
    )
    model = Counting(config, vocab_size=8)
    model.computed = []
    with nf.use_kernels(False):
        for _ in write_tokens(model, [np.arange(PROMPT) % 8], N, Choice(0.0), cache=cache):
            pass
    return model.computed
