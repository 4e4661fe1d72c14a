"""npformer evaluate: measure a trained model on the test data of its task."""

import argparse

from npformer.cli import common
from npformer.cli.measured import describe_fillings, mistakes, pairs_in_words, text_in_words
from npformer.cli.options import Commands, add_command
from npformer.cli.parser import Parser
from npformer.cli.shared_options import (
    add_backend,
    add_batch_size,
    add_force,
    add_labelled_file,
    add_model,
    add_plugin,
    add_split,
)
from npformer.cli.trained import Trained
from npformer.core import use_precision
from npformer.core.support.tables import align_columns
from npformer.tasks.estimators import Estimator, FillerScores, TextScores, Translations
from npformer.tasks.estimators.scores import scores_of
from npformer.training.evaluation import evaluate


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "evaluate",
        summary="measure a trained model on its test data, or on a table",
        run=run,
    )
    add_model(parser)
    add_batch_size(parser)
    add_labelled_file(parser)
    add_split(parser, trained="the model")
    add_force(parser)
    add_backend(parser)
    add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print how good the model is, in the metrics of its kind."""
    trained = Trained.load(options, options.model)
    trained.check_given(options)
    with use_precision(options.precision, options.backend):
        run_on = _evaluate_on_file if isinstance(trained.model, Estimator) else _evaluate_on_task
        return run_on(options, trained)


def _evaluate_on_task(options: argparse.Namespace, trained: Trained) -> int:
    """Print how well a model does on the test data of a split."""
    model, recipe = trained.model, trained.recipe()
    x, labels = trained.test_data(options.split)
    split = options.split or trained.notes["split"]
    evaluation = evaluate(model, (x, labels), options.batch_size, communicator=options.ranks)
    probabilities = model.predict_probabilities(x, batch_size=options.batch_size)
    print(
        f"{recipe.name}, {split} split, {evaluation.labels:,} labels, on "
        f"{common.device_of(options)}"
    )
    if words := trained.seen(split):
        print(words)
    print(f"accuracy {evaluation.accuracy:.4f}, loss {evaluation.loss:.4f} nats")
    p = probabilities.reshape(-1, model.n_classes)
    classes = scores_of(range(model.n_classes), labels.ravel(), p).by_class()
    print("\n".join(["", *align_columns(classes, "<>>>>")]))
    return 0


def _evaluate_on_file(options: argparse.Namespace, trained: Trained) -> int:
    """Print how well a model does on a file."""
    model, samples = trained.model, trained.held_out(options)
    scores = model.evaluate(
        *samples.data(), batch_size=options.batch_size, communicator=options.ranks
    )
    if isinstance(scores, TextScores):
        print(text_in_words(scores, {}))
    elif isinstance(scores, FillerScores):
        print(describe_fillings(scores, len(samples)))
    elif isinstance(scores, Translations):
        print(pairs_in_words(scores))
    else:
        many = common.counted(len(samples), trained.kind)
        print(
            f"{many} on {common.device_of(options)}\n{scores}\n\n{mistakes(scores, samples, model)}"
        )
    return 0
