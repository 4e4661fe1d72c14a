"""npformer evaluate: measure a trained model on the test data of its task."""

import argparse
from typing import Any

from npformer.core import checks, use_precision
from npformer.pipelines import RawClassifier, TextClassifier
from npformer.storage.models import checkpoint_name
from npformer.tools.cli import common
from npformer.tools.cli.file_options import add_columns_of_series
from npformer.tools.cli.file_results import labelled_part, worst_mistakes
from npformer.tools.cli.load_model import (
    add_force,
    in_dtype_of,
    load_any,
    load_trained,
    notes_of,
)
from npformer.tools.plugins import load_plugins
from npformer.training import evaluate


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    summary = "measure a trained model on its test data, or on a table"
    parser = common.add_command(commands, "evaluate", run, summary)
    common.add_model(parser)
    source = "a file, for a model of texts or series (default: the test part of its training)"
    parser.add_argument("input", nargs="?", metavar="FILE", help=source)
    common.option(parser, "--text COLUMN", "column of the texts (default: that of the training)")
    common.option(parser, "--label COLUMN", "column of the labels (default: likewise)")
    common.option(parser, "--encoding NAME", "of the table (default: utf-8)")
    add_columns_of_series(parser)
    split = "for digits: stratified or ordered (default: the one that it was trained on)"
    common.option(parser, "--split NAME", split)
    add_force(parser)
    common.add_backend(parser)
    common.add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print accuracy and loss, and the accuracy of each class."""
    load_plugins(options.plugin)
    path, split = options.model, options.split
    classifier = load_any(path, options.backend, force=options.force)
    if isinstance(classifier, RawClassifier):
        return _of_file(options, classifier)
    if options.input is not None:
        raise ValueError(
            f"{options.input} is given, and the model was not trained on a file; expected none. In "
            "Python: npformer.evaluate(npformer.load(path), (x, y))"
        )
    if path.is_dir() and split is not None and (path / checkpoint_name(split)).is_file():
        path = path / checkpoint_name(split)
    instead = "In Python: npformer.evaluate(npformer.load(path), (x, y))"
    model, recipe, notes = load_trained(path, options.backend, instead, force=options.force)
    split = notes["split"] if split is None else split
    checks.choice(f"--split of task {recipe.name}", split, recipe.splits)
    x, labels = in_dtype_of(model, recipe.load(split, int(notes["seed"])).test)
    with use_precision(options.precision, options.backend):
        found = evaluate(model, (x, labels), options.batch_size, communicator=options.ranks)
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


def _of_file(options: argparse.Namespace, classifier: RawClassifier) -> int:
    """Print how well a classifier of texts or series does on a file."""
    part = labelled_part(options, notes_of(options.model, force=options.force), classifier)
    with use_precision(options.precision, options.backend):
        scores = classifier.evaluate(
            part.samples, part.labels, options.batch_size, communicator=options.ranks
        )
    kind = "texts" if isinstance(classifier, TextClassifier) else "series"
    print(f"{len(part):,} {kind} on {common.device_of(options)}\n{scores}\n")
    print(worst_mistakes(scores, part, classifier), end="")
    return 0
