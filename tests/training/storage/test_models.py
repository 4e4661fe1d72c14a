import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import npformer as nf
from npformer.training.storage.model_file import CheckpointError
from tests.faults.mutations import sealed


@pytest.fixture
def saved(path, small_model):
    nf.save(small_model(), path)
    return path


@pytest.fixture
def edit(saved):
    """Write the saved file again with other tensors or another header, and a fitting checksum."""
    with safe_open(saved, framework="numpy") as file:
        text = file.metadata()["npformer"]
    tensors = load_file(saved)

    def write(header=lambda header: json.dumps(header), **changes):
        stored = {k: v for k, v in (tensors | changes).items() if v is not None}
        saved.write_bytes(sealed(stored, header(json.loads(text))))

    return write


def assert_same_model(loaded, model):
    assert type(loaded) is type(model)
    assert loaded.config == model.config
    assert loaded.dtype == model.dtype
    mine = model.named_parameters()
    theirs = loaded.named_parameters()
    assert list(mine) == list(theirs)
    for name, parameter in mine.items():
        np.testing.assert_array_equal(theirs[name].value, parameter.value, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "changes",
    [
        *({"mixer": mixer} for mixer in nf.MIXERS),
        {"mixer": ["fourier", "attention"]},
        {"mixer": "mixture", "mixture": tuple(nf.mixers.SCORES), "rank": 3},
        {"mixer": "factorized_random_synthesizer", "rank": 1},
        {"memory": "blocks"},
        {"share_layers": True, "norm": "pre"},
        {"positions": "learned", "ffn": "conv1d", "activation": "relu"},
        {"positions": "none", "scale_embeddings": False, "dropout": 0.25},
        {"ffn": "none", "norm": "pre"},
        {"embedding_norm": True, "norm": "pre"},
        {"pooling": "none", "causal": True},
        {"pooling": "flatten", "norm_eps": 1e-12},
        {"pooling": "pooler", "n_token_types": 2, "embedding_norm": True},
        {"n_classes": 2, "output": "sigmoid"},
    ],
    ids=str,
)
def test_a_classifier_comes_back_whole(path, small_model, rng, dtype, changes):
    model = small_model(**changes, dtype=dtype, seed=5)
    ids = rng.integers(0, 7, (3, 6))
    nf.save(model, path)
    loaded = nf.load(path)
    assert_same_model(loaded, model)
    np.testing.assert_array_equal(loaded(ids), model(ids))


def test_the_encoder_of_a_trained_classifier_can_be_saved_alone(path, small_model, token_batch):
    model = small_model()
    nf.fit(model, token_batch, epochs=2, progress=False)
    for saved_model in (model, model.encoder):
        nf.save(saved_model, path)
        assert_same_model(nf.load(path), saved_model)


def test_a_loaded_model_can_be_trained(saved, token_batch):
    loaded, again = nf.load(saved), nf.load(saved)
    assert loaded.parameters().flat is not None
    np.testing.assert_array_equal(loaded.parameters().flat, again.parameters().flat)
    history = nf.fit(loaded, token_batch, epochs=20, lr=1e-2, progress=False)
    assert history.train_loss[-1] < history.train_loss[0]


@pytest.mark.parametrize(
    ("changes", "tables"),
    [
        ({"mixer": "fixed_random_synthesizer"}, ["R"]),
        ({"mixer": "random"}, ["W_sequence", "W_features"]),
        ({"mixer": "mixture", "mixture": ("attention", "fixed_random_synthesizer")}, ["parts.1.R"]),
    ],
    ids=str,
)
def test_tables_that_are_not_trained_come_back_too(path, small_model, token_batch, changes, tables):
    model = small_model(**changes, padding="per_length")
    constant = {n: p for n, p in model.named_parameters().items() if n not in model.parameters()}
    names = [f"encoder.blocks.{i}.mixer.{table}" for i in range(2) for table in tables]
    assert [name for name in constant if "blocks" in name] == names
    drawn = {name: constant[name].value.copy() for name in names}
    nf.fit(model, token_batch, epochs=1, progress=False)
    for name in names:
        np.testing.assert_array_equal(constant[name].value, drawn[name])  # training leaves them
        constant[name].value[...] += 1.0  # no seed draws these

    nf.save(model, path)
    loaded = nf.load(path)

    assert set(names) <= set(load_file(path))
    assert_same_model(loaded, model)
    ids, _, mask = token_batch
    np.testing.assert_array_equal(loaded(ids, mask), model(ids, mask))


def test_a_configuration_of_numpys_numbers_is_saved(path, small_model, small_config):
    model = small_model(dropout=np.float32(0.25), norm_eps=np.float64(1e-6), d_ff=np.int64(12))
    nf.save(model, path)
    assert nf.load(path).config == small_config(dropout=0.25, norm_eps=1e-6)


def test_notes_come_back(saved, small_model):
    assert nf.read_notes(saved) == {}
    notes = {"task": "digits", "seed": 3, "accuracy": 0.5, "list": [1, None, "ä"]}
    nf.save(small_model(), saved, notes=notes)
    assert nf.read_notes(saved) == notes


def test_safetensors_reads_the_tensors_by_their_dotted_names(saved, small_model):
    tensors = load_file(saved)
    named = small_model().named_parameters()
    assert set(tensors) == set(named) >= {"encoder.blocks.0.mixer.query.weight"}
    np.testing.assert_array_equal(tensors[WORDS], named[WORDS].value)


def test_the_file_has_the_layout_of_safetensors(saved):
    data = saved.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    description = json.loads(header.pop("__metadata__")["npformer"])
    assert set(description) == {
        "format",
        "class",
        "config",
        "arguments",
        "registered",
        "frozen",
        "notes",
    }
    assert len(data) == 8 + size + max(entry["data_offsets"][1] for entry in header.values())


def test_nothing_is_imported_that_could_unpickle():
    package = Path(nf.__file__).parent
    files = [file for room in ("training", "cli") for file in package.glob(f"{room}/**/*.py")]
    assert package / "training" / "storage" / "model_file.py" in files
    unsafe = ("import pickle", "allow_pickle=True")
    assert [file for file in files if any(words in file.read_text() for words in unsafe)] == []


def test_notes_that_are_not_plain_leave_the_old_file_whole(saved, small_model):
    before = saved.read_bytes()
    with pytest.raises(TypeError, match="not JSON serializable"):
        nf.save(small_model(seed=1), saved, notes={"rng": np.random.default_rng(0)})
    assert saved.read_bytes() == before


WORDS, BIAS = "embed.tokens.weight", "classify.bias"


class Subclass(nf.SequenceClassifier):
    pass


@pytest.mark.parametrize(
    "layer",
    [
        nf.layers.Linear(2, 2, seed=0),
        Subclass(nf.EncoderConfig(d_model=4, d_ff=4, n_heads=1), 2, vocab_size=3),
        {"weight": np.zeros(3)},
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_what_could_not_be_loaded_is_not_saved(path, layer):
    with pytest.raises(TypeError, match=f"model is a {type(layer).__name__}; expected an Encoder"):
        nf.save(layer, path)
    assert not path.exists()


def test_places_that_do_not_fit_are_named(tmp_path, path, saved, small_model):
    with pytest.raises(FileNotFoundError, match="is in a folder that does not exist; create it"):
        nf.save(small_model(), tmp_path / "nowhere" / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"{tmp_path} is a folder; expected a file"):
        nf.load(tmp_path)
    with pytest.raises(ValueError, match="unknown backend 'tpu'"):
        nf.load(saved, backend="tpu")
    path.unlink()
    for read in (nf.load, nf.read_notes):
        with pytest.raises(FileNotFoundError, match=f"no file {path}; expected one that npformer"):
            read(path)
    assert issubclass(CheckpointError, ValueError)


def damaged(read, path):
    with pytest.raises(CheckpointError, match=f"{path} .* Copy or save it again"):
        read(path)


@pytest.mark.parametrize("kept", [0.0, 1e-3, 7, 8, 9, 0.01, 0.3, 0.6, 0.9, 0.999, -1])
@pytest.mark.parametrize("read", [nf.load, nf.read_notes])
def test_a_file_that_was_cut_short_says_so(saved, read, kept):
    data = saved.read_bytes()
    saved.write_bytes(data[: kept if isinstance(kept, int) else int(kept * len(data))])
    damaged(read, saved)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_file_of_another_program_is_told_apart(path, metadata):
    save_file({"weight": np.zeros(3)}, path, metadata=metadata)
    with pytest.raises(CheckpointError, match=f"{path} is a safetensors file of another program"):
        nf.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classify.bias": None}, "classify.bias is missing"),
        ({"extra": np.zeros(2)}, "extra is unknown"),
        ({BIAS: np.zeros(4)}, r"s shape \(4,\) and dtype float64, expected \(3,\) and float64"),
        ({BIAS: np.zeros(3, "f4")}, r" shape \(3,\) and dtype float32, .*d \(3,\) and float64"),
        ({f"extra{i}": np.zeros(1) for i in range(5)}, "extra2 is unknown and 2 more"),
    ],
)
def test_tensors_that_do_not_fit_are_named(saved, edit, changes, message):
    edit(**changes)
    with pytest.raises(CheckpointError, match=f"{saved}: .*{message}.* Save the model again"):
        nf.load(saved)


def changed(**changes):
    """Return a function that writes a header with some entries replaced, or left out if None."""

    def write(header):
        return json.dumps({k: v for k, v in (header | changes).items() if v is not None})

    return write


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (changed(format=2), "has format 2; this npformer reads format 1. Update npformer"),
        (changed(format=0), "has format 0; this npformer reads format 1. Update npformer"),
        (changed(format=None), "its npformer configuration is damaged .*Copy or save it again"),
        (lambda header: "{", "its npformer configuration is damaged .*Copy or save it again"),
        (lambda header: "[1]", "its npformer configuration is damaged .*Copy or save it again"),
        (changed(config={"depth": 3}), "has depth, which this .* does not know; .*pdate npformer"),
        (changed(config=None), "its 'config' is None; expected a dict.*save the model again"),
        (changed(frozen=None), "its 'frozen' is None; expected a list.*save the model again"),
        (changed(frozen=["embed.nothing"]), "matches none of the param"),
        (changed(frozen=3), "its 'frozen' is 3; expected a list.*save the model again"),
        (changed(config=3), "its description cannot be used.*save the model again"),
        (changed(config={"d_model": "8"}), "d_model is '8'; expected a whole number"),
        (changed(config={"mixer": "new"}), "mixer is 'new'; expected one of.*save the model again"),
        (changed(arguments={"width": 3}), "takes no 'width'.*save the model again"),
        (changed(**{"class": "Decoder"}), "it holds a Decoder; expected one of Encoder, EncoderD"),
    ],
)
def test_a_header_that_cannot_be_used_is_refused_with_the_reason(saved, edit, header, message):
    edit(header)
    with pytest.raises(CheckpointError, match=f"{saved}.*{message}"):
        nf.load(saved)
