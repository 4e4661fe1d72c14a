import json
import re
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import npformer as nf
from npformer.interop import ARCHITECTURES
from npformer.mixers import MIXERS
from npformer.tasks.estimators import SeriesClassifier, TextClassifier
from npformer.tasks.wide import Wide, WideSequenceClassifier
from tests.interop.folders import TEXTS as SENTENCES
from tests.interop.folders import tiny
from tests.needs import NEEDS

pytest.importorskip("onnx", reason=NEEDS["onnx"])
ort = pytest.importorskip("onnxruntime", reason=NEEDS["onnxruntime"])

LENGTHS = {7: 3, 64: 2, 100: 1}  # {length: batch}
WHOLE = ("fourier", "hartley", "linear", "random")
SMALL = {"d_model": 24, "n_layers": 2, "n_heads": 3, "d_ff": 40, "max_len": 100}
CAUSAL = [name for name in MIXERS if name not in WHOLE]


def case(name, kind="tokens", config=None, **options):
    return pytest.param({**SMALL, **(config or {})}, kind, options, id=name)


CASES = [
    *(case(f"{name}, {norm}", config={"mixer": name, "norm": norm, "padding": "per_length"})
      for name in MIXERS for norm in ("post", "pre")),
    *(case(f"causal {name}", "language", {"mixer": name, "causal": True}) for name in CAUSAL),
    *(case(f"{name}, padding mixed", config={"mixer": name, "padding": "zero"}) for name in WHOLE),
    *(case(f"{name}, padding refused", config={"mixer": name}) for name in WHOLE),
    *(case(f"activation {name}", config={"activation": name}) for name in nf.layers.ACTIVATIONS),
    *(case(f"network {name}", config={"ffn": name}) for name in nf.layers.FFNS if name != "linear"),
    *(case(f"positions {name}", config={"positions": name})
      for name in ("learned", "sinusoidal_halves", "rotary", "none")),
    case("rotary positions of a writer", "language",
         {"causal": True, "positions": "rotary", "rope_theta": 20.0, "ffn": "gated"}),
    case("of today", config={"positions": "rotary", "n_layers": 3, "window": [None, 2, 3],
                             "embedding_norm": True, "bias": False, "norm": "pre"}),
    case("a writer of today", "language", {"causal": True, "positions": "rotary", "window": 3,
         "n_kv_heads": 1, "d_head": 4, "qk_norm": True, "bias": False, "norm_kind": "rms"}),
    *(case(f"pooling {name}", pooling=name)
      for name in (*nf.layers.POOLINGS, "pooler(activation='relu')") if name != "mean"),
    case("one logit", output="sigmoid", n_classes=2),
    case("numbers", output="mean_squared_error"),
    case("numbers of tokens", output="mean_squared_error", pooling="none"),
    *(case(f"series, {mixer}", "series", {"mixer": mixer, "padding": "per_length"}, pooling=pooling)
      for mixer, pooling in (("attention", "mean"), ("fourier", "max"), ("state_space", "none"))),
    case("series, flat", "series", pooling="flatten"),
    case("wide, pairs", "wide", n_pairs=9),
    case("wide, one pair", "wide", n_pairs=1),
    case("wide, words", "wide", n_pairs=0, pooling="max"),
    case("token types", config={"n_token_types": 3, "embedding_norm": True}),
    case("token types, one vocabulary", config={"n_token_types": 2, "positions": "learned"}),
    case("embeddings projected", config={"embedding_projection": True, "scale_embeddings": False}),
    case("one block twice", config={"share_layers": True}),
    case("attention in blocks", config={"memory": "blocks"}),
    case("hybrid", config={"n_layers": 3, "mixer": ["fourier", "linear", "attention"],
                           "padding": "per_length"}),
    case("every mixture", config={"mixer": "mixture", "mixture": tuple(nf.mixers.SCORES)}),
    case("dropout of all kinds", config={"dropout": 0.1, "token_dropout": 0.1, "ffn_dropout": 0.1,
                                         "attention_dropout": 0.1}),
    case("output not tied", "language", {"causal": True}, tied=False),
    case("hidden tokens", "masked", {"mixer": ("fourier", "attention"), "padding": "per_length"}),
    case("hidden tokens, not tied", "masked", {}, tied=False, head_activation="silu"),
    case("norm_eps", config={"norm_eps": 1e-12, "norm": "pre"}),
    *(case(f"RMS norm, {norm}", config={"norm_kind": "rms", "norm": norm, "embedding_norm": True})
      for norm in ("post", "pre")),
]  # fmt: skip


def make_model(settings, kind, options):
    """Return a model whose biases are not 0, for those of a fresh one would hide mistakes."""
    config = nf.EncoderConfig(**settings)
    if kind == "language":
        model = nf.LanguageModel(config, 31, **options)
    elif kind == "masked":
        model = nf.MaskedLanguageModel(config, 31, **options)
    elif kind == "series":
        model = nf.SequenceClassifier(config, n_features=4, **{"n_classes": 5, **options})
    elif kind == "wide":
        model = WideSequenceClassifier(config, vocab_size=31, **{"n_classes": 5, **options})
    else:
        model = nf.SequenceClassifier(config, vocab_size=31, **{"n_classes": 5, **options})
    rng = np.random.default_rng(1)
    for parameter in model.trainable().values():
        parameter.value[...] += 0.1 * rng.normal(size=parameter.shape)
    if kind == "wide" and (n := options["n_pairs"]):
        equal_pairs = 32 * np.arange(0, 31, 2)[: n // 2 + 1]  # which `inputs_of` has
        unequal_pairs = np.setdiff1d(rng.permutation(31 * 31), 32 * np.arange(31))
        drawn_pairs = rng.choice(unequal_pairs, n - len(equal_pairs), replace=False)
        keys = np.sort([*equal_pairs, *drawn_pairs])
        model.wide.learn(np.stack(np.divmod(keys, 31), axis=1), rng.uniform(1.0, 3.0, 31 + n))
    return model


def inputs_of(model, kind, batch, length, *, masked):
    """Return inputs; rows of a masked batch end in padding, the last one is padding alone."""
    rng = np.random.default_rng(length)
    if kind == "series":
        x = rng.normal(size=(batch, length, 4)).astype("float32")
    else:
        x = rng.integers(0, 31, (batch, length))
        x[:, : length // 2 * 2] = np.repeat(x[:, : length // 2], 2, axis=1)
    inputs = {"x": x}
    if masked:
        inputs["mask"] = np.arange(length) < rng.integers(1, length + 1, batch)[:, None]
    if model.config.n_token_types:
        inputs["types"] = rng.integers(0, model.config.n_token_types, (batch, length))
    return inputs


def session_of(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check_equal(outputs, expected, mask=None):
    """Check outputs; outputs of tokens are ignored at padding, where they mean nothing."""
    assert (outputs.shape, outputs.dtype) == (expected.shape, np.float32)
    if mask is not None and mask.shape == outputs.shape[:2]:
        outputs, expected = outputs[mask], expected[mask]
    assert np.isfinite(expected).all()
    assert abs(outputs - expected).max(initial=0.0) <= 1e-5 * abs(expected).max(initial=0.0)


@pytest.mark.parametrize(("settings", "kind", "options"), CASES)
def test_onnxruntime_computes_the_same(settings, kind, options, tmp_path):
    model, exact = (
        make_model(settings, kind, {**options, "dtype": d}) for d in ("float32", "float64")
    )
    for one, other in zip(*(m.named_parameters().values() for m in (model, exact)), strict=True):
        other.value[...] = one.value  # ONNX and `model` both round: neither is the judge
    refuses = settings.get("padding") is None and settings.get("mixer") in WHOLE
    lengths = {100: 2} if options.get("pooling") == "flatten" else LENGTHS
    for masked in (False,) if refuses else (False, True):
        path = tmp_path / f"{masked}.onnx"
        nf.interop.to_onnx(model, path, mask=masked)
        session = session_of(path)
        for length, batch in [*lengths.items(), (max(lengths), 0)]:
            inputs = inputs_of(model, kind, batch, length, masked=masked)
            logits, *probabilities = session.run(None, inputs)
            x = inputs.pop("x")
            expected = exact(x.astype("float64") if kind == "series" else x, **inputs)
            mask = inputs.get("mask") if model.targets_of == 0 else None
            check_equal(logits, expected, mask)
            if probabilities:
                check_equal(probabilities[0], model.loss.probabilities(expected), mask)
            else:
                assert kind in ("language", "masked") or options["output"] == "mean_squared_error"


OF_TWO_SEQUENCES = {nf.layers.CrossAttention, nf.layers.BlockwiseCrossAttention}
BASES = {nf.layers.Pooling, nf.mixers.AveragingMixer, nf.mixers.Synthesizer, nf.mixers.Mixer,
         nf.mixers.Scores, nf.mixers.WholeSequenceMixer}  # fmt: skip


def test_every_stock_layer_has_a_converter():
    public = (getattr(module, name) for module in (nf.layers, nf.mixers) for name in module.__all__)
    stock = {layer for layer in public if isinstance(layer, type) and issubclass(layer, nf.Layer)}
    stock.add(Wide)
    assert stock - set(nf.interop.onnx.CONVERTERS) == OF_TWO_SEQUENCES | BASES


@pytest.mark.parametrize(
    ("kind", "mixer", "options"),
    [
        *product(["tokens"], MIXERS, ({"pooling": "mean"}, {"pooling": "max"})),
        ("wide", "attention", {"n_pairs": 9}),
    ],
)
def test_a_row_of_padding_alone(tmp_path, kind, mixer, options):
    model = make_model({**SMALL, "mixer": mixer, "padding": "per_length"}, kind, options)
    nf.interop.to_onnx(model, tmp_path / "model.onnx")
    x = np.random.default_rng(0).integers(0, 31, (2, 9))
    x[1] *= kind != "wide"  # 0 beside 0 is a pair of these, and none if one of the two is padding
    mask = np.array([[False] * 9, [True] * 4 + [False] * 5])
    logits, _ = session_of(tmp_path / "model.onnx").run(None, {"x": x, "mask": mask})
    check_equal(logits, model(x, mask))


def test_ids_outside_the_table_are_an_error(tmp_path):
    """In ONNX -1 would be the last row of a table, and RoBERTa's positions are unknown."""
    config = nf.EncoderConfig(**{**SMALL, "n_token_types": 2, "position_padding_id": 0})
    model = nf.SequenceClassifier(config, 5, vocab_size=31)
    nf.interop.to_onnx(model, tmp_path / "model.onnx")
    session = session_of(tmp_path / "model.onnx")
    x = np.array([[1, 2, 3, 0]])
    mask = np.array([[True, True, True, False]])
    types = [[0, 1, 0, 0]]
    inputs = {"x": x, "mask": mask, "types": np.array(types)}
    check_equal(session.run(None, inputs)[0], model(x, mask, inputs["types"]))
    for changes in ({"x": x - 2}, {"x": x * 20}, {"types": inputs["types"] - 1}, {"mask": x >= 0},
                    {"x": x[:, ::-1].copy(), "mask": mask[:, ::-1].copy()}):  # fmt: skip
        with pytest.raises(Exception, match="out of data bounds"):
            session.run(None, inputs | changes)


def test_types_that_are_left_out_are_0(tmp_path):
    model = make_model({**SMALL, "n_token_types": 2}, "tokens", {})
    nf.interop.to_onnx(model, tmp_path / "model.onnx", mask=False, types=False)
    x = np.random.default_rng(0).integers(0, 31, (3, 9))
    check_equal(session_of(tmp_path / "model.onnx").run(None, {"x": x})[0], model(x))


class Half(nf.Layer):
    def forward(self, x, context):
        return 0.5 * x, None


class MyAttention(nf.mixers.Attention):
    pass


def model_with(layer):
    model = make_model(SMALL, "tokens", {})
    model.encoder.blocks[1].mixer = layer
    return model


@pytest.mark.parametrize("layer", [Half(), MyAttention(24, 3, seed=0)], ids=["own", "subclass"])
def test_a_layer_of_a_user_is_named(layer, tmp_path):
    name = type(layer).__name__
    with pytest.raises(TypeError, match=rf"{name} has no converter.*onnx\.register\({name}\) "):
        nf.interop.to_onnx(model_with(layer), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_layer_of_a_user_can_be_registered(tmp_path, monkeypatch):
    monkeypatch.setattr(nf.interop.onnx.converters, "CONVERTERS", {**nf.interop.onnx.CONVERTERS})
    nf.interop.onnx.register(Half)(lambda layer, x, graph: x * 0.5)
    model = model_with(Half())
    nf.interop.to_onnx(model, tmp_path / "model.onnx")
    x = np.random.default_rng(0).integers(0, 31, (3, 9))
    inputs = {"x": x, "mask": np.ones_like(x, dtype=bool)}
    check_equal(session_of(tmp_path / "model.onnx").run(None, inputs)[0], model(x))


class Sharper(nf.losses.SoftmaxCrossEntropy):
    """The cross-entropy of logits times 2."""

    def forward(self, outputs, y, weights=None):
        return super().forward(2.0 * outputs, y, weights)

    def backward(self, dloss, cache):
        return 2.0 * super().backward(dloss, cache)

    def probabilities(self, outputs):
        return super().probabilities(2.0 * outputs)


def model_with_loss(loss):
    model = make_model(SMALL, "tokens", {})
    model.loss = loss
    return model


def test_a_loss_without_a_converter_has_outputs_alone(tmp_path):
    exported = nf.interop.to_onnx(model_with_loss(Sharper()), tmp_path / "model.onnx")
    assert exported.outputs == ["outputs"]


def test_a_loss_of_a_user_can_be_registered(tmp_path, monkeypatch):
    monkeypatch.setattr(nf.interop.onnx.converters, "CONVERTERS", {**nf.interop.onnx.CONVERTERS})
    nf.interop.onnx.register(Sharper)(
        lambda loss, logits, graph: graph.node("Softmax", logits * 2.0)
    )
    model = model_with_loss(Sharper())
    nf.interop.to_onnx(model, tmp_path / "model.onnx", mask=False)
    x = np.random.default_rng(0).integers(0, 31, (3, 9))
    (probabilities,) = session_of(tmp_path / "model.onnx").run(["probabilities"], {"x": x})
    check_equal(probabilities, model.predict_probabilities(x))


def test_only_classes_of_layers_or_losses_are_registered():
    with pytest.raises(TypeError, match="layer is 3; expected a class of layers or of losses"):
        nf.interop.onnx.register(Half, 3)


def test_models_that_onnx_cannot_hold_are_refused(tmp_path):
    writer = nf.EncoderDecoder(nf.EncoderConfig(**SMALL), 31, 31)
    wrong_models = (
        (writer, "two inputs, and caches"),
        (Half(), "model is a Half"),
        (3, "model"),
    )
    for model, message in wrong_models:
        with pytest.raises(TypeError, match=message):
            nf.interop.to_onnx(model, tmp_path / "model.onnx")


def test_arguments_that_do_not_fit(tmp_path):
    model = make_model({**SMALL, "mixer": "fourier"}, "tokens", {})
    with pytest.raises(ValueError, match="Fourier refuses padding"):
        nf.interop.to_onnx(model, tmp_path / "model.onnx", mask=True)
    with pytest.raises(ValueError, match="no token types"):
        nf.interop.to_onnx(model, tmp_path / "model.onnx", types=True)
    assert nf.interop.to_onnx(model, tmp_path / "model.onnx").inputs == ["x"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"path": 3}, TypeError, "path is 3; expected a text"),
        ({"path": ""}, ValueError, "path is ''; expected the name"),
        ({"path": "."}, IsADirectoryError, "is a folder; expected the name of a file"),
        ({"path": "missing/model.onnx"}, FileNotFoundError, "is in a folder that does not exist"),
        ({"mask": 1}, TypeError, "mask is 1; expected True or False"),
        ({"types": "no"}, TypeError, "types is 'no'; expected True or False"),
        ({"model": None}, TypeError, "model is None; expected a Layer"),
        ({"model": nf.SequenceClassifier}, TypeError, "model is the class SequenceClassifier"),
    ],
)
def test_wrong_arguments_are_refused_before_writing(tmp_path, monkeypatch, arguments, error, words):
    monkeypatch.chdir(tmp_path)
    settings = {"model": make_model(SMALL, "tokens", {}), "path": "model.onnx", **arguments}
    with pytest.raises(error, match=words):
        nf.interop.to_onnx(settings.pop("model"), settings.pop("path"), **settings)
    assert not list(tmp_path.iterdir())


def test_without_the_library_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"to_onnx needs the package onnx.*npformer\[onnx\]"):
        nf.interop.to_onnx(make_model(SMALL, "tokens", {}), tmp_path / "model.onnx")


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_pretrained_classifiers(family, tmp_path):
    architecture = ARCHITECTURES[family]
    one_type = (
        not architecture.token_types and "n_token_types" in architecture.settings
    )  # RoBERTa has a table of one
    if one_type:
        tiny(tmp_path / "folder", family, n_token_types=1)
    else:
        tiny(tmp_path / "folder", family)
    pretrained = nf.from_pretrained(tmp_path / "folder", dtype="float32")
    model = pretrained.classifier(3)
    nf.interop.to_onnx(model, tmp_path / "model.onnx")
    ids, mask, types = pretrained.encode(SENTENCES)
    inputs = {"x": ids, "mask": mask} | ({} if types is None else {"types": types})
    logits, _ = session_of(tmp_path / "model.onnx").run(None, inputs)
    check_equal(logits, model(ids, mask, types))
    with pytest.raises(TypeError, match=r"PretrainedEncoder; expected a Layer. Pass pretrained"):
        nf.interop.to_onnx(pretrained, tmp_path / "other.onnx")


TEXTS = ["a fine day", "a bad day", "fine and good", "bad and sad", "good day", "sad day"] * 3
LABELS = ["yes", "no", "yes", "no", "yes", "no"] * 3


@pytest.mark.parametrize("members", [1, 2])
def test_text_classifier(members, tmp_path):
    classifier = TextClassifier(members=members, max_len=12)
    classifier.fit(TEXTS, LABELS, epochs=2, calibration=0.3, progress=False)
    exported = nf.interop.to_onnx(classifier, tmp_path / "model.onnx")
    session = session_of(tmp_path / "model.onnx")
    x, mask = classifier.arrays(TEXTS)
    (probabilities,) = session.run(["probabilities"], {"x": x, "mask": mask})
    check_equal(probabilities, classifier.predict_probabilities(TEXTS))
    metadata = session.get_modelmeta().custom_metadata_map
    assert metadata == exported.metadata
    assert json.loads(metadata["classes"]) == classifier.classes_.tolist()
    assert json.loads(metadata["vocabulary"]) == classifier.reader_.token_names()
    assert json.loads(metadata["preparation"]) == json.loads(json.dumps(classifier.preparation()))
    assert "tokenizer" in exported.left


def test_series_classifier(tmp_path):
    rng = np.random.default_rng(0)
    series = [5.0 + 3.0 * rng.normal(size=(6 + i % 5, 2)) for i in range(12)]
    classifier = SeriesClassifier().fit(series, [0, 1] * 6, epochs=2, progress=False)
    exported = nf.interop.to_onnx(classifier, tmp_path / "model.onnx")
    x, mask = classifier.arrays(series)
    probabilities = session_of(tmp_path / "model.onnx").run(
        ["probabilities"], {"x": x, "mask": mask}
    )[0]
    check_equal(probabilities, classifier.predict_probabilities(series))
    assert json.loads(exported.metadata["classes"]) == [0, 1]
    assert "scaled" in exported.left


def test_estimator_of_sklearn(tmp_path):
    from npformer.sklearn import EncoderClassifier

    for inputs, X, words in (("text", TEXTS, "tokenizer"), ("series", np.eye(18), "scaled")):
        estimator = EncoderClassifier(
            inputs=inputs, dtype="float32", max_iter=2, random_state=0
        ).fit(X, LABELS)
        path = tmp_path / f"{inputs}.onnx"
        exported = nf.interop.to_onnx(estimator, path, mask=inputs == "text")
        x, mask = estimator.reader_.read(X)
        arrays = {"x": x} | ({"mask": mask} if inputs == "text" else {})
        probabilities = session_of(path).run(["probabilities"], arrays)[0]
        check_equal(probabilities, estimator.predict_proba(X).astype("float32"))
        assert json.loads(exported.metadata["classes"]) == ["no", "yes"]
        assert words in exported.left


PYTHON = r"^```python needs=\S+\n(.*?)^```$"


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nf.interop.onnx.converters, "CONVERTERS", {**nf.interop.onnx.CONVERTERS})
    page = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
    namespace = {}
    for block in re.findall(PYTHON, page.read_text("utf-8"), re.M | re.S):
        exec(block, namespace)
    assert "tokenizer" in capsys.readouterr().out
    assert namespace["classes"] == ["no", "yes"]
    model = model_with(namespace["Gate"](24))
    nf.interop.to_onnx(model, "gate.onnx", mask=False)
    x = np.random.default_rng(0).integers(0, 31, (3, 9))
    check_equal(session_of("gate.onnx").run(None, {"x": x})[0], model(x))


def test_the_code_in_the_readme_runs(tmp_path, monkeypatch):
    readme = Path(__file__).resolve().parents[2] / "README.md"
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(PYTHON, readme.read_text("utf-8"), re.M | re.S)
    assert block.count("\n") == 7
    model = nf.SequenceClassifier(nf.EncoderConfig(**SMALL), n_classes=10, n_features=8)
    namespace = {"nf": nf, "model": model, "digits": nf.data.digits()}
    exec(block, namespace)
    check_equal(namespace["logits"], model(namespace["x"]))
