"""npformer train FILE, npformer pretrain FILE: train a model, and compare it with baselines."""

from __future__ import annotations

import math
import shlex
from typing import Any

import npformer
from npformer.cli import common
from npformer.cli.measured import measure
from npformer.cli.model_settings import model_for, options_typed
from npformer.cli.run_folder import REPORT
from npformer.cli.training import VERSIONS, Training
from npformer.data.text_file import display_name
from npformer.tasks.estimators import Estimator
from npformer.tasks.sources.choose_task import OF_TASK, choose_task
from npformer.tasks.sources.data_warnings import doubt_features
from npformer.tasks.sources.file_kinds import OPTIONS, parse_share
from npformer.tasks.sources.file_task import FileTask, Part
from npformer.training.inspection.overfitting import describe_overfitting
from npformer.training.storage.drawn import Drawn
from npformer.training.storage.models import checkpoint_name, save

LEFT_OUT = ("callbacks", "communicator", "shard_moments")
"""Arguments of `fit` that metrics.json does not repeat."""

LONGEST = 30
"""Characters of a beginning that is to be continued."""


NEXT = {
    "texts": """
use it:       npformer predict {0} "a text of your own"
which word:   npformer predict {0} --explain "a text of your own"
look inside:  {1}
measure it:   npformer evaluate {0} FILE""",
    "series": """
use it:       npformer predict {0} FILE
look inside:  {1}
measure it:   npformer evaluate {0} FILE""",
    "pairs": """
use it:       npformer predict {0} "a source"
look inside:  {1}
measure it:   npformer evaluate {0} FILE""",
    "unlabelled": """
use it:           npformer predict {0} "a text with a [MASK]"
teach it labels:  npformer train FILE --from {0}
measure it:       npformer evaluate {0} FILE""",
}
"""What to do next with a trained model, by the kind of its data: {0} is its folder."""


def run(training: Training) -> int:
    """Train a model, measure it, and print the results."""
    options = training.options
    typed = options_typed(options, {*OPTIONS, *OF_TASK})
    task = choose_task(options.task, typed, labelled=options.command != "pretrain")
    model, arguments = model_for(options, task), training.arguments("model")
    model.check()
    with training.folder.begun(training.chosen):
        drawn = Drawn(training.path, resume=True, communicator=options.ranks)
        samples_by_name, how = task.parts(drawn=drawn)
        training.say(f"npformer {npformer.__version__} on {common.device_of(options)}\n")
        training.say(f"{task.file}: {how}\n")
        if task.features:
            training.say(f"features: {', '.join(task.features)}\n")
            doubt_features(task.features)
        train = samples_by_name["train"].data()
        model.fit(
            *train,
            validation=samples_by_name["validation"].validation_data(),
            callbacks=[
                _Summary(model, train, training),
                _CheckTest(model, task, samples_by_name["test"]),
            ],
            **arguments,
        )
        notes = {"task": task.to_dict(), "seed": options.seed, "plugins": training.folder.plugins}
        save(model, training.path / checkpoint_name(), notes=notes, overwrite=True)
        status = training.status(model.histories_[-1], model.settings_["epochs"])
        if status is not None:
            training.draw_so_far(model.histories_[-1])
        else:
            _finish(training, model, samples_by_name, notes)
            training.folder.forget_replaced()
    return status or 0


class _Summary(npformer.Callback):
    """Shows the first model before it is trained."""

    def __init__(self, model: Estimator, data: tuple[Any, ...], training: Training) -> None:
        self.model, self.data, self.training = model, data, training

    def on_start(self, state: npformer.TrainingState) -> None:
        """Print the summary of the model."""
        if state.model is self.model.models_[0]:
            self.training.describe(state.model, self.model.example(*self.data))
            if (tokenizer := getattr(self.model, "tokenizer_", None)) is not None:
                self.training.say(f"{tokenizer.vocab_size:,} tokens in the vocabulary")
            self.training.say("")


class _CheckTest(npformer.Callback):
    """Checks before the first step that the test part can be measured after the last."""

    def __init__(self, model: Estimator, task: FileTask, test: Part) -> None:
        self.model, self.task, self.test = model, task, test

    def on_start(self, state: npformer.TrainingState) -> None:
        """Check the test part, once."""
        if state.model is self.model.models_[0] and len(self.test):
            name = self.task.file if parse_share(self.task.test) is not None else self.task.test
            self.model.check_measurable(display_name(name), *self.test.data())


def _finish(training: Training, model: Any, parts: dict[str, Part], about: dict[str, Any]) -> None:
    """Measure the model on the test part, write what is known about it, and print it."""
    path = training.path
    histories = [history.to_dict() for history in model.histories_]
    metrics: dict[str, Any] = {
        **about,
        "kind": about["task"]["kind"],
        **VERSIONS,
        "members": len(model.models_),
        "parameters": model.model.n_parameters(),
        "config": model.model.config.to_dict(),
        "samples": {name: len(samples) for name, samples in parts.items()},
        "training": {n: _plain(v) for n, v in model.settings_.items() if n not in LEFT_OUT},
        "best_epochs": [history["best_epoch"] for history in histories],
        "seconds": round(sum(sum(history["seconds"]) for history in histories), 2),
    }
    if hasattr(model, "classes_"):
        metrics["classes"] = model.classes_.tolist()
    files = [checkpoint_name(), "history.json", "metrics.json"]
    if len(parts["test"]):
        measured_results = measure(training, model, parts)
        if measured_results is None:  # the first rank writes and prints
            return
        measured, words, written = measured_results
        metrics |= measured
        files += written
        print(f"{words}\n")
    training.write(metrics, histories)
    history, tested = model.history_, metrics.get("test", {}).get("accuracy", math.nan)
    curves = training.draw_curves({"": history}, {"": tested})
    if len(model.models_) > 1:
        print(f"{len(model.models_)} models with different seeds, whose probabilities are averaged")
    epochs = f"weights of epoch {history.best_epoch} of {len(history.train_loss)}"
    print(f"{epochs}, {metrics['seconds']:.1f} s\n{path}: {', '.join(files)}; {curves}")
    if words := describe_overfitting(history):
        print(f"\n{words}")
    elif not history.validation_loss:
        training.say(f"to see overfitting in {path}/curves.png: --validation 0.2")
    show = print if metrics["kind"] == "text" else training.say  # what a model writes is a result
    show(_next(metrics["kind"], model, parts, shlex.quote(str(path))))


def _next(kind: str, model: Any, parts: dict[str, Part], path: str) -> str:
    """Return what to do with a trained model; and what it writes, if it does."""
    if kind != "text":
        return NEXT[kind].format(path, _how_to_look(kind, path, tested=len(parts["test"]) > 0))
    written = model.generate(n=300, temperature=0.8)  # what the first command prints
    first = parts["train"].samples.strip().partition("\n")[0]
    again = f"npformer generate {path} {shlex.quote(first[:LONGEST])}"
    return f"\nnpformer generate {path} --temperature 0.8\n\n{written}\n\n{again}"


def _how_to_look(kind: str, path: str, *, tested: bool) -> str:
    """Return how to look inside a trained model; of a classifier the test wrote a report."""
    if not tested:
        return f"npformer look {path} FILE"
    return f"npformer look {path}" if kind == "pairs" else f"{path}/{REPORT}, in a browser"


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
