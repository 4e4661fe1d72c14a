"""Folders that transformers writes, with random weights, read by `from_pretrained`; and back."""

import json
import warnings

import numpy as np
import pytest

import npformer as nf
from npformer.interop import ARCHITECTURES, save_pretrained
from npformer.interop.families import FAMILIES
from tests.needs import NEEDS

from .helpers import compute_in_doubles, normals, torch

transformers = pytest.importorskip("transformers", reason=NEEDS["transformers"])
tokenizers = pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TEXTS = [
    "The weather is lovely today.",
    "It's so sunny outside!",
    "",
    "He drove to the stadium, and unbelievably slowly, too; nobody knew why he had.",
    "Café Ωmega 天気 \U0001f600 zzzqqq",
    "a [MASK] b </s> c",
    "two\nlines\tand  spaces ",
]
STRIPPED = [text.strip() for text in TEXTS]  # as sentence-transformers does
PAIRS = [("Who drove?", "He drove."), ("", "today"), (TEXTS[3], TEXTS[0])]

SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 40}
SIZES |= {"num_attention_heads": 4, "max_position_embeddings": 64}
DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob")
BERT = SIZES | dict.fromkeys(DROPOUT, 0.0)
DISTIL = {"dim": 24, "n_layers": 2, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 64}
DISTIL |= dict.fromkeys(("dropout", "attention_dropout", "seq_classif_dropout"), 0.0)
ROBERTA = BERT | {"type_vocab_size": 1}
FNET = {k: v for k, v in BERT.items() if k not in ("num_attention_heads", DROPOUT[1])}
ODD = {"type_vocab_size": 3, "hidden_act": "gelu_new", "layer_norm_eps": 0.1}
SMALL = {"num_attention_heads": 1, "num_hidden_layers": 1, "hidden_act": "relu"}
SINUSOIDS = {"sinusoidal_pos_embds": True, "activation": "relu", "n_layers": 3}
MODERN = SIZES | {"num_hidden_layers": 4, "local_attention": 8}
OTHER_LAYERS = {"layer_types": [*["sliding_attention"] * 3, "full_attention"], "norm_eps": 0.1}
OTHER_LAYERS |= {"hidden_activation": "silu", "local_attention": 5}
ANGLES = {"full_attention": 500.0, "sliding_attention": 20.0}
ANGLES = {kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in ANGLES.items()}
OTHER_LAYERS["rope_parameters"] = ANGLES
KINDS = {
    "BERT": ("Bert", BERT),
    "BERT, three types, gelu_new, a large epsilon": ("Bert", BERT | ODD),
    "BERT, one head, one layer, relu": ("Bert", BERT | SMALL),
    "DistilBERT": ("DistilBert", DISTIL),
    "DistilBERT, sinusoids, relu": ("DistilBert", DISTIL | SINUSOIDS),
    "RoBERTa": ("Roberta", ROBERTA),
    "RoBERTa, two types": ("Roberta", ROBERTA | {"type_vocab_size": 2}),
    "XLM-RoBERTa": ("XLMRoberta", ROBERTA),
    "CamemBERT": ("Camembert", ROBERTA | {"num_hidden_layers": 1}),
    "ModernBERT": ("ModernBert", MODERN),
    "ModernBERT, other layers": ("ModernBert", MODERN | OTHER_LAYERS),
    "FNet": ("FNet", FNET),
    "FNet, two types": ("FNet", FNET | {"type_vocab_size": 2, "hidden_act": "relu"}),
}
BYTE_LEVEL = ("Roberta", "XLMRoberta", "Camembert", "ModernBert")


@pytest.fixture(autouse=True)
def doubles(monkeypatch):
    compute_in_doubles(monkeypatch)


@pytest.fixture(scope="module")
def tokenizer_folders(tmp_path_factory):
    """Return where the files of two tokenizers are: WordPiece, and byte-level BPE."""
    folders = {}
    words = tmp_path_factory.mktemp("wordpiece")
    trainer = tokenizers.BertWordPieceTokenizer(lowercase=True)
    trainer.train_from_iterator(TEXTS[:4], vocab_size=150, min_frequency=1, show_progress=False)
    trainer.save_model(str(words))
    transformers.BertTokenizer.from_pretrained(words).save_pretrained(words)
    folders["wordpiece"] = words
    byte_pairs = tmp_path_factory.mktemp("bpe")
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = tokenizers.ByteLevelBPETokenizer()
    trainer.train_from_iterator(
        TEXTS[:4],
        vocab_size=330,
        min_frequency=1,
        special_tokens=special,
        show_progress=False,
    )
    trainer.save_model(str(byte_pairs))
    transformers.RobertaTokenizer.from_pretrained(byte_pairs).save_pretrained(byte_pairs)
    folders["bpe"] = byte_pairs
    return folders


@pytest.fixture
def make(tmp_path, tokenizer_folders):
    """Return a function that writes a folder and returns it with the model, in float64."""

    def made(name, head="Model", dtype=torch.float64, **changes):
        family, settings = KINDS[name]
        kind = "bpe" if family in BYTE_LEVEL else "wordpiece"
        tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_folders[kind])
        sizes = settings | {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
        config = getattr(transformers, f"{family}Config")(**sizes | changes)
        config._attn_implementation = "eager"
        model = getattr(transformers, family + head)(config).to(dtype).eval()
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for name_, parameter in model.named_parameters():
                drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                is_scale = "norm" in name_.lower() and name_.endswith("weight")
                parameter.copy_(float(is_scale) + 0.25 * drawn)
        folder = tmp_path / "theirs"
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder, model, tokenizer

    return made


def inputs(tokenizer, texts, **options):
    columns = (texts,) if isinstance(texts[0], str) else map(list, zip(*texts, strict=True))
    return dict(tokenizer(*columns, padding=True, truncation=True, return_tensors="pt", **options))


def run(model, tokenizer, texts, **options):
    """Return their output for some texts. FNet gets each text alone, for it has no mask."""
    with torch.no_grad():
        arguments = inputs(tokenizer, texts, **options)
        names = FORWARD[model.base_model_prefix]
        return arguments, model(**{k: v for k, v in arguments.items() if k in names})


FORWARD = dict.fromkeys(("roberta", "distilbert", "model"), ("input_ids", "attention_mask"))
FORWARD |= {"bert": ("input_ids", "attention_mask", "token_type_ids")}
FORWARD |= {"fnet": ("input_ids", "token_type_ids")}


def assert_near(ours, theirs, within, what=""):
    theirs = theirs.detach().numpy() if isinstance(theirs, torch.Tensor) else theirs
    assert ours.shape == theirs.shape, what
    apart = np.abs(ours - theirs).max(initial=0.0)
    assert apart <= within * max(1.0, np.abs(theirs).max(initial=0.0)), f"{what}: {apart:.1e}"


@pytest.mark.parametrize("kind", sorted(FAMILIES.keys() - {"gpt2", "marian"}))
def test_what_a_configuration_leaves_out_is_their_default(kind):
    architecture = FAMILIES[kind]
    theirs = getattr(transformers, f"{architecture.family}Config")().to_dict()
    assert theirs["model_type"] == kind
    for layers, older in architecture.thetas.items():
        of_all = theirs["rope_parameters"]
        theirs[older] = of_all.get(layers, of_all)["rope_theta"]
    if kind == "modernbert":
        theirs["global_attn_every_n_layers"] = theirs["layer_types"].index("full_attention", 1)
    assert {key: theirs[key] for key in architecture.defaults} == architecture.defaults
    prefix = getattr(transformers, architecture.class_name()).base_model_prefix
    assert prefix == architecture.prefix.rstrip(".")
    for head in architecture.heads:
        assert hasattr(transformers, architecture.class_name(head))


@pytest.mark.parametrize("name", ["BERT", "DistilBERT", "RoBERTa", "FNet", "ModernBERT"])
@pytest.mark.parametrize("texts", [TEXTS, PAIRS, TEXTS[2:3]], ids=["texts", "pairs", "empty"])
@pytest.mark.parametrize("max_len", [None, 8, 5])
def test_texts_are_encoded_as_by_their_tokenizer(make, name, texts, max_len):
    folder, _, tokenizer = make(name)
    ours = nf.from_pretrained(folder)
    most = 62 if name == "RoBERTa" else 64
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ids, mask, types = ours.encode(texts, max_len)
    theirs = inputs(tokenizer, texts, max_length=max_len or most)
    np.testing.assert_array_equal(ids, theirs["input_ids"])
    if "attention_mask" in theirs:
        np.testing.assert_array_equal(mask, theirs["attention_mask"].bool())
    if name in ("BERT", "FNet"):
        np.testing.assert_array_equal(types, theirs["token_type_ids"])
    else:
        assert types is None


CONFIG_FILE = "tokenizer_config.json"
NAMES = {"model_input_names": ["input_ids", "attention_mask"]}
SPECIAL = {"bos_token": "a", "mask_token": {"content": "<mask>", "lstrip": True}}
SPECIAL_FILE = "special_tokens_map.json"


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize(
    ("name", "file", "settings"),
    [
        ("BERT", CONFIG_FILE, {"bos_token": "the", "unk_token": "a"}),
        ("BERT", CONFIG_FILE, {"do_lower_case": False, "extra_special_tokens": ["<x>"]}),
        ("BERT", CONFIG_FILE, {"tokenizer_class": "DistilBertTokenizer"}),
        ("BERT", CONFIG_FILE, NAMES),
        ("BERT", SPECIAL_FILE, {"pad_token": "[SEP]", "mask_token": "the"}),
        ("BERT", "added_tokens.json", {"<x>": None}),
        ("RoBERTa", CONFIG_FILE, {"add_prefix_space": True}),
        ("RoBERTa", CONFIG_FILE, {"bos_token": "the", "eos_token": "a"}),
        ("RoBERTa", SPECIAL_FILE, SPECIAL),
    ],
)
def test_settings_of_a_tokenizer_act_as_theirs(make, tokenizer_folders, old, name, file, settings):
    """Also those of older files."""
    folder, _, tokenizer = make(name, vocab_size=400)
    settings = {k: len(tokenizer) if v is None else v for k, v in settings.items()}
    place = folder / "tokenizer_config.json"
    config = json.loads(place.read_text())
    place.write_text(json.dumps({k: v for k, v in config.items() if k != "added_tokens_decoder"}))
    before = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    (folder / file).write_text(json.dumps(before | settings))
    if old:
        (folder / "tokenizer.json").unlink()
        for source in tokenizer_folders["wordpiece" if name == "BERT" else "bpe"].iterdir():
            if source.name in ("vocab.txt", "vocab.json", "merges.txt"):
                (folder / source.name).write_bytes(source.read_bytes())
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = nf.from_pretrained(folder).tokenizer
    for text in [*TEXTS, "the weather <x> <mask>today"]:
        assert ours.ids(text) == theirs(text)["input_ids"], text
    types = theirs(*map(list, zip(*PAIRS, strict=True)), padding=True).get("token_type_ids")
    our_types = ours.encode_pairs(PAIRS)[2]
    np.testing.assert_array_equal(our_types, np.zeros_like(our_types) if types is None else types)


@pytest.mark.parametrize("name", ["BERT", "RoBERTa"])
def test_the_older_files_of_a_vocabulary_give_the_same_ids(make, name, tokenizer_folders):
    folder, _, tokenizer = make(name)
    (folder / "tokenizer.json").unlink()
    for file in ("vocab.txt", "vocab.json", "merges.txt"):
        source = tokenizer_folders["wordpiece" if name == "BERT" else "bpe"] / file
        if source.exists():
            (folder / file).write_bytes(source.read_bytes())
    ids, _, _ = nf.from_pretrained(folder).encode(TEXTS)
    np.testing.assert_array_equal(ids, inputs(tokenizer, TEXTS)["input_ids"])


PRECISIONS = pytest.mark.parametrize(
    ("dtype", "within"),
    [
        ("float64", 1e-12),
        ("float32", 1e-5),
    ],
)


@PRECISIONS
@pytest.mark.parametrize("name", KINDS)
def test_hidden_states_agree_without_padding(make, name, dtype, within):
    folder, model, tokenizer = make(name)
    ours = nf.from_pretrained(folder, dtype=dtype)
    assert ours.encoder.dtype == dtype
    for texts in (TEXTS, PAIRS):
        hidden_states = ours.hidden(texts, batch_size=3)
        for hidden, text in zip(hidden_states, texts, strict=True):
            _, theirs = run(model, tokenizer, [text])
            assert_near(hidden, theirs.last_hidden_state[0], within, text)


@PRECISIONS
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("FNet")])
def test_hidden_states_agree_with_padding(make, name, texts, dtype, within):
    folder, model, tokenizer = make(name)
    ours = nf.from_pretrained(folder, dtype=dtype)
    arguments, theirs = run(model, tokenizer, texts)
    hidden, _ = ours.encoder(*ours.encode(texts))
    tokens = arguments["attention_mask"].bool().numpy()
    assert_near(hidden[tokens], theirs.last_hidden_state.numpy()[tokens], within)


@PRECISIONS
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("FNet")])
def test_pooled_vectors_agree(make, name, texts, dtype, within):
    folder, model, tokenizer = make(name)
    ours = nf.from_pretrained(folder, dtype=dtype)
    _, theirs = run(model, tokenizer, texts)
    _, pooled = ours.encoder(*ours.encode(texts))
    if getattr(theirs, "pooler_output", None) is not None:
        assert_near(pooled, theirs.pooler_output, within)
    else:
        assert pooled is None


def test_padding_is_a_token_as_any_other_to_fnet_without_a_mask(make):
    folder, model, tokenizer = make("FNet")
    arguments, theirs = run(model, tokenizer, TEXTS)
    encoded = nf.from_pretrained(folder).encoder(arguments["input_ids"].numpy())
    assert_near(encoded.hidden, theirs.last_hidden_state, 1e-12)


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "DistilBERT", "ModernBERT"])
def test_a_text_of_the_most_tokens_agrees(make, name):
    folder, model, tokenizer = make(name)
    ours = nf.from_pretrained(folder)
    long = ["the weather is lovely " * 30, "today"]
    with pytest.warns(UserWarning, match=r"1 of 2 texts have more than max_len = (62|64) tokens"):
        hidden = ours.hidden(long)
    assert len(hidden[0]) == ours.max_len == ours.encoder.config.max_len
    _, theirs = run(model, tokenizer, long, max_length=ours.max_len)
    assert_near(hidden[0], theirs.last_hidden_state[0], 1e-12)


def as_sentence_encoder(folder, mode, normalize=True, max_len=12):
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    paths = ["", "1_Pooling", "2_Normalize"]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=False))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{m}": m == mode for m in ("cls_token", "mean_tokens", "max_tokens")}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    length = {"max_seq_length": max_len, "do_lower_case": False}
    (folder / "sentence_bert_config.json").write_text(json.dumps(length))


def pooled_by_hand(hidden, mask, mode):
    keep = mask[..., None].double()
    if mode == "cls_token":
        return hidden[:, 0]
    if mode == "max_tokens":
        return hidden.masked_fill(keep == 0, -torch.inf).max(dim=1).values
    return (hidden * keep).sum(1) / keep.sum(1)


@pytest.mark.parametrize("normalize", [True, False], ids=["norm 1", "as they are"])
@pytest.mark.parametrize("mode", ["mean_tokens", "cls_token", "max_tokens"])
@pytest.mark.parametrize("name", ["BERT", "DistilBERT", "RoBERTa", "XLM-RoBERTa"])
def test_embeddings_are_those_of_a_sentence_encoder(make, name, mode, normalize):
    folder, model, tokenizer = make(name)
    as_sentence_encoder(folder, mode, normalize)
    ours = nf.from_pretrained(folder)
    with pytest.warns(UserWarning, match="texts have more than max_len = 12 tokens"):
        embeddings = ours.embed(TEXTS, batch_size=2)
    arguments, theirs = run(model, tokenizer, STRIPPED, max_length=12)
    expected = pooled_by_hand(theirs.last_hidden_state, arguments["attention_mask"], mode)
    if normalize:
        expected = torch.nn.functional.normalize(expected, dim=1)
    assert_near(embeddings, expected, 1e-12)


HEADS = ["BERT", "DistilBERT", "RoBERTa", "XLM-RoBERTa", "CamemBERT", "FNet", "ModernBERT"]


def logits_of(model, tokenizer, texts):
    return torch.cat([run(model, tokenizer, [text])[1].logits for text in texts])


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize(("head", "n"), [("Sequence", 2), ("Sequence", 3), ("Token", 3)])
def test_a_trained_head_gives_the_same_logits(make, name, head, n):
    classes = {i: f"class {i}" for i in range(n)}
    changes = {"id2label": classes}
    if n == 3:  # ModernBERT has two poolings
        changes["classifier_pooling"] = "mean"
    folder, model, tokenizer = make(name, f"For{head}Classification", **changes)
    ours = nf.from_pretrained(folder)
    assert ours.classes == list(classes.values())
    texts = TEXTS if head == "Sequence" else TEXTS[:1]
    ids, mask, types = ours.encode(texts)
    assert_near(ours.classifier()(ids, mask, types), logits_of(model, tokenizer, texts), 1e-12)


@pytest.fixture(params=["BERT", "DistilBERT", "RoBERTa", "FNet", "ModernBERT"])
def masked(request, make):
    """Return a model for hidden tokens as we read it, their model and tokenizer."""
    folder, model, tokenizer = make(request.param, "ForMaskedLM")
    return nf.from_pretrained(folder), model, tokenizer


def test_the_head_for_hidden_tokens_is_read(masked):
    ours, model, tokenizer = masked
    ids, mask, types = ours.encode(TEXTS)
    logits = ours.masked_language_model()(ids, mask=mask, types=types)
    for of_text, text, tokens in zip(logits, TEXTS, mask, strict=True):
        _, theirs = run(model, tokenizer, [text])
        assert_near(of_text[tokens], theirs.logits[0], 1e-12)


def test_a_hidden_token_gets_their_probability(masked):
    ours, model, tokenizer = masked
    text = f"The weather is {tokenizer.mask_token} today."
    (((_, p),),) = nf.fill(ours, text, k=1)
    at = tokenizer(text)["input_ids"].index(tokenizer.mask_token_id)
    assert np.isclose(run(model, tokenizer, [text])[1].logits[0, at].softmax(-1), p, 1e-9, 0).any()


def test_transformers_reads_the_head_for_hidden_tokens(masked, tmp_path):
    ours, model, _ = masked
    ours.save(tmp_path / "ours")
    loaded = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "ours")
    assert type(loaded) is type(model)
    assert_same_state(model, loaded)


def test_a_model_of_hidden_tokens_comes_back(masked, tmp_path):
    ours, _, _ = masked
    model = ours.masked_language_model()
    save_pretrained(model, tmp_path / "own", architecture=ours.architecture.model_type)
    loaded = nf.from_pretrained(tmp_path / "own").masked_language_model()
    ids, mask, types = ours.encode(TEXTS)
    logits = model(ids, mask=mask, types=types)
    np.testing.assert_array_equal(loaded(ids, mask=mask, types=types), logits)


def test_regression_is_read(make):
    folder, model, tokenizer = make("BERT", "ForSequenceClassification", num_labels=1)
    ours = nf.from_pretrained(folder)
    assert ours.classifier().output == "mean_squared_error"
    ids, mask, types = ours.encode(TEXTS)
    assert_near(ours.classifier()(ids, mask, types), logits_of(model, tokenizer, TEXTS), 1e-12)


def test_several_labels_for_a_text_are_refused(make):
    folder, *_ = make("BERT", "ForSequenceClassification", num_labels=1)
    config = json.loads((folder / "config.json").read_text())
    config["problem_type"] = "multi_label_classification"
    (folder / "config.json").write_text(json.dumps(config))
    ours = nf.from_pretrained(folder)
    with pytest.raises(ValueError, match="several labels per text"):
        ours.classifier()


@pytest.mark.parametrize("name", HEADS)
def test_one_step_of_fine_tuning_agrees(make, name):
    folder, model, tokenizer = make(name, "ForSequenceClassification", num_labels=3)
    texts = TEXTS[:1] * 2 if name == "FNet" else [*TEXTS[:2], *TEXTS[3:6]]  # FNet: one length
    labels = np.arange(len(texts)) % 3
    ours = nf.from_pretrained(folder)
    classifier = ours.classifier()
    ids, mask, types = ours.encode(texts)
    loss, gradients = classifier.loss_and_gradients(ids, labels, mask, types=types)
    nf.Adam(classifier.parameters(), lr=1e-3).step(gradients)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    arguments = inputs(tokenizer, texts)
    arguments = {k: v for k, v in arguments.items() if k in FORWARD[model.base_model_prefix]}
    theirs = model(**arguments, labels=torch.tensor(labels))
    theirs.loss.backward()
    optimizer.step()
    assert abs(loss - theirs.loss.item()) < 1e-12
    architecture = ours.architecture.add_head(
        ours.architecture.find_head(ours.source_folder.hf_config)
    )
    after, weights = (
        dict(model.named_parameters()),
        architecture.their_arrays(classifier.parameters()),
    )
    for name, expected, largest in gradients_beside(architecture, gradients, model):
        new = after[name].detach().numpy()
        new = new[len(new) - len(expected) :]
        touched = np.abs(expected) > 1e-9 * largest
        np.testing.assert_allclose(weights[name][touched], new[touched], rtol=0, atol=1e-9)


def gradients_beside(architecture, gradients, model):
    """Assert that PyTorch's are the same; yield their names, PyTorch's, and the largest number."""
    theirs = {name: parameter.grad for name, parameter in model.named_parameters()}
    ours = architecture.their_arrays(gradients)
    places = architecture.places(gradients)
    assert ours.keys() == theirs.keys()
    assert sum(len(place.ours) for place in places.values()) == len(gradients)
    largest = max(g.abs().max().item() for g in theirs.values() if g is not None)
    for name, gradient in ours.items():
        expected = theirs[name].numpy()
        unused = len(expected) - len(gradient)  # the first positions of RoBERTa's family
        positions = places[name].ours == ("embed.positions.table",)
        assert unused == 2 * (model.base_model_prefix == "roberta" and positions)
        assert not expected[:unused].any()
        apart = np.abs(gradient - expected[unused:]).max()
        assert apart < 1e-12 * max(1.0, largest), name
        if not places[name].ours[0].endswith("key.bias"):  # that is 0 but for rounding
            assert apart < 1e-10 * np.abs(expected).max(), name
            yield name, expected[unused:], largest


@pytest.mark.parametrize("name", KINDS)
def test_gradients_of_both_outputs_agree(make, name):
    """With holes in the mask, but for FNet, which has none."""
    folder, model, tokenizer = make(name)
    ours = nf.from_pretrained(folder)
    texts = TEXTS[:1] * 2 if name.startswith("FNet") else TEXTS
    ids, mask, types = ours.encode(texts)
    arguments = inputs(tokenizer, texts)
    if not name.startswith("FNet"):
        mask = mask & (np.random.default_rng(1).random(mask.shape) < 0.7)
        mask[:, 0] = True
        arguments["attention_mask"] = torch.tensor(mask).long()
    theirs = model(**{k: v for k, v in arguments.items() if k in FORWARD[model.base_model_prefix]})
    (hidden, pooled), cache = ours.encoder.forward(ids, nf.Context(mask=mask, types=types))
    dhidden, dpooled = normals(hidden.shape, (len(ids), 24))
    dhidden *= mask[..., None]  # a loss does not look at padding
    total = (theirs.last_hidden_state * torch.tensor(dhidden)).sum()
    if pooled is None:
        dpooled = None
    else:
        total = total + (theirs.pooler_output * torch.tensor(dpooled)).sum()
    total.backward()
    gradients = nf.Gradients(ours.encoder)
    ours.encoder.backward((dhidden, dpooled), cache, gradients)
    assert list(gradients_beside(ours.architecture, gradients, model))


def test_only_our_padding_token_has_a_gradient(make):
    """What the docstring of `interop.huggingface` says: `padding_idx` freezes a row."""
    folder, model, _ = make("BERT", pad_token_id=5)
    encoder = nf.from_pretrained(folder).encoder
    ids = np.array([[5, 6, 5, 7]])
    model(torch.tensor(ids)).last_hidden_state.square().sum().backward()
    (hidden, _), cache = encoder.forward(ids, nf.Context())
    gradients = nf.Gradients(encoder)
    encoder.backward((2.0 * hidden, None), cache, gradients)
    theirs = model.embeddings.word_embeddings.weight.grad.numpy()
    ours = gradients["embed.tokens.weight"]
    assert ours[5].any() > theirs[5].any()
    assert_near(ours[6:], theirs[6:], 1e-10)


def assert_same_state(one, other):
    theirs = one.state_dict()
    ours = other.state_dict()
    assert theirs.keys() == ours.keys()
    for name, value in theirs.items():
        assert torch.equal(value, ours[name]), name


@pytest.mark.parametrize("name", KINDS)
def test_what_was_read_is_written_as_it_was(make, name, tmp_path):
    folder, model, tokenizer = make(name)
    ours = nf.from_pretrained(folder)
    ours.save(tmp_path / "ours")
    loaded = transformers.AutoModel.from_pretrained(tmp_path / "ours")
    assert type(loaded) is type(model)
    assert_same_state(model, loaded)
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert again(TEXTS, padding=True).data == tokenizer(TEXTS, padding=True).data
    files = (place / "config.json" for place in (folder, tmp_path / "ours"))
    before, after = (json.loads(file.read_text()) for file in files)
    del before["transformers_version"]
    for older_name in ours.architecture.thetas.values():  # which transformers 4 reads
        del after[older_name]
    assert after == before


@pytest.mark.parametrize("name", HEADS)
def test_a_fine_tuned_classifier_is_loaded_by_transformers(make, name, tmp_path):
    folder, _, tokenizer = make(name)
    ours = nf.from_pretrained(folder)
    pooling = ours.architecture.heads[0].pooling
    classifier = ours.classifier(3, pooling=pooling, seed=1)
    ids, mask, types = ours.encode(TEXTS)
    labels = np.arange(len(ids)) % 3
    _, gradients = classifier.loss_and_gradients(ids, labels, mask, types=types, seed=0)
    nf.Adam(classifier.parameters(), lr=1e-2).step(gradients)
    ours.save(tmp_path / "tuned", classifier, classes=["a", "b", "c"])
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "tuned")
    assert theirs.config.id2label == {0: "a", 1: "b", 2: "c"}
    assert theirs.dtype == torch.float64
    logits = classifier(ids, mask, types)
    assert_near(logits, logits_of(theirs.eval(), tokenizer, TEXTS), 1e-12)
    again = nf.from_pretrained(tmp_path / "tuned")
    assert again.classes == ["a", "b", "c"]
    np.testing.assert_array_equal(again.classifier()(ids, mask, types), logits)


@pytest.mark.parametrize("name", ["BERT", "RoBERTa"])
def test_a_head_on_the_mean_is_a_linear_layer_after_their_encoder(make, name, tmp_path):
    from safetensors.torch import load_file

    folder, _, tokenizer = make(name)
    as_sentence_encoder(folder, "mean_tokens", max_len=40)
    ours = nf.from_pretrained(folder)
    classifier = ours.classifier(3)
    ours.save(tmp_path / "tuned", classifier)
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "tuned").eval()
    dense = torch.nn.Linear(24, 3, dtype=torch.float64)
    state = load_file(tmp_path / "tuned" / "2_Dense" / "model.safetensors")
    dense.load_state_dict({key.removeprefix("linear."): value for key, value in state.items()})
    arguments, outputs = run(theirs, tokenizer, STRIPPED)
    pooled = pooled_by_hand(outputs.last_hidden_state, arguments["attention_mask"], "mean_tokens")
    ids, mask, types = ours.encode(TEXTS)
    assert_near(classifier(ids, mask, types), dense(pooled), 1e-12)


def test_a_model_that_was_made_here_goes_there(tmp_path, tokenizer_folders):
    from npformer.interop.tokenizers import read_tokenizer

    tokenizer = read_tokenizer(tokenizer_folders["wordpiece"])
    config = nf.EncoderConfig(
        d_model=16,
        n_layers=2,
        n_heads=2,
        d_ff=24,
        max_len=32,
        n_token_types=2,
        **ARCHITECTURES["bert"].fixed,
    )
    for kind, task in (("pooler", "Sequence"), ("none", "Token")):
        auto = getattr(transformers, f"AutoModelFor{task}Classification")
        model = nf.SequenceClassifier(
            config, 2, vocab_size=tokenizer.vocab_size, pooling=kind, dtype="float64"
        )
        folder = tmp_path / kind
        save_pretrained(model, folder, tokenizer=tokenizer, classes=["no", "yes"])
        theirs = auto.from_pretrained(folder).eval()
        their_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        ids, mask = tokenizer.encode(TEXTS[:1])
        arguments = their_tokenizer(TEXTS[:1], return_tensors="pt")
        np.testing.assert_array_equal(ids, arguments["input_ids"])
        with torch.no_grad():
            assert_near(model(ids, mask), theirs(**arguments).logits, 1e-12)
