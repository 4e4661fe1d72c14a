"""GPT-2's and Marian's folders that transformers writes, with random weights; and back."""

import json
import shutil
import warnings
from itertools import product

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import npformer as nf
from npformer import cli
from npformer.core import constants
from npformer.interop import save_pretrained
from npformer.interop.tokenizers import read_tokenizer, tokenizer_of
from tests.interop.pieces import llama_tokenizer, state_of
from tests.needs import NEEDS

from .helpers import compute_in_doubles, torch

transformers = pytest.importorskip("transformers", reason=NEEDS["transformers"])
sentencepiece = pytest.importorskip("sentencepiece", reason=NEEDS["sentencepiece"])
tokenizers = pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TEXTS = [
    "The weather is lovely today.",
    "He drove to the stadium, and unbelievably slowly, too; nobody knew why he had.",
    "Café Ωmega \U0001f600 zzzqqq",
    "two\nlines  and   spaces",
]
GPT2 = {"n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 4, "vocab_size": 300}
GPT2 |= {"bos_token_id": 0, "eos_token_id": 0}
GPT2 |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
RELU, GELU = {"activation_function": "relu"}, {"activation_function": "gelu"}
GPT2_KINDS = {"as published": {}}
GPT2_KINDS["relu, inner size, large epsilon"] = RELU | {"n_inner": 20, "layer_norm_epsilon": 1e-3}
GPT2_KINDS["an output of its own, exact gelu"] = GELU | {"tie_word_embeddings": False}
N_MARIAN = 60
MARIAN = {"d_model": 16, "max_position_embeddings": 24, "vocab_size": N_MARIAN, "dropout": 0.0}
MARIAN |= {f"{side}_layers": 2 for side in ("encoder", "decoder")}
MARIAN |= {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
MARIAN |= {f"{side}_ffn_dim": 24 for side in ("encoder", "decoder")}
MARIAN |= {"pad_token_id": N_MARIAN - 1, "decoder_start_token_id": N_MARIAN - 1}
MARIAN |= {"eos_token_id": 0, "forced_eos_token_id": 0, "activation_function": "swish"}
MARIAN_KINDS = {"swish, scaled": {"scale_embedding": True}, "relu": RELU}
OTHER_SIZES = {"decoder_layers": 1, "decoder_ffn_dim": 40, "encoder_layers": 3}
MARIAN_KINDS["other sizes on both sides"] = OTHER_SIZES


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 300}
SIZES |= {"intermediate_size": 20, "max_position_embeddings": 24, "bos_token_id": 0}
SIZES |= {"eos_token_id": 0, "pad_token_id": 0}
GROUPED, WIDE = {"num_key_value_heads": 2}, {"head_dim": 6, "num_key_value_heads": 1}
ANGLES = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}
MODERN_KINDS = {
    "Llama, grouped": ("Llama", GROUPED | ANGLES),
    "Llama, tied, another epsilon": ("Llama", {"tie_word_embeddings": True, "rms_norm_eps": 0.1}),
    "Qwen3": ("Qwen3", GROUPED | {"head_dim": 4}),
    "Qwen3, tied, wide heads, gelu": (
        "Qwen3",
        WIDE | ANGLES | {"tie_word_embeddings": True, "hidden_act": "gelu_new"},
    ),
}


@pytest.fixture(autouse=True)
def doubles(monkeypatch):
    compute_in_doubles(monkeypatch)


def randomised(model, scale=0.3):
    """Return the model in float64 with random weights, and exact sinusoids."""
    generator = torch.Generator().manual_seed(0)
    model = model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(scale * noise)
        for side in ("encoder", "decoder"):
            side_model = getattr(getattr(model, "model", None), side, None)
            if side_model is not None:  # they are rounded to float32 when a model is made
                length, d_model = side_model.embed_positions.weight.shape
                exact = constants.sinusoids(length, d_model, halves=True)
                side_model.embed_positions.weight.copy_(torch.from_numpy(exact))
        if hasattr(model, "final_logits_bias"):
            shape = model.final_logits_bias.shape
            model.final_logits_bias = torch.randn(shape, generator=generator, dtype=torch.float64)
    return model


def byte_pairs(folder):
    library = tokenizers.ByteLevelBPETokenizer()
    library.train_from_iterator(TEXTS * 4, vocab_size=290, special_tokens=["<|endoftext|>"])
    folder.mkdir(exist_ok=True)
    library.save_model(str(folder))
    tokenizer = transformers.GPT2Tokenizer(
        str(folder / "vocab.json"),
        str(folder / "merges.txt"),
        **dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"),
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def gpt2(folder, **changes):
    torch.manual_seed(0)  # a model draws its first weights from there
    config = transformers.GPT2Config(**GPT2 | changes)
    model = randomised(transformers.GPT2LMHeadModel(config))
    model.save_pretrained(folder)
    return model


def modern(folder, kind="Qwen3", **changes):
    family, settings = MODERN_KINDS[kind]
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SIZES | settings | changes)
    model = randomised(getattr(transformers, f"{family}ForCausalLM")(config))
    model.save_pretrained(folder)
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.from_numpy(ids)).logits.numpy()


def near(ours, theirs, within=1e-10):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=within * np.abs(theirs).max())


@pytest.fixture(params=MODERN_KINDS)
def modern_pair(request, tmp_path):
    """Return a model of theirs, and the same as we read it."""
    theirs = modern(tmp_path / "theirs", request.param)
    return theirs, nf.from_pretrained(tmp_path / "theirs")


MODERN_IDS = np.random.default_rng(0).integers(0, 300, (3, 24))


def test_logits_of_modern_models_agree(modern_pair):
    theirs, ours = modern_pair
    near(ours.model(MODERN_IDS), logits_of(theirs, MODERN_IDS))


def test_hidden_states_of_modern_models_agree(modern_pair):
    theirs, ours = modern_pair
    embedded, _ = ours.model.embed.forward(MODERN_IDS, nf.Context())
    hidden, _ = ours.model.encoder.forward(embedded, nf.Context())
    with torch.no_grad():
        near(hidden, theirs.model(torch.from_numpy(MODERN_IDS)).last_hidden_state.numpy())


def test_transformers_reads_modern_models(modern_pair, tmp_path):
    theirs, ours = modern_pair
    ours.save(tmp_path / "ours")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval()
    assert loaded.dtype == torch.float64
    near(logits_of(loaded, MODERN_IDS), logits_of(theirs, MODERN_IDS))
    expected = theirs.config.to_dict() | {"_name_or_path": ""}
    assert loaded.config.to_dict() | {"_name_or_path": ""} == expected


@pytest.mark.parametrize("kind", MODERN_KINDS)
def test_greedy_tokens_of_rows_of_unequal_lengths(kind, tmp_path):
    theirs = modern(tmp_path, kind)
    ours = nf.from_pretrained(tmp_path).model
    rng = np.random.default_rng(1)
    rows = [rng.integers(1, 300, n) for n in (7, 2, 5)]
    ids = np.stack([np.pad(row, (7 - len(row), 0)) for row in rows])
    options = {"max_new_tokens": 15, "do_sample": False, "eos_token_id": None}
    options["attention_mask"] = torch.from_numpy(ids > 0).long()
    expected = theirs.generate(torch.from_numpy(ids), **options)[:, 7:].numpy()
    assert len(np.unique(expected)) > 1
    for cache in (True, False):
        np.testing.assert_array_equal(ours.generate(rows, 15, temperature=0, cache=cache), expected)


def test_bfloat16_is_read_exactly(tmp_path):
    modern(tmp_path).bfloat16().save_pretrained(tmp_path)
    auto = transformers.AutoModelForCausalLM
    ids = np.arange(24)[None]
    expected = logits_of(auto.from_pretrained(tmp_path, dtype=torch.float64).eval(), ids)
    near(nf.from_pretrained(tmp_path, dtype="float64").model(ids), expected)
    near(nf.from_pretrained(tmp_path).model(ids), expected, 1e-5)


OLDER_MODERNBERT = {"global_attn_every_n_layers": 2, "global_rope_theta": 500.0}
OLDER_MODERNBERT |= {"layer_types": None, "rope_parameters": None, "local_attention": 4}
LLAMA_3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("ModernBert", OLDER_MODERNBERT),
        ("ModernBert", OLDER_MODERNBERT | {"local_rope_theta": 20.0, "rope_scaling": None}),
        ("ModernBert", {"rope_parameters": {"full_attention": {"rope_theta": 30.0}}}),
        ("Llama", {"rope_parameters": None, "rope_theta": 30.0}),
        ("Llama", {"rope_parameters": None, "head_dim": None}),
        ("Llama", {"rope_scaling": {"type": "default", "rope_theta": 30.0}}),
        ("Qwen3", {"rope_parameters": None, "rope_theta": 30.0, "layer_types": None}),
        ("Qwen3", {"sliding_window": 4, "use_sliding_window": False, "max_window_layers": 1}),
    ],
)
def test_words_of_other_versions_in_a_configuration(tmp_path, family, changes):
    torch.manual_seed(0)
    kind = "Model" if family == "ModernBert" else "ForCausalLM"
    config = getattr(transformers, f"{family}Config")(**SIZES | GROUPED | {"head_dim": 4})
    randomised(getattr(transformers, family + kind)(config)).save_pretrained(tmp_path)
    stated = json.loads((tmp_path / "config.json").read_text()) | changes
    stated = {k: v for k, v in stated.items() if v is not None or k == "rope_scaling"}
    (tmp_path / "config.json").write_text(json.dumps(stated))
    theirs = getattr(transformers, family + kind).from_pretrained(tmp_path, dtype=torch.float64)
    ours = nf.from_pretrained(tmp_path).model
    ids = np.arange(24)[None]
    with torch.no_grad():
        expected = theirs.eval()(torch.from_numpy(ids))[0].numpy()
    near(ours(ids)[0] if kind == "Model" else ours(ids), expected)


@pytest.mark.parametrize(
    ("family", "changes", "said"),
    [
        (
            "Llama",
            {"rope_scaling": LLAMA_3},
            "rope_type = 'llama3'; expected 'default': .* not scaled",
        ),
        ("Llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "with type = 'linear'; ex"),
        ("Qwen3", {"rope_parameters": LLAMA_3 | {"rope_type": "yarn"}}, "rope_type = 'yarn'"),
        ("Qwen3", {"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5; expected"),
        ("Qwen3", {"use_sliding_window": True}, "use_sliding_window = True; expected False"),
        ("Qwen3", {"layer_types": ["sliding_attention"] * 2}, "is 'sliding_attention'; expected"),
        ("Qwen3", {"layer_types": ["full_attention"]}, "has 1 entries; expected one for each of 2"),
        ("Qwen3", {"model_type": "qwen3_moe"}, "model_type in .* is 'qwen3_moe'; expected one of"),
        ("Llama", {"attention_bias": True}, "attention_bias = True; expected False"),
        ("Llama", {"mlp_bias": True}, "mlp_bias = True; expected False"),
        ("Llama", {"hidden_act": "relu2"}, "hidden_act is 'relu2'; expected one of"),
        ("Llama", {"rope_parameters": [1]}, "rope_parameters is a list"),
        ("Llama", {"rope_parameters": {"rope_theta": -1}}, "rope_theta is -1; expected a number"),
        ("ModernBert", {"norm_bias": True}, "norm_bias = True; expected False"),
        ("ModernBert", {"hidden_activation": "relu2"}, "hidden_activation is 'relu2'"),
        ("ModernBert", {"rope_parameters": {"rope_theta": 5.0}}, "_parameters has 'rope_theta'"),
        ("ModernBert", {"rope_scaling": LLAMA_3}, "rope_type = 'llama3'"),
        ("ModernBert", {"local_attention": 0}, "local_attention is 0; expected"),
    ],
)
def test_what_npformer_has_not_is_refused(tmp_path, family, changes, said):
    kind = "Model" if family == "ModernBert" else "ForCausalLM"
    config = getattr(transformers, f"{family}Config")(**SIZES)
    getattr(transformers, family + kind)(config).save_pretrained(tmp_path)
    stated = json.loads((tmp_path / "config.json").read_text()) | changes
    (tmp_path / "config.json").write_text(json.dumps(stated))
    with pytest.raises((TypeError, ValueError), match=said):
        nf.from_pretrained(tmp_path)


def test_a_byte_level_tokenizer_counts_as_its_file_says(tmp_path, capsys):
    """SmolLM2's splits digits, and its folder names a class whose texts would not be split."""
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    pre_tokenizers = tokenizers.pre_tokenizers
    split = [
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ]
    library.pre_tokenizer = pre_tokenizers.Sequence(split)
    library.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=290,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator([*TEXTS, "12 1212"] * 4, trainer)
    theirs = modern(tmp_path, "Llama, grouped", vocab_size=290)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=library, eos_token="<|end|>")
    tokenizer.save_pretrained(tmp_path)
    stated = json.loads((tmp_path / "tokenizer_config.json").read_text())
    stated["tokenizer_class"] = "GPT2Tokenizer"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
    ids = torch.tensor([tokenizer("1212 a")["input_ids"]])
    tokens = theirs.generate(ids, max_new_tokens=8, do_sample=False)[0, ids.shape[1] :]
    theirs.generation_config.eos_token_id = [0, int(tokens[4])]  # one of several ends
    theirs.generation_config.save_pretrained(tmp_path)
    ended_tokens = theirs.generate(ids, max_new_tokens=8, do_sample=False)[0, ids.shape[1] : -1]
    ours = nf.from_pretrained(tmp_path)
    for text in [*TEXTS, "1212 a12", ""]:
        assert ours.tokenizer.ids(text) == tokenizer(text)["input_ids"], text
    assert 0 < len(ended_tokens) < 5
    expected = tokenizer.decode(ended_tokens, skip_special_tokens=True)
    assert ours.generate(["1212 a", "The"], 8, temperature=0)[0] == expected
    assert "".join(ours.stream("1212 a", 8, temperature=0)) == expected
    run = ["generate", str(tmp_path), "1212 a", "--tokens", "8", "--temperature", "0"]
    assert cli.main(run) == 0
    assert capsys.readouterr().out == f"1212 a{expected}\n"
    assert cli.main(["predict", str(tmp_path), "a"]) != 0
    assert "is a folder in Hugging Face's layout; expected one" in capsys.readouterr().err


def test_a_vocabulary_padded_beyond_its_tokenizer(tmp_path):
    tokenizer = byte_pairs(tmp_path)
    theirs = gpt2(tmp_path, vocab_size=320, eos_token_id=None)
    ours = nf.from_pretrained(tmp_path)
    unused = [id for id in range(320) if tokenizer.convert_ids_to_tokens(id) is None]
    assert ours.tokenizer.ids_without_token(320) == unused
    rng = np.random.default_rng(0)
    for _ in range(20):
        ids = [0, *rng.integers(0, 320, 20).tolist()]
        for skip in (True, False):
            expected = tokenizer.decode(
                ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False
            )
            assert ours.tokenizer.decode(ids, skip_special_tokens=skip) == expected
    for text in TEXTS[:2]:
        ids = torch.tensor([tokenizer(text)["input_ids"][:12]])
        tokens = theirs.generate(ids, max_new_tokens=12, do_sample=False, suppress_tokens=unused)
        expected = tokenizer.decode(tokens[0, ids.shape[1] :])
        prompt = tokenizer.decode(ids[0])
        assert ours.generate(prompt, 12, temperature=0) == expected
        assert "".join(ours.stream(prompt, 12, temperature=0)) == expected


@pytest.mark.parametrize("prefix", ["first", "normalizer"])
def test_a_tokenizer_of_llama_2_s_kind(prefix, tmp_path):
    """The text of a stream is what transformers makes of the ids, and so are the ids of a text."""
    library = llama_tokenizer(prefix=prefix)
    state_of(tmp_path, library, add_bos_token=True, add_eos_token=False, legacy=False)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = read_tokenizer(tmp_path, padding="</s>")
    for text in ("To be or not", "To be\u20ac", ""):
        assert ours.ids(text) == tokenizer(text)["input_ids"]
    rng = np.random.default_rng(0)
    known = [1, 999, *range(259, ours.vocab_size)]
    known += [tokenizer.convert_tokens_to_ids(f"<0x{byte:02X}>") for byte in (0xE2, 0x82, 0xAC)]
    for _ in range(200):
        ids = rng.choice(known, 15).tolist()
        text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert "".join(ours.pieces(ids)) == ours.decode(ids) == text


def marian(folder, **changes):
    torch.manual_seed(0)
    config = transformers.MarianConfig(**MARIAN | changes)
    model = randomised(transformers.MarianMTModel(config), scale=0.5)
    model.save_pretrained(folder)
    return model


def pieces(folder):
    folder.mkdir(exist_ok=True)
    text = folder / "text.txt"
    text.write_text("\n".join(TEXTS * 4), "utf-8")
    names = {}
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / side), vocab_size=50, minloglevel=2
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        names |= dict.fromkeys(processor.id_to_piece(i) for i in range(processor.get_piece_size()))
    text.unlink()
    words = [name for name in names if name not in ("</s>", "<s>", "<unk>")]
    ids = {"</s>": 0, "<unk>": 1}
    ids |= {word: i for i, word in enumerate([*words, ">>xx<<"], start=2)}
    ids["<pad>"] = len(ids)
    (folder / "vocab.json").write_text(json.dumps(ids), "utf-8")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
        tokenizer = transformers.MarianTokenizer(
            source_spm=str(folder / "source.spm"),
            target_spm=str(folder / "target.spm"),
            vocab=str(folder / "vocab.json"),
        )
    return tokenizer, len(ids)


@pytest.mark.parametrize("kind", GPT2_KINDS)
def test_logits_of_gpt2_agree(kind, tmp_path):
    theirs = gpt2(tmp_path, **GPT2_KINDS[kind])
    ids = np.random.default_rng(0).integers(0, 300, (3, 24))
    near(nf.from_pretrained(tmp_path).model(ids), logits_of(theirs, ids))


@pytest.mark.parametrize("kind", GPT2_KINDS)
def test_greedy_tokens_of_gpt2_agree(kind, tmp_path):
    theirs = gpt2(tmp_path, **GPT2_KINDS[kind])
    ids = np.random.default_rng(1).integers(1, 300, (4, 5))
    rows = theirs.generate(
        torch.from_numpy(ids),
        max_new_tokens=15,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    tokens = nf.from_pretrained(tmp_path).model.generate(ids, 15, temperature=0)
    np.testing.assert_array_equal(tokens, rows[:, 5:].numpy())
    assert len(np.unique(tokens)) > 1  # not one token again and again


def test_an_output_that_differs_from_the_table_is_kept(tmp_path):
    folder = tmp_path / "theirs"
    ids = np.random.default_rng(0).integers(0, 300, (2, 9))
    gpt2(folder, tie_word_embeddings=False)
    config = json.loads((folder / "config.json").read_text())
    state = load_file(folder / "model.safetensors")
    n = 0
    for tied, names in product((False, None, True), (("wte", "lm_head"), ("lm_head",), ("wte",))):
        stored = {k: v for k, v in state.items() if k.split(".")[-2] in names or ".h." in k}
        stored |= {k: v for k, v in state.items() if "wpe" in k or "ln_f" in k}
        save_file(stored, folder / "model.safetensors")
        config.pop("tie_word_embeddings", None)
        stated = {} if tied is None else {"tie_word_embeddings": tied}
        (folder / "config.json").write_text(json.dumps(config | stated))
        if tied is False and len(names) < 2:
            with pytest.raises(ValueError, match="is missing"):
                nf.from_pretrained(folder)
            continue
        theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float64).eval()
        ours = nf.from_pretrained(folder)
        ours.save(tmp_path / f"{n}")
        again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / f"{n}").eval()
        with torch.no_grad():
            expected, other = (m(torch.from_numpy(ids)).logits.numpy() for m in (theirs, again))
        np.testing.assert_allclose(ours.model(ids), expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(other, expected, rtol=0, atol=1e-10)
        n += 1
    assert n == 7


@pytest.mark.parametrize("kind", MARIAN_KINDS)
def test_logits_of_marian(kind, tmp_path):
    theirs = marian(tmp_path, **MARIAN_KINDS[kind])
    ours = nf.from_pretrained(tmp_path)
    rng = np.random.default_rng(0)
    padding = N_MARIAN - 1
    source, target = rng.integers(1, padding, (3, 20)), rng.integers(1, padding, (3, 12))
    source[1, 13:] = target[2, 7:] = padding
    target[:, 0] = padding  # what Marian begins with
    target_mask = np.ones(target.shape, bool)
    target_mask[2, 7:] = False
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.from_numpy(source),
            attention_mask=torch.from_numpy(source != padding).long(),
            decoder_input_ids=torch.from_numpy(target),
            decoder_attention_mask=torch.from_numpy(target_mask).long(),
        ).logits.numpy()
    np.testing.assert_allclose(
        ours.model(source, target)[target_mask], expected[target_mask], rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("kind", MARIAN_KINDS)
def test_greedy_tokens_of_marian(kind, tmp_path):
    theirs = marian(tmp_path, forced_eos_token_id=None, **MARIAN_KINDS[kind])
    ours = nf.from_pretrained(tmp_path)
    padding = N_MARIAN - 1
    source = np.random.default_rng(2).integers(1, padding, (6, 9))
    source[3, 4:] = padding
    mask = torch.from_numpy(source != padding).long()
    options = {"max_new_tokens": 14, "num_beams": 1, "do_sample": False}
    options |= {"attention_mask": mask, "bad_words_ids": [[padding]]}
    tokens = theirs.generate(torch.from_numpy(source), **options)
    rows = [[id for id in row[1:] if id not in (0, padding)] for row in tokens.tolist()]
    assert ours.model.generate(source, 14) == rows
    assert len({id for row in rows for id in row}) > 1


@pytest.mark.parametrize("make", [gpt2, marian])
def test_a_folder_comes_back_as_it_was(make, tmp_path):
    theirs = make(tmp_path / "one")
    ours = nf.from_pretrained(tmp_path / "one")
    ours.save(tmp_path / "two")
    again = type(theirs).from_pretrained(tmp_path / "two", dtype=torch.float64)
    for name, value in theirs.state_dict().items():
        if "embed_positions" not in name:
            np.testing.assert_array_equal(again.state_dict()[name].numpy(), value.numpy())
    one, other = (model.config.to_dict() | {"_name_or_path": ""} for model in (theirs, again))
    assert one == other
    here = nf.from_pretrained(tmp_path / "two")
    for name, value in ours.model.parameters().items():
        np.testing.assert_array_equal(here.model.parameters()[name], value)


@pytest.mark.parametrize("files", ["tokenizer.json", "vocab.json and merges.txt"])
def test_texts_of_gpt2(files, tmp_path):
    tokenizer = byte_pairs(tmp_path)
    if files != "tokenizer.json":
        (tmp_path / "tokenizer.json").unlink()
    theirs = gpt2(tmp_path, n_positions=96)
    ours = nf.from_pretrained(tmp_path)
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        assert ours.tokenizer.ids(text) == ids
        assert ours.tokenizer.decode(ids) == tokenizer.decode(
            ids, clean_up_tokenization_spaces=False
        )
    ids = torch.tensor([tokenizer(TEXTS[2])["input_ids"]])
    tokens = theirs.generate(ids, max_new_tokens=8, do_sample=False, pad_token_id=0)[0]
    expected = tokenizer.decode(tokens[ids.shape[1] :], skip_special_tokens=True)
    assert ours.generate(TEXTS[2], 8, temperature=0) == expected
    assert ours.generate([TEXTS[2], "a"], 8, temperature=0)[0] == expected
    assert "".join(ours.stream(TEXTS[2], 8, temperature=0)).startswith(expected)
    ours.save(tmp_path / "again")
    again = nf.from_pretrained(tmp_path / "again")
    assert again.generate("a", 8, seed=3) == ours.generate("a", 8, seed=3)


def test_texts_of_marian(tmp_path):
    tokenizer, size = pieces(tmp_path)
    theirs = marian(
        tmp_path,
        vocab_size=size,
        decoder_vocab_size=size,
        max_position_embeddings=128,
        pad_token_id=size - 1,
        decoder_start_token_id=size - 1,
    )
    ours = nf.from_pretrained(tmp_path)
    for text in [
        *TEXTS,
        ">>xx<< The weather",
        "a </s> b",
        "<pad> x<unk>",
        "the</s>>>xx<< a",
        ">><< the",
        ">>x\n<< a",
        ">>xx<<",
        " ",
    ]:
        ids = tokenizer(text)["input_ids"]
        assert ours.tokenizer.ids(text) == ids, text
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    tokens = theirs.generate(
        **batch,
        max_new_tokens=10,
        num_beams=1,
        do_sample=False,
        bad_words_ids=[[size - 1]],
        forced_eos_token_id=None,
    )
    expected = tokenizer.batch_decode(tokens, skip_special_tokens=True)
    assert ours.generate(TEXTS, 10) == expected
    assert ours.generate(TEXTS[0], 10) == expected[0]
    for row in [*tokens.tolist(), [size - 1, 5, 6, 0, 7, 1, 8], [-1, size + 3, 9, 0]]:
        known = [id for id in row if 0 <= id < size]
        for skip in (True, False):
            expected_text = tokenizer.decode(
                known, skip_special_tokens=skip, use_source_tokenizer=False
            )
            assert ours.tokenizer.decode(row, skip_special_tokens=skip) == expected_text
    assert ours.tokenizer.ids_without_token(size + 2) == [size, size + 1]
    vocabulary = json.loads((tmp_path / "vocab.json").read_text("utf-8"))
    spaced = [vocabulary[word] for word in ("the", "\u2581", ".")]
    values = ours.tokenizer.to_dict()
    for clean_up, expected_text in ((False, "the ."), (True, "the.")):
        assert tokenizer_of(values | {"clean_up": clean_up}).decode(spaced) == expected_text
    word, other, *_ = vocabulary.keys() - {"</s>", "<unk>", "<pad>"}
    for file, change, expected_text in (
        (
            "tokenizer_config.json",
            {"sp_model_kwargs": {"alpha": 0.1}},
            "changes sp_model_kwargs; exp",
        ),
        ("special_tokens_map.json", {"eos_token": "<unk>"}, "changes eos_token; expected"),
        ("vocab.json", vocabulary | {word: vocabulary[other]}, "have the same id"),
        (
            "vocab.json",
            vocabulary | {"new": size},
            f"the tokenizer has {size + 1} ids, and the mod",
        ),
        ("source.spm", None, "source.spm or target.spm is damaged: it is empty"),
    ):
        shutil.copytree(tmp_path, folder := tmp_path.with_name(f"{tmp_path.name}-odd"))
        (folder / file).write_text("" if change is None else json.dumps(change), "utf-8")
        with pytest.raises(ValueError, match=expected_text):
            nf.from_pretrained(folder).generate("a")
        shutil.rmtree(folder)
    ours.save(tmp_path / "again")
    again = nf.from_pretrained(tmp_path / "again")
    ours_beams = ours.generate(TEXTS, 10, beams=2)
    assert again.generate(TEXTS, 10, beams=2) == ours_beams


def test_a_model_made_here_is_one_of_theirs(tmp_path):
    sizes = {"d_model": 16, "n_heads": 4, "d_ff": 20, "max_len": 12, "causal": True}
    like_gpt2 = nf.EncoderConfig(**sizes, norm="pre", positions="learned", scale_embeddings=False)
    like_llama = nf.EncoderConfig.modern(**sizes)
    ids = np.random.default_rng(0).integers(0, 30, (2, 12))
    for config, name in ((like_gpt2, "gpt2"), (like_llama, "llama")):
        model = nf.LanguageModel(config, 30, tied=name == "gpt2", dtype="float64")
        save_pretrained(model, tmp_path / name)
        theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / name).double()
        assert theirs.config.model_type == name
        near(model(ids), logits_of(theirs.eval(), ids))
