"""The gradcheck that users call: with the engine loaded, it also checks the twins of layers."""

from npformer.proof.gradcheck import gradcheck

__all__ = ["gradcheck"]
