"""Writing models in ONNX, for programs that know nothing of npformer."""

from npformer.interop.onnx import layers, mixers, models  # noqa: F401 - their converters
from npformer.interop.onnx.export import Exported, to_onnx
from npformer.interop.onnx.graph import Graph, Value
from npformer.interop.onnx.table import CONVERTERS, register

__all__ = ["CONVERTERS", "Exported", "Graph", "Value", "register", "to_onnx"]
