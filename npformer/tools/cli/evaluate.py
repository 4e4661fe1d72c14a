"""npformer evaluate: measure a trained model on the test data of its task."""

import argparse
from typing import Any

from npformer.core import checks, use_precision
from npformer.tools.cli import common
from npformer.tools.cli.load_model import add_force, in_dtype_of, load_trained
from npformer.tools.plugins import load_plugins
from npformer.training import evaluate
from npformer.training.checkpoint import checkpoint_name


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    summary = "measure a trained model on its test data"
    parser = common.add_command(commands, "evaluate", run, summary)
    common.add_model(parser)
    split = "for digits: stratified or ordered (default: the one that it was trained on)"
    common.option(parser, "--split NAME", split)
    add_force(parser)
    common.add_backend(parser)
    common.add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print accuracy and loss, and the accuracy of each class."""
    load_plugins(options.plugin)
    path, split = options.model, options.split
    if path.is_dir() and split is not None and (path / checkpoint_name(split)).is_file():
        path = path / checkpoint_name(split)
    instead = "In Python: npformer.evaluate(npformer.load(path), (x, y))"
    model, recipe, notes = load_trained(path, options.backend, instead, force=options.force)
    split = notes["split"] if split is None else split
    checks.choice(f"--split of task {recipe.name}", split, recipe.splits)
    x, labels = in_dtype_of(model, recipe.load(split, int(notes["seed"])).test)
    with use_precision(options.precision, options.backend):
        found = evaluate(model, (x, labels), options.batch_size)
        predicted = model.predict(x, batch_size=options.batch_size)
    print(f"{recipe.name}, {split} split, {found.labels:,} labels, on {common.device_of(options)}")
    if split != notes["split"]:
        print(f"it was trained on the {notes['split']} split and may have seen some of these")
    print(f"accuracy {found.accuracy:.4f}, loss {found.loss:.4f} nats")
    print("\nclass  labels  right")
    for label in range(model.n_classes):
        of_class = labels == label
        if of_class.any():
            print(f"{label:>5}  {of_class.sum():>6}  {(predicted[of_class] == label).mean():.4f}")
    return 0
