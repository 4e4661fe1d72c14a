"""Which settings does Fourier mixing need?
===========================================

Attention hardly notices whether the norm comes before or after a sublayer. Fourier mixing does.
Both are trained here on speakers who say two vowels; the reason is then measured.
"""

from contextlib import suppress

import numpy as np

import npformer as nf

vowels = nf.data.vowels(dtype="float32")
names = sorted(set(vowels.train[1]))


def arrays(part):
    """Return scaled series with padding, labels, and the mask."""
    series, labels = part
    mask = np.arange(29) < np.array([len(each) for each in series])[:, None]
    x = np.zeros((len(series), 29, 12), dtype="float32")
    x[mask] = (np.concatenate(series) - mean) / deviation
    return x, np.array([names.index(label) for label in labels]), mask


steps = np.concatenate(vowels.train[0])
mean, deviation = steps.mean(axis=0), steps.std(axis=0)
train, test = arrays(vowels.train), arrays(vowels.test)

SIZES = {"d_model": 32, "n_layers": 4, "n_heads": 4, "d_ff": 64, "max_len": 29}

for mixer in ("attention", "fourier"):
    for norm in ("post", "pre"):
        config = nf.EncoderConfig(**SIZES, mixer=mixer, norm=norm, padding="per_length")
        model = nf.SequenceClassifier(config, len(names), n_features=12, seed=0)
        nf.fit(model, train, epochs=6, batch_size=16, lr=2e-3, progress=False)
        accuracy = nf.evaluate(model, test).accuracy
        print(f"{mixer:9} with norm={norm!r}: accuracy {accuracy:.2f}")

# Why: what a Fourier transform adds to a token is a sum over all tokens and features, so it is many
# times as large as the token. A norm after the sum brings it back; a norm before the sublayer lets
# it grow from layer to layer, until what the feed-forward networks add is lost beside it.
x, _, mask = test
by_norm = {}
for norm in ("post", "pre"):
    config = nf.EncoderConfig(**SIZES, mixer="fourier", norm=norm, padding="per_length")
    model = nf.SequenceClassifier(config, len(names), n_features=12, seed=0)
    sizes = {call.name: call.output.std() for call in nf.trace(model, x[:8], mask[:8])}
    shares = [
        sizes[f"encoder.blocks.{i}.feed_forward"] / sizes[f"encoder.blocks.{i}"] for i in range(4)
    ]
    by_norm[norm] = shares
    print(f"norm={norm!r}: size of what the network adds / of the block's output", end=" ")
    print(np.round(shares, 3))

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
    for norm, shares in by_norm.items():
        axis.plot(range(1, 5), shares, marker="o", label=f"norm={norm!r}")
    axis.set(xlabel="block", ylabel="network / output", xticks=range(1, 5), ylim=(0, None))
    axis.set_title("Fourier mixing: what is left of the feed-forward network", fontsize=10)
    axis.legend()
    plt.show()
