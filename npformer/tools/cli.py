"""The command line: npformer train | evaluate | predict | gradcheck | bench | doctor."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

import npformer
from npformer.classifier import SequenceClassifier
from npformer.core import (
    INITIALIZERS,
    PRECISIONS,
    BackendUnavailableError,
    BatchTooLargeError,
    checks,
    names_in,
    use_precision,
)
from npformer.core import arrays as backends
from npformer.data import Dataset
from npformer.engine.processes import CopyDiedError
from npformer.inspection.summary import summary
from npformer.layers import ACTIVATIONS, FFNS, POOLINGS
from npformer.losses import LOSSES
from npformer.mixers import MIXERS
from npformer.models import POSITIONS
from npformer.optim import SCHEDULES, Schedule
from npformer.tools import bench
from npformer.tools.doctor import diagnose
from npformer.tools.recipes import RECIPES, Recipe
from npformer.training import History, NonFiniteLossError, batch_at_evaluation, evaluate, fit
from npformer.training.checkpoint import CheckpointError, load, read_notes, save

INTERRUPTED = 130  # what shells report for a program that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``npformer``; those of the process if not given.

    Returns
    -------
    status : int
        0; 1 where a check failed; 2 for a mistake in the call; 130 after Ctrl-C.
    """
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(_unknown(unknown[0], options.parser))
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # `npformer ... | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (
        ValueError,
        TypeError,
        OSError,
        BackendUnavailableError,
        CopyDiedError,
        NonFiniteLossError,
    ) as error:
        words = str(error)
        if isinstance(error, OSError) and error.strerror and error.filename:
            words = f"{error.filename}: {error.strerror}"  # without the number in brackets
        print(f"npformer {options.command}: {words}", file=sys.stderr)
        return 2
    except BatchTooLargeError as error:
        words = str(error).replace("batch_size=", "--batch-size ")
        words = words.replace("micro_batch=", "--micro-batch ")
        print(f"npformer {options.command}: {words}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _unknown(word: str, parser: argparse.ArgumentParser) -> str:
    """Return what to say of a word that a command does not know."""
    close = get_close_matches(word, re.findall(r"--[a-z-]+", parser.format_help()), n=1)
    meant = f"did you mean {close[0]}?" if close else "the words that it knows are above"
    return f"{word} is unknown to {parser.prog}; {meant}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="npformer",
        description="The Transformer encoder written out by hand in NumPy.",
        epilog="npformer COMMAND --help tells more. Begin with: npformer train digits",
    )
    parser.add_argument("--version", action="version", version=f"npformer {npformer.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_train(commands)
    _add_evaluate(commands)
    _add_predict(commands)
    _add_gradcheck(commands)
    _add_bench(commands)
    _add_doctor(commands)
    return parser


def _command(commands: Any, name: str, run: Any, text: str, epilog: str = "") -> Any:
    parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # a word that means something today may mean two things tomorrow
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def _add_backend(parser: Any) -> None:
    parser.add_argument(
        "--backend",
        choices=backends.backends(),
        default="numpy",
        help="where to compute: numpy is the CPU, cupy an NVIDIA GPU (default: numpy)",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="of products on a GPU: tf32 is faster and has 3 digits (default: float32)",
    )


def _add_plugin(parser: Any) -> None:
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module, or .py file, first: what it registers can then be named; may be "
        "given several times (docs/extending.md)",
    )


def _load_plugins(options: argparse.Namespace) -> list[str]:
    """Import the plugins, and return what a model is to remember of them."""
    if not options.plugin:
        return []
    from npformer.tools.plugins import load_plugins

    return load_plugins(options.plugin)


def _add_batch_size(parser: Any) -> None:
    parser.add_argument(
        "--batch-size",
        type=int,
        default=256,
        metavar="N",
        help="at most so many samples at a time, in each process (default: 256)",
    )


def _device(options: argparse.Namespace) -> str:
    """Return where a command computes, in words."""
    device = backends.get_backend(options.backend).device()
    return device if options.precision == "float32" else f"{device}, products in TF32"


# train ------------------------------------------------------------------------------------------


def _add_train(commands: Any) -> None:
    tasks = "\n".join(f"  {recipe.name:<10} {recipe.summary}" for recipe in RECIPES.values())
    train = _command(commands, "train", _train, "train a classifier on a task", f"tasks:\n{tasks}")
    train.add_argument("task", choices=RECIPES, metavar="TASK", help="one of the tasks below")
    train.add_argument(
        "--mixer",
        default="attention",
        metavar="NAME[,NAME...]",
        help=f"{', '.join(MIXERS)}; or one name for each layer, with commas (default: attention). "
        "A name of yours may have options: 'mean(power=2)'",
    )
    model = train.add_argument_group("model (defaults fit the task)")
    model.add_argument("--layers", type=int, dest="n_layers", metavar="N", help="encoder blocks")
    model.add_argument("--d-model", type=int, metavar="N", help="features of a token")
    model.add_argument("--heads", type=int, dest="n_heads", metavar="N", help="heads of a mixer")
    model.add_argument("--d-ff", type=int, metavar="N", help="features inside the feed-forward net")
    model.add_argument(
        "--activation",
        metavar="NAME",
        help=f"of the feed-forward net: {', '.join(ACTIVATIONS)}",
    )
    model.add_argument("--norm", choices=("post", "pre"), help="layer norm after or before")
    model.add_argument("--ffn", metavar="NAME", help=f"the feed-forward net: {', '.join(FFNS)}")
    model.add_argument(
        "--initializer",
        metavar="NAME",
        help="what feed-forward nets and projections are drawn from, such as 'normal(std=0.02)': "
        f"{', '.join(INITIALIZERS)}",
    )
    model.add_argument(
        "--pooling", metavar="NAME", help=f"what the classifier sees: {', '.join(POOLINGS)}"
    )
    model.add_argument(
        "--output",
        metavar="NAME",
        help=f"what the outputs are, and the loss: {', '.join(LOSSES)} (default: softmax); with "
        "it, labels are smoothed only if you say so",
    )
    model.add_argument("--positions", choices=POSITIONS, help="what is added to the embeddings")
    model.add_argument("--dropout", type=float, metavar="P", help="probability, from 0 up to 1")
    model.add_argument("--share-layers", action="store_true", default=None, help="tie all blocks")
    model.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        default="float32",
        help="of weights and features (default: float32)",
    )
    training = train.add_argument_group("training (defaults fit the task)")
    training.add_argument("--epochs", type=int, metavar="N", help="times through the data")
    training.add_argument("--batch-size", type=int, metavar="N", help="samples a step")
    training.add_argument(
        "--micro-batch", type=int, metavar="N", help="samples computed at a time; bounds the memory"
    )
    training.add_argument("--lr", type=float, metavar="X", help="peak learning rate of Adam")
    training.add_argument(
        "--schedule",
        metavar="NAME",
        help=f"of the learning rate: {', '.join(SCHEDULES)}; total and warmup fit the task unless "
        "you say otherwise, as in 'cosine(final=0.1)' (default: cosine)",
    )
    training.add_argument("--weight-decay", type=float, metavar="X", help="decoupled, as in AdamW")
    training.add_argument("--label-smoothing", type=float, metavar="X", help="from 0 up to 1")
    training.add_argument("--clip-norm", type=float, metavar="X", help="bound on the gradient norm")
    training.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="of weights, batches, dropout and generated data (default: 0)",
    )
    training.add_argument(
        "--workers",
        type=_workers,
        default="auto",
        metavar="N",
        help="CPU cores that share a batch, or auto",
    )
    training.add_argument(
        "--masks",
        choices=("host", "device"),
        default="host",
        help="where dropout's masks are drawn: host means the same run on every backend, device is "
        "faster on a GPU (default: host)",
    )
    train.add_argument(
        "--split",
        metavar="NAME",
        help="digits: stratified, ordered or both, one training each (default: both)",
    )
    _add_backend(train)
    _add_plugin(train)
    train.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where results go, in place of an earlier training's (default: runs/TASK-MIXER)",
    )
    train.add_argument("--quiet", action="store_true", help="no progress bar, no summary")


def _workers(word: str) -> int | str:
    if word == "auto":
        return word
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is neither a whole number nor 'auto'") from None


_MODEL_OPTIONS = (
    "n_layers",
    "d_model",
    "n_heads",
    "d_ff",
    "activation",
    "norm",
    "ffn",
    "initializer",
    "pooling",
    "output",
    "positions",
    "dropout",
    "share_layers",
)
_TRAINING_OPTIONS = ("epochs", "batch_size", "lr", "weight_decay", "label_smoothing", "clip_norm")


def _train(options: argparse.Namespace) -> int:
    plugins = _load_plugins(options)
    recipe = RECIPES[options.task]
    splits = _splits(recipe, options.split)
    device = _device(options)
    mixers = names_in(options.mixer)
    changes = {n: v for n in _MODEL_OPTIONS if (v := getattr(options, n)) is not None}
    changes["mixer"] = mixers[0] if len(mixers) == 1 else tuple(mixers)
    smoothing = {} if options.output is None else {"label_smoothing": 0.0}
    training = (
        dict(recipe.training)
        | smoothing
        | {n: v for n in _TRAINING_OPTIONS if (v := getattr(options, n)) is not None}
    )
    checks.positive("--epochs", training["epochs"])
    checks.positive("--batch-size", training["batch_size"])
    if options.schedule is not None:
        SCHEDULES.parse(options.schedule, "--schedule")
        _schedule(options.schedule, steps=1_000_000, warmup=100_000)  # wrong options are said now
        training["schedule"] = options.schedule
    out = options.out or Path("runs") / f"{options.task}-{_plain_words(mixers)}"

    earlier = _models_of(out / "metrics.json")
    histories: dict[str, Any] = {}
    metrics: dict[str, Any] = {
        "task": recipe.name,
        "mixer": changes["mixer"],
        "seed": options.seed,
        "backend": options.backend,
        "device": device,
        "precision": options.precision,
        "dtype": options.dtype,
        "npformer": npformer.__version__,
        "numpy": np.__version__,
        "training": training,
        "plugins": plugins,
        "splits": {},
    }
    if not options.quiet:
        print(f"npformer {npformer.__version__} on {device}")
    interrupted = False
    for split in splits:
        dataset = recipe.load(split, options.seed)
        model = recipe.model(dataset, options.seed, options.dtype, **changes).to(options.backend)
        if split == splits[0]:
            out.mkdir(parents=True, exist_ok=True)  # not before it is known that the model can be
            if earlier and not options.quiet:
                print(f"{out}: replaces an earlier training; --out names another folder")
            metrics["parameters"] = model.n_parameters()
            metrics["config"] = model.config.to_dict()
            if not options.quiet:
                x = _cast(dataset.train, model)[0][:1]
                print(f"\n{recipe.name}: {recipe.summary}\n\n{summary(model, x)}\n")
        if not options.quiet and len(splits) > 1:
            print(f"{split} split: {_sizes(dataset)}")
        began = time.perf_counter()
        history = _fit(model, dataset, training, options)
        seconds = time.perf_counter() - began
        interrupted = history.stopped == "interrupted"
        name = "model.safetensors" if split == splits[0] else f"model-{split}.safetensors"
        notes: dict[str, Any] = {"task": recipe.name, "split": split, "seed": options.seed}
        notes |= {"plugins": plugins} if plugins else {}
        save(model, out / name, notes=notes)  # first: what follows may be interrupted, or too large
        histories[split] = history.to_dict()
        metrics["splits"][split] = {
            "test_accuracy": None,
            "test_loss": None,
            "test_labels": None,
            "validation_accuracy": max(history.validation_accuracy, default=None),
            "best_epoch": history.best_epoch,
            "epochs": len(history.train_loss),
            "stopped": history.stopped,
            "seconds": round(seconds, 2),
            "file": name,
        }
        _write_json(out, histories, metrics)
        at_once = batch_at_evaluation(training["batch_size"], options.micro_batch)
        with use_precision(options.precision, options.backend):
            found = evaluate(model, _cast(dataset.test, model), at_once)
        metrics["splits"][split] |= {
            "test_accuracy": found.accuracy,
            "test_loss": found.loss,
            "test_labels": found.labels,
        }
        _write_json(out, histories, metrics)
        if interrupted:
            break
    _remove_others(out, earlier, metrics)
    _print_result(metrics, out, _plot(histories, metrics, out))
    return INTERRUPTED if interrupted else 0


def _plain_words(names: Sequence[str]) -> str:
    """Return names with their options as a part of a folder's name: mean(power=2): mean_power=2."""
    return "-".join(re.sub(r"[^\w.=-]+", "_", name).strip("_") for name in names)


def _write_json(out: Path, histories: dict[str, Any], metrics: dict[str, Any]) -> None:
    (out / "history.json").write_text(json.dumps(histories, indent=2) + "\n")
    (out / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")


def _models_of(path: Path) -> set[str]:
    """Return the models that a metrics.json names; none if there is no such file."""
    try:
        splits = json.loads(path.read_text())["splits"].values()
        return {str(found["file"]) for found in splits}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def _remove_others(out: Path, earlier: set[str], metrics: dict[str, Any]) -> None:
    """Remove models of an earlier training in the same folder, which metrics.json now forgets."""
    for name in earlier - {found["file"] for found in metrics["splits"].values()}:
        (out / Path(name).name).unlink(missing_ok=True)


def _splits(recipe: Recipe, wanted: str | None) -> tuple[str, ...]:
    if wanted is None or wanted == "both":
        return recipe.splits
    if wanted not in recipe.splits:
        known = ", ".join(recipe.splits) + (" or both" if len(recipe.splits) > 1 else "")
        raise ValueError(f"--split is {wanted!r}; expected {known} for task {recipe.name}")
    return (wanted,)


def _sizes(dataset: Dataset) -> str:
    parts = (
        ("training", dataset.train),
        ("validation", dataset.validation),
        ("test", dataset.test),
    )
    return ", ".join(f"{len(part[0]):,} {name}" for name, part in parts)


def _cast(part: tuple[np.ndarray, np.ndarray], model: SequenceClassifier) -> tuple[Any, Any]:
    x, y = part
    return (x.astype(model.dtype) if x.dtype.kind == "f" else x), y


def _fit(
    model: SequenceClassifier,
    dataset: Dataset,
    training: dict[str, Any],
    options: argparse.Namespace,
) -> History:
    steps = training["epochs"] * -(-len(dataset.train[0]) // training["batch_size"])
    schedule = training.get("schedule") or ("cosine" if steps > 1 else "constant")
    return fit(
        model,
        _cast(dataset.train, model),
        validation=_cast(dataset.validation, model),
        epochs=training["epochs"],
        batch_size=training["batch_size"],
        lr=training["lr"],
        schedule=_schedule(schedule, steps, int(training["warmup"] * steps)),
        weight_decay=training["weight_decay"],
        label_smoothing=training["label_smoothing"],
        clip_norm=training["clip_norm"],
        seed=options.seed,
        workers=options.workers,
        micro_batch=options.micro_batch,
        precision=options.precision,
        masks=options.masks,
        progress=not options.quiet and sys.stderr.isatty(),
        on_interrupt="return",
    )


def _schedule(spec: str, steps: int, warmup: int) -> Schedule:
    """Return a schedule that lasts as long as the training, unless its text says how long."""
    _, options = SCHEDULES.parse(spec)
    fitting = {} if "total" in options else {"total": steps, "warmup": warmup}
    return SCHEDULES.make(SCHEDULES.filled(spec, **fitting))


def _plot(histories: dict[str, Any], metrics: dict[str, Any], out: Path) -> str:
    """Draw the curves; return what to say about it."""
    try:
        import matplotlib
    except ImportError:
        return 'no curves.png: python -m pip install "npformer[plot]"'
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (losses, accuracies) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for colour, (split, history) in zip(("C0", "C1"), histories.items(), strict=False):
        epochs = range(1, len(history["train_loss"]) + 1)
        measured = range(1, len(history["validation_loss"]) + 1)
        losses.plot(
            epochs, history["train_loss"], color=colour, label=f"{split}, training (with dropout)"
        )
        losses.plot(
            measured, history["validation_loss"], "--", color=colour, label=f"{split}, validation"
        )
        accuracies.plot(
            measured,
            history["validation_accuracy"],
            "--",
            color=colour,
            label=f"{split}, validation",
        )
        if history["best_epoch"]:
            accuracies.plot(
                [history["best_epoch"]],
                [metrics["splits"][split]["test_accuracy"]],
                "*",
                markersize=12,
                markeredgecolor="black",
                color=colour,
                label=f"{split}, test (weights of the best epoch)",
            )
    losses.set(xlabel="epoch", ylabel="loss (nats)", ylim=(0, None))
    accuracies.set(xlabel="epoch", ylabel="accuracy", ylim=(None, 1.005))
    for axes in (losses, accuracies):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    mixer = metrics["mixer"] if isinstance(metrics["mixer"], str) else ", ".join(metrics["mixer"])
    figure.suptitle(f"{metrics['task']}, {mixer}, seed {metrics['seed']}")
    figure.savefig(out / "curves.png", dpi=120)
    plt.close(figure)
    return "curves.png"


def _print_result(metrics: dict[str, Any], out: Path, curves: str) -> None:
    print()
    for split, found in metrics["splits"].items():
        where = "" if split == "generated" else f" ({split} split)"
        weights = (
            f"weights of epoch {found['best_epoch']} of {found['epochs']}"
            if found["best_epoch"]
            else "weights of an unfinished first epoch"
        )
        print(
            f"test accuracy {found['test_accuracy']:.4f}{where}, {weights}, "
            f"{found['seconds']:.1f} s"
        )
    files = [found["file"] for found in metrics["splits"].values()]
    print(f"{out}: {', '.join([*files, 'history.json', 'metrics.json'])}; {curves}")
    if any(found["stopped"] == "interrupted" for found in metrics["splits"].values()):
        print("interrupted: the files hold the best weights so far")


# evaluate, predict --------------------------------------------------------------------------------


def _add_evaluate(commands: Any) -> None:
    parser = _command(commands, "evaluate", _evaluate, "measure a trained model on its test data")
    parser.add_argument(
        "model", type=Path, metavar="MODEL", help="model.safetensors, or its folder"
    )
    parser.add_argument(
        "--split",
        metavar="NAME",
        help="digits: stratified or ordered (default: the one it was trained on)",
    )
    _add_batch_size(parser)
    _add_backend(parser)
    _add_plugin(parser)


def _evaluate(options: argparse.Namespace) -> int:
    _load_plugins(options)
    path, split = options.model, options.split
    if path.is_dir() and split is not None and (path / f"model-{split}.safetensors").is_file():
        path = path / f"model-{split}.safetensors"
    instead = "In Python: npformer.evaluate(npformer.load(path), (x, y))"
    model, recipe, notes = _load(path, options.backend, instead)
    split = notes["split"] if split is None else split
    if split not in recipe.splits:
        known = " or ".join(recipe.splits)
        raise ValueError(f"--split is {split!r}; expected {known} for task {recipe.name}")
    test = _cast(recipe.load(split, int(notes["seed"])).test, model)
    with use_precision(options.precision, options.backend):
        found = evaluate(model, test, options.batch_size)
        predicted, labels = model.predict(test[0], batch_size=options.batch_size), test[1]
    print(f"{recipe.name}, {split} split, {found.labels:,} labels, on {_device(options)}")
    if split != notes["split"]:
        print(f"it was trained on the {notes['split']} split and may have seen some of these")
    print(f"accuracy {found.accuracy:.4f}, loss {found.loss:.4f} nats")
    print("\nclass  labels  right")
    for label in range(model.n_classes):
        of_class = labels == label
        if of_class.any():
            print(f"{label:>5}  {of_class.sum():>6}  {(predicted[of_class] == label).mean():.4f}")
    return 0


def _load(
    path: Path, backend: str, instead: str
) -> tuple[SequenceClassifier, Recipe, dict[str, Any]]:
    """Return a model of `npformer train`, its task, and the notes with split and seed.

    `instead` says what to do with another model.
    """
    path = _file(path)
    model = _load_classifier(path, backend)
    notes = read_notes(path)
    if notes.get("task") not in RECIPES or not {"split", "seed"} <= notes.keys():
        raise ValueError(
            f"{path} does not say which task, split and seed it was trained on; expected a model "
            f"of `npformer train`, which brings test data. {instead}"
        )
    return model, RECIPES[notes["task"]], notes


def _load_classifier(path: Path, backend: str) -> SequenceClassifier:
    try:
        model = load(path, backend=backend)
    except CheckpointError as error:
        plugins = read_notes(path).get("plugins") if error.unregistered else None
        if not plugins or not isinstance(plugins, list):
            raise
        again = " ".join(f"--plugin {plugin}" for plugin in plugins)
        raise ValueError(
            f"{path} needs {' and '.join(error.unregistered)}, which plugins registered for its "
            f"training. No file says what code is run, so name them again: {again}"
        ) from error
    if not isinstance(model, SequenceClassifier):
        raise ValueError(f"{path} holds an {type(model).__name__}; expected a SequenceClassifier")
    return model


def _file(path: Path) -> Path:
    if not path.exists() and path.suffix != ".safetensors":
        raise ValueError(
            f"there is no folder {path}; expected one that `npformer train` wrote, or a file of "
            "npformer.save"
        )
    return path / "model.safetensors" if path.is_dir() else path


def _add_predict(commands: Any) -> None:
    parser = _command(
        commands,
        "predict",
        _predict,
        "predict labels with a trained model",
        "INPUT holds what the model was built for: token ids (samples, length) or feature\n"
        "vectors (samples, length, features). A .csv file has one sample a line, all its numbers\n"
        "one after another. Numbers of any type are turned into the model's.",
    )
    parser.add_argument(
        "model", type=Path, metavar="MODEL", help="model.safetensors, or its folder"
    )
    parser.add_argument(
        "input",
        type=Path,
        nargs="?",
        metavar="INPUT",
        help=".npy or .csv; without it, some of the model's own test data",
    )
    parser.add_argument("--mask", type=Path, help="boolean .npy, (samples, length): True = keep")
    parser.add_argument(
        "--samples", type=int, default=5, metavar="N", help="how many, without INPUT"
    )
    parser.add_argument("--probabilities", action="store_true", help="print those of all classes")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write .npy instead of printing")
    _add_batch_size(parser)
    _add_backend(parser)
    _add_plugin(parser)


def _predict(options: argparse.Namespace) -> int:
    _load_plugins(options)
    labels = mask = None
    if options.out is not None and not options.out.absolute().parent.is_dir():
        raise ValueError(f"--out: the folder {options.out.parent} does not exist; create it first")
    if options.out is not None and (options.out.suffix != ".npy" or options.out.is_dir()):
        raise ValueError(f"--out is {options.out}; expected the name of a file that ends in .npy")
    if options.input is None:
        if options.mask is not None:
            raise ValueError("--mask is given without INPUT; expected both, or neither")
        checks.positive("--samples", options.samples)
        instead = f"Give it data: npformer predict {options.model} x.npy"
        model, recipe, notes = _load(options.model, options.backend, instead)
        x, labels = _cast(recipe.load(notes["split"], int(notes["seed"])).test, model)
        x, labels = x[: options.samples], labels[: options.samples]
    else:
        model = _load_classifier(_file(options.model), options.backend)
        x = _read_input(options.input, model)
        mask = None if options.mask is None else _read_npy(options.mask)
    with use_precision(options.precision, options.backend):
        predict = model.predict_probabilities if options.probabilities else model.predict
        result = predict(x, mask, options.batch_size)
    # Not to standard output, where the labels go.
    print(f"{len(result):,} samples on {_device(options)}", file=sys.stderr)
    if options.out is not None:
        np.save(options.out, result)
        print(f"{options.out}: {result.dtype} {result.shape}")
        return 0
    for i, row in enumerate(result):
        known = "" if labels is None else f"   label {_words(labels[i])}"
        print(f"{_words(row)}{known}")
    return 0


def _words(row: np.ndarray) -> str:
    flat = np.asarray(row).reshape(-1)
    return " ".join(f"{v:.4f}" if flat.dtype.kind == "f" else str(v) for v in flat.tolist())


def _read_input(path: Path, model: SequenceClassifier) -> np.ndarray:
    if path.suffix == ".npy":
        x = _read_npy(path)
    elif path.suffix == ".csv":
        x = _read_csv(path)
        if model.n_features is not None:
            if x.shape[1] % model.n_features:
                raise ValueError(
                    f"{path} has {x.shape[1]} numbers a line; expected a multiple of the model's "
                    f"{model.n_features} features"
                )
            x = x.reshape(len(x), -1, model.n_features)
    else:
        raise ValueError(f"{path} ends in {path.suffix!r}; expected .npy or .csv")
    if model.n_features is not None and x.dtype.kind in "fiu":
        return np.asarray(x.astype(model.dtype))  # files hold any number type; said in --help
    if x.dtype.kind == "f" and (x == np.floor(x)).all():
        return np.asarray(x.astype("int64"))  # a .csv file knows no whole numbers
    return np.asarray(x)


def _check_file(path: Path, expected: str) -> None:
    if not path.exists():
        raise ValueError(f"there is no file {path}; expected {expected}")


def _read_npy(path: Path) -> np.ndarray:
    _check_file(path, "an array that numpy.save wrote")
    try:
        x = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):  # empty, cut short, text, or Python objects
        x = None
    if not isinstance(x, np.ndarray):
        raise ValueError(
            f"{path} is not an array of numbers in .npy format; write one with numpy.save"
        )
    return x


def _read_csv(path: Path) -> np.ndarray:
    expected = "one sample a line, equally many numbers with commas, no heading"
    _check_file(path, expected)
    try:
        # -sig: spreadsheets put a byte order mark at the beginning.
        lines = path.read_text(encoding="utf-8-sig").rstrip().split("\n")
        if lines == [""]:
            raise ValueError("it is empty")
        for number, line in enumerate(lines, start=1):
            if not line.strip():  # passed over, the answers would stand beside other lines
                raise ValueError(f"line {number} is empty")
        return np.loadtxt(lines, delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        problem = str(error).partition(";")[0].rstrip(".")
        raise ValueError(f"{path}: {problem}; expected {expected}") from error


# gradcheck, doctor --------------------------------------------------------------------------------


def _add_gradcheck(commands: Any) -> None:
    parser = _command(
        commands,
        "gradcheck",
        _gradcheck,
        "check every backward pass against central differences in float64",
    )
    parser.add_argument(
        "name", nargs="*", help="only cases whose name contains this, in capitals or not"
    )
    parser.add_argument("--verbose", action="store_true", help="print every tensor")
    _add_plugin(parser)


def _gradcheck(options: argparse.Namespace) -> int:
    from npformer.proof.cases import cases
    from npformer.proof.gradcheck import COMPLEX_TOLERANCE, TOLERANCE, GradcheckError

    every, wanted = cases(), [_plain(name) for name in options.name]
    for case in _cases_of_plugins(options):
        if isinstance(case, str):
            print(case, file=sys.stderr)
        else:
            every.append(case)
    chosen = [c for c in every if not wanted or any(name in _plain(c.name) for name in wanted)]
    if not chosen:
        words = sorted({word for case in every for word in re.findall(r"\w+", case.name)})
        close = get_close_matches(options.name[0], words, n=3)
        meant = f". Did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(
            f"no case is called {' or '.join(options.name)}; without a name all of them are "
            f"checked{meant}"
        )
    width = max(len(case.name) for case in chosen)
    print(f"{'group':<10}  {'case':<{width}}  tensors  largest error  complex step  ")
    wrong, errors, exact = 0, [], []
    for case in chosen:
        try:
            report, verdict = case.run(), "passed"
        except GradcheckError as error:
            report, verdict = error.report, "FAILED"
            wrong += 1
        errors.append(report.error)
        exact += [] if report.complex_error is None else [report.complex_error]
        by_complex_step = "-" if report.complex_error is None else f"{report.complex_error:.1e}"
        corners = sum(tensor.no_derivative for tensor in report.tensors)
        note = f"  ({corners} without a derivative)" if corners else ""
        print(
            f"{case.group:<10}  {case.name:<{width}}  {len(report.tensors):>7}  "
            f"{report.error:>13.1e}  {by_complex_step:>12}  {verdict}{note}"
        )
        if options.verbose or verdict == "FAILED":
            print(report)
    print(
        f"\n{len(chosen)} cases, {len(chosen) - wrong} passed, {wrong} failed\n"
        f"central differences: largest relative error {np.max(errors):.1e}, tolerance "
        f"{TOLERANCE:g}\n"
        f"complex step: largest relative error {np.max(exact, initial=0.0):.1e} in {len(exact)} "
        f"cases, tolerance {COMPLEX_TOLERANCE:g}; - where it does not apply"
    )
    return 1 if wrong else 0


def _cases_of_plugins(options: argparse.Namespace) -> list[Any]:
    """Import the plugins and return a check of what they registered, or why there is none."""
    if not options.plugin:
        return []
    from npformer.tools.plugins import plugin_cases

    _load_plugins(options)
    return list(plugin_cases())


def _plain(name: str) -> str:
    """Return a name without capitals and underscores: LayerNorm and layer_norm are one."""
    return name.lower().replace("_", "")


def _add_bench(commands: Any) -> None:
    sizes = "\n".join(
        f"  {w.name}  batch {w.batch}, length {w.length}, d_model {w.d_model}, d_ff {w.d_ff}, "
        f"{w.n_layers} layers"
        for w in bench.WORKLOADS.values()
    )
    parser = _command(
        commands,
        "bench",
        _bench,
        "measure how fast it trains and predicts on this machine",
        f"workloads:\n{sizes}\n\nagainst PyTorch: python -m benchmarks cpu, in the repository",
    )
    parser.add_argument(
        "--workload",
        default="S",
        metavar="NAME[,NAME...]",
        help="those below, with commas (default: S)",
    )
    parser.add_argument(
        "--mixer",
        default=",".join(bench.MIXERS),
        metavar="NAME[,NAME...]",
        help=f"with commas (default: {','.join(bench.MIXERS)})",
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0, metavar="X", help="for each figure (default: 2)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    _add_backend(parser)


def _bench(options: argparse.Namespace) -> int:
    print(_device(options))
    with use_precision(options.precision, options.backend):
        return _measure(options)


def _measure(options: argparse.Namespace) -> int:
    figures = []
    for one in bench.measure(
        options.workload.split(","), options.mixer.split(","), options.backend, options.seconds
    ):
        figures.append(one)
        print(f"{one.workload} {one.mixer}: {one.step_ms:.1f} ms a step", file=sys.stderr)
    peak = bench.sgemm_peak() if options.backend == "numpy" else None
    print(bench.table(figures, peak))
    if options.json:
        written = {"peak_gflops": peak, "figures": [asdict(one) for one in figures]}
        Path(options.json).write_text(json.dumps(written, indent=2) + "\n")
    return 0


def _add_doctor(commands: Any) -> None:
    _command(commands, "doctor", _doctor, "show what npformer finds on this machine")


def _doctor(options: argparse.Namespace) -> int:
    healthy = True
    for line in diagnose():
        mark = {True: "ok", False: "PROBLEM", None: "--"}[line.ok]
        print(f"{mark:<8} {line.what:<12} {line.found}")
        healthy = healthy and line.ok is not False
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
