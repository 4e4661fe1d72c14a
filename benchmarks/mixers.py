"""How accurate is each mixer? On both splits of digits, and on tasks that tell mixers apart."""

import time

import npformer as nf
from benchmarks.results_files import write
from npformer.cli.recipes.recipes import RECIPES

MIXERS = ("attention", "dense_synthesizer", "fourier")
SEEDS = (0, 1, 2)


def train(task, split, mixer, seed):
    """Train as `npformer train` does; return test accuracy and seconds."""
    recipe = RECIPES[task]
    dataset = recipe.load(split, seed)
    model = recipe.model(dataset, seed, mixer=mixer)
    options = dict(recipe.training)
    steps = options["epochs"] * -(-len(dataset.train[0]) // options["batch_size"])
    warmup = int(options.pop("warmup") * steps)
    began = time.perf_counter()
    nf.fit(
        model,
        dataset.train,
        validation=dataset.validation,
        schedule=nf.optim.cosine(steps, warmup=warmup),
        seed=seed,
        progress=False,
        **options,
    )
    return nf.evaluate(model, dataset.test).accuracy, time.perf_counter() - began


def run():
    figures = []
    for task, recipe in RECIPES.items():
        for split in recipe.splits:
            for mixer in MIXERS:
                for seed in SEEDS if task == "digits" else SEEDS[:1]:
                    accuracy, seconds = train(task, split, mixer, seed)
                    figures.append(
                        {
                            "task": task,
                            "split": split,
                            "mixer": mixer,
                            "seed": seed,
                            "test_accuracy": accuracy,
                            "seconds": round(seconds, 1),
                        }
                    )
                    print(figures[-1], flush=True)
    write("mixers", figures, table(figures))


def table(figures):
    """Return test accuracies: one row per task, one figure per seed."""
    lines = [
        f"| test accuracy | {' | '.join(MIXERS)} |",
        f"|---|{'---|' * len(MIXERS)}",
    ]
    for task, recipe in RECIPES.items():
        for split in recipe.splits:
            cells = []
            for mixer in MIXERS:
                key = (task, split, mixer)
                found = [f for f in figures if (f["task"], f["split"], f["mixer"]) == key]
                cells.append(" ".join(f"{f['test_accuracy']:.3f}" for f in found))
            where = f"{task}, {split} split, seeds 0 1 2" if task == "digits" else task
            lines.append(f"| {where} | {' | '.join(cells)} |")
    return "\n".join(lines)
