"""The command line: npformer train | evaluate | predict | gradcheck | bench | doctor."""

from npformer.tools.cli.program import main

__all__ = ["main"]
