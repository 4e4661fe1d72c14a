"""How accurate is each mixer? On both splits of digits, and on tasks that tell mixers apart."""

import time

import npformer as nf
from benchmarks.results_files import markdown, write
from npformer.tasks.sources.recipes import RECIPES

MIXERS = ("attention", "dense_synthesizer", "fourier")
SEEDS = (0, 1, 2)


def fitted(model, dataset, seed, **options):
    """Train a model as `npformer train` does, and return it."""
    steps = options["epochs"] * -(-len(dataset.train[0]) // options["batch_size"])
    warmup = int(options.pop("warmup") * steps)
    schedule = nf.optim.cosine(steps, warmup=warmup)
    nf.fit(model, dataset.train, schedule=schedule, seed=seed, progress=False, **options)
    return model


def train(task, split, mixer, seed):
    """Return what is written about a training: test accuracy and seconds."""
    recipe = RECIPES[task]
    dataset = recipe.load(split, seed)
    began, validation = time.perf_counter(), dataset.validation
    model = recipe.model(dataset, seed, mixer=mixer)
    fitted(model, dataset, seed, validation=validation, **recipe.training)
    seconds = time.perf_counter() - began
    return {
        "task": task,
        "split": split,
        "mixer": mixer,
        "seed": seed,
        "test_accuracy": nf.evaluate(model, dataset.test).accuracy,
        "seconds": round(seconds, 1),
    }


def run():
    figures = []
    for task, recipe in RECIPES.items():
        for split in recipe.splits:
            for mixer in MIXERS:
                for seed in SEEDS if task == "digits" else SEEDS[:1]:
                    figures.append(train(task, split, mixer, seed))
                    print(figures[-1], flush=True)
    write("mixers", figures, table(figures))


def table(figures):
    """Return test accuracies: one row per task, one figure per seed."""
    rows = {}
    for f in figures:
        digits = f["task"] == "digits"
        name = f"digits, {f['split']} split, seeds 0 1 2" if digits else f["task"]
        cells = rows.setdefault(name, {})
        cells.setdefault(f["mixer"], []).append(f"{f['test_accuracy']:.3f}")
    cells = [(name, *(" ".join(row[mixer]) for mixer in MIXERS)) for name, row in rows.items()]
    return markdown(("test accuracy", *MIXERS), cells)
