"""Nothing that a person has is overwritten: by no command, and by no function that takes a path.

All of them are listed here, from the parsers and from the signatures: a new one has to say
which kind it is, and is then tried like the others.
"""

import ast
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import save_file

import npformer as nf
from npformer.cli.options import output_path
from npformer.cli.program import run
from npformer.cli.run_folder import RunFolder
from npformer.data.stored import sharded
from npformer.learn.exercises.folder import next_hint, start
from npformer.learn.exercises.table import NAMES, stem
from npformer.learn.play import export, played
from npformer.training.storage.files import NameTakenError, write_whole
from npformer.training.storage.outputs import check_place, write_output
from tests.cli.conftest import parsers_of_commands
from tests.needs import NEEDS
from tests.test_defaults import MODULES, public

PRECIOUS = b"a letter to my mother\n"

# Commands -----------------------------------------------------------------------------------------
READ = {
    "evaluate model",
    "evaluate input",
    "predict model",
    "predict --mask",
    "generate model",
    "look model",
    "look input",
    "look --compare",
    "play what",
    "train task",
    "train --from",
    "pretrain task",
    "exercises check folder",
    "exercises hint folder",
}
"""Options and arguments that name what is read. A hint is counted beside the exercises."""

FOLDERS = {"train --out", "pretrain --out", "exercises start folder", "gradcheck --report"}
"""Folders that are written: what is there stays, which other tests show, and those below."""

WORDS = {"predict": ["nothing"], "look": ["nothing"]}
"""The arguments that a command must have."""


def paths() -> dict[str, bool]:
    """Return each option or argument that names a file or a folder, and whether it is written."""
    named = {}
    for command, parser in parsers_of_commands().items():
        for action in parser._actions:
            is_output = action.type is output_path
            names_a_file = {"FILE", "DIR", "MODEL"} & {*str(action.metavar).split("|")}
            if names_a_file or is_output or " write " in f" {action.help} ":
                flag = action.option_strings[-1] if action.option_strings else action.dest
                named[f"{command} {flag}"] = is_output
    return named


OUTPUTS = [name for name, is_output in paths().items() if is_output]


def test_each_path_of_a_command_is_of_one_kind():
    assert {*paths()} - {*OUTPUTS} - {
        "generate --tokens",
        "exercises start --notebooks",
    } == READ | FOLDERS
    assert len(OUTPUTS) == 5


def as_file(path: Path) -> None:
    path.write_bytes(PRECIOUS)


def as_empty_file(path: Path) -> None:
    path.touch()


def as_hard_link(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(PRECIOUS)
    path.hardlink_to(other)


def as_link(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(PRECIOUS)
    path.symlink_to(other)


def as_link_to_nowhere(path: Path) -> None:
    path.symlink_to(path.with_name("other"))


STATES = (as_file, as_empty_file, as_hard_link, as_link, as_link_to_nowhere)


def contents(folder: Path) -> dict[str, bytes | str]:
    """Return what is in a folder: the bytes of each file, and where each link leads."""
    return {
        path.name: str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.iterdir()
    }


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("output", OUTPUTS)
def test_no_command_writes_over_a_file(tmp_path, capsys, output, state):
    command, option = output.split()
    path = tmp_path / "precious.csv"
    state(path)
    before = contents(tmp_path)
    assert run([command, *WORDS.get(command, []), option, str(path)]) == 2
    message = (
        f"{option} {path} exists already; expected a new name. To replace it, pass --overwrite\n"
    )
    assert capsys.readouterr().err == f"npformer {command}: {message}"
    assert contents(tmp_path) == before


@pytest.mark.parametrize("link", [None, os.link, os.symlink])
@pytest.mark.parametrize("words", ["predict {} --out", "predict m {} --out", "look {} --out"])
def test_no_command_writes_over_what_it_reads(tmp_path, capsys, words, link):
    path, out = tmp_path / "table.csv", tmp_path / "table.csv"
    path.write_bytes(PRECIOUS)
    if link is not None:
        out = tmp_path / "link.csv"
        link(path, out)
    assert run([*words.format(path).split(), str(out), "--overwrite"]) == 2
    assert f"--out {out} is the file that is read; expected" in capsys.readouterr().err
    assert path.read_bytes() == out.read_bytes() == PRECIOUS


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Return a file where a report may be written; nothing is measured."""
    monkeypatch.setattr("npformer.cli.doctor.diagnose", lambda ranks: iter(()))
    monkeypatch.setattr("npformer.cli.speed.measure", lambda *arguments: pytest.fail("too early"))
    path = tmp_path / "report.txt"
    path.write_bytes(PRECIOUS)
    return path


def test_bench_refuses_a_file_before_it_measures(report):
    assert run(["bench", "--json", str(report)]) == 2
    assert report.read_bytes() == PRECIOUS


def test_doctor_replaces_a_file_when_told(report):
    assert run(["doctor", "--report", str(report), "--overwrite"]) == 0
    assert report.read_bytes() == b""


@pytest.mark.parametrize(
    "name",
    [
        "metrics.json",
        "history.json",
        "curves.png",
        "report.html",
        "model.safetensors",
        "drawn.safetensors",
    ],
)
def test_a_run_replaces_nothing_that_has_the_name_of_a_result(tmp_path, name):
    (tmp_path / name).write_bytes(PRECIOUS)
    folder = RunFolder(tmp_path, splits=())
    with pytest.raises(ValueError, match="expected a folder for this run alone"), folder.begun({}):
        pass
    assert contents(tmp_path) == {name: PRECIOUS}


@pytest.mark.parametrize("words", ["train {}", "pretrain {}", "train digits --from {}"])
def test_a_run_does_not_replace_what_it_begins_with(tmp_path, capsys, words):
    path = tmp_path / "metrics.json"
    path.write_bytes(PRECIOUS)
    read = tmp_path if "--from" in words else path
    assert run([*words.format(read).split(), "--out", str(tmp_path), "--overwrite"]) == 2
    assert f"--out has {path} is the file that is read; expected" in capsys.readouterr().err
    assert contents(tmp_path) == {"metrics.json": PRECIOUS}


def test_a_lock_of_another_program_is_not_emptied(tmp_path):
    (tmp_path / ".lock").write_bytes(PRECIOUS)
    with RunFolder(tmp_path, splits=()).begun({}):
        pass
    assert (tmp_path / ".lock").read_bytes() == PRECIOUS


def test_all_that_a_reader_wrote_is_kept_when_an_exercise_begins_anew(tmp_path):
    name = NAMES[0]
    start(tmp_path, [name])
    file = tmp_path / f"{stem(name)}.py"
    for mine in (b"first = 1\n", b"second = 2\n", b"third = 3\n"):
        file.write_bytes(mine)
        start(tmp_path, [name], force=True)
    old_contents = {path.read_bytes() for path in tmp_path.glob(f"{file.name}.old*")}
    assert old_contents == {b"first = 1\n", b"second = 2\n", b"third = 3\n"}
    (tmp_path / "hints.json").write_text('{"egg": 2}')  # not of the exercises
    with pytest.raises(ValueError, match="holds no numbers of hints"):
        next_hint(tmp_path, name)
    assert (tmp_path / "hints.json").read_text() == '{"egg": 2}'


# Functions ----------------------------------------------------------------------------------------
READING = {
    "npformer.from_pretrained",
    "npformer.load",
    "npformer.load_checkpoint",
    "npformer.read_notes",
    "npformer.TextClassifier",
    "data.ShardedArray",
    "data.sharded",
    "interop.read_word_vectors",
    "play.played.page_of_folder",
    "play.played.page_of_run",
}

CHECKPOINTS = {
    "npformer.fit",
    "npformer.save_checkpoint",
    "npformer.SeriesClassifier.fit",
    "npformer.TextClassifier.fit",
    "npformer.TextFiller.fit",
    "npformer.TextTranslator.fit",
    "npformer.TextWriter.fit",
}
"""What continues a training or refuses its folder, and replaces checkpoints alone."""

CONFIG = nf.EncoderConfig(d_model=4, n_layers=1, n_heads=1, d_ff=4, max_len=4)


def model(**options: Any) -> nf.SequenceClassifier:
    return nf.SequenceClassifier(CONFIG, 2, vocab_size=5, seed=0, **options)


X, Y = np.array([[1, 2], [3, 4], [0, 1]]), np.array([0, 1, 0])


class Writing(NamedTuple):
    """A call that writes a file of this name."""

    name: str
    call: Callable[..., Any]
    extra: str = ""


def saved_folder(folder: Path, **options: Any) -> None:
    bert = nf.EncoderConfig(
        d_model=4,
        n_layers=1,
        n_heads=1,
        d_ff=4,
        max_len=4,
        norm="post",
        positions="learned",
        scale_embeddings=False,
        embedding_norm=True,
        n_token_types=2,
    )
    encoder = nf.TextEncoder(bert, vocab_size=5, seed=0)
    nf.interop.save_pretrained(encoder, folder.parent, **options)


WRITING = {
    "npformer.GradcheckReport.save": Writing(
        "m.html", lambda p, **o: nf.gradcheck(nf.functional.relu, np.ones(3)).save(p, **o)
    ),
    "npformer.save": Writing("m.safetensors", lambda p, **o: nf.save(model(), p, **o)),
    "npformer.report": Writing("r.html", lambda p, **o: nf.report(model(), X, Y, path=p, **o)),
    "npformer.predict_to_file": Writing(
        "p.npy", lambda p, **o: nf.predict_to_file(p, model(), X, **o)
    ),
    "npformer.History.plot": Writing(
        "h.svg", lambda p, **o: nf.History([1.0]).plot(p, **o), "matplotlib"
    ),
    "interop.to_onnx": Writing(
        "m.onnx", lambda p, **o: nf.interop.to_onnx(model(), p, **o), "onnx"
    ),
    "interop.save_pretrained": Writing("config.json", saved_folder),
    "play.export.export_page": Writing(
        "e.html", lambda p, **o: export.export_page(p, model(), run={"settings": {}}, **o)
    ),
    "play.export.write_page": Writing("w.html", lambda p, **o: export.write_page(p, str, **o)),
}
"""Calls that are tried."""

THROUGH_OTHERS = {
    "npformer.SeriesClassifier.report": "report",
    "npformer.TextClassifier.report": "report",
    "npformer.TextFiller.report": "report",
    "npformer.TextTranslator.report": "report",
    "npformer.TextWriter.report": "report",
    "interop.PretrainedEncoder.save": "save_pretrained",
    "interop.PretrainedTranslator.save": "save_pretrained",
    "interop.PretrainedWriter.save": "save_pretrained",
    "play.played.export_folder": "write_page",
}
"""Methods that do the same, and hand `overwrite` on."""

ARGUMENTS = {"path", "file", "folder", "checkpoint", "place"}
"""What arguments are called that name a file or a folder."""


def functions() -> dict[str, Any]:
    """Return the public functions and methods that take a path, by name."""
    modules = {**MODULES, "play.export": export, "play.played": played}
    functions_by_name: dict[str, tuple[str, Any]] = {}
    for place, module in modules.items():
        for name, value in public(module):
            callables = {name: value}
            if inspect.isclass(value):
                methods = inspect.getmembers(value, inspect.isfunction)  # also inherited ones
                callables |= {f"{name}.{key}": method for key, method in methods if key[0] != "_"}
            for key, function in callables.items():
                if takes_a_path(function):
                    functions_by_name.setdefault(
                        key, (place, function)
                    )  # under the first of its places
    return {f"{place}.{key}": function for key, (place, function) in functions_by_name.items()}


def takes_a_path(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # an exception without an __init__ of its own
        return False
    annotated = any("Path" in str(parameter.annotation) for parameter in parameters.values())
    return annotated or bool(ARGUMENTS & parameters.keys())


def test_each_function_that_takes_a_path_is_of_one_kind():
    by_name = functions()
    assert set(by_name) == READING | CHECKPOINTS | set(WRITING) | set(THROUGH_OTHERS)
    for name in set(WRITING) | set(THROUGH_OTHERS):
        switch = inspect.signature(by_name[name]).parameters["overwrite"]
        assert (switch.default, switch.kind) == (False, switch.KEYWORD_ONLY), name


def test_methods_hand_the_switch_on():
    by_name = functions()
    for name in THROUGH_OTHERS:
        assert "overwrite=overwrite" in inspect.getsource(by_name[name]), name


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("function", WRITING)
def test_no_function_writes_over_a_file(tmp_path, function, state):
    name, call, extra = WRITING[function]
    if extra:
        pytest.importorskip(extra, reason=NEEDS[extra])
    path = tmp_path / name
    state(path)
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"already; expected a new .*, pass overwrite=True"):
        call(path)
    with pytest.raises(TypeError, match="overwrite is 1; expected True or False"):
        call(path, overwrite=1)
    assert contents(tmp_path) == before
    call(path, overwrite=True)
    assert path.read_bytes() != PRECIOUS
    assert path.is_symlink() == (state in (as_link, as_link_to_nowhere))  # a link stays one,
    if state is as_hard_link:  # and another name of the file keeps what it has
        assert path.with_name("other").read_bytes() == PRECIOUS


@pytest.mark.parametrize("function", WRITING)
def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch, function):
    name, call, extra = WRITING[function]
    if extra:
        pytest.importorskip(extra, reason=NEEDS[extra])
    (tmp_path / name).write_bytes(PRECIOUS)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        call(tmp_path / name, overwrite=True)
    assert contents(tmp_path) == {name: PRECIOUS}


def test_a_model_replaces_a_model(tmp_path):
    path = tmp_path / "m.safetensors"
    nf.save(model(), path)
    nf.save(model(pooling="max"), path)
    np.testing.assert_array_equal(nf.load(path)(X), model(pooling="max")(X))


def test_a_model_replaces_a_damaged_model(tmp_path):
    path = tmp_path / "m.safetensors"
    nf.save(model(pooling="max"), path)
    os.truncate(path, path.stat().st_size - 4)
    nf.save(model(), path)
    np.testing.assert_array_equal(nf.load(path)(X), model()(X))


def test_a_model_replaces_no_file_of_another_program(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"w": X}, path, metadata={"format": "pt"})
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        nf.save(model(), path)
    assert path.read_bytes() == before


def test_a_checkpoint_replaces_a_checkpoint(tmp_path):
    trained = model()
    optimizer = nf.Adam(trained.parameters())
    nf.save_checkpoint(tmp_path, trained, optimizer)
    nf.save_checkpoint(tmp_path, trained, optimizer)
    nf.load_checkpoint(tmp_path)


def test_a_checkpoint_replaces_no_other_file(tmp_path):
    trained = model()
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(PRECIOUS)
    with pytest.raises(FileExistsError, match="is no checkpoint of a training, and would be repl"):
        nf.save_checkpoint(tmp_path, trained, nf.Adam(trained.parameters()))
    for resume in (False, True):
        with pytest.raises((ValueError, nf.CheckpointError)):
            nf.fit(trained, (X, Y), epochs=1, checkpoint=tmp_path, resume=resume, progress=False)
    assert path.read_bytes() == PRECIOUS


def test_predictions_do_not_replace_their_own_samples(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    for x in (np.load(path, mmap_mode="r"), np.load(path, mmap_mode="r")[:2], sharded([path])):
        with pytest.raises(ValueError, match=r"path .*x.npy is the file that is read; expected"):
            nf.predict_to_file(path, model(), x, overwrite=True)
    np.testing.assert_array_equal(np.load(path), X)


def test_a_name_that_is_taken_meanwhile_costs_no_work(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_bytes(PRECIOUS)  # after it was checked that there is no such file
    with pytest.raises(NameTakenError, match="another program wrote") as caught:
        write_whole(path, b"an hour of work\n", overwrite=False)
    assert path.read_bytes() == PRECIOUS
    assert caught.value.written.read_bytes() == b"an hour of work\n"
    assert str(caught.value.written) in str(caught.value)
    assert {*tmp_path.iterdir()} == {path, caught.value.written}


def test_a_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    check_place(path, "answers.csv")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_output(path, b"text,label\n", overwrite=False)
        assert os.read(reader, 100) == b"text,label\n"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_a_pipe_is_not_replaced_by_predictions(tmp_path):
    path = tmp_path / "p.npy"
    os.mkfifo(path)
    with pytest.raises(FileExistsError, match="is not a regular file"):
        nf.predict_to_file(path, model(), X, overwrite=True)


def test_standard_output_is_written_to_after_what_was_printed(capfd):
    check_place(Path("/dev/stdout"), "answers.csv")
    print("first")
    write_output(Path("/dev/stdout"), b"second\n", overwrite=False)
    print("third")
    assert capfd.readouterr().out == "first\nsecond\nthird\n"


# Files of the package -----------------------------------------------------------------------------
WRITERS = {
    "training/storage/files.py",  # `write_whole`, which is below all others
    "training/storage/outputs.py",  # pipes
    "cli/ranks.py",  # the null device
    "models/trainable/prediction_file.py",  # what `replacement` lends
    "engine/trusted_kernels.py",  # in a cache of npformer's own
    "learn/play/folder.py",  # beside what a page has written
    "learn/museum/files.py",  # a bug that is shown
}
"""Files that open others to write by themselves."""

OF_THEIR_OWN = {
    "training/storage/outputs.py",
    "training/storage/model_file.py",
    "interop/folder.py",
    "cli/run_folder.py",
    "learn/exercises/folder.py",
    "learn/exercises/process.py",
    "learn/play/folder.py",
}
"""Files that call `write_whole`, after checks of their own."""


def writes(call: ast.Call) -> bool:
    """Return whether a call opens a file to write, or writes one."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    values = [*call.args, *(argument.value for argument in call.keywords)]
    constants = [argument.value for argument in values if isinstance(argument, ast.Constant)]
    opened = {"open", "fdopen", "open_memmap", "memmap"}
    mode = any(isinstance(v, str) and set("wax+") & set(v) and len(v) < 4 for v in constants)
    return name in {"write_text", "write_bytes", "savez", "save_file", "copyfile"} or (
        name in opened and mode
    )


def test_no_other_file_writes_by_itself():
    package = Path(nf.__file__).parent
    writers, callers = set(), set()
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        calls = [e for e in ast.walk(ast.parse(path.read_bytes())) if isinstance(e, ast.Call)]
        if any(map(writes, calls)):
            writers.add(name)
        if any(getattr(call.func, "id", "") == "write_whole" for call in calls):
            callers.add(name)
    assert writers == WRITERS
    assert callers == OF_THEIR_OWN
