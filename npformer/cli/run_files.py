"""The folder that npformer train writes: models, history.json, metrics.json and curves.png."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npformer.cli.run_folder import REPORT
from npformer.training.evaluation import Evaluation
from npformer.training.history import History
from npformer.training.inspection.curves import figure_of, write_figure
from npformer.training.storage.files import write_whole
from npformer.training.storage.models import checkpoint_name, save
from npformer.training.trainable import SequenceClassifier


class Results:
    """Results of a training, one model for each split; metrics.json starts with `about`."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.folder = folder
        self.metrics: dict[str, Any] = {**about, "splits": {}}
        self.histories: dict[str, Any] = {}

    def begin(self, model: SequenceClassifier) -> None:
        """Note what all splits have in common."""
        self.metrics["parameters"] = model.n_parameters()
        self.metrics["config"] = model.config.to_dict()

    def add_training(self, split: str, model: SequenceClassifier, history: History) -> None:
        """Save a model, and what is known about it before it is tested."""
        name = checkpoint_name(split if self.histories else "")
        notes = {"task": self.metrics["task"], "split": split, "seed": self.metrics["seed"]}
        if self.metrics["plugins"]:
            notes["plugins"] = self.metrics["plugins"]
        if not self.histories:  # so that no file describes an older model than the one beside it
            for file in ("metrics.json", "history.json", "curves.png", REPORT):
                (self.folder / file).unlink(missing_ok=True)
        save(model, self.folder / name, notes=notes)
        self.histories[split] = history.to_dict()
        self.metrics["splits"][split] = {
            **dict.fromkeys(("test_accuracy", "test_loss", "test_labels")),  # until `add_test`
            "validation_accuracy": max(history.validation_accuracy, default=None),
            "best_epoch": history.best_epoch,
            "epochs": len(history.train_loss),
            "stopped": history.stopped,
            "seconds": round(sum(history.seconds), 2),
            "workers": history.workers,
            "file": name,
        }
        self._write()

    def add_test(self, split: str, found: Evaluation) -> None:
        """Write the results on the test data."""
        self.metrics["splits"][split] |= {
            "test_accuracy": found.accuracy,
            "test_loss": found.loss,
            "test_labels": found.labels,
        }
        self._write()

    def _write(self) -> None:
        for name, values in (("history", self.histories), ("metrics", self.metrics)):
            text = json.dumps(values, indent=2) + "\n"
            write_whole(self.folder / f"{name}.json", text.encode())

    def end(self) -> None:
        """Draw the curves, and print the results."""
        splits = self.metrics["splits"]
        files = [found["file"] for found in splits.values()]
        about = self.metrics
        mixer = about["mixer"] if isinstance(about["mixer"], str) else ", ".join(about["mixer"])
        curves = draw_curves(
            {split: History.from_dict(history) for split, history in self.histories.items()},
            {split: found["test_accuracy"] for split, found in splits.items()},
            f"{about['task']}, {mixer}, seed {about['seed']}",
            self.folder,
        )
        print()
        for split, found in splits.items():
            where = "" if split == "generated" else f" ({split} split)"
            accuracy = f"test accuracy {found['test_accuracy']:.4f}{where}"
            epoch = f"epoch {found['best_epoch']} of {found['epochs']}"
            workers = max(found["workers"], key=found["workers"].__getitem__)  # of most steps
            print(f"{accuracy}, weights of {epoch}, {found['seconds']:.1f} s, {workers}")
        print(f"{self.folder}: {', '.join([*files, 'history.json', 'metrics.json'])}; {curves}")


def draw_curves(
    histories: Mapping[str, History], tested: Mapping[str, float], title: str, folder: Path
) -> str:
    """Draw the curves of some trainings; return the name of the file, or why there is none.

    `tested` has test accuracies, which are drawn beside validation accuracies only.
    """
    shown = {name: tested[name] for name, h in histories.items() if h.metric == "accuracy"}
    try:
        figure = figure_of(histories, shown, title)
    except ImportError:
        return 'no curves.png: python -m pip install "npformer[plot]"'
    write_figure(figure, folder / "curves.png")
    return "curves.png"
