"""Other tools and the files: half precision, and inference of shapes."""

import numpy as np
import pytest

import npformer as nf
from tests.interop.test_onnx import CASES, WHOLE, inputs_of, make_model, session_of
from tests.needs import NEEDS

onnx = pytest.importorskip("onnx", reason=NEEDS["onnx"])
SAMPLES = [pytest.param(case.values, id=case.id) for case in CASES if not case.id.endswith(", pre")]
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE}


def export(case_of, path):
    """Return a model, and one input, whose file has a mask if a mixer takes one."""
    settings, kind, options = case_of
    model = make_model(settings, kind, options)
    nf.interop.to_onnx(model, path)
    masked = settings.get("padding") is not None or settings.get("mixer") not in WHOLE
    length = 100 if options.get("pooling") == "flatten" else 20
    return model, inputs_of(model, kind, 3, length, masked=masked)


def convert_to_float16(file):
    """Return a file in which all that is float32 is float16, as converters write it.

    They leave what nodes are as it is: one that makes float32, whatever its inputs are, would make
    it beside float16, and the file could not be loaded.
    """
    for array in file.graph.initializer:
        if array.data_type == onnx.TensorProto.FLOAT:
            values = np.clip(onnx.numpy_helper.to_array(array), -6e4, 6e4).astype("float16")
            array.CopyFrom(onnx.numpy_helper.from_array(values, array.name))
    for value in (*file.graph.input, *file.graph.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    return file


def check_near(outputs, expected, mask, tolerance):
    for output, expected_output in zip(outputs, expected, strict=True):
        if mask is not None and mask.shape == expected_output.shape[:2]:
            output, expected_output = output[mask], expected_output[mask]
        assert np.isfinite(output).all()
        assert np.abs(output - expected_output).max() <= tolerance * np.abs(expected_output).max()


@pytest.mark.parametrize("case_of", SAMPLES)
def test_a_file_follows_the_type_of_its_inputs(case_of, tmp_path):
    model, inputs = export(case_of, tmp_path / "model.onnx")
    expected = session_of(tmp_path / "model.onnx").run(None, inputs)
    file = onnx.load(tmp_path / "model.onnx")
    for node in file.graph.node:
        if node.op_type == "Cast":
            assert not {attribute.i for attribute in node.attribute} & FLOATS, node.name
    onnx.save(convert_to_float16(file), tmp_path / "half.onnx")
    halves = {k: v.astype("float16") if v.dtype == "float32" else v for k, v in inputs.items()}
    outputs = session_of(tmp_path / "half.onnx").run(None, halves)
    assert {output.dtype for output in outputs} == {np.dtype("float16")}
    check_near(outputs, expected, inputs.get("mask") if model.targets_of == 0 else None, 2e-2)


@pytest.mark.parametrize("case_of", SAMPLES)
def test_onnxruntime_infers_all_shapes(case_of, tmp_path):
    """Its quantization begins with that, and ends in an error where it cannot."""
    pytest.importorskip("sympy", reason=NEEDS["sympy"])
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    export(case_of, tmp_path / "model.onnx")
    file = onnx.load(tmp_path / "model.onnx")
    inferred = SymbolicShapeInference.infer_shapes(file, 2**31 - 1, False, False, 0)
    known = {value.name for value in (*inferred.graph.value_info, *inferred.graph.output)}
    assert {name for node in file.graph.node for name in node.output} <= known
