"""gradcheck as users call it: the engine is loaded, so twins are judged beside plain layers."""

from npformer.proof.gradcheck import gradcheck

__all__ = ["gradcheck"]
