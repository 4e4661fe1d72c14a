"""What do pretrained weights save?
================================

An encoder is trained on many made-up sentences and written as a folder in Hugging Face's layout,
which ``transformers.AutoModel`` could open. Then 48 sentences of another task have to be enough:
from scratch, for a new head on frozen weights, for the last layer too, and for all layers. For BERT
or MiniLM only the path changes, and ``pretrained.encode(texts)`` makes the ids.
"""

from contextlib import suppress
from tempfile import TemporaryDirectory

import numpy as np

import npformer as nf

N_WORDS, LENGTH = 300, 12
rng = np.random.default_rng(0)
feeling = rng.choice([-1, 0, 1], N_WORDS)  # each word is bad, neutral or good
feeling[:2] = 0  # 0 is padding, 1 begins every sentence


def sentences(n):
    """Return n sentences as ids, and how many more good words than bad ones each has."""
    ids = rng.integers(2, N_WORDS, (n, LENGTH))
    ids[:, 0] = 1
    return ids, feeling[ids].sum(axis=1)


# The first task, with many samples: are there more good words than bad ones?
ids, balance = sentences(4000)
config = nf.EncoderConfig(
    d_model=32,
    n_layers=2,
    n_heads=4,
    d_ff=64,
    max_len=LENGTH,
    dropout=0.1,
    positions="learned",
    scale_embeddings=False,  # these three, and two token types, make it a BERT
    embedding_norm=True,
    n_token_types=2,
)
model = nf.SequenceClassifier(config, 2, vocab_size=N_WORDS, pooling="pooler", padding_id=0)
nf.fit(model, (ids, (balance > 0).astype(int)), epochs=8, lr=2e-3, progress=False)

# The second one, with few: bad, about even, or good?
few, test = sentences(48), sentences(2000)


def classes(balance):
    return np.digitize(balance, [-1, 2])


def tuned(model, epochs=40, lr=1e-3):
    """Return the accuracy on new sentences after training on few."""
    x, y = few[0], classes(few[1])
    nf.fit(model, (x, y), epochs=epochs, batch_size=16, lr=lr, progress=False)
    return nf.evaluate(model, (test[0], classes(test[1]))).accuracy


with TemporaryDirectory() as folder:
    nf.interop.save_pretrained(model, folder)
    pretrained = nf.from_pretrained(folder)
    print(pretrained.architecture.class_name(), pretrained.encoder.config.n_layers, "layers")

    scratch = nf.SequenceClassifier(config, 3, vocab_size=N_WORDS, pooling="pooler")
    found = {"from scratch": tuned(scratch)}
    head = pretrained.classifier(3, pooling="mean").freeze("embed.*", "encoder.*")
    found["head alone"] = tuned(head, lr=1e-2)
    last = pretrained.classifier(3).freeze("embed.*", "encoder.blocks.0.*")
    found["the last layer"] = tuned(last)
    whole = pretrained.classifier(3)
    found["whole"] = tuned(whole)
    for name, accuracy in found.items():
        print(f"{name:<14}  {accuracy:.3f}")
    pretrained.save(folder, whole, classes=["bad", "even", "good"], overwrite=True)
    print("written:", nf.from_pretrained(folder).classes)

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
    axis.barh(list(found), list(found.values()), color=["C1", "C0", "C0", "C0"])
    axis.invert_yaxis()
    axis.set(xlabel="accuracy after 48 sentences; orange: not pretrained", xlim=(0.3, 1))
    plt.show()
