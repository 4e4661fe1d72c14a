"""Weights from elsewhere."""

from npformer.interop.huggingface import from_bert, from_fnet, to_bert, to_fnet

__all__ = ["from_bert", "from_fnet", "to_bert", "to_fnet"]
