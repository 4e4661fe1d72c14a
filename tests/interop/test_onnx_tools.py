"""What tools make of the files: half precision, shapes that are inferred, and integers."""

import numpy as np
import pytest

import npformer as nf
from tests.interop.test_onnx import CASES, WHOLE, inputs_of, made, session_of
from tests.needs import NEEDS

onnx = pytest.importorskip("onnx", reason=NEEDS["onnx"])
SAMPLES = [pytest.param(case.values, id=case.id) for case in CASES if not case.id.endswith(", pre")]
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE}


def exported(case_of, path):
    """Return a model, and one input, whose file has a mask if a mixer takes one."""
    settings, kind, options = case_of
    model = made(settings, kind, options)
    nf.interop.to_onnx(model, path)
    masked = settings.get("padding") is not None or settings.get("mixer") not in WHOLE
    length = 100 if options.get("pooling") == "flatten" else 20
    return model, inputs_of(model, kind, 3, length, masked=masked)


def in_half_precision(file):
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


def check_near(found, expected, mask, within):
    for each, right in zip(found, expected, strict=True):
        if mask is not None and mask.shape == right.shape[:2]:
            each, right = each[mask], right[mask]
        assert np.isfinite(each).all()
        assert np.abs(each - right).max() <= within * np.abs(right).max()


@pytest.mark.parametrize("case_of", SAMPLES)
def test_a_file_follows_the_type_of_its_inputs(case_of, tmp_path):
    model, given = exported(case_of, tmp_path / "model.onnx")
    expected = session_of(tmp_path / "model.onnx").run(None, given)
    file = onnx.load(tmp_path / "model.onnx")
    fixed = [node.name for node in file.graph.node for each in node.attribute
             if node.op_type == "Cast" and each.i in FLOATS]  # fmt: skip
    assert not fixed
    onnx.save(in_half_precision(file), tmp_path / "half.onnx")
    halves = {k: v.astype("float16") if v.dtype == "float32" else v for k, v in given.items()}
    found = session_of(tmp_path / "half.onnx").run(None, halves)
    assert {each.dtype for each in found} == {np.dtype("float16")}
    check_near(found, expected, given.get("mask") if model.targets_of == 0 else None, 2e-2)


@pytest.mark.parametrize("case_of", SAMPLES)
def test_onnxruntime_infers_all_shapes(case_of, tmp_path):
    """Its quantization begins with that, and ends in an error where it cannot."""
    pytest.importorskip("sympy", reason=NEEDS["sympy"])
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    exported(case_of, tmp_path / "model.onnx")
    file = onnx.load(tmp_path / "model.onnx")
    inferred = SymbolicShapeInference.infer_shapes(file, 2**31 - 1, False, False, 0)
    known = {value.name for value in (*inferred.graph.value_info, *inferred.graph.output)}
    assert {name for node in file.graph.node for name in node.output} <= known
