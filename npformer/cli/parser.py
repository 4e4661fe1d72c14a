"""The parser of commands: a mistake is one line, and help begins with what is used most."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from npformer.core.support.other_names import suggest_argument, suggest_command
from npformer.core.support.wording import did_you_mean


class Parser(argparse.ArgumentParser):
    """A parser that may have more options than people want to read at once."""

    seldom: Mapping[argparse.Action, str | None] = {}
    """The help of options that --help leaves out."""
    words: Sequence[str] = ()
    """What is being parsed."""

    def show_first(self, *flags: str) -> None:
        """Let --help show these options alone; --help-all shows all of them."""
        self.add_argument("--help-all", action=_HelpAll, help="show all options and exit")
        shown = {"--help", "--help-all", *flags}
        options = [action for action in self._actions if action.option_strings]
        self.seldom = {
            action: action.help for action in options if not shown & {*action.option_strings}
        }
        for action in self.seldom:
            action.help = argparse.SUPPRESS

    def format_help(self) -> str:
        """Return the help: with `show_first`, that of a few options."""
        more = f"\n{len(self.seldom)} more options: {self.prog} --help-all\n"
        return super().format_help() + more * bool(self.seldom)

    def whole_help(self) -> str:
        """Return the help of all options, which are then shown for good."""
        for action, text in self.seldom.items():
            action.help = text
        return super().format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words, and keep them for `error`."""
        self.words = args or ()
        return super().parse_known_args(args, namespace)

    def describe_unknown(self, word: str) -> str:
        """Return what is wrong with a word that is no argument, and which one may be meant."""
        flags = [flag.lstrip("-") for flag in self._option_string_actions if word.startswith("-")]
        known = [flag.replace("-", "_") for flag in flags]
        name = word.lstrip("-").partition("=")[0].replace("-", "_")
        hint = suggest_argument(name, known).replace("_", "-").replace("'", "'--", 1)
        return f"{word} is unknown{hint}"

    def _unknown_options(self) -> list[str]:
        """Return the options among the words that this parser of a command does not have."""
        if self._subparsers is not None:
            return []  # those of commands come as well
        flags = [word.partition("=")[0] for word in self.words if word.startswith("--")]
        before_values = flags[: flags.index("--")] if "--" in flags else flags
        return [flag for flag in before_values if flag not in self._option_string_actions]

    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, and end with status 2.

        The value of an unknown option is taken for the argument that comes next. So the option is
        the mistake, whatever was said about the argument.
        """
        unknown_options = self._unknown_options()
        if unknown_options:
            message = self.describe_unknown(unknown_options[0])
        every = "--help-all" if self.seldom else "--help"
        more = "" if message.endswith("?") else f"; {self.prog} {every} shows what it takes"
        self.exit(2, f"{self.prog}: {message}{more}\n")

    def _get_values(self, action: argparse.Action, words: Any) -> Any:
        """Return the value of an argument; before Python 3.13 ``--option=--`` would have none."""
        if not action.option_strings or words != ["--"]:
            return super()._get_values(action, words)
        value = self._get_value(action, "--")
        self._check_value(action, value)
        return value

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check that a value is one of an argument's choices; the error names one that is near."""
        if action.choices is not None and value not in action.choices:
            suggest = suggest_command if action.dest == "command" else did_you_mean
            near = suggest(value, action.choices)
            known = ", ".join(map(str, action.choices))
            raise argparse.ArgumentError(action, f"{value!r} is unknown; expected {known}{near}")


class _HelpAll(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: Any, *arguments: Any) -> None:
        print(parser.whole_help(), end="")
        parser.exit()
