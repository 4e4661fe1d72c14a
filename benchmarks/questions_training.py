"""Trainings for the questions: with or without a feed-forward network, with few or many keys."""

import numpy as np

import npformer as nf
from benchmarks import mixers
from benchmarks.results_files import markdown
from npformer.tasks.sources.recipes import RECIPES, TABLE

SMALL, TRAINING = TABLE["usual"]["config"], TABLE["usual"]["training"]
EPOCHS = 4  # for generated tasks: enough for those that are learned at all
SEEDS = (0, 1, 2)  # for digits, whose test set has 360 images; the others have 2048 sequences
MIXERS = ("attention", "fourier", "identity")


def fitted(model, dataset, seed, **training):
    """Train a model in this process as `npformer train` does, and return it."""
    return mixers.fitted(model, dataset, seed, workers=1, **{**TRAINING, **training})


def trained(task, seed, **changes):
    """Return a recipe's trained model, and its data."""
    recipe = RECIPES[task]
    dataset = recipe.load(next(iter(recipe.splits)), seed)
    training = dict(recipe.training)
    if task != "digits":
        training["epochs"] = EPOCHS
    return fitted(recipe.model(dataset, seed, **changes), dataset, seed, **training), dataset


def ablation(task, say):
    """Return test accuracies of a task, with and without a feed-forward network."""
    found = []
    for mixer in MIXERS:
        for ffn in ("linear", "none"):
            accuracies = []
            for seed in SEEDS if task == "digits" else SEEDS[:1]:
                model, dataset = trained(task, seed, mixer=mixer, ffn=ffn)
                accuracies.append(nf.evaluate(model, dataset.test).accuracy)
            found.append({"task": task, "mixer": mixer, "ffn": ffn, "accuracy": accuracies})
            say(found[-1])
    return found


def ablation_table(found):
    """Return a row for each task, and two columns for each mixer."""
    columns = [(mixer, ffn) for mixer in MIXERS for ffn in ("linear", "none")]
    heads = [f"{mixer}, {'with' if ffn == 'linear' else 'without'}" for mixer, ffn in columns]
    return _accuracies(found, heads, columns)


def mixers_table(found):
    """Return the same trainings, with a feed-forward network: `identity` first."""
    names = ("identity", "fourier", "attention")
    return _accuracies(found, names, [(mixer, "linear") for mixer in names])


def _accuracies(found, heads, columns):
    rows = [(_named(task), *(_cell(found, task, *each) for each in columns)) for task in RECIPES]
    return markdown(("test accuracy", *heads), rows)


def _named(task):
    return "digits, seeds 0 1 2" if task == "digits" else task


def _cell(found, task, mixer, ffn):
    wanted = {"task": task, "mixer": mixer, "ffn": ffn}
    (entry,) = [f for f in found if wanted.items() <= f.items()]
    return " ".join(f"{accuracy:.3f}" for accuracy in entry["accuracy"])


# What the Dense Synthesizer cannot learn --------------------------------------------------------

KEYS = (8, 16, 128)
COMPARED = ("identity", "random_synthesizer", "dense_synthesizer", "attention")


def lookup(say):
    """Return test accuracies of recall with few and many keys."""
    found = []
    for keys in KEYS:
        dataset = nf.data.recall(seed=0, train=24_000, keys=keys)
        for mixer in COMPARED:
            config = nf.EncoderConfig(
                **SMALL, activation="relu", max_len=dataset.length, mixer=mixer
            )
            model = nf.SequenceClassifier(
                config, dataset.n_classes, vocab_size=dataset.vocab_size, pooling="none", seed=0
            )
            fitted(model, dataset, 0, epochs=EPOCHS)
            accuracy = nf.evaluate(model, dataset.test).accuracy
            found.append({"keys": keys, "mixer": mixer, "accuracy": accuracy})
            say(found[-1])
    return found


def lookup_table(found):
    """Return a row for each number of keys."""
    by_case = {(f["keys"], f["mixer"]): f"{f['accuracy']:.3f}" for f in found}
    rows = [(f"{keys} keys", *(by_case[keys, mixer] for mixer in COMPARED)) for keys in KEYS]
    return markdown(("recall: test accuracy", *COMPARED), rows)


# Feed-forward layers as memories ----------------------------------------------------------------

TOP = 20  # tokens for which a unit's activation is largest
SHOWN = 6


def memories(say):
    """Return which tokens, rows of pixels, activate the hidden units of a trained model most."""
    model, dataset = trained("digits", 0)
    images, labels = (np.concatenate(two) for two in zip(dataset.train, dataset.test, strict=True))
    blocks = [_units(model, k, images, labels) for k in range(len(model.encoder.blocks))]
    rng = np.random.default_rng(0)
    rows, digits = np.tile(np.arange(8), len(images)), np.repeat(labels, 8)
    drawn = [rng.choice(len(rows), TOP, replace=False) for _ in range(1000)]
    chance = {
        "row": float(np.mean([_share(rows[k]) for k in drawn])),
        "digit": float(np.mean([_share(digits[k]) for k in drawn])),
        "agrees": float(np.sum((np.bincount(labels) / len(labels)) ** 2)),
    }
    first = blocks[0]["units"]
    chosen = sorted(first, key=lambda unit: (-unit["row"] * unit["digit"], unit["unit"]))[:SHOWN]
    pictures = [
        {**unit, "images": images[[k // 8 for k in unit["top"][:5]]].tolist()} for unit in chosen
    ]
    found = {
        "chance": chance,
        "blocks": [
            {name: float(np.mean([unit[name] for unit in block["units"]])) for name in chance}
            | {"units": len(block["units"])}
            for block in blocks
        ],
        "shown": pictures,
    }
    say({"chance": chance, "blocks": found["blocks"]})
    return found


def _units(model, k, images, labels):
    """Return, for each hidden unit of a block's network, its strongest tokens and what it adds."""
    layer = model.encoder.blocks[k].feed_forward
    calls = nf.trace(model, images)
    (hidden,) = [
        call.output for call in calls if call.name == f"encoder.blocks.{k}.feed_forward.activation"
    ]
    by_token = hidden.reshape(-1, hidden.shape[-1])  # [images 8, d_ff]
    values = layer.contract.weight.value  # [d_ff, d_model]: a row is what a unit adds
    to_classes = model.classify.weight.value.reshape(8, -1, 10)  # [row, d_model, class]
    units = []
    for unit in range(by_token.shape[1]):
        top = np.argsort(-by_token[:, unit], kind="stable")[:TOP]
        rows, digits = top % 8, labels[top // 8]
        row = int(np.bincount(rows).argmax())
        digit = int(np.bincount(digits).argmax())
        promoted = int((values[unit] @ to_classes[row]).argmax())
        units.append(
            {
                "unit": unit,
                "top": top.tolist(),
                "rows": rows.tolist(),
                "digits": digits.tolist(),
                "row": _share(rows),
                "digit": _share(digits),
                "agrees": float(promoted == digit),
            }
        )
    return {"units": units}


def _share(values):
    """Return the share of the most frequent value."""
    return float(np.bincount(values).max() / len(values))


def memories_table(found):
    """Return shares for each block and for tokens drawn at random."""
    named = [(f"block {k}, {b['units']} units", b) for k, b in enumerate(found["blocks"])]
    named.append(("tokens drawn at random", found["chance"]))
    rows = [
        (name, *(f"{100 * shares[key]:.0f} %" for key in ("row", "digit", "agrees")))
        for name, shares in named
    ]
    first = f"of a unit's {TOP} strongest tokens, mean over units"
    last = "the unit's value raises that digit most"
    return markdown((first, "same row", "same digit", last), rows)
