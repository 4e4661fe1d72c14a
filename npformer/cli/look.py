"""npformer look: write a report on trained models, one HTML file to open in a browser."""

import argparse
import os
from pathlib import Path
from typing import Any

from npformer.cli.options import Commands, add_command, file_or_folder, output_path
from npformer.cli.parser import Parser
from npformer.cli.predict_file import explain
from npformer.cli.run_folder import REPORT
from npformer.cli.shared_options import (
    add_batch_size,
    add_force,
    add_labelled_file,
    add_model,
    add_overwrite,
    add_plugin,
    add_split,
)
from npformer.cli.trained import Trained
from npformer.tasks.estimators import Classifier, Estimator
from npformer.tasks.reports import report
from npformer.training.storage.outputs import check_not_read, check_place

EPILOG = """\
The report shows the attention weights (or mixing weights) of every layer and head; every
tensor, forward and backward; the gradient of every parameter; and the worst mistakes.
It is a single file without scripts, and works offline. Of a text, the words that decided are
printed:

npformer look runs/reviews-attention 'a text'"""


def add_parser(commands: "Commands[Parser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "look",
        summary="write a report on a trained model, to open in a browser",
        epilog=EPILOG,
        run=run,
    )
    parser.set_defaults(backend="numpy")
    add_model(parser)
    add_batch_size(parser)
    add_labelled_file(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=output_path,
        help="where to write the report (default: report.html beside the model)",
    )
    add_overwrite(parser)
    parser.add_argument(
        "--samples",
        metavar="LIST",
        default="4",
        help="test samples whose matrices are shown: a number of samples, or a list such as "
        "0,7,12 (default: %(default)s)",
    )
    parser.add_argument(
        "--compare",
        metavar="MODEL",
        type=file_or_folder,
        action="append",
        help="another model for the same task, shown beside MODEL; can be repeated",
    )
    add_split(parser, trained="the first model")
    add_force(parser)
    add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Write the report and print its path; or print why a text gets its label."""
    if options.input is not None and _is_text(options.input):
        trained = Trained.load(options, options.model)
        return explain(options, trained.model, [options.input])
    samples = _numbers(options.samples)
    out = _place(options)
    check_place(out, REPORT, overwrite=options.overwrite)
    first = Trained.load(options, options.model)
    first.check_given(options)
    if isinstance(first.model, Estimator):
        return _look_at_file(options, first, out, samples)
    places = [options.model, *(options.compare or [])]
    all_trained = [first, *(Trained.load(options, place) for place in places[1:])]
    recipe = first.recipe()
    x, y = first.test_data(options.split)
    split = options.split or first.notes["split"]
    models = {}
    for name, place, trained in zip(_names(places), places, all_trained, strict=True):
        if (other := trained.recipe().name) != recipe.name:
            raise ValueError(
                f"{place} was trained on {other} and {places[0]} on {recipe.name}; expected "
                "models of one task"
            )
        models[name] = trained.model
    hints = {name: trained.seen(split) for name, trained in zip(models, all_trained, strict=True)}
    which = f", {split} split" if len(recipe.splits) > 1 else ""
    path = report(
        models,
        x,
        y,
        path=out,
        samples=samples,
        token_names=recipe.tokens,
        class_names=recipe.classes,
        title=f"{recipe.name}{which}: a look inside",
        notes={name: words for name, words in hints.items() if words},
        batch_size=options.batch_size,
        overwrite=options.overwrite,
    )
    print(path)
    return 0


def _is_text(word: str) -> bool:
    """Return whether a word is a text, not the name of a file."""
    is_name = bool(Path(word).suffix) and not any(map(str.isspace, word))
    return word != "-" and not is_name and not os.path.exists(word)  # noqa: PTH110 - no error for long texts


def _look_at_file(
    options: argparse.Namespace, trained: Trained, out: Path, samples: int | list[int]
) -> int:
    """Write the report on a model of a file."""
    if options.compare:
        raise ValueError("--compare is for models of npformer's tasks; expected none")
    check_not_read("--out", out, trained.files())
    shown: dict[str, Any] = {"samples": samples, "overwrite": options.overwrite}
    if isinstance(trained.model, Classifier):
        shown["batch_size"] = options.batch_size
    print(trained.model.report(*trained.held_out(options).data(), out, **shown))
    return 0


def _place(options: argparse.Namespace) -> Path:
    """Return where the report is written."""
    folder: Path = options.model if options.model.is_dir() else options.model.parent
    return options.out or folder / REPORT


def _names(places: list[Path]) -> list[str]:
    """Return a name for each model: that of its folder or file, or its whole path if taken."""
    short = [place.resolve().name for place in places]
    names = [n if short.count(n) == 1 else str(p) for n, p in zip(short, places, strict=True)]
    if len(set(names)) < len(names):
        raise ValueError(f"{', '.join(names)}: expected different models to compare")
    return names


def _numbers(words: str) -> int | list[int]:
    """Return the value of --samples: "4" is how many, "0,7,12" or "7," which."""
    try:
        numbers = [int(word) for word in words.split(",") if word.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < ("," not in words):
        raise ValueError(
            f"--samples is {words!r}; expected how many, such as 4, or which, such as 0,7,12"
        )
    return numbers if "," in words else numbers[0]
