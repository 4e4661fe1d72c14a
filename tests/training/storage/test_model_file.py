"""What a model file says about itself: its checksum, and sizes that its tensors do not have."""

import hashlib
import json
import os
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import npformer as nf
from npformer.training.storage import model_file, stated_sizes
from npformer.training.storage.model_file import read_model_file, write_model_file
from tests.faults.mutations import join_file, sealed, split_file


@pytest.fixture
def saved(path, small_model):
    nf.save(small_model(), path, notes={"task": "digits"})
    return path


def flipped(data, place, bit=0):
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


def change(path, where="config", **changes):
    entries, description, tensors = split_file(path.read_bytes())
    (description[where] if where else description).update(changes)
    path.write_bytes(join_file(entries, description, tensors))


def refused(path, message):
    with pytest.raises(nf.CheckpointError, match=message) as error:
        nf.load(path)
    assert str(error.value).startswith(str(path))


def test_whatever_bit_is_flipped_the_file_is_refused(path, rng):
    config = nf.EncoderConfig(d_model=2, n_layers=1, n_heads=1, d_ff=2, max_len=2, mixer="identity")
    nf.save(nf.Encoder(config), path)
    data = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for place, byte in enumerate(data):
            for value in (byte ^ (1 << int(rng.integers(8))), byte):  # damaged, and whole again
                file.seek(place)
                file.write(bytes([value]))
                if value != byte:
                    with pytest.raises(nf.CheckpointError, match=r"damaged.* Copy or save"):
                        nf.load(path)
    nf.load(path)
    assert path.read_bytes() == data


def test_anybody_can_check_the_checksum(saved):
    data = saved.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    digits = json.loads(data[8:begin])["__metadata__"]["npformer_sha256"]
    assert digits == hashlib.sha256(data.replace(digits.encode(), b"0" * 64)).hexdigest()


def test_the_same_model_makes_the_same_file(saved, small_model):
    before = saved.read_bytes()
    for _ in range(4):
        nf.save(small_model(), saved, notes={"task": "digits"})
        assert saved.read_bytes() == before


def test_notes_that_look_like_a_checksum_change_nothing(path, small_model):
    notes = {"npformer_sha256": "0" * 64, "text": '"npformer_sha256":"' + "0" * 64 + '"'}
    nf.save(small_model(), path, notes=notes)
    assert nf.read_notes(path) == notes
    nf.load(path)


def test_damaged_weights_can_be_loaded_by_force(saved, small_model):
    data = saved.read_bytes()
    saved.write_bytes(flipped(data, len(data) - 1, 3))
    refused(saved, r"it does not match .*nf.load\(path, force=True\), or --force on the command")
    with pytest.warns(nf.CheckpointWarning, match="it does not match .* loaded anyway") as w:
        loaded = nf.load(saved, force=True).named_parameters()
    assert w[0].filename == __file__
    named = small_model().named_parameters()
    assert sum((loaded[name].value != named[name].value).sum() for name in named) == 1


def test_a_damaged_description_can_be_loaded_by_force(saved):
    saved.write_bytes(saved.read_bytes().replace(b"digits", b"dogits"))
    refused(saved, r"it does not match its checksum.*force=True")
    with pytest.raises(nf.CheckpointError, match="force=True"):
        nf.read_notes(saved)
    assert nf.read_notes(saved, force=True) == {"task": "dogits"}
    with pytest.warns(nf.CheckpointWarning, match="it does not match"):
        nf.load(saved, force=True)


def test_force_does_not_load_what_has_no_structure(saved):
    saved.write_bytes(saved.read_bytes()[:-1])
    with pytest.raises(nf.CheckpointError, match="not a whole safetensors file"):
        nf.load(saved, force=True)


def test_a_file_without_a_checksum_is_refused(saved):
    entries, description, tensors = split_file(saved.read_bytes())
    del entries["__metadata__"]["npformer_sha256"]
    saved.write_bytes(join_file(entries, description, tensors))
    refused(saved, "is damaged: its checksum is missing")
    save_file(load_file(saved), saved, metadata={"npformer": json.dumps(description)})
    refused(saved, "is damaged: its checksum is missing")
    with pytest.raises(nf.CheckpointError, match="its checksum is missing"):
        nf.read_notes(saved)
    with pytest.warns(nf.CheckpointWarning, match="its checksum is missing; it was loaded anyway"):
        nf.load(saved, force=True)


@pytest.mark.parametrize("where", ["description", "metadata"])
def test_a_key_from_a_newer_version_is_refused_by_name(saved, where):
    entries, description, tensors = split_file(saved.read_bytes())
    (description if where == "description" else entries["__metadata__"])["quantized"] = "yes"
    saved.write_bytes(join_file(entries, description, tensors))
    refused(saved, "has quantized, which this version of npformer does not know.* Update npformer")


@pytest.mark.parametrize(
    ("notes", "message"),
    [({1: "a", "1": "b"}, "'1' comes twice"), ({"text": 500 * '"'}, "Shorten the notes")],
)
def test_what_could_not_be_read_back_is_not_written(path, monkeypatch, notes, message):
    monkeypatch.setattr(model_file, "LONGEST_TEXT", 1000)
    with pytest.raises(ValueError, match=message):
        write_model_file(path, {"notes": notes}, {})
    assert not path.exists()


def test_a_file_holds_tensors_of_any_dtype_or_shape(path, rng):
    tensors = {
        "empty": np.zeros((0, 3)),
        "number": np.array(2.5, "float32"),
        "flags": np.array([True, False]),
    }
    for bits in (8, 16, 32, 64):
        tensors[f"int{bits}"] = np.arange(6, dtype=f"int{bits}").reshape(2, 3)
        tensors[f"uint{bits}"] = np.arange(6, dtype=f"uint{bits}").reshape(2, 3)
    for bits in (16, 32, 64):
        tensors[f"float{bits}"] = rng.normal(size=5).astype(f"float{bits}")
    write_model_file(path, {"class": "Anything"}, tensors)
    _, stored = read_model_file(path)
    assert set(stored) == set(tensors)
    for name, array in tensors.items():
        assert stored[name].dtype == array.dtype
        np.testing.assert_array_equal(stored[name], array)
        assert stored[name].flags.writeable


def test_a_file_holds_any_description(path):
    state = np.random.default_rng(0).bit_generator.state  # has integers of 128 bits
    description = {"class": "Anything", "state": state, "losses": [np.inf]}
    write_model_file(path, description, {"number": np.array(2.5)})
    assert read_model_file(path)[0] == {"format": 1} | description


def test_a_file_of_an_unknown_class_is_refused(path):
    write_model_file(path, {"class": "Anything"}, {"number": np.array(2.5)})
    refused(path, "it holds a Anything; expected one of Encoder, EncoderDecoder")


needs_mkfifo = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="this system has no named pipes"
)


@needs_mkfifo
def test_a_pipe_or_a_device_is_not_loaded(path):
    os.mkfifo(path)
    for place in (path, Path(os.devnull), Path("/dev/zero")):
        with pytest.raises(nf.CheckpointError, match=f"{place} is not a regular file"):
            nf.load(place)


@needs_mkfifo
def test_a_pipe_is_not_replaced_by_a_model(path, small_model):
    os.mkfifo(path)
    with pytest.raises(FileExistsError, match="is not a regular file"):
        nf.save(small_model(), path)


def test_a_folder_is_no_place_for_a_file(tmp_path, small_model):
    with pytest.raises(IsADirectoryError, match=rf"{tmp_path} is a folder; .*model.safetensors"):
        nf.save(small_model(), tmp_path)


def test_a_file_without_end_is_not_read(saved):
    os.truncate(saved, 2**40)  # takes no room: holes are not stored
    is_refused_soon(saved, f"{2**40:,} bytes. is not a whole safetensors file")


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("config", "d_model", 2**15),  # nobody should look for divisors
        ("config", "d_model", 10**9),
        ("config", "n_layers", 10**6),
        ("config", "n_layers", 10**400),
        ("config", "d_ff", 10**6),
        ("config", "d_ff", 10**9),
        ("config", "max_len", 10**9),
        ("config", "n_token_types", 60_000),
        ("arguments", "vocab_size", 10**5),
        ("arguments", "vocab_size", 10**12),
        ("arguments", "n_classes", 10**9),
        ("config", "dropout", 10**400),
        ("config", "norm_eps", float("nan")),
    ],
)
def test_a_size_that_no_tensor_has_costs_neither_memory_nor_time(saved, where, name, value):
    change(saved, where, **{name: value})
    is_refused_soon(saved)


def is_refused_soon(path, message=r"\S"):
    tracemalloc.start()
    began = time.perf_counter()
    try:
        refused(path, message)
        assert tracemalloc.get_traced_memory()[1] < 32e6
        assert time.perf_counter() - began < 5.0
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("mixer", "changes"),
    [
        ("random_synthesizer", {"max_len": 10**5}),
        ("random_synthesizer", {"n_heads": 8, "max_len": 4000}),
        ("factorized_random_synthesizer", {"rank": 60_000, "max_len": 10**6}),
        ("dense_synthesizer", {"max_len": 10**8}),
        ("linear", {"max_len": 10**5}),
    ],
)
def test_tables_of_mixers_are_bounded_by_the_file(path, small_model, mixer, changes):
    nf.save(small_model(mixer=mixer, positions="none"), path)
    change(path, **changes)
    is_refused_soon(path, "asks for an array of shape .*, more than its tensors hold")


def test_layers_that_share_a_block_are_counted_too(path, small_model, monkeypatch):
    monkeypatch.setattr(stated_sizes, "MOST_LAYERS", 40)
    nf.save(small_model(share_layers=True, n_layers=40), path)
    assert nf.load(path).config.n_layers == 40
    change(path, n_layers=41)
    is_refused_soon(path, "n_layers is 41; expected at most 40 for 20 tensors with ")
    with pytest.raises(ValueError, match="n_layers is 50; expected at most 40"):
        nf.save(small_model(share_layers=True, n_layers=50), path)
    nf.save(small_model(n_layers=50), path)


def test_what_a_plugin_makes_of_a_lie_is_said_in_words(path, small_model, monkeypatch):
    class Table(nf.layers.Tanh):
        def __init__(self, rows=1):
            self.table = nf.Parameter(np.zeros((rows, 10**8)) if rows > 1 else np.zeros(1))

    monkeypatch.setitem(nf.layers.ACTIVATIONS, "table", Table)
    nf.save(small_model(activation="table"), path)
    change(path, activation=f"table(rows={10**9})")
    refused(path, "its description cannot be used: .*allocate")
    change(path, activation="table(rows=[])")
    refused(path, "its description cannot be used: '>' not supported")


def test_a_message_shows_little_of_a_long_value(saved):
    change(saved, mixer="\x1b[2J" + "a" * 10**5)
    with pytest.raises(nf.CheckpointError, match="mixer is ") as error:
        nf.load(saved)
    assert len(str(error.value)) < 2000


def test_a_message_shows_no_control_characters(saved):
    change(saved, mixer="\x1b[2J" + "a" * 10**5)
    change(saved, "", **{"\x1b[2J\n": 1})
    with pytest.raises(nf.CheckpointError, match=r"has .\[2J., which") as error:
        nf.load(saved)
    assert str(error.value).isprintable()


def test_dtypes_of_other_programs_do_not_hide_that_it_is_theirs(path):
    path.write_bytes(sealed({"a": np.zeros(2, "float16")}, {}))
    entries, _, tensors = split_file(path.read_bytes())
    entries["a"]["dtype"] = "BF16"
    path.write_bytes(join_file({"a": entries["a"]}, {}, tensors))
    refused(path, "is a safetensors file of another program")


def test_weights_that_are_not_finite_are_reported_at_loading(path, small_model):
    model = small_model()
    named = model.named_parameters()
    named["classify.bias"].value[:2] = np.nan, np.inf
    named["embed.tokens.weight"].value[0, 0] = -np.inf
    nf.save(model, path)
    words = r"NaN or infinity is in embed.tokens.weight \(1 of 56\), classify.bias \(2 of 3\), so"
    with pytest.warns(nf.CheckpointWarning, match=words) as w:
        loaded = nf.load(path)
    assert w[0].filename == __file__
    np.testing.assert_array_equal(loaded.parameters().flat, model.parameters().flat)
