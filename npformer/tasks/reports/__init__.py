"""Reports: one HTML file that shows what models do with some samples."""

from npformer.tasks.reports.report import report

__all__ = ["report"]
