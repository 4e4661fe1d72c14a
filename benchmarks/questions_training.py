"""Trainings for the questions: with or without a feed-forward network, with few or many keys."""

import numpy as np

import npformer as nf
from npformer.cli.recipes.recipes import RECIPES, SMALL, TRAINING

EPOCHS = 4  # for generated tasks: enough for those that are learned at all
SEEDS = (0, 1, 2)  # for digits, whose test set has 360 images; the others have 2048 sequences
MIXERS = ("attention", "fourier", "identity")


def fitted(model, dataset, seed, **training):
    """Train a model in this process as `npformer train` does, and return it."""
    options = {**TRAINING, **training}
    steps = options["epochs"] * -(-len(dataset.train[0]) // options["batch_size"])
    warmup = int(options.pop("warmup") * steps)
    schedule = nf.optim.cosine(steps, warmup=warmup)
    nf.fit(model, dataset.train, schedule=schedule, seed=seed, workers=1, progress=False, **options)
    return model


def trained(task, seed, **changes):
    """Return a recipe's trained model, and its data."""
    recipe = RECIPES[task]
    dataset = recipe.load(recipe.splits[0], seed)
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
                accuracies.append(nf.evaluate(model, dataset.test, processes=False).accuracy)
            found.append({"task": task, "mixer": mixer, "ffn": ffn, "accuracy": accuracies})
            say(found[-1])
    return found


def ablation_table(found):
    """Return a row for each task, and two columns for each mixer."""
    heads = [f"{mixer}, {word}" for mixer in MIXERS for word in ("with", "without")]
    lines = [f"| test accuracy | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for task in RECIPES:
        row = [_cell(found, task, m, ffn) for m in MIXERS for ffn in ("linear", "none")]
        lines.append(f"| {_named(task)} | {' | '.join(row)} |")
    return "\n".join(lines)


def mixers_table(found):
    """Return the same trainings, with a feed-forward network: `identity` first."""
    names = ("identity", "fourier", "attention")
    lines = [f"| test accuracy | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for task in RECIPES:
        row = [_cell(found, task, mixer, "linear") for mixer in names]
        lines.append(f"| {_named(task)} | {' | '.join(row)} |")
    return "\n".join(lines)


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
            accuracy = nf.evaluate(model, dataset.test, processes=False).accuracy
            found.append({"keys": keys, "mixer": mixer, "accuracy": accuracy})
            say(found[-1])
    return found


def lookup_table(found):
    """Return a row for each number of keys."""
    lines = [
        f"| recall: test accuracy | {' | '.join(COMPARED)} |",
        f"|---|{'---|' * len(COMPARED)}",
    ]
    for keys in KEYS:
        by_mixer = {f["mixer"]: f"{f['accuracy']:.3f}" for f in found if f["keys"] == keys}
        lines.append(f"| {keys} keys | {' | '.join(by_mixer[m] for m in COMPARED)} |")
    return "\n".join(lines)


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
    lines = [
        f"| of a unit's {TOP} strongest tokens, mean over units | same row | same digit "
        "| the unit's value raises that digit most |",
        "|---|---:|---:|---:|",
    ]
    named = [(f"block {k}, {b['units']} units", b) for k, b in enumerate(found["blocks"])]
    for name, shares in (*named, ("tokens drawn at random", found["chance"])):
        cells = [f"{100 * shares[key]:.0f} %" for key in ("row", "digit", "agrees")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
