"""Write what commands print into a page: ``python -m docs.site.typed README.md``.

A block of Python whose first line is ``# my_layer.py`` is also a file of that name. The commands in
a block of ``sh`` below ``<!-- typed -->`` run where the files of the page are, and the block of
``text`` that follows holds what they print.

`docs.site.pages` does this for the pages that it writes. The README's Python takes longer, so its
commands are written alone.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FILE_OR_COMMANDS = re.compile(
    r"^```python[^\n]*\n(?P<code># (?P<file>\w+\.py)\n.*?)^```$"
    r"|^<!-- typed -->\n+```sh\n(?P<commands>.*?)^```$(?P<printed>\n+```text\n.*?^```$)?",
    re.MULTILINE | re.DOTALL,
)


def has_commands(text: str) -> bool:
    """Return whether a page has commands whose output it shows."""
    return any(block["commands"] for block in FILE_OR_COMMANDS.finditer(text))


def add_output(text: str) -> str:
    """Return a page's text with the current output of its commands."""
    if not has_commands(text):
        return text
    with tempfile.TemporaryDirectory() as folder:
        return FILE_OR_COMMANDS.sub(lambda block: _rewrite(block, Path(folder)), text)


def _rewrite(block: re.Match[str], folder: Path) -> str:
    """Write a file into the folder, or return a block of commands above its current output."""
    if block["file"]:
        (folder / block["file"]).write_text(block["code"], "utf-8")
        return block[0]
    printed = "".join(_run(line, folder) for line in block["commands"].splitlines())
    before = block[0].removesuffix(block["printed"] or "")
    return f"{before}\n\n```text\n{printed.rstrip()}\n```"


def _run(line: str, folder: Path) -> str:
    """Return what a command prints, npformer's own, which may fail."""
    program, *words = shlex.split(line)
    if program != "npformer":
        raise ValueError(f"{line}: expected a command that begins with npformer")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "npformer", *words]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    printed = ran.stdout + ran.stderr
    return "".join(f"{printed_line.rstrip()}\n" for printed_line in printed.splitlines())


def main(pages: list[str]) -> None:
    """Write the output of the commands of pages into them."""
    for page in map(Path, pages):
        page.write_text(add_output(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
