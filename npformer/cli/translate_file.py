"""npformer predict for a model of pairs: translate texts from the command line, or of a table."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from npformer.cli import common
from npformer.cli.predict_file import PREDICTED, is_same, is_table, refuse_files, table_of
from npformer.cli.recipes.file_task import FileTask, chosen_column
from npformer.cli.recipes.writing_tasks import PairsTask
from npformer.data.tables import read_table
from npformer.tasks.estimators import TextTranslator
from npformer.training.storage.files import write_whole


def run(options: argparse.Namespace, translator: TextTranslator, task: FileTask | None) -> int:
    """Print or write what the model makes of sources; `task` is that of the training."""
    for name in ("mask", "text"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} is given, and the model takes pairs; expected --source")
    if options.probabilities:
        raise ValueError("--probabilities is given, and the model writes; expected no such option")
    refuse_files(options.input)
    if options.out is not None and any(is_same(options.out, word) for word in options.input):
        raise ValueError(f"--out {options.out} is the file that is read; expected another name")
    if not options.input:
        raise ValueError(
            f"there is nothing to translate; expected texts in quotes, or one table: npformer "
            f'predict {options.model} "a source"'
        )
    columns: dict[str, list[Any]] = {"source": list(options.input)}
    column = "source"
    if len(options.input) == 1 and is_table(options.input[0]):
        table = read_table(options.input[0], encoding=options.encoding or "utf-8")
        usual = task.source if isinstance(task, PairsTask) else None
        known = options.source is None and usual in table.columns
        column = str(usual) if known else chosen_column(table, options.source, "source")
        columns = {**table.columns, column: table.texts(column, missing="")}
    sources = columns[column]
    if unknown := sum(bool(translator.tokenizers_[0].unknown_in(source)) for source in sources):
        print(
            f"{unknown:,} of {len(sources):,} sources have characters that the model was not "
            "trained on: what it makes of them is a guess",
            file=sys.stderr,
        )
    found = translator.translate(
        sources, options.beams, batch_size=options.batch_size, communicator=options.ranks
    )
    if options.ranks.rank:
        return 0  # the first writes and prints
    many = common.counted(len(sources), "sources")
    print(f"{many} on {common.device_of(options)}", file=sys.stderr)
    if options.out is not None:
        write_whole(options.out, table_of(options, columns, {PREDICTED: found}))
        print(f"{options.out}: {len(sources):,} rows")
        return 0
    for source, target in zip(sources, found, strict=True):
        single = len(sources) == 1
        print(target if single else f"{common.one_line(source, 40)}  {target}")
    return 0
