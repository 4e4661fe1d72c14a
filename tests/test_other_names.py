"""Names that people bring from other libraries: the error's first line says what to write here."""

import pkgutil
import re
import subprocess
import sys

import pytest

import npformer as nf
from npformer.cli.program import run
from npformer.core.support import other_names
from tests.needs import NEEDS

AT_THE_TOP = """
softmax: npformer.functional.softmax
layer_norm: npformer.functional.layer_norm
cross_entropy: npformer.functional.softmax_cross_entropy
Linear: npformer.layers.Linear
Dense: npformer.layers.Linear
LayerNorm: npformer.layers.LayerNorm
Embedding: npformer.layers.Embedding
Dropout: npformer.layers.Dropout
MultiheadAttention: npformer.mixers.Attention
TransformerEncoder: npformer.Encoder
TransformerEncoderLayer: npformer.EncoderBlock
CrossEntropyLoss: npformer.losses.SoftmaxCrossEntropy
BCEWithLogitsLoss: npformer.losses.BinaryCrossEntropy
AdamW: npformer.Adam
BertConfig: npformer.EncoderConfig
AutoModel: npformer.from_pretrained
AutoTokenizer: npformer.interop.tokenizers.read_tokenizer
Trainer: npformer.fit(model, (x, y))
LightningModule: npformer.Model
EarlyStopping: npformer.fit(model, (x, y), patience=3, validation=0.1)
train_supervised: npformer.TextClassifier
load_model: npformer.load
EncoderClassifier: npformer.sklearn.EncoderClassifier
clip_grad_norm_: npformer.clip_by_global_norm
"""
MISSPELT = """
TextClasifier: TextClassifier
evalute: evaluate
funtional: functional
LayerNrom: npformer.layers.LayerNorm
softmx: npformer.functional.softmax
functional.softmx: softmax
layers.LayerNrom: LayerNorm
losses.SoftmaxCrossEntrop: SoftmaxCrossEntropy
mixers.Atention: Attention
models.SequenceClassifer: npformer.SequenceClassifier
optim.cosin: cosine
data.digit: digits
core.asary: asarray
engine.fst: fast
interop.from_pretraned: from_pretrained
distributed.word: world
published.BlogFNetBlok: BlogFNetBlock
"""
IN_ANOTHER_MODULE = """
layers.softmax: npformer.functional.softmax
functional.LayerNorm: npformer.layers.LayerNorm
functional.fit: npformer.fit
optim.AdamW: npformer.Adam
losses.CrossEntropyLoss: npformer.losses.SoftmaxCrossEntropy
"""
IN_FIT = """
learning_rate=lr max_iter=epochs max_epochs=epochs num_train_epochs=epochs epoch=epochs
n_iter_no_change=patience early_stopping_patience=patience validation_split=validation
eval_dataset=validation random_state=seed n_jobs=workers thread=workers verbose=progress
per_device_train_batch_size=batch_size criterion=loss metrics=metric lr_scheduler_type=schedule
gradient_clip_val=clip_norm accumulate_grad_batches=accumulate resume_from_checkpoint=resume
"""
IN_CONFIG = """
hidden_size=d_model embed_dim=d_model num_hidden_layers=n_layers nhead=n_heads
dim_feedforward=d_ff intermediate_size=d_ff max_position_embeddings=max_len hidden_act=activation
hidden_dropout_prob=dropout layer_norm_eps=norm_eps
"""
IN_ENCODER_CLASSIFIER = """
epochs=max_iter lr=learning_rate patience=n_iter_no_change seed=random_state
"""
IN_TEXT_CLASSIFIER = """
epochs=fit(...,@epochs=...) learning_rate=fit(...,@lr=...) hidden_size=config={'d_model':@...}
random_state='seed' wordNgrams='ngrams' minCount='min_count'
"""
IN_THE_SHELL = """
fit: 'train'
supervised: 'train'
test: 'evaluate'
predict-prob: 'predict'
train digits --learning-rate 0.1: '--lr'
train digits --hidden-size 8: '--d-model'
train digits --num-train-epochs 3: '--epochs'
train digits --num-layers 2: '--layers'
train texts.csv --wordNgrams=2: '--ngrams'
"""
PATHS = sorted(set(re.findall(r"npformer[\w.]*", other_names.PLACES)))


def lines(table):
    return [tuple(line.split(": ")) for line in table.strip().splitlines()]


def words(table):
    return [tuple(word.replace("@", " ").split("=", 1)) for word in table.split()]


def first_line(error):
    return str(error.value).splitlines()[0]


def test_at_least_60_names_are_tried():
    of_arguments = [IN_FIT, IN_CONFIG, IN_ENCODER_CLASSIFIER, IN_TEXT_CLASSIFIER]
    names = [name for table in of_arguments for name, _ in words(table)]
    names += [name for table in (AT_THE_TOP, IN_THE_SHELL) for name, _ in lines(table)]
    assert len(names) >= 60


@pytest.mark.parametrize(("name", "place"), lines(AT_THE_TOP))
def test_the_package_names_the_place(name, place):
    with pytest.raises(AttributeError) as error:
        getattr(nf, name)
    assert first_line(error) == f"module 'npformer' has no attribute '{name}'; write {place}"


@pytest.mark.parametrize(("name", "ours"), words(IN_FIT))
def test_fit_names_its_argument(name, ours):
    with pytest.raises(TypeError) as error:
        nf.fit(None, None, **{name: 3})
    assert first_line(error).endswith(f". Did you mean '{ours}'?")


@pytest.mark.parametrize(("name", "ours"), words(IN_CONFIG))
def test_the_configuration_names_its_setting(name, ours):
    with pytest.raises(TypeError) as error:
        nf.EncoderConfig(**{name: 3})
    assert first_line(error).endswith(f". Did you mean '{ours}'?")


@pytest.mark.parametrize(("name", "ours"), words(IN_ENCODER_CLASSIFIER))
def test_the_estimator_of_scikit_learn_names_its_setting(name, ours):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    with pytest.raises(TypeError) as error:
        nf.sklearn.EncoderClassifier(**{name: 3})
    assert first_line(error).startswith(f"EncoderClassifier takes no '{name}'; it takes inputs, ")
    assert first_line(error).endswith(f". Did you mean '{ours}'?")


@pytest.mark.parametrize(("name", "advice"), words(IN_TEXT_CLASSIFIER))
def test_a_text_classifier_names_the_place(name, advice):
    with pytest.raises(TypeError) as error:
        nf.TextClassifier(**{name: 3})
    assert first_line(error).startswith(f"TextClassifier takes no '{name}'; it takes config, ")
    assert first_line(error).endswith(f"{advice}?")


@pytest.mark.parametrize(("command", "ours"), lines(IN_THE_SHELL))
def test_the_command_line_names_its_own(command, ours, capsys):
    with pytest.raises(SystemExit):
        run(command.split())
    assert capsys.readouterr().err.splitlines()[0].endswith(f". Did you mean {ours}?")


def error_of(path):
    """Return the message about a name that a public module does not have."""
    module, _, name = path.rpartition(".")
    with pytest.raises(AttributeError) as error:
        getattr(getattr(nf, module) if module else nf, name)
    return first_line(error)


@pytest.mark.parametrize(("path", "close"), lines(MISSPELT))
def test_a_misspelt_name_gets_the_one_that_is_close(path, close):
    assert error_of(path).endswith(f". Did you mean {close!r}?")


@pytest.mark.parametrize(("path", "place"), lines(IN_ANOTHER_MODULE))
def test_a_name_of_another_module_gets_its_place(path, place):
    assert error_of(path).endswith(f"; write {place}")


@pytest.mark.parametrize("name", nf.MODULES)
def test_each_public_module_says_under_its_short_name_what_it_lacks(name):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    message = f"module 'npformer.{name}' has no attribute 'zqzqzqzq'"
    assert error_of(f"{name}.zqzqzqzq") == message


def test_python_s_traceback_adds_no_suggestion_of_its_own():
    code = "import npformer as nf; nf.TextClasifier"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stderr.count("Did you mean") == 1


def test_an_estimator_suggests_nothing_for_an_unknown_name():
    with pytest.raises(TypeError, match=r"^TextClassifier takes no 'colour'; it takes [\w, ]*$"):
        nf.TextClassifier(colour=3)


def test_an_error_names_the_class_that_was_called():
    with pytest.raises(TypeError, match=r"^SequenceClassifier takes no 'num_labels'"):
        nf.SequenceClassifier(nf.EncoderConfig(), 3, num_labels=3)


def test_a_missing_argument_is_one_of_the_class_that_was_called():
    words = r"^SequenceClassifier: missing a required argument: 'n_classes'; it takes config, n_cl"
    with pytest.raises(TypeError, match=words):
        nf.SequenceClassifier(nf.EncoderConfig())


def test_an_error_inside_of_a_call_is_not_blamed_on_its_arguments():
    with pytest.raises(TypeError, match=r"^expects_mask is 'yes'; expected True or False"):
        nf.SequenceClassifier(nf.EncoderConfig(), 3, vocab_size=5, expects_mask="yes")


@pytest.mark.parametrize("path", PATHS)
def test_each_place_exists(path):
    pytest.importorskip("sklearn", reason=NEEDS["sklearn"])
    assert pkgutil.resolve_name(path) is not None
