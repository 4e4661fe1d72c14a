"""Folders in Hugging Face's layout, written and read without transformers and PyTorch."""

import copy
import json
import os
import sys
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import npformer as nf
from npformer.interop import ARCHITECTURES, PretrainedEncoder, save_pretrained
from npformer.interop.dense_head import IDENTITY
from npformer.interop.tokenizers import read_tokenizer
from tests.needs import NEEDS

from .folders import SIZES, TEXTS, WORDS, random_model, tiny, vocabulary

pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])


WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    tiny(tmp_path / "bert")
    return tmp_path / "bert"


def edit(folder, name="config.json", /, **changes):
    """Change a JSON file of names and values; None removes a key."""
    file = folder / name
    content = json.loads(file.read_text()) if file.exists() else {}
    content |= changes
    content = {key: value for key, value in content.items() if value is not None}
    file.write_text(json.dumps(content))
    return folder


def safetensors_bytes(kind, bits):
    """Return a safetensors file of numbers that NumPy does not have."""
    table = {}
    begin = 0
    for name, array in bits.items():
        end = begin + array.nbytes
        table[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [begin, end]}
        begin = end
    header = json.dumps(table).encode()
    data = b"".join(array.tobytes() for array in bits.values())
    return len(header).to_bytes(8, "little") + header + data


def check_same_weights(one, other):
    parameters = one.named_parameters()
    other_parameters = other.named_parameters()
    assert parameters.keys() == other_parameters.keys()
    for name, parameter in parameters.items():
        other_value = other_parameters[name].value
        np.testing.assert_array_equal(parameter.value, other_value, err_msg=name)


@pytest.fixture(params=ARCHITECTURES)
def tiny_pair(request, tmp_path):
    """Return a family, a tiny model of it, and the model as it is read."""
    model = tiny(tmp_path / "one", request.param)
    return request.param, model, nf.from_pretrained(tmp_path / "one")


def test_every_family_is_read(tiny_pair):
    kind, model, pretrained = tiny_pair
    assert isinstance(pretrained, PretrainedEncoder)
    assert pretrained.architecture is ARCHITECTURES[kind]
    assert pretrained.encoder.dtype == "float64"
    assert pretrained.max_len == pretrained.encoder.config.max_len == SIZES["max_len"]
    check_same_weights(pretrained.encoder, model)


def test_every_family_is_written(tiny_pair, tmp_path):
    _, model, pretrained = tiny_pair
    pretrained.save(tmp_path / "two")
    check_same_weights(nf.from_pretrained(tmp_path / "two").encoder, model)
    files = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert {file.name for file in (tmp_path / "two").iterdir()} == files


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_family_has_heads(kind, tmp_path):
    for i, head in enumerate(ARCHITECTURES[kind].heads):
        folder = tmp_path / f"{i} {head.task}"
        model = tiny(folder, kind, pooling=head.pooling)
        pretrained = nf.from_pretrained(folder)
        assert pretrained.classes == ["LABEL_0", "LABEL_1", "LABEL_2"]
        check_same_weights(pretrained.classifier(), model)
        pretrained.save(folder / "rewritten", classes=["x", "y", "z"])
        rewritten = nf.from_pretrained(folder / "rewritten")
        assert rewritten.classes == ["x", "y", "z"]
        check_same_weights(rewritten.classifier(), model)


def test_the_unused_positions_of_roberta_are_preserved(tmp_path):
    model = tiny(tmp_path / "one", "roberta")
    name = "embeddings.position_embeddings.weight"
    state = load_file(tmp_path / "one" / "model.safetensors")
    padding_id = json.loads((tmp_path / "one" / "config.json").read_text())["pad_token_id"]
    assert state[name].shape == (SIZES["max_len"] + padding_id + 1, 8)
    assert not state[name][: padding_id + 1].any()
    state[name][: padding_id + 1] = 7.0
    save_file(state, tmp_path / "one" / "model.safetensors")
    pretrained = nf.from_pretrained(tmp_path / "one")
    check_same_weights(pretrained.encoder, model)
    pretrained.save(tmp_path / "two")
    rewritten = load_file(tmp_path / "two" / "model.safetensors")
    np.testing.assert_array_equal(rewritten[name], state[name])


@pytest.mark.parametrize("kind", ["bert", "distilbert", "fnet", "modernbert"])
def test_a_family_is_found_by_its_settings(tmp_path, kind):
    save_pretrained(random_model(kind), tmp_path)
    assert nf.from_pretrained(tmp_path).architecture.model_type == kind


@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
def test_the_dtype_is_that_of_the_file_unless_it_is_given(folder, dtype):
    assert nf.from_pretrained(folder, dtype).encoder.dtype == (dtype or "float64")


def test_numbers_that_float32_cannot_hold_are_refused(folder):
    set_arrays(folder, {"embeddings.LayerNorm.bias": 1e300})
    with pytest.raises(ValueError, match=r"infinity in embeddings\.LayerNorm\.bias, as float32"):
        nf.from_pretrained(folder, "float32")


def test_the_dtype_of_the_model_is_written(folder, tmp_path):
    edit(folder, torch_dtype="float16", dtype="float16")
    nf.from_pretrained(folder, "float32").save(tmp_path / "written")
    config = json.loads((tmp_path / "written" / "config.json").read_text())
    assert config["dtype"] == "float32"
    assert "torch_dtype" not in config


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_half_precision_becomes_float32(folder, kind):
    file = folder / "model.safetensors"
    state = {name: array.astype("float32") for name, array in load_file(file).items()}
    table = state["embeddings.word_embeddings.weight"]
    if kind == "F16":
        save_file({name: array.astype("float16") for name, array in state.items()}, file)
        expected = table.astype("float16").astype("float32")
    else:
        upper = {
            name: (array.view("uint32") >> 16).astype("uint16") for name, array in state.items()
        }
        file.write_bytes(safetensors_bytes("BF16", upper))
        expected = (table.view("uint32") >> 16 << 16).view("float32")
    encoder = nf.from_pretrained(folder).encoder
    assert encoder.dtype == "float32"
    np.testing.assert_array_equal(encoder.parameters()["embed.tokens.weight"], expected)


def test_settings_that_an_older_configuration_lacks_have_default_values(folder):
    edit(folder, layer_norm_eps=1e-12)
    before = nf.from_pretrained(folder)
    edit(folder, layer_norm_eps=None, pad_token_id=None, hidden_act=None)
    np.testing.assert_array_equal(nf.from_pretrained(folder).embed(TEXTS), before.embed(TEXTS))


def test_texts_become_ids(folder):
    ids, mask, types = nf.from_pretrained(folder).encode([*TEXTS, ""])
    words = nf.from_pretrained(folder).tokenizer.tokens(ids[1][mask[1]])
    assert words == ["[CLS]", "a", "quick", "dog", "ran", ",", "quick", "##ly", ".", "[SEP]"]
    assert ids[4][mask[4]].tolist() == [2, 3]
    assert ids[3].tolist()[:4] == [2, 5, 1, 3]
    assert not types.any()
    assert (ids[~mask] == 0).all()


def test_a_vector_does_not_depend_on_its_neighbours(tmp_path):
    for kind in ARCHITECTURES:
        tiny(tmp_path / kind, kind)
        pretrained = nf.from_pretrained(tmp_path / kind)
        together = pretrained.embed(TEXTS)
        assert together.shape == (4, 8)
        for size in (1, 2, 3):
            np.testing.assert_allclose(
                pretrained.embed(TEXTS, batch_size=size), together, rtol=1e-12
            )
        hidden = pretrained.hidden(TEXTS)
        ids, mask, types = pretrained.encode(TEXTS)
        assert [len(rows) for rows in hidden] == mask.sum(axis=1).tolist()
        expected = pretrained.encoder(ids, mask, types).hidden
        for i, rows in enumerate(hidden):
            np.testing.assert_allclose(rows, expected[i][mask[i]], rtol=1e-10, atol=1e-13)
            np.testing.assert_allclose(rows.mean(axis=0), together[i], rtol=1e-10, atol=1e-13)
    assert pretrained.embed([]).shape == (0, 8)
    assert pretrained.hidden([]) == []


def test_the_maximum_length_is_the_smallest_in_a_file(folder):
    assert nf.from_pretrained(folder).max_len == 16
    edit(folder, "tokenizer_config.json", model_max_length=9)
    assert nf.from_pretrained(folder).max_len == 9
    assert nf.from_pretrained(folder, max_len=12).max_len == 12
    edit(folder, "tokenizer_config.json", model_max_length=10**30)
    assert nf.from_pretrained(folder).max_len == 16
    edit(folder, "sentence_bert_config.json", max_seq_length=7)
    assert nf.from_pretrained(folder).max_len == 7


def test_a_text_that_is_cut_gives_a_warning(folder):
    pretrained = nf.from_pretrained(folder, max_len=7)
    with pytest.warns(UserWarning, match="1 of 2 texts have more than max_len = 7 tokens, at most"):
        ids, _, _ = pretrained.encode(["the cat sat on the mat", "a dog"])
    pretrained.encode(["the cat sat on the", "a dog"])  # of just this length: no warning
    assert pretrained.tokenizer.tokens(ids[0]) == [
        "[CLS]",
        "the",
        "cat",
        "sat",
        "on",
        "the",
        "[SEP]",
    ]


THEIR_MODULES = "sentence_transformers.models"


def sentence_encoder(folder, *kinds, modes=("mean_tokens",), path="1_Pooling"):
    kinds = kinds or ("Transformer", "Pooling", "Normalize")
    paths = {"Transformer": "", "Pooling": path}
    modules = []
    for i, kind in enumerate(kinds):
        modules.append(
            {
                "idx": i,
                "name": str(i),
                "path": paths.get(kind, f"{i}_{kind}"),
                "type": f"{THEIR_MODULES}.{kind}",
            }
        )
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / path).mkdir()
    settings = {f"pooling_mode_{mode}": mode in modes for mode in ("mean_tokens", *modes)}
    (folder / path / "config.json").write_text(json.dumps(settings))
    return folder


def test_vectors_of_a_sentence_encoder_have_norm_1(folder, tmp_path):
    vectors = nf.from_pretrained(folder).embed(TEXTS)
    pretrained = nf.from_pretrained(sentence_encoder(folder))
    assert pretrained.settings.normalize
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(pretrained.embed(TEXTS), vectors / norms, rtol=1e-12)
    pretrained.save(tmp_path / "rewritten")
    rewritten = nf.from_pretrained(tmp_path / "rewritten")
    assert rewritten.settings == pretrained.settings
    np.testing.assert_array_equal(rewritten.embed(TEXTS), pretrained.embed(TEXTS))
    np.testing.assert_array_equal(nf.from_pretrained(folder, normalize=False).embed(TEXTS), vectors)


def test_vectors_are_not_normalized_without_the_module_normalize(folder):
    sentence_encoder(folder, "Transformer", "Pooling", modes=())
    edit(folder, "1_Pooling/config.json", pooling_mode="cls")  # as in newer files
    pretrained = nf.from_pretrained(folder)
    assert (pretrained.settings.normalize, pretrained.settings.pooling) == (False, "first")
    assert pretrained.source_folder.sentences is not None


def test_the_pooling_may_be_the_first_token(folder):
    pretrained = nf.from_pretrained(sentence_encoder(folder, modes=("cls_token",)), normalize=False)
    first_rows = np.stack([rows[0] for rows in pretrained.hidden(TEXTS)])
    np.testing.assert_allclose(pretrained.embed(TEXTS), first_rows, rtol=1e-12)
    assert nf.from_pretrained(folder, pooling="mean").settings.pooling == "mean"


def test_the_encoder_may_have_a_separate_folder(tmp_path):
    model = tiny(tmp_path / "whole" / "0_Transformer")
    modules = [{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}]
    (tmp_path / "whole" / "modules.json").write_text(json.dumps(modules))
    check_same_weights(nf.from_pretrained(tmp_path / "whole").encoder, model)


@pytest.mark.parametrize(
    ("kinds", "modes", "message"),
    [
        (("Transformer", "Pooling", "LSTM"), ("mean_tokens",), "LSTM; expected Transformer"),
        (("Transformer", "Pooling"), ("mean_tokens", "cls_token"), "asks for mean and first"),
        (("Transformer", "Pooling"), (), "asks for no pooling; expected one of pooling_mode_mean"),
        (("Transformer", "Pooling"), ("lasttoken",), "asks for pooling_mode_lasttoken; expected"),
    ],
)
def test_other_sentence_encoders_are_refused(folder, kinds, modes, message):
    sentence_encoder(folder, *kinds, modes=modes)
    with pytest.raises(ValueError, match=message):
        nf.from_pretrained(folder)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_classifier_begins_with_the_weights(kind, tmp_path):
    tiny(tmp_path / "one", kind)
    pretrained = nf.from_pretrained(tmp_path / "one")
    model = pretrained.classifier(4, seed=3)
    assert model.pooling == pretrained.architecture.heads[0].pooling
    assert model.padding_id == pretrained.tokenizer.padding_id
    encoder_parameters = pretrained.encoder.named_parameters()
    for name, parameter in model.named_parameters().items():
        if name in encoder_parameters:
            np.testing.assert_array_equal(parameter.value, encoder_parameters[name].value)
        elif name.endswith("weight"):
            assert parameter.value.std() > 0.0, name
    check_same_weights(pretrained.classifier(4, seed=3), model)
    assert (
        pretrained.classifier(4, seed=4).classify.weight.value != model.classify.weight.value
    ).any()


def test_a_classifier_has_the_pooling_of_a_sentence_encoder(folder):
    pretrained = nf.from_pretrained(sentence_encoder(folder))
    assert pretrained.classifier(2).pooling == "mean"


def test_arguments_of_a_classifier(folder):
    pretrained = nf.from_pretrained(sentence_encoder(folder))
    model = pretrained.classifier(2, pooling="pooler", output="sigmoid", dropout=0.25)
    assert (model.pooling, model.output, model.config.dropout) == ("pooler", "sigmoid", 0.25)
    assert model.config.attention_dropout == 0.0


def test_the_dropout_of_a_classifier_includes_attention(folder):
    edit(sentence_encoder(folder), attention_probs_dropout_prob=0.125)
    pretrained = nf.from_pretrained(folder)
    assert pretrained.classifier(2).config.attention_dropout == 0.125
    assert pretrained.classifier(2, dropout=0.0).config.attention_dropout == 0.0
    assert pretrained.classifier(2, dropout=0.25).config.attention_dropout == 0.25


def train(pretrained, pooling, steps):
    """Train the last block and what is above it; return the model, its inputs, and the loss."""
    ids, mask, types = pretrained.encode(TEXTS * 4)
    model = pretrained.classifier(2, pooling=pooling, dropout=0.0)
    for name, parameter in model.named_parameters().items():
        parameter.trainable = name.startswith(("encoder.blocks.1", "pool", "classify"))
    optimizer = nf.Adam(model.parameters(), lr=1e-2)
    loss = np.inf
    for _ in range(steps):
        labels = np.array([0, 1, 1, 0] * 4)
        loss, gradients = model.loss_and_gradients(ids, labels, mask, types=types)
        optimizer.step(gradients)
    return model, (ids, mask, types), loss


def test_a_fine_tuned_classifier_is_written(folder, tmp_path):
    pretrained = nf.from_pretrained(folder)
    model, (ids, mask, types), _ = train(pretrained, "pooler", steps=3)
    pretrained.save(tmp_path / "tuned", model, classes=["dog", "cat"])
    tuned = nf.from_pretrained(tmp_path / "tuned")
    assert tuned.classes == ["dog", "cat"]
    check_same_weights(tuned.classifier(), model)
    np.testing.assert_array_equal(tuned.classifier()(ids, mask, types), model(ids, mask, types))


def test_the_encoder_of_a_fine_tuned_classifier_is_written(folder, tmp_path):
    pretrained = nf.from_pretrained(folder)
    model, _, _ = train(pretrained, "pooler", steps=3)
    pretrained.save(tmp_path / "encoder", model, head=False)
    encoder = nf.from_pretrained(tmp_path / "encoder").encoder
    name = "encoder.blocks.1.mixer.query.weight"
    trained_query = model.parameters()[name]
    np.testing.assert_array_equal(encoder.parameters()[name], trained_query)
    assert (trained_query != pretrained.encoder.parameters()[name]).any()


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
def test_a_head_on_pooled_tokens_is_a_dense_after_the_pooling(folder, tmp_path, pooling):
    pretrained = nf.from_pretrained(sentence_encoder(folder), max_len=12)
    model = pretrained.classifier(2, pooling=pooling)
    pretrained.save(tmp_path / "tuned", model, classes=["dog", "cat"])
    modules = json.loads((tmp_path / "tuned" / "modules.json").read_text())
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Dense"]
    config = json.loads((tmp_path / "tuned" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    state = load_file(tmp_path / "tuned" / "2_Dense" / "model.safetensors")
    pooled = nf.from_pretrained(folder, pooling=pooling, normalize=False).embed(TEXTS)
    ids, mask, types = pretrained.encode(TEXTS)
    logits = pooled @ state["linear.weight"].T + state["linear.bias"]
    np.testing.assert_allclose(model(ids, mask, types), logits, rtol=1e-10, atol=1e-13)
    tuned = nf.from_pretrained(tmp_path / "tuned")
    np.testing.assert_allclose(tuned.embed(TEXTS), logits, rtol=1e-10, atol=1e-13)
    assert tuned.classes == ["dog", "cat"]
    assert tuned.max_len == 12
    check_same_weights(tuned.classifier(), model)
    check_same_weights(tuned.encoder, pretrained.encoder)
    tuned.save(tmp_path / "again")
    check_same_weights(nf.from_pretrained(tmp_path / "again").classifier(), model)
    pretrained.save(tmp_path / "encoder", model, head=False)
    assert nf.from_pretrained(tmp_path / "encoder").settings == pretrained.settings


def test_other_dense_layers_are_refused(folder, tmp_path):
    pretrained = nf.from_pretrained(sentence_encoder(folder))
    pretrained.save(tmp_path / "tuned", pretrained.classifier(2))
    edit(tmp_path / "tuned", "2_Dense/config.json", activation_function="torch.nn.Tanh")
    with pytest.raises(ValueError, match=r"a Dense that is not a classifier: .*torch\.nn\.Tanh"):
        nf.from_pretrained(tmp_path / "tuned")
    edit(tmp_path / "tuned", "2_Dense/config.json", activation_function=IDENTITY, out_features=3)
    with pytest.raises(ValueError, match="out_features = 3 rows of 8"):
        nf.from_pretrained(tmp_path / "tuned")
    for i, last_modules in enumerate(
        (("Dense", "Normalize"), ("Normalize", "Dense"), ("Dense", "Dense"))
    ):
        sentence_encoder(tmp_path / "tuned", "Transformer", "Pooling", *last_modules, path=f"{i}")
        with pytest.raises(
            ValueError, match=rf"{last_modules[0]}, \S+{last_modules[1]}; expected Transformer"
        ):
            nf.from_pretrained(tmp_path / "tuned")


@pytest.mark.parametrize(
    "classes", [["BertForQuestionAnswering"], ["BertForMultipleChoice"], None], ids=str
)
def test_a_head_that_npformer_lacks_gives_a_warning(tmp_path, classes):
    tiny(tmp_path / "qa", pooling="pooler")
    edit(tmp_path / "qa", architectures=classes)
    with pytest.warns(UserWarning, match=r"the weights have classifier\.bias, classifier\.w"):
        assert nf.from_pretrained(tmp_path / "qa").classes is None


def test_weights_that_a_head_does_not_have_are_refused(tmp_path):
    tiny(tmp_path / "qa", pooling="pooler")
    edit(tmp_path / "qa", architectures=["BertForSequenceClassification"])
    set_arrays(tmp_path / "qa", {"qa_outputs.bias": 1})
    with pytest.raises(ValueError, match=r"have qa_outputs\.bias, which a BertForSequenceClass"):
        nf.from_pretrained(tmp_path / "qa")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id2label": []}, "id2label is a list"),
        ({"id2label": {"0": "a"}}, "id2label has 1 classes, and the weights 3"),
        ({"problem_type": "ranking"}, "problem_type is 'ranking'"),
    ],
)
def test_wrong_settings_of_a_head_are_refused(tmp_path, changes, message):
    tiny(tmp_path / "bert", pooling="pooler")
    edit(tmp_path / "bert", **changes)
    with pytest.raises(ValueError, match=message):
        nf.from_pretrained(tmp_path / "bert")


def test_positions_of_roberta_count_only_tokens(tmp_path):
    """Where that differs from the position in the row, every call refuses the ids."""
    tiny(tmp_path / "one", "roberta")
    pretrained = nf.from_pretrained(tmp_path / "one")
    model = pretrained.classifier(2)
    y = np.array([0, 1])
    nf.save(model, tmp_path / "model.safetensors")
    nf.save(pretrained.encoder, tmp_path / "encoder.safetensors")
    pretrained.save(tmp_path / "two", model)
    assert model.config.position_padding_id == model.padding_id == pretrained.padding_id == 0
    loaded = nf.load(tmp_path / "model.safetensors")
    again = nf.from_pretrained(tmp_path / "two")
    right = np.array([[2, 5, 6, 3, 0, 0], [2, 5, 6, 7, 8, 3]])
    for x, hole in ((np.roll(right, 2, axis=1), False), (right[:, [0, 1, 4, 2, 3, 5]], True)):
        x[1] = right[1]
        mask = (x != 0) | (hole & (np.arange(6) < 5))
        for call, *inputs in (
            *(
                (encoder, x, mask)
                for encoder in (model, loaded, copy.deepcopy(model), again.encoder)
            ),
            (nf.load(tmp_path / "encoder.safetensors"), x),
            (model.forward, x, nf.Context(mask=mask)),
            (model.predict, x, mask),
            (partial(model.loss_and_gradients, workers=2), x, y, mask),
            (nf.evaluate, model, (x, y, mask)),
            (partial(nf.fit, epochs=1, progress=False), model, (x, y, mask)),
            (partial(nf.gradcheck, mask=mask), model, x),
        ):
            with pytest.raises(ValueError, match="has the id 0, which is padding and has no posit"):
                call(*inputs)
    assert np.isfinite(model(right, right != 0)).all()


@pytest.mark.parametrize(
    ("tokenizer", "error", "message"),
    [
        (True, ImportError, r"npformer\[text\]"),
        (False, FileNotFoundError, r"has no tokenizer; expected tokenizer\.json"),
    ],
    ids=["no library", "no tokenizer"],
)
def test_without_a_tokenizer_there_are_weights(tmp_path, monkeypatch, tokenizer, error, message):
    tiny(tmp_path / "bert", tokenizer=tokenizer)
    if tokenizer:
        monkeypatch.setitem(sys.modules, "tokenizers", None)
    pretrained = nf.from_pretrained(tmp_path / "bert")
    assert pretrained.encoder(np.array([[2, 5, 3]])).hidden.shape == (1, 3, 8)
    assert pretrained.classifier(2).padding_id == 0
    with pytest.raises(error, match=message):
        pretrained.embed(TEXTS)


V, MISSING = ValueError, FileNotFoundError


def set_arrays(folder, arrays):
    """Set arrays of a folder's weights, {name: value of all entries}; None removes an array."""
    state = load_file(folder / WEIGHTS)
    for name, value in arrays.items():
        if value is None:
            del state[name]
        else:
            state[name] = np.full(8, value, "float64")
    save_file(state, folder / WEIGHTS)


def write_modules(folder, path, kind=f"{THEIR_MODULES}.Transformer"):
    (folder / "modules.json").write_text(json.dumps([{"path": path, "type": kind}]))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda f: edit(f, model_type="mpnet"), V, "config.json is 'mpnet'; exp.* 'bert'"),
        (lambda f: edit(f, model_type=None), V, "model_type in .* is None"),
        (lambda f: edit(f, model_type=[]), V, r"model_type in .* is \[\]; expected"),
        (lambda f: edit(f, architectures=True), TypeError, "is a bool; expected a list"),
        (lambda f: edit(f, "tokenizer_config.json", pad_token="\ud800"), V, "not a tokenizer"),
        (lambda f: edit(f, hidden_size=None), V, "has no 'hidden_size'"),
        (lambda f: edit(f, hidden_size=9), V, "n_heads is 2 and d_model is 9"),
        (lambda f: edit(f, hidden_size=10), V, "does not fit .*config.json"),
        (lambda f: edit(f, num_hidden_layers=3), V, "layer.2.* is missing"),
        (lambda f: edit(f, is_decoder=True), V, "is_decoder = True"),
        (lambda f: edit(f, is_causal=True), V, "is_causal = True; expected False"),
        (lambda f: edit(f, architectures=["BertForSequenceClassification"]) and
         set_arrays(f, {"classifier.weight": 1, "classifier.bias": 1, "pooler.dense.weight": None,
                 "pooler.dense.bias": None}), V,
         r"have no bert\.pooler\.dense\.weight; expected the weights of a BertForSequenceClass"),
        (lambda f: set_arrays(f, {"embeddings.LayerNorm.bias": np.nan}), V,
         r"has NaN or infinity in embeddings\.LayerNorm\.bias, as float64; expected finite"),
        (lambda f: edit(sentence_encoder(f, modes=["cls_token"]), "1_Pooling/config.json",
                           pooling_mode_mean_tokens=None), V, "asks for mean and first"),
        (lambda f: edit(f, "sentence_bert_config.json", tokenizer_args={"a": 1}), V,
         "has tokenizer_args, which npformer does not have"),
        (lambda f: (f / "config.json").write_text("{"), V, "config.json cannot be read as JSON"),
        (lambda f: (f / "config.json").write_text("[]"), V, "holds a list; expected names"),
        (lambda f: (f / "config.json").unlink(), MISSING, "has no config.json"),
        (lambda f: (f / WEIGHTS).unlink(), MISSING, "has no weights; exp"),
        (lambda f: (f / WEIGHTS).rename(f / "pytorch_model.bin"), V,
         r"in pytorch_model\.bin; .*transformers\.BertModel\.from_pretrained"),
        (lambda f: (f / WEIGHTS).write_bytes(b"12345678{"), V, "not a complete"),
        (lambda f: edit(f, vocab_size=5), V, r"word_embeddings.weight has shape"),
        (lambda f: (f / "modules.json").write_text("{}"), V, "holds a dict; expected a list"),
        (lambda f: set_arrays(f, {"bert.extra": 0}), V, "extra is unknown"),
        (lambda f: set_arrays(f, {"extra.weight": 0}), V, "extra.weight is unknown"),
        (lambda f: set_arrays(f, {"lm_head.bias": 0}), V, "lm_head.bias is unknown"),
        (lambda f: set_arrays(f, {"embeddings.LayerNorm.gamma": 0}), V,
         "LayerNorm.weight under two names"),
        (lambda f: edit(f, auto_map={"AutoModel": "a.B"}), V, "auto_map = "),
        (lambda f: write_modules(f, "../bert"), V, "names the path '../bert'; expected one in"),
        (lambda f: write_modules(f, str(f)), V, "names the path '/"),
        (lambda f: write_modules(f, "..\\bert"), V, "names the path "),
        (lambda f: write_modules(f, 3), V, "names the path 3"),
        (lambda f: write_modules(f, "a" * 5000), V, "names the path 'aaa"),
        (lambda f: (f / "modules.json").mkdir(), V, "cannot be read as JSON"),
        (lambda f: (f / "modules.json").symlink_to(f / "modules.json"), V, "be read as JSON"),
        (lambda f: (f / "modules.json").write_text("[]"), V, "has the modules ; expected"),
        (lambda f: (f / "added_tokens.json").mkdir(), V, "as JSON: it is no file"),
        (lambda f: os.mkfifo(f / "modules.json"), V, "as JSON: it is no file"),
        (lambda f: (f / "special_tokens_map.json").symlink_to("/dev/zero"), V, "it is no file"),
        (lambda f: edit(f, "tokenizer_config.json", model_max_length=-1), V,
         "model_max_length in tokenizer_config.json is -1; expected a number above 2"),
        (lambda f: edit(f, "sentence_bert_config.json", max_seq_length=2), V,
         "max_seq_length in sentence_bert_config.json is 2; expected a whole number of at least 3"),
        (lambda f: edit(sentence_encoder(f), "1_Pooling/config.json", pooling_mode=["mean"]), V,
         r"asks for \['mean'\]; expected one"),
        (lambda f: edit(f, "config_sentence_transformers.json", truncate_dim=4), V,
         "truncate_dim = 4; expected null"),
        (lambda f: set_arrays(f, {"\x1b[2J": 0}), V,
         r"an array named '\\x1b\[2J'; expected letters"),
        (lambda f: write_modules(f, "a\n"), V, r"names the path 'a\\n'; expected one"),
        (lambda f: (sentence_encoder(f) / "1_Pooling/config.json").unlink(), V, "as JSON"),
        (lambda f: write_modules(f, "", "mine.Transformer"), V,
         "modules mine.Transformer; expected"),
        (lambda f: (f / "modules.json").write_text("[" * 10**5), V, "cannot be read as JSON"),
        (lambda f: (f / "tokenizer_config.json").write_text("[" * 10**5), V, "be read as JSON"),
        (lambda f: edit(f, "config_sentence_transformers.json", default_prompt_name="query"), V,
         "default_prompt_name = 'query'; expected null"),
        (lambda f: (f / WEIGHTS).write_bytes(
            safetensors_bytes("F8_E4M3", {"x": np.zeros(2, "uint8")})), V,
         "numbers of the type F8_E4M3; expected one of F64"),
    ],
)  # fmt: skip
def test_a_folder_that_does_not_fit_is_refused(folder, change, error, message):
    change(folder)
    with pytest.raises(error, match=message):
        nf.from_pretrained(folder)


def test_a_missing_file_of_weights_is_named(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    edit(folder, "model.safetensors.index.json", weight_map=index)
    with pytest.raises(FileNotFoundError, match=r"has no model-00002-of-00002\.safetensors"):
        nf.from_pretrained(folder)
    edit(folder, "model.safetensors.index.json", weight_map={"a": "../model.safetensors"})
    with pytest.raises(ValueError, match=r"names the path .\.\./model\.safetensors"):
        nf.from_pretrained(folder)
    edit(folder, "model.safetensors.index.json", weight_map={})
    with pytest.raises(ValueError, match="has no weight_map"):
        nf.from_pretrained(folder)


def test_weights_in_several_files_are_read(folder):
    before = nf.from_pretrained(folder).encoder
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    files = [f"model-0000{k}-of-00002.safetensors" for k in (1, 2)]
    file_of_array = {name: files[i % 2] for i, name in enumerate(state)}
    for file in files:
        arrays = {name: array for name, array in state.items() if file_of_array[name] == file}
        save_file(arrays, folder / file)
    edit(folder, "model.safetensors.index.json", weight_map=file_of_array)
    check_same_weights(nf.from_pretrained(folder).encoder, before)
    file_of_array["more"] = files[0]
    edit(folder, "model.safetensors.index.json", weight_map=file_of_array)
    with pytest.raises(ValueError, match="the files that it names differ about more"):
        nf.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bert-base-uncased", r"Nothing is downloaded.* hf download bert-base"),
        ("a/b", "a/b --local-dir b"),
    ],
)
def test_a_name_of_the_hub_is_explained(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=message):
        nf.from_pretrained(name)


def test_a_file_in_place_of_a_folder_is_explained(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="is a file; expected a folder"):
        nf.from_pretrained(tmp_path / "model.safetensors")


def test_a_folder_in_the_cache_of_the_hub_is_explained(tmp_path):
    (tmp_path / "cache" / "snapshots" / "ab12").mkdir(parents=True)
    (tmp_path / "cache" / "snapshots" / "ab12" / "config.json").write_text("{}")
    with pytest.raises(
        FileNotFoundError, match=r"in the cache .* expected the folder of one: .*ab12"
    ):
        nf.from_pretrained(tmp_path / "cache")


def test_an_adapter_in_place_of_a_model_is_explained(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="holds an adapter"):
        nf.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("case", "end", "added", "n"),
    [
        ("no end of the last line", "", {}, 20),
        ("an end", "\n", {}, 20),
        ("an empty line", "\n\n", {}, 20),
        ("empty lines", "\n\n\n", {}, 20),
        ("empty lines of Windows", "\r\n\r\n", {}, 20),
        ("an id after the empty line is stated", "\n\n", {"21": {"content": "[NEW]"}}, 22),
        ("an id in its place is stated", "\n\n", {"20": {"content": "[NEW]"}}, 21),
    ],
)
def test_empty_lines_at_the_end_of_a_vocabulary_are_no_tokens(tmp_path, case, end, added, n):
    (tmp_path / "vocab.txt").write_bytes(("\n".join(WORDS) + end).encode())
    settings = {"added_tokens_decoder": added} if added else {}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer.vocab_size == n
    assert tokenizer.tokens(range(20)) == WORDS


def test_a_tokenizer_of_another_model_is_refused(folder):
    vocabulary(folder)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join([*WORDS, "more", "words"]))
    with pytest.raises(ValueError, match="the tokenizer has 22 ids, and the model 20"):
        nf.from_pretrained(folder)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dtype": "float16"}, ValueError, "dtype is 'float16'"),
        ({"pooling": "pooler"}, ValueError, "pooling is 'pooler'; expected one of 'mean'"),
        ({"normalize": 1}, TypeError, "normalize is 1; expected True or False"),
        ({"max_len": 17}, ValueError, "max_len is 17; expected a whole number"),
        ({"padding": "cut"}, ValueError, "padding is 'cut'"),
    ],
)
def test_wrong_arguments_are_explained(folder, arguments, error, message):
    with pytest.raises(error, match=message):
        nf.from_pretrained(folder, **arguments)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("a text", TypeError, "texts is a str; expected a list with a string"),
        ([("a", "b"), "c"], TypeError, r"texts\[1\] is 'c'; expected a pair"),
        ([("a", "b", "c")], TypeError, r"texts\[0\] is \('a', 'b', 'c'\); expected a pair"),
        ([("a", 1)], TypeError, "is an int: 1; expected a string"),
    ],
)
def test_wrong_texts_are_explained(folder, texts, error, message):
    with pytest.raises(error, match=message):
        nf.from_pretrained(folder).encode(texts)


def test_wrong_calls_of_an_encoder_are_explained(folder):
    pretrained = nf.from_pretrained(folder)
    tiny(folder.with_name("head"), pooling="pooler")
    with_head = nf.from_pretrained(folder.with_name("head"))
    for call, message in (
        (pretrained.classifier, r"no trained head; expected .* classifier\(2\)"),
        (lambda: pretrained.embed(TEXTS, batch_size=0), "batch_size is 0"),
        (lambda: pretrained.encode(TEXTS, max_len=40), "max_len is 40; expected"),
        (lambda: with_head.classifier(pooling="mean"), "'mean' and n_classes is None; expected b"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_existing_files_are_replaced_only_on_request(folder):
    pretrained = nf.from_pretrained(folder)
    config = json.loads((folder / "config.json").read_bytes())
    with pytest.raises(FileExistsError, match=r"has model\.safetensors, .* already"):
        pretrained.save(folder)
    pretrained.save(folder, overwrite=True)
    assert json.loads((folder / "config.json").read_bytes()) == config


def test_files_of_another_kind_of_model_are_not_left_over(folder):
    pretrained = nf.from_pretrained(folder)
    tiny(folder.with_name("other"))
    sentence_encoder(folder.with_name("other"))
    with pytest.raises(FileExistsError, match=r"has modules\.json of the previous model, "):
        pretrained.save(folder.with_name("other"), overwrite=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": "pre"}, "BertModel cannot hold this model: it has norm = 'pre'"),
        ({"mixer": "linear"}, "it has mixer = 'linear'"),
        ({"mixer": "fourier", "n_heads": 1}, "FNetModel cannot hold .* embedding_projection = Fal"),
    ],
)
def test_a_model_that_transformers_does_not_have_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        save_pretrained(random_model("bert", **changes), tmp_path / "one")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"classes": ["a"]}, V, r"classes has \['a'\]; expected 3 different names"),
        ({"classes": "abc"}, TypeError, "classes is a str; expected a list"),
        ({"classes": ["\ud800", "b", "c"]}, V, r"classes\[0\] has half of a character"),
        ({"classes": ["a", "b", "c"], "head": False}, V, "no head is written; expected None"),
        ({"architecture": "gpt2"}, V, "architecture is 'gpt2'; expected one of 'bert'"),
        ({"model": {}}, TypeError, "model is a dict; expected a TextEncoder, a"),
        ({"tokenizer": "bert"}, TypeError, "tokenizer is a str; expected a LibraryTokenizer"),
        ({"head": "no"}, TypeError, "head is 'no'; expected True or False"),
        ({"overwrite": "no"}, TypeError, "overwrite is 'no'; expected True or False"),
        ({"model": {"output": "sigmoid"}}, V, "output='sigmoid', which no head"),
        ({"model": {"pooling": "flatten"}}, V, "'flatten', which no head .* 'mean', 'first'"),
        ({"model": {"positions": "sinusoidal"}}, V, "positions = 'sinusoidal'"),
    ],
    ids=str,
)
def test_wrong_calls_of_save_are_explained(tmp_path, options, error, message):
    model = random_model("bert", "pooler")
    changes = options.get("model", {})
    if "positions" in changes:
        model = random_model("bert", "pooler", **changes)
    elif changes:
        settings = {"pooling": "pooler"} | changes
        model = nf.SequenceClassifier(model.config, 2, vocab_size=9, **settings)
    elif "model" in options:
        model = options["model"]
    options = {name: value for name, value in options.items() if name != "model"}
    with pytest.raises(error, match=message):
        save_pretrained(model, tmp_path / "one", **options)
    assert not (tmp_path / "one").exists()


def test_the_description_of_a_pretrained_encoder(folder):
    sizes = "bert, 2 layers of 8, 20 tokens, max_len 16, pooling mean, norm free"
    assert repr(nf.from_pretrained(folder)) == f"PretrainedEncoder({sizes}, from {folder})"
