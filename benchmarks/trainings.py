"""Small trainings that together meet every part of a training, and digests of their results.

`python -m benchmarks same` runs this file by its path, once in each checkout: it imports nothing
but the public names of whichever npformer is found first.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import npformer as nf

SAMPLES, LENGTH, FEATURES, VOCABULARY, CLASSES = 40, 8, 5, 12, 3
PADDING, BEGIN, END, FIRST_WORD = 0, 1, 2, 3
"""Token ids; words have those from the last to the end of the vocabulary."""

LOSSES = "train_loss", "validation_loss", "validation_metric", "best_epoch", "stopped"
"""What the digest of losses covers of a history."""


def small(**settings: Any) -> nf.EncoderConfig:
    """Return the configuration of a small encoder, changed by some settings."""
    usual = {"d_model": 16, "n_layers": 2, "n_heads": 4, "d_ff": 24, "max_len": 10}
    return nf.EncoderConfig(**(usual | settings))


def small_modern(**settings: Any) -> nf.EncoderConfig:
    """Return the configuration of a small encoder or writer of today."""
    return nf.EncoderConfig.modern(d_model=16, n_layers=2, n_heads=4, max_len=10, **settings)


def momentum(model: nf.Model) -> nf.SGD:
    """Return an optimizer with Nesterov's momentum."""
    return nf.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training: its task, its model, the arguments of `fit`, and how it is computed."""

    task: str = "ids"
    """One of `TASKS`."""
    config: nf.EncoderConfig = field(default_factory=small)
    pooling: str = "mean"
    output: str = "softmax"
    tied: bool = False
    """Whether input and output of a model that writes share a table."""
    frozen: tuple[str, ...] = ()
    """Patterns of the names of parameters that are not trained."""
    length: int = LENGTH
    padded: bool = False
    """Whether sequences are of different lengths."""
    types: bool = False
    """Whether tokens have types."""
    sample_weight: bool = False
    optimizer: Callable[[nf.Model], Any] | None = None
    fit: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `fit`."""
    dtype: str = "float32"
    workers: int = 1
    resumed: bool = False
    """Whether it stops after its second epoch and is resumed from a checkpoint."""


MIXING = {
    "attention": Training(task="ids"),
    "dense-synthesizer": Training(
        config=small(mixer="dense_synthesizer"),
        padded=True,
        workers=2,
        fit={"batches": "by_length"},
    ),
    "random-synthesizer": Training(
        config=small(mixer="random_synthesizer", attention_dropout=0.2), dtype="float64"
    ),
    "fixed-random-synthesizer": Training(config=small(mixer="fixed_random_synthesizer")),
    "factorized-dense-synthesizer": Training(
        config=small(mixer="factorized_dense_synthesizer", norm="pre"), dtype="float64"
    ),
    "factorized-random-synthesizer": Training(
        config=small(mixer="factorized_random_synthesizer", rank=2), workers=2
    ),
    "mixture": Training(
        task="vectors",
        config=small(mixer="mixture", mixture=("attention", "factorized_dense_synthesizer")),
        padded=True,
    ),
    "mixture-writer": Training(
        task="language",
        config=small(mixer="mixture", mixture=("attention", "random_synthesizer"), causal=True),
    ),
    "fourier": Training(task="vectors", config=small(mixer="fourier")),
    "fourier-long": Training(
        task="vectors",
        config=small(mixer="fourier", max_len=300),
        length=264,
        fit={"batch_size": 4, "epochs": 2},
    ),
    "fourier-per-length": Training(
        config=small(mixer="fourier", padding="per_length"), padded=True, dtype="float64", workers=2
    ),
    "fourier-zero": Training(config=small(mixer="fourier", padding="zero"), padded=True),
    "hartley": Training(config=small(mixer="hartley", padding="per_length"), padded=True),
    "hybrid": Training(
        config=small(mixer=nf.mixers.hybrid(2, n_attention=1), padding="per_length"), padded=True
    ),
    "linear": Training(
        task="vectors", config=small(mixer="linear", max_len=LENGTH), dtype="float64"
    ),
    "random": Training(task="vectors", config=small(mixer="random", max_len=LENGTH), workers=2),
    "identity": Training(config=small(mixer=("identity", "attention")), padded=True),
    "gated-convolution": Training(
        config=small(mixer="gated_convolution", norm="pre"), padded=True, workers=2
    ),
    "gated-convolution-writer": Training(
        task="language", config=small(mixer="gated_convolution", causal=True)
    ),
    "state-space": Training(
        task="vectors", config=small(mixer="state_space(n_states=4)"), dtype="float64"
    ),
    "state-space-writer": Training(
        task="language", config=small(mixer="state_space", causal=True), resumed=True
    ),
}
"""One training or more of each mixer."""

ENCODING = {
    "rms-gated": Training(
        config=small(norm="pre", norm_kind="rms", ffn="gated", activation="silu", bias=False),
    ),
    "rms-post": Training(
        config=small(norm_kind="rms", ffn="gated", activation="gelu_tanh", norm_eps=1e-6),
        dtype="float64",
        padded=True,
    ),
    "convolutions": Training(
        task="vectors", config=small(ffn="conv1d", activation="relu", ffn_dropout=0.2)
    ),
    "no-feed-forward": Training(
        config=small(ffn="none", positions="learned", scale_embeddings=False), padded=True
    ),
    "shared-layers": Training(
        config=small(share_layers=True, activation="tanh", positions="sinusoidal_halves"),
        workers=2,
        dtype="float64",
    ),
    "types-and-pooler": Training(
        config=small(
            positions="learned",
            n_token_types=2,
            position_padding_id=PADDING,
            embedding_norm=True,
            embedding_projection=True,
            initializer="normal(std=0.1)",
        ),
        pooling="pooler",
        padded=True,
        types=True,
        dtype="float64",
    ),
    "rotary": Training(
        config=small(
            positions="rotary", rope_theta=(100.0, 10000.0), qk_norm=True, d_head=6, n_kv_heads=2
        ),
        padded=True,
        workers=2,
    ),
    "one-head-of-keys": Training(
        config=small(
            positions="rotary", rope_theta=50.0, n_kv_heads=1, initializer="normal(std=2.0)"
        ),
        padded=True,
    ),
    "windows": Training(
        config=small(window=(3, None), positions="none"), padded=True, dtype="float64"
    ),
    "blocks": Training(
        config=small(window=3, memory="blocks", causal=True), padded=True, pooling="max"
    ),
    "long-blocks": Training(
        task="vectors",
        config=small(memory="blocks", max_len=300, n_heads=2),
        length=264,
        fit={"batch_size": 4, "epochs": 2},
    ),
    "dropout": Training(
        config=small(dropout=0.1, token_dropout=0.1, attention_dropout=0.1, ffn_dropout=0.1),
        padded=True,
        workers=2,
        resumed=True,
    ),
    "dropout-stored": Training(
        config=small(dropout=0.2, token_dropout=0.1, attention_dropout=0.2, memory="stored"),
        resumed=True,
    ),
    "modern": Training(config=small_modern(), padded=True, dtype="float64"),
}
"""Norms, feed-forward networks, positions, windows, dropout."""

STEPPING = {
    "labels-of-tokens": Training(
        pooling="none", padded=True, fit={"batches": "cut", "label_smoothing": 0.1}
    ),
    "two-classes": Training(
        output="sigmoid",
        pooling="max",
        sample_weight=True,
        fit={"validation": 0.2, "metric": "macro_f1", "epochs": 5},
    ),
    "numbers": Training(
        task="vectors",
        output="mean_squared_error",
        pooling="flatten",
        config=small(max_len=LENGTH),
        dtype="float64",
        fit={"validation": 0.2, "epochs": 5},
    ),
    "class-weights": Training(pooling="first", padded=True, fit={"class_weight": "balanced"}),
    "accumulating": Training(
        resumed=True,
        padded=True,
        fit={"batch_size": 4, "accumulate": 2, "clip_norm": 0.5, "schedule": "cosine(warmup=4)"},
    ),
    "micro-batches": Training(
        padded=True,
        workers=2,
        dtype="float64",
        fit={"micro_batch": 3, "layer_decay": 0.8, "weight_decay": 0.1, "no_decay": ["*.bias"]},
    ),
    "momentum": Training(
        optimizer=momentum, padded=True, resumed=True, fit={"batches": "shuffled", "clip_norm": 1.0}
    ),
    "frozen": Training(frozen=("embed.*", "encoder.blocks.0.*"), workers=2),
    "patience": Training(fit={"validation": 0.2, "patience": 2, "epochs": 30, "lr": 0.03}),
}
"""Losses, weights of samples, updates, validation."""

WRITING = {
    "language": Training(
        task="language", tied=True, config=small(causal=True, dropout=0.1), workers=2, resumed=True
    ),
    "large-batches": Training(
        task="language",
        config=small(causal=True, max_len=40),
        length=40,
        padded=True,
        fit={"batch_size": SAMPLES, "epochs": 20, "label_smoothing": 0.1},
    ),
    "windowed-writer": Training(
        task="language",
        config=small(causal=True, norm="pre", window=4),
        padded=True,
        dtype="float64",
    ),
    "modern-writer": Training(task="language", config=small_modern(causal=True), dtype="float64"),
    "masked": Training(task="masked", padded=True, fit={"validation": 0.2, "epochs": 5}),
    "masked-fourier": Training(
        task="masked", config=small(mixer="fourier"), dtype="float64", resumed=True
    ),
    "translating": Training(task="translating", config=small(norm="pre", dropout=0.1), workers=2),
    "translating-tied": Training(task="translating", tied=True, dtype="float64", resumed=True),
}
"""Models that write, and those that fill in."""

TRAININGS: dict[str, Training] = MIXING | ENCODING | STEPPING | WRITING


# Samples ----------------------------------------------------------------------------------------


def lengths_of(training: Training, rng: np.random.Generator) -> np.ndarray:
    """Return the length of each sequence."""
    shortest = 3 if training.padded else training.length
    return rng.integers(shortest, training.length + 1, SAMPLES)


def words(training: Training, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return token ids and the mask of those that are not padding."""
    mask = np.arange(training.length) < lengths_of(training, rng)[:, None]
    ids = rng.integers(FIRST_WORD, VOCABULARY, mask.shape)
    return np.where(mask, ids, PADDING), mask


def targets_of(training: Training, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return what a classifier is to predict."""
    if training.output == "mean_squared_error":
        return rng.standard_normal((SAMPLES, CLASSES)).astype(training.dtype)
    if training.pooling == "none":
        return np.where(mask, rng.integers(0, CLASSES, mask.shape), -1)
    return rng.integers(0, classes_of(training), SAMPLES)


def classes_of(training: Training) -> int:
    """Return the number of classes: a single logit tells two apart."""
    return 2 if training.output == "sigmoid" else CLASSES


def ids_to_classify(training: Training, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return token ids, targets, the mask, and types of tokens."""
    ids, mask = words(training, rng)
    types = rng.integers(0, 2, ids.shape) if training.types else None
    return ids, targets_of(training, mask, rng), mask if training.padded else None, types


def vectors_to_classify(training: Training, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return feature vectors, targets and the mask."""
    _, mask = words(training, rng)
    x = rng.standard_normal((*mask.shape, FEATURES)).astype(training.dtype)
    return x, targets_of(training, mask, rng), mask if training.padded else None, None


def texts(training: Training, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return token ids, the id that follows each, and the mask."""
    ids, mask = words(training, rng)
    following = np.where(mask[:, 1:], ids[:, 1:], -1)
    return ids[:, :-1], following, mask[:, :-1] if training.padded else None, None


def texts_to_fill(training: Training, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return token ids and the mask; the model hides tokens itself."""
    ids, mask = words(training, rng)
    return ids, None, mask if training.padded else None, None


def pairs(training: Training, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return sources and, as targets, the same words backwards, from the begin to the end token."""
    lengths = rng.integers(2, training.length - 1, SAMPLES)
    source = np.full((SAMPLES, training.length), PADDING)
    target = np.full((SAMPLES, training.length), PADDING)
    for row, length in enumerate(lengths):
        sentence = rng.integers(FIRST_WORD, VOCABULARY, length)
        source[row, :length] = sentence
        target[row, : length + 2] = [BEGIN, *sentence[::-1], END]
    return source, target, None, None


# Models -----------------------------------------------------------------------------------------


def ids_classifier(training: Training) -> nf.Model:
    """Return a classifier of token ids."""
    return nf.SequenceClassifier(
        training.config,
        n_classes=classes_of(training),
        vocab_size=VOCABULARY,
        pooling=training.pooling,
        output=training.output,
        padding_id=PADDING if training.padded else None,
        seed=1,
        dtype=training.dtype,
    )


def vectors_classifier(training: Training) -> nf.Model:
    """Return a classifier of feature vectors."""
    return nf.SequenceClassifier(
        training.config,
        n_classes=classes_of(training),
        n_features=FEATURES,
        pooling=training.pooling,
        output=training.output,
        seed=1,
        dtype=training.dtype,
    )


def writer(training: Training) -> nf.Model:
    """Return a language model."""
    return nf.LanguageModel(
        training.config, vocab_size=VOCABULARY, tied=training.tied, seed=1, dtype=training.dtype
    )


def filler(training: Training) -> nf.Model:
    """Return a masked language model."""
    return nf.MaskedLanguageModel(
        training.config,
        vocab_size=VOCABULARY,
        mask_id=BEGIN,
        padding_id=PADDING,
        seed=1,
        dtype=training.dtype,
    )


def translator(training: Training) -> nf.Model:
    """Return an encoder-decoder."""
    return nf.EncoderDecoder(
        training.config,
        source_vocab=VOCABULARY,
        target_vocab=VOCABULARY,
        tied=training.tied,
        padding_id=PADDING,
        begin_id=BEGIN,
        end_id=END,
        seed=1,
        dtype=training.dtype,
    )


TASKS: dict[str, tuple[Callable[..., tuple[Any, ...]], Callable[[Training], nf.Model]]] = {
    "ids": (ids_to_classify, ids_classifier),
    "vectors": (vectors_to_classify, vectors_classifier),
    "language": (texts, writer),
    "masked": (texts_to_fill, filler),
    "translating": (pairs, translator),
}
"""Of each task, what returns its samples and what returns its model."""


def model_of(training: Training) -> nf.Model:
    """Return the model before the training."""
    _, new_model = TASKS[training.task]
    model = new_model(training)
    if training.frozen:
        model.freeze(*training.frozen)
    return model


# The training -----------------------------------------------------------------------------------


def stop_after_two_epochs(state: nf.TrainingState) -> None:
    """Stop a training, as a callback."""
    if state.epoch == 2:
        state.stop("to be resumed")


def fit(training: Training, samples: Any, **options: Any) -> tuple[nf.Model, nf.History]:
    """Train a new model."""
    model = model_of(training)
    new_optimizer = training.optimizer
    weights = np.linspace(0.5, 1.5, SAMPLES) if training.sample_weight else None
    usual = {"epochs": 4, "batch_size": 8}
    history = nf.fit(
        model,
        samples,
        seed=2,
        workers=training.workers,
        progress=False,
        sample_weight=weights,
        optimizer=None if new_optimizer is None else new_optimizer(model),
        **(usual | training.fit | options),
    )
    return model, history


def trained(training: Training, samples: Any) -> tuple[nf.Model, nf.History]:
    """Return the trained model and its history; the training may be stopped and resumed."""
    if not training.resumed:
        return fit(training, samples)
    with tempfile.TemporaryDirectory() as folder:
        _, stopped = fit(training, samples, checkpoint=folder, callbacks=[stop_after_two_epochs])
        assert len(stopped.train_loss) == 2
        return fit(training, samples, checkpoint=folder, resume=True)


def outputs(training: Training, model: nf.Model, samples: Any) -> list[np.ndarray]:
    """Return what the trained model says of its samples: logits, and probabilities or numbers."""
    x, y, mask, types = samples
    if training.task == "translating":
        logits = model(x, y)
        return [logits, model.predict_probabilities((x, y))]
    logits = model(x, mask=mask, types=types)
    if training.output == "mean_squared_error":
        return [logits, model.predict(x, mask=mask, types=types)]
    return [logits, model.predict_probabilities(x, mask=mask, types=types)]


def tokens(training: Training, model: Any, samples: Any) -> list[Any]:
    """Return what the trained model writes: the likeliest tokens, and drawn ones or beams."""
    if training.task == "language":
        prompts = [[3, 4, 5], [6, 7]]
        return [
            model.generate(prompts, 12, temperature=0).tolist(),  # beyond max_len
            model.generate(prompts, 12, temperature=0.9, top_k=5, seed=1).tolist(),
            model.generate(prompts, 6, top_p=0.8, seed=2, cache=False).tolist(),
        ]
    if training.task == "translating":
        sources = samples[0][:6]
        return [
            model.generate(sources, max_len=9),
            model.generate(sources, max_len=9, beams=3),  # often ends at once
            model.generate(sources, max_len=9, beams=3, length_penalty=6.0),
        ]
    return []


# Digests ----------------------------------------------------------------------------------------


def digest_of_arrays(arrays: Mapping[str, Any]) -> str:
    """Return a digest of arrays: their names, dtypes, shapes and bits."""
    sha = hashlib.sha256()
    for name, array in arrays.items():
        on_host = np.ascontiguousarray(nf.to_numpy(array))
        sha.update(f"{name} {on_host.dtype} {on_host.shape}".encode())
        sha.update(on_host.tobytes())
    return sha.hexdigest()


def digest_of_values(values: Any) -> str:
    """Return a digest of numbers and strings, in lists and dicts; JSON holds all their digits."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def results_of(training: Training) -> tuple[dict[str, str], dict[str, Any]]:
    """Run a training; return the digests of its results, and its history."""
    new_samples, _ = TASKS[training.task]
    samples = new_samples(training, np.random.default_rng(0))
    model, history = trained(training, samples)
    logits = outputs(training, model, samples)
    written = tokens(training, model, samples)
    of_epochs = history.to_dict()
    weights = {name: parameter.value for name, parameter in model.named_parameters().items()}
    digests = {
        "weights": digest_of_arrays(weights),
        "losses": digest_of_values({name: of_epochs[name] for name in LOSSES}),
        "outputs": digest_of_arrays({str(i): array for i, array in enumerate(logits)}),
        "tokens": digest_of_values(written),
    }
    return digests, of_epochs


def main(kernels: str, *names: str) -> None:
    """Run some trainings; print where npformer was found, and the digests of each, as JSON."""
    nf.use_kernels(kernels == "kernels")
    digests = {}
    for name in names:
        try:
            digests[name], _ = results_of(TRAININGS[name])
        except Exception as error:
            error.add_note(f"in the training {name!r}")
            raise
    print(json.dumps({"package": str(Path(nf.__file__).resolve().parent), "digests": digests}))


if __name__ == "__main__":
    main(*sys.argv[1:])
