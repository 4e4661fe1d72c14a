"""npformer evaluate: measure a trained model on the test data of its task."""

import argparse
from typing import Any

from npformer.cli import common
from npformer.cli.file_kinds import held_out_part
from npformer.cli.file_options import add_known_file
from npformer.cli.load_model import (
    add_force,
    load_any,
    load_trained,
    notes_of,
    path_of_split,
    test_data,
)
from npformer.cli.measured import mistakes, pairs_in_words, text_in_words
from npformer.cli.plugins import load_plugins
from npformer.core import use_precision
from npformer.tasks.estimators import Estimator, TextClassifier, TextScores, Translations
from npformer.training.evaluation import evaluate


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    summary = "measure a trained model on its test data, or on a table"
    parser = common.add_command(commands, "evaluate", run, summary)
    common.add_model(parser)
    add_known_file(parser)
    split = "for digits: stratified or ordered (default: the one that it was trained on)"
    common.option(parser, "--split NAME", split)
    add_force(parser)
    common.add_backend(parser)
    common.add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print how good the model is, in the metrics of its kind."""
    load_plugins(options.plugin)
    path = options.model
    raw = load_any(path, options.backend, force=options.force)
    if isinstance(raw, Estimator):
        with use_precision(options.precision, options.backend):
            return _of_file(options, raw)
    if options.input is not None:
        raise ValueError(
            f"{options.input} is given, and the model was not trained on a file; expected none. In "
            "Python: npformer.evaluate(npformer.load(path), (x, y))"
        )
    path = path_of_split(path, options.split)
    instead = "In Python: npformer.evaluate(npformer.load(path), (x, y))"
    model, recipe, notes = load_trained(path, options.backend, instead, force=options.force)
    x, labels, split = test_data(model, recipe, notes, options.split)
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


def _of_file(options: argparse.Namespace, model: Estimator) -> int:
    """Print how well a model does on a file."""
    part = held_out_part(options, notes_of(options.model, force=options.force), model)
    raw: Any = model
    scores = raw.evaluate(*part.data(), batch_size=options.batch_size, communicator=options.ranks)
    if isinstance(scores, TextScores):
        print(text_in_words(scores, {}))
    elif isinstance(scores, Translations):
        print(pairs_in_words(scores), end="")
    else:
        kind = "texts" if isinstance(model, TextClassifier) else "series"
        print(f"{common.counted(len(part), kind)} on {common.device_of(options)}\n{scores}\n")
        print(mistakes(scores, part, raw), end="")
    return 0
