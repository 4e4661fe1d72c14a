"""Imports go down only, and what runs on any device asks no library by name."""

import ast
from pathlib import Path

import pytest

import npformer

ROOT = Path(npformer.__file__).parent

FLOORS = [
    {"backend"},
    {"checks"},
    {"blas", "complex_step", "functional", "initializers", "processes", "workspace"},
    {"threads"},
    {"module"},
    {"gradcheck", "kernels"},
    {"layers", "optim"},
    {"mixers"},
    {"encoder", "seeds", "workers"},
    {"input_embedding"},
    {"trace"},
    {"classifier", "text_encoder"},
    {"checkpoint", "data", "gradcheck_cases", "interop", "training"},
    {"recipes"},
    {"bench", "doctor"},
    {"cli"},
    {"__init__", "__main__"},
]
"""From the ground up. A file imports from lower floors; a folder's files may import each other."""

DEVICE_NEUTRAL = (
    "functional",
    "layers",
    "mixers",
    "encoder.py",
    "input_embedding.py",
    "text_encoder.py",
    "seeds.py",
)
"""What runs on any backend: `array_module` says which library an array belongs to."""

ELSEWHERE = {"torch", "jax", "tensorflow", "autograd", "keras", "thinc"}
"""Libraries that differentiate by themselves."""

FILES = sorted(ROOT.rglob("*.py"))
FLOOR_OF = {unit: height for height, floor in enumerate(FLOORS) for unit in floor}


def name_of(file):
    return file.relative_to(ROOT).as_posix()


def unit_of(file):
    """Return the first part of a file's path: ``layers/linear.py`` -> ``layers``."""
    return file.relative_to(ROOT).with_suffix("").parts[0]


def imports_of(file):
    """Return the dotted names that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(file)} has a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def units_imported_by(file):
    """Return which units of npformer a file imports."""
    return {name.split(".")[1] for name in imports_of(file) if name.startswith("npformer.")}


def test_every_file_has_a_floor():
    without = {unit_of(file) for file in FILES} - set(FLOOR_OF)
    assert without == set(), "say in FLOORS where it stands"


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_go_down_only(file):
    unit = unit_of(file)
    for imported in units_imported_by(file) - {unit}:
        assert imported in FLOOR_OF, f"{imported} is not a module of npformer"
        assert FLOOR_OF[imported] < FLOOR_OF[unit], f"{name_of(file)} imports {imported}"


@pytest.mark.parametrize("folder", ["functional", "layers", "mixers", "data", "training"])
def test_files_of_a_folder_import_each_other_without_a_circle(folder):
    above = {
        file.stem: {
            name.split(".")[2]
            for name in imports_of(file)
            if name.startswith(f"npformer.{folder}.") and file.stem != "__init__"
        }
        for file in (ROOT / folder).glob("*.py")
    }
    while above:
        free = {name for name, needs in above.items() if not needs & set(above)}
        assert free, f"a circle among {sorted(above)}"
        above = {name: needs for name, needs in above.items() if name not in free}


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_file_imports_a_library_that_differentiates(file):
    assert not {name.partition(".")[0] for name in imports_of(file)} & ELSEWHERE


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_cupy_is_imported_in_one_place(file):
    roots = {name.partition(".")[0] for name in imports_of(file)}
    assert not roots & {"cupy", "cupyx"} or file.name == "backend.py"


def device_neutral_files():
    return [file for file in FILES if name_of(file).startswith(DEVICE_NEUTRAL)]


@pytest.mark.parametrize("file", device_neutral_files(), ids=name_of)
def test_device_neutral_files_name_no_array_library(file):
    libraries = {"numpy", "scipy", "cupy"}
    assert not {name.partition(".")[0] for name in imports_of(file)} & libraries
    used = {n.id for n in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(n, ast.Name)}
    assert not used & ({"np", "cp"} | libraries)


def test_the_rules_above_look_at_files_at_all():
    assert len(device_neutral_files()) > 20
    assert units_imported_by(ROOT / "mixers" / "attention.py") >= {"functional", "layers", "module"}
    assert units_imported_by(ROOT / "trace.py") >= {"mixers", "module"}
