"""The folder that ``npformer gradcheck --report`` writes: a page for each case, and an index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from npformer.cli.options import file_or_folder
from npformer.cli.shared_options import Options, add_overwrite
from npformer.training.storage.outputs import check_place

if TYPE_CHECKING:
    from npformer.proof.report import GradcheckReport

INDEX = "index.html"


def add_report(options: Options) -> None:
    """Add the folder that pages are written to."""
    options.add_argument(
        "--report",
        metavar="DIR",
        type=file_or_folder,
        help="write a page with pictures for each case that fails, with --verbose for every case, "
        f"and DIR/{INDEX}",
    )
    add_overwrite(options)


class GradcheckPages:
    """Pages on cases, in one folder; without a folder nothing is written."""

    def __init__(self, folder: Path | None, *, overwrite: bool, every_case: bool) -> None:
        self.folder = folder
        self.overwrite = overwrite
        self.every_case = every_case
        self._reports: dict[str, tuple[GradcheckReport, str]] = {}
        if folder is None:
            return
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file; expected the name of a folder")
        if folder.parent.is_dir():
            folder.mkdir(exist_ok=True)
        check_place(folder / INDEX, INDEX, overwrite=overwrite)

    def add(self, title: str, report: GradcheckReport) -> None:
        """Write the page of a case, if it is one to be shown."""
        if self.folder is None:
            return
        number = len(self._reports) + 1
        title = f"{title} ({number})" if title in self._reports else title
        file = ""
        if self.every_case or not report.passed:
            words = re.sub(r"\W+", "-", title.lower()).strip("-")
            file = f"{number:03d}-{words[:60]}.html"
            report.save(self.folder / file, overwrite=self.overwrite)
        self._reports[title] = report, file

    def write_index(self) -> None:
        """Write the index, and say where it is."""
        if self.folder is None:
            return
        from npformer.tasks.reports.gradients import write_index

        write_index(self._reports, self.folder / INDEX, overwrite=self.overwrite)
        print(f"pages: {self.folder / INDEX}")
