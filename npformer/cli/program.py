"""The program `npformer`: its parser, and how it reports errors."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext

import npformer
from npformer.cli import (
    bench,
    data,
    doctor,
    evaluate,
    exercises,
    generate,
    gradcheck,
    look,
    play,
    predict,
    train,
)
from npformer.cli.common import STATUS, print_warnings_as_lines
from npformer.cli.options import check_numbers, check_outputs
from npformer.cli.parser import Parser
from npformer.cli.ranks import check_together, only_the_first_speaks
from npformer.cli.streams import drop, keep_writes_from_failing, usable_streams
from npformer.core import BackendUnavailableError, BatchTooLargeError, describe
from npformer.training.distributed import Communicator, LauncherError, RankFailed, world
from npformer.training.watchers import NonFiniteLossError

EXPLAINED = (
    ValueError,
    TypeError,
    OSError,
    BackendUnavailableError,
    MemoryError,
    NonFiniteLossError,
    LauncherError,
    ImportError,
)
"""Errors shown by their message alone; any other is a bug and shows its traceback.

So does an ImportError of Python's own.
"""

RESULTS_IN_FILES = {"train", "pretrain", "look"}
"""Commands that go on when nobody can see what they print."""


def run(arguments: Sequence[str] | None) -> int:
    """Run a command, and return its exit status."""
    with usable_streams():
        options = parse(arguments)
        unseen = options.command in RESULTS_IN_FILES
        with keep_writes_from_failing("stdout") if unseen else nullcontext():
            return _run(options)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line; words may also follow an option."""
    options: argparse.Namespace
    options, unknown = make_parser().parse_known_args(arguments)
    unknown = _take_late_words(options, unknown)
    if unknown:
        options.parser.error(options.parser.describe_unknown(unknown[0]))
    return options


def _run(options: argparse.Namespace) -> int:
    try:
        options.ranks = Communicator()  # until it is known that there are more
        options.ranks = world()
        with (
            options.ranks.guard(),
            print_warnings_as_lines(options.command),
            only_the_first_speaks(options.ranks),
        ):
            check_together(options.ranks, options.command)
            check_numbers(options)
            check_outputs(options)
            status = int(options.run(options))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # as in `npformer ... | head`
        drop(sys.stdout)
        return 0
    except EXPLAINED as error:
        if isinstance(error, ImportError) and error.name is not None:
            raise  # Python's own: a library is broken, and the traceback says where
        rank = options.ranks.rank
        on_rank = f"on rank {rank}, " if rank else ""
        words = f"npformer {options.command}: {on_rank}{_explanation(error, options)}"
        # A file that others wrote may be quoted in it.
        print("".join(c if c.isprintable() or c in "\n\t" else "?" for c in words), file=sys.stderr)
        return 2
    except RankFailed:  # that rank says why, and its status is that of the whole command
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return STATUS["interrupted"]


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="npformer",
        description="The Transformer encoder written out by hand in NumPy.",
        epilog="npformer COMMAND --help shows the options of a command. "
        "Begin with: npformer train digits",
    )
    parser.add_argument("--version", action="version", version=f"npformer {npformer.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    train.add_train(commands)
    train.add_pretrain(commands)
    evaluate.add_parser(commands)
    predict.add_parser(commands)
    generate.add_parser(commands)
    look.add_parser(commands)
    play.add_parser(commands)
    data.add_parser(commands)
    exercises.add_parser(commands)
    gradcheck.add_parser(commands)
    bench.add_parser(commands)
    doctor.add_parser(commands)
    return parser


def _take_late_words(options: argparse.Namespace, words: list[str]) -> list[str]:
    """Give a command the words of INPUT that follow an option, and return those that are left.

    argparse looks for all words of INPUT right behind MODEL, and leaves out the ones that come
    later.
    """
    known = getattr(options, "input", "")
    if any(word.startswith("-") and word != "-" for word in words):
        return words
    if isinstance(known, list):
        known.extend(words)
        return []
    if known is None and words:
        options.input = words[0]
        return words[1:]
    return words


def _explanation(error: BaseException, options: argparse.Namespace) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"  # without the number in brackets
    if isinstance(error, BatchTooLargeError):  # name options, not arguments of a function
        words = str(error).replace("batch_size=", "--batch-size ")
        return words.replace("micro_batch=", "--micro-batch ")
    words = str(error).replace("pass overwrite=True", "pass --overwrite")
    for action in options.parser._actions:  # an argument of a function is an option here
        value, flag = getattr(options, action.dest, None), "".join(action.option_strings[-1:])
        if flag and words.startswith(f"{action.dest} is {describe(value)}"):
            return words.replace(action.dest, flag, 1)
        if flag and words.startswith(f"{value} "):
            return f"{flag} {words}"
    return words
