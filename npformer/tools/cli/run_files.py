"""The folder that npformer train writes: models, history.json, metrics.json and curves.png."""

import io
import json
from pathlib import Path
from typing import Any

from npformer.classifier import SequenceClassifier
from npformer.core.files import write_whole
from npformer.tools.cli.run_folder import REPORT
from npformer.training import Evaluation, History
from npformer.training.checkpoint import checkpoint_name, save


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
        if not self.histories:  # so that no file speaks of an older model than the one beside it
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
        curves = draw_curves(self.histories, self.metrics, self.folder)
        print()
        for split, found in splits.items():
            where = "" if split == "generated" else f" ({split} split)"
            accuracy = f"test accuracy {found['test_accuracy']:.4f}{where}"
            epoch = f"epoch {found['best_epoch']} of {found['epochs']}"
            workers = max(found["workers"], key=found["workers"].__getitem__)  # of most steps
            print(f"{accuracy}, weights of {epoch}, {found['seconds']:.1f} s, {workers}")
        print(f"{self.folder}: {', '.join([*files, 'history.json', 'metrics.json'])}; {curves}")


def draw_curves(histories: dict[str, Any], metrics: dict[str, Any], folder: Path) -> str:
    """Draw the curves of all splits; return the name of the file, or why there is none."""
    try:
        import matplotlib
    except ImportError:
        return 'no curves.png: python -m pip install "npformer[plot]"'
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (losses, accuracies) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for colour, (split, history) in zip(("C0", "C1"), histories.items(), strict=False):
        trained = range(1, len(history["train_loss"]) + 1)
        validated = range(1, len(history["validation_loss"]) + 1)
        training = {"color": colour, "label": f"{split}, training (with dropout)"}
        validation = {"color": colour, "linestyle": "--", "label": f"{split}, validation"}
        losses.plot(trained, history["train_loss"], **training)
        losses.plot(validated, history["validation_loss"], **validation)
        accuracies.plot(validated, history["validation_accuracy"], **validation)
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
    image = io.BytesIO()
    figure.savefig(image, dpi=120, format="png")
    plt.close(figure)
    write_whole(folder / "curves.png", image.getvalue())
    return "curves.png"
