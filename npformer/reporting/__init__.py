"""Reports: one HTML file that shows what models do with some samples."""

from npformer.reporting.report import report

__all__ = ["report"]
