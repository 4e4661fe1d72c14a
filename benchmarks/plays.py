"""What `npformer train shakespeare` reaches by minutes, and what it writes.

Run it when nothing else runs: its minutes are those of the clock.
"""

import json
import math
import subprocess
import sys
import tempfile
from itertools import accumulate
from pathlib import Path

import npformer as nf
from benchmarks.questions_gpt import plays
from benchmarks.results_files import markdown, write

COMMAND = (sys.executable, "-m", "npformer")
ROWS = 6
"""How many of the epochs the table shows."""


def run():
    """Train as the command does, and write the losses and a sample."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([*COMMAND, "train", "shakespeare", "--out", place], check=True)
        metrics, history = (
            json.loads((Path(place) / f"{name}.json").read_text())
            for name in ("metrics", "history")
        )
        tokenizer = nf.load(Path(place) / "model.safetensors").tokenizer_
        words = [*COMMAND, "generate", place, "ROMEO:", "--temperature", "0.8"]
        written = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    test, counts = metrics["test"], metrics["baselines"]
    held_out = plays()[0][-metrics["samples"]["validation"] :]
    per_character = len(tokenizer.ids(held_out)) / len(held_out)
    figures = {
        "parameters": metrics["parameters"],
        "minutes": [seconds / 60 for seconds in accumulate(history[0]["seconds"])],
        "validation": [nats * per_character for nats in history[0]["validation_loss"]],
        "test": test["nats"],
        "counts": counts,
        "written": written,
    }
    write("plays", figures, table(figures))


def table(figures):
    """Return losses by minutes, the loss at the end beside counts, and the sample."""
    n = len(figures["minutes"])
    shown = sorted({math.ceil(n * (i + 1) / ROWS) - 1 for i in range(ROWS)})
    minutes, nats = (
        [digits.format(figures[name][i]) for i in shown]
        for name, digits in (("minutes", "{:.1f}"), ("validation", "{:.3f}"))
    )
    rows = [("nats a character, held out", *nats)]
    best = min(figures["counts"].values())
    return (
        f"{markdown(('after minutes', *minutes), rows)}\n\n"
        f"The last tenth of the plays, which was not trained on: {figures['test']:.3f} nats a "
        f"character; the best of the counts: {best:.3f}. "
        f"{figures['parameters']:,} parameters. "
        '`npformer generate runs/shakespeare-attention "ROMEO:" --temperature 0.8` writes:\n\n'
        f"```text\n{figures['written'].rstrip()}\n```"
    )
