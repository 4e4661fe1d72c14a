"""Writing models in ONNX, for programs without npformer."""

from npformer.interop.onnx import layers, mixers, models  # noqa: F401 - registers their converters
from npformer.interop.onnx.converters import CONVERTERS, register
from npformer.interop.onnx.export import Exported, to_onnx
from npformer.interop.onnx.graph import Graph, Value

__all__ = ["CONVERTERS", "Exported", "Graph", "Value", "register", "to_onnx"]
