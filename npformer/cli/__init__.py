"""The command line: npformer train | evaluate | predict | gradcheck | bench | doctor."""

from npformer.cli.program import main

__all__ = ["main"]
