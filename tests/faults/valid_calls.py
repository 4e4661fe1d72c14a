"""A valid call of every public function, class and method.

Most arguments mean the same wherever they stand: `ARGUMENTS` has one value for each name, and a
call takes those of its signature. What is given beside them comes first.
"""

import inspect
from collections.abc import Callable
from copy import deepcopy
from functools import partial, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import npformer as nf
from npformer import data, losses, mixers, optim
from npformer import functional as F
from npformer import layers as L
from npformer.core import Registry, generators, initializers
from npformer.data.tokenizers import train_tokenizer
from npformer.models import InputEmbedding, SequenceModel
from npformer.optim import SCHEDULES
from npformer.tasks.wide import Wide
from tests.pairs import FUNCTIONS, MASKED, pairs


class Made(NamedTuple):
    """An argument that is made anew for each call: a file, in the folder of the moment."""

    make: Callable[[], Any]


class Target:
    """A function with valid arguments, or a method of an object, which has its own in each call."""

    def __init__(self, name: str, function: Any, arguments: dict[str, Any], of: Any = None) -> None:
        self.name = name
        self._function = function
        self._arguments = arguments
        self._of = of
        self.parameters = inspect.signature(function).parameters

    @property
    def is_method(self) -> bool:
        return self._of is not None

    def arguments(self) -> dict[str, Any]:
        valid_arguments = self._arguments.items()
        return {k: x.make() if isinstance(x, Made) else deepcopy(x) for k, x in valid_arguments}

    def call(self, arguments: dict[str, Any]) -> Any:
        if self._of is None:
            return self._function(**arguments)
        return getattr(deepcopy(self._of), self._function.__name__)(**arguments)

    def run(self) -> Any:
        """Make the valid call."""
        return self.call(self.arguments())


CALLS: list[Target] = []


def call(
    name: str, function: Any, /, of: Any = None, by_name: bool = True, **arguments: Any
) -> None:
    """Add a call, with what `ARGUMENTS` has for its signature."""
    names = inspect.signature(function).parameters
    defaults = {key: ARGUMENTS[key] for key in names if key in ARGUMENTS} if by_name else {}
    CALLS.append(Target(name, function, defaults | arguments, of))


def method(name: str, of: Any, /, **arguments: Any) -> None:
    call(name, getattr(of, name.rpartition(".")[2]), of=of, by_name=False, **arguments)


def f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


def f64(*shape: int) -> np.ndarray:
    return f32(*shape).astype("float64")


IDS = np.array([[1, 2, 3], [4, 5, 6]])
KEEP = np.array([[True, True, True], [True, True, False]])
LABELS = np.array([0, 2])
TYPES = np.array([[0, 1, 1], [0, 0, 1]])
SIZES = {"d_model": 4, "n_layers": 1, "n_heads": 2, "d_ff": 6, "max_len": 5}
SETTINGS = mixers.MixerSettings(4, 2, 5)


def config(**changes: Any) -> nf.EncoderConfig:
    return nf.EncoderConfig(**(SIZES | changes))


def classifier(**changes: Any) -> nf.SequenceClassifier:
    return nf.SequenceClassifier(config(**changes), 3, vocab_size=7)


ARGUMENTS: dict[str, Any] = {
    **SIZES,
    "d_in": 4,
    "d_out": 3,
    "d_memory": 4,
    "kernel": 2,
    "rank": 2,
    "n_states": 2,
    "vocab_size": 7,
    "source_vocab": 7,
    "target_vocab": 7,
    "n_classes": 3,
    "n_pairs": 2,
    "n_outputs": 3,
    "seed": 0,
    "dtype": "float32",
    "backend": "numpy",
    "bias": True,
    "scale": True,
    "causal": True,
    "tied": False,
    "pooler": True,
    "rate": 0.25,
    "dropout": 0.25,
    "eps": 0.0625,
    "norm_eps": 0.0625,
    "std": 0.5,
    "attention_dropout": 0.25,
    "label_smoothing": 0.25,
    "lr": 0.25,
    "weight_decay": 0.25,
    "approximate": "tanh",
    "initializer": "normal",
    "padding": "zero",
    "ffn": "conv1d",
    "config": config(),
    "settings": SETTINGS,
    "embedding": L.Embedding(7, 4, seed=0),
    "layer": L.ReLU(),
    "init": initializers.xavier_uniform,
    "schedule": "constant",
    "length": 4,
    "train": 5,
    "symbols": 3,
    "keys": 5,
    "pairs": 3,
    "n_token_types": 2,
}

# Functions ----------------------------------------------------------------------------------------
for name, (inputs, options) in pairs(MASKED, "float32").items():
    forward, backward = FUNCTIONS[name], FUNCTIONS[f"{name}_backward"]
    y, cache = forward(*inputs, **options)
    if name == "mixture_scores":  # takes any number of scores

        def forward(logits: Any, first: Any, second: Any) -> Any:
            return F.mixture_scores(logits, first, second)

    arguments = dict(zip(inspect.signature(forward).parameters, inputs, strict=False)) | options
    room = "functional" if hasattr(F, name) else "tasks.wide"
    call(f"{room}.{name}", forward, by_name=False, **arguments)
    dy, _ = inspect.signature(backward).parameters
    arguments = {dy: y if y.ndim else 1.0}
    call(f"{room}.{name}_backward", partial(backward, cache=cache), **arguments)

scores = pairs(MASKED, "float32")["average"][0][0]
call("functional.averaging_weights", F.averaging_weights, scores=scores)
call("functional.split_heads", F.split_heads, x=f32(2, 3, 4))
call("functional.merge_heads", F.merge_heads, x=f32(2, 2, 3, 2))
log_step, log_decay, frequency, *_ = pairs(MASKED, "float32")["state_space_kernel"][0]
call(
    "functional.state_space_step",
    F.state_space_step,
    log_step=log_step,
    log_decay=log_decay,
    frequency=frequency,
)

# Layers, mixers, models ---------------------------------------------------------------------------
BASE_CLASSES = (
    nf.Layer,
    nf.Model,
    L.Pooling,
    mixers.Mixer,
    mixers.Scores,
    mixers.Synthesizer,
    mixers.AveragingMixer,
    mixers.WholeSequenceMixer,
)
"""Classes without a pass, besides that of their subclasses."""

OF_IDS = {"Embedding", "Wide"}
SPECIAL = {"Positions": {"kind": "learned"}, "Conv1d": {"padding": "same"}}


def layers(module: Any) -> None:
    """Add each class, and a call of a layer of it."""
    for name in module.__all__:
        kind = getattr(module, name)
        is_layer = isinstance(kind, type) and issubclass(kind, nf.Layer)
        if is_layer and kind not in BASE_CLASSES and name != "Sequential":
            add_layer_class(f"{module.__name__.partition('.')[2]}.{name}", kind)


def add_layer_class(public_name: str, kind: type[nf.Layer]) -> None:
    """Add a class of layers, and a call of a layer of it."""
    name = kind.__name__
    if name.startswith("Blockwise"):  # not all that its base takes
        arguments = {"d_model": 4, "n_heads": 2, "seed": 0, "dtype": "float32"}
    else:
        parameters = inspect.signature(kind).parameters
        arguments = {key: ARGUMENTS[key] for key in parameters if key in ARGUMENTS}
        arguments |= SPECIAL.get(name, {})
    call(public_name, kind, by_name=False, **arguments)
    if "Cross" not in name and name != "MixtureScores":
        x = IDS if name in OF_IDS else f32(2, 3, 4)
        call(f"{name}(x)", nf.Layer.__call__.__get__(kind(**arguments)), x=x, mask=KEEP)


layers(L)
layers(mixers)
add_layer_class("tasks.wide.Wide", Wide)
call("layers.Sequential", lambda layer: L.Sequential(layer, L.Tanh()))
call("mixers.AveragingMixer", mixers.AveragingMixer)
call("mixers.MixerSettings", mixers.MixerSettings)
call("mixers.hybrid", mixers.hybrid, n_attention=1)

causal = config(causal=True)
chosen = {key: ARGUMENTS[key] for key in config().to_dict() if key in ARGUMENTS}
call(
    "EncoderConfig",
    nf.EncoderConfig,
    by_name=False,
    **chosen,
    mixer="attention",
    norm="pre",
    positions="learned",
)
call("EncoderConfig.from_dict", nf.EncoderConfig.from_dict, plain=config().to_dict())
for kind in (nf.Encoder, nf.TextEncoder, nf.EncoderDecoder):
    call(kind.__name__, kind)
call("EncoderBlock", nf.EncoderBlock, layer=0)
call("DecoderBlock", nf.DecoderBlock, config=causal, layer=0)
for kind in (nf.Decoder, nf.LanguageModel):
    call(kind.__name__, kind, config=causal)
call("models.InputEmbedding", InputEmbedding, n_features=None)
call("SequenceModel", SequenceModel, pooling="first")
call("SequenceClassifier", nf.SequenceClassifier, pooling="first", output="mean_squared_error")
call("SequenceClassifier of features", nf.SequenceClassifier, vocab_size=None, n_features=2)
hiding = {"mask_share": 0.5, "to_mask": 0.5, "to_random": 0.25, "special_ids": [0]}
call(
    "MaskedLanguageModel",
    nf.MaskedLanguageModel,
    mask_id=6,
    padding_id=0,
    expects_mask=True,
    head_bias=False,
    **hiding,
)
call(
    "data.mask_tokens",
    data.mask_tokens,
    ids=IDS,
    mask=KEEP,
    mask_id=6,
    rng=np.random.default_rng(0),
    **hiding,
)
fillers = train_tokenizer("word", ["a b c d e"], masks=True)
filler = nf.MaskedLanguageModel(config(), fillers.vocab_size, mask_id=fillers.mask_id)
call("fill", nf.fill, model=filler, text="a [MASK] c", k=2, tokenizer=fillers)
method(
    "LanguageModel.generate",
    nf.LanguageModel(causal, 7, seed=0),
    prompt=IDS,
    n=2,
    temperature=0.5,
    top_k=2,
    top_p=0.5,
    seed=0,
    cache=True,
    stop=1,
    probabilities=False,
)
method(
    "EncoderDecoder.generate",
    nf.EncoderDecoder(config(), 7, 7, seed=0),
    source=IDS,
    max_len=3,
    beams=2,
    mask=KEEP,
)
with_types = classifier(n_token_types=2)
of_vectors = nf.SequenceClassifier(config(), 3, n_features=2)
text_encoder = nf.TextEncoder(config(n_token_types=2), 7)
INPUTS: dict[str, Any] = {"x": IDS, "mask": KEEP, "types": TYPES}
MANY: dict[str, Any] = {"batch_size": 2}
VECTORS = {"x": f32(2, 3, 2)}
for model, inputs in ((with_types, INPUTS), (text_encoder, INPUTS), (of_vectors, VECTORS)):
    call(f"{type(model).__name__}(x) {len(inputs)}", model.__call__, **inputs)
for name in ("predict", "predict_probabilities"):
    method(f"SequenceClassifier.{name}", with_types, **INPUTS, **MANY)
method("SequenceClassifier.explain", with_types, **INPUTS)
method(
    "SequenceClassifier.loss_and_gradients",
    with_types,
    **INPUTS,
    y=LABELS,
    workers=1,
    micro_batch=1,
    label_smoothing=0.25,
    seed=0,
)
method("SequenceClassifier.to", classifier(), backend="numpy")
method("Layer.to", L.Linear(2, 3, seed=0), backend="numpy")
frozen = classifier().freeze("embed.*")
call("Layer.freeze", lambda pattern: deepcopy(frozen).freeze(pattern), pattern="embed.*")
call("Layer.unfreeze", lambda pattern: deepcopy(frozen).unfreeze(pattern), pattern="embed.*")


def constructor_with_check(kind: Any) -> Any:
    """Return a function that makes an estimator and checks its arguments, as `fit` does."""

    @wraps(kind)
    def make(**arguments: Any) -> Any:
        estimator = kind(**arguments)
        estimator.check()
        return estimator

    return make


call("SeriesClassifier", constructor_with_check(nf.SeriesClassifier), members=1)
for kind in (nf.TextClassifier, nf.TextWriter, nf.TextTranslator, nf.TextFiller):
    call(kind.__name__, constructor_with_check(kind), vocab_size=99)

published = nf.published
for name in ("KerasFeedForward", "benchmark_model", "AskersSynthesizer", "BlogFNetBlock"):
    call(f"published.{name}", getattr(published, name))
call("published.blog_fnet", published.blog_fnet)
call(
    "published.benchmark_loss_and_gradients",
    published.benchmark_loss_and_gradients,
    model=published.benchmark_model(3, 4, 6),
    x=f32(2, 3, 4),
    y=np.array([0, 1]),
)

# Losses, optimizers, data -------------------------------------------------------------------------
for loss, outputs, y in (
    (losses.SoftmaxCrossEntropy(), f32(2, 3), LABELS),
    (losses.BinaryCrossEntropy(), f32(2, 1), np.array([0, 1])),
    (losses.MeanSquaredError(), f32(2, 3), f32(2, 3)),
):
    name = type(loss).__name__
    call(f"losses.{name}", type(loss))
    for do in ("forward", "measure"):
        method(f"{name}.{do}", loss, outputs=outputs, y=y)

BOTH = {"w": f32(3), "b": f32(2)}
call("Adam", nf.Adam, parameters=BOTH, betas=(0.5, 0.75))
call("SGD", nf.SGD, parameters=BOTH, momentum=0.5, nesterov=True)
for optimizer in (nf.Adam(BOTH), nf.SGD(BOTH, 0.25)):
    method(f"{type(optimizer).__name__}.step", optimizer, gradients=BOTH)
call("clip_by_global_norm", nf.clip_by_global_norm, gradients=BOTH, max_norm=0.25)
call("optim.global_norm", optim.global_norm, gradients=BOTH)
call("optim.schedule_of", optim.schedule_of)
call("optim.warmup_inverse_sqrt", optim.warmup_inverse_sqrt, warmup=10)
call("optim.cosine", optim.cosine, total=10, warmup=2, final=0.25)

call("data.digits", data.digits, split="stratified")
call("data.vowels", data.vowels)
call("data.pairs", data.pairs, name="sort", n=9)
call("data.sentences", data.sentences, test=0.25, repeated=False)
for task in (data.reverse, data.majority, data.recall, data.pointer, data.parity):
    if task is data.majority:
        call(f"data.{task.__name__}", task, length=5)
    else:
        call(f"data.{task.__name__}", task)

# Looking inside, proof ----------------------------------------------------------------------------
call("summary", nf.summary, layer=with_types, x=IDS, mask=KEEP)
call("step_memory", nf.step_memory, model=with_types, x=IDS, y=LABELS, mask=KEEP, types=TYPES)
call("explain", nf.explain, layer=with_types, **INPUTS)
call("trace", nf.trace, layer=with_types, **INPUTS, labels=LABELS)
asker = published.AskersSynthesizer(3, 4, seed=0, dtype="float64")
call("AskersSynthesizer(a, b)", asker.__call__, a=f64(2, 3, 4), b=f64(2, 3, 4), mask=(None, KEEP))
call("summary of two inputs", nf.summary, layer=asker, x=(f64(2, 3, 4), f64(2, 3, 4)))


def gradcheck(target: Any, x: Any, W: Any, wrt: Any = None, **options: Any) -> Any:
    return nf.gradcheck(target, x, W, wrt=wrt, **options)


call(
    "gradcheck",
    gradcheck,
    target=(F.linear, F.linear_backward),
    x=f64(2, 4),
    W=f64(4, 3),
    wrt=["x", "W"],
    tolerance=1e-6,
    max_entries=4,
    directions=2,
)


class Descent:
    """Gradient descent, for optimcheck."""

    lr = 0.25

    def step(self, params: Any, grads: Any) -> None:
        for parameter, gradient in zip(params, grads, strict=True):
            parameter -= self.lr * gradient


call(
    "optimcheck",
    nf.optimcheck,
    optimizer=Descent(),
    kind="sgd",
    lr=0.25,
    betas=(0.5, 0.75),
    eps=1e-8,
    momentum=0.0,
    rho=0.5,
    weight_decay=0.0,
    tolerance=1e-6,
)
call(
    "schedulecheck",
    nf.schedulecheck,
    schedule=optim.cosine(total=10, warmup=2),
    kind="cosine",
    lr=1.0,
    d_model=1.0,
    warmup=2,
    total=10,
    final=0.0,
    step_size=1,
    gamma=0.5,
    tolerance=1e-6,
)
call("dropoutcheck", nf.dropoutcheck, target=L.Dropout(0.25), x=f64(2, 3, 4), rate=0.25)


def maskcheck(target: Any, x: Any, **options: Any) -> Any:
    return nf.maskcheck(target, x, **options)


def evaluationcheck(target: Any, x: Any, **options: Any) -> Any:
    return nf.evaluationcheck(target, x, **options)


attention = mixers.Attention(4, seed=0, dtype="float64")
call("maskcheck", maskcheck, target=attention, x=f64(2, 3, 4), mask=KEEP)
call("evaluationcheck", evaluationcheck, target=attention, x=f64(2, 3, 4), mask=KEEP)


# Training and files -------------------------------------------------------------------------------
def place(name: str, write: Callable[[Path], Any] = lambda path: None) -> Made:
    """Return the path of a file, which is written where it is not there."""

    def make() -> Path:
        path = Path(name).absolute()
        if not path.exists():
            write(path)
        return path

    return Made(make)


rng = np.random.default_rng(0)
X = rng.integers(7, size=(6, 3))
Y = rng.integers(3, size=6)
KEPT = np.ones((6, 3), bool)


@wraps(nf.fit)
def fit(*positional: Any, **named: Any) -> Any:
    return nf.fit(*positional, progress=False, workers=1, epochs=1, batch_size=4, **named)


call(
    "fit",
    fit,
    model=classifier(),
    data=(X, Y, KEPT),
    validation=0.5,
    metric="accuracy",
    sample_weight=np.ones(6, "float32"),
    class_weight="balanced",
    accumulate=2,
    clip_norm=0.5,
    patience=1,
    micro_batch=2,
    check_every=1,
    masks="host",
    batches="auto",
    on_interrupt="raise",
    precision="float32",
    callbacks=[],
)


def with_data(run: Any, x: Any, y: Any, mask: Any = None) -> Any:
    return run(classifier(), (x, y, mask))


for run in (fit, nf.evaluate):
    call("fit or evaluate with data", partial(with_data, run), x=X, y=Y, mask=KEPT)
call(
    "fit with a checkpoint",
    fit,
    by_name=False,
    model=classifier(),
    data=(X, Y),
    checkpoint=place("run"),
    every=1,
    resume=True,
)


def train(model: nf.SequenceClassifier, lr: float, **named: Any) -> list[float]:
    optimizer = nf.Adam(model.parameters(), lr=lr) if isinstance(model, nf.Model) else None
    return nf.train(model, optimizer=optimizer, **named)


call(
    "train",
    train,
    model=classifier(),
    data=(X, Y, KEPT),
    lr=0.01,
    epochs=1,
    batch_size=4,
    seed=0,
)
call("evaluate", nf.evaluate, model=classifier(), data=(X, Y, KEPT), **MANY)
call(
    "predict_to_file",
    nf.predict_to_file,
    path=place("predicted.npy"),
    model=classifier(),
    x=X,
    mask=KEPT,
    **MANY,
)
call("data.sharded", data.sharded, files=place("shard-0.npy", lambda path: np.save(path, X)))
call("History.plot", nf.History([1.0], lr=[0.1]).plot, path=place("curve.png"))
call(
    "report",
    nf.report,
    model=classifier(),
    x=IDS,
    y=LABELS,
    mask=KEEP,
    path=place("report.html"),
    samples=2,
    class_names=["x", "y", "z"],
    title="A title",
    batch_size=2,
)
saved = place("model.safetensors", lambda path: nf.save(classifier(), path, notes={"a": 1}))
call("save", nf.save, model=classifier(), path=place("new.safetensors"), notes={"a": 1})
call("load", nf.load, path=saved, force=False)
call("read_notes", nf.read_notes, path=saved, force=False)


def save_checkpoint(folder: Any, model: Any, generators: Any = None, notes: Any = None) -> Any:
    optimizer = nf.Adam(getattr(model, "parameters", classifier().parameters)())
    return nf.save_checkpoint(folder, model, optimizer, generators=generators, notes=notes)


call(
    "save_checkpoint",
    save_checkpoint,
    folder=place("own"),
    model=classifier(),
    generators={"shuffle": rng},
    notes={"a": 1},
)
trained = place("trained", lambda path: save_checkpoint(path, classifier()))
call("load_checkpoint", nf.load_checkpoint, folder=trained)
state = nf.TrainingState(classifier(), nf.Adam(BOTH), nf.History(), 1, 1)
call("TrainingState.stop", state.stop, reason="time is up")

# Models and words from elsewhere ------------------------------------------------------------------
HF = {
    "vocab_size": 7,
    "hidden_size": 4,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 6,
    "max_position_embeddings": 5,
    "type_vocab_size": 2,
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.25,
    "attention_probs_dropout_prob": 0.25,
    "layer_norm_eps": 0.0625,
}
bert = nf.TextEncoder(
    config(
        n_token_types=2,
        positions="learned",
        embedding_norm=True,
        scale_embeddings=False,
        activation="gelu",
    ),
    7,
)
foreign = nf.interop.to_bert(bert)
call("interop.to_bert", nf.interop.to_bert, encoder=bert)
call("interop.from_bert", nf.interop.from_bert, state=foreign, hf_config=HF)


def with_setting(key: str, value: Any = None) -> Any:  # None: the usual value, if there is one
    return nf.interop.from_bert(dict(foreign), HF | {key: value})


for key in sorted(HF.keys() - {"model_type"}):
    call(f"interop.from_bert with {key}", partial(with_setting, key), value=HF[key])


def write_pretrained(folder: Path) -> None:
    nf.interop.save_pretrained(bert, folder)
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc", "utf-8")


call("from_pretrained", nf.from_pretrained, folder=place("pretrained", write_pretrained))
vectors = place("vectors.txt", lambda path: path.write_text("a 1 2 3 4\nb 5 6 7 8\n", "utf-8"))
call("interop.read_word_vectors", nf.interop.read_word_vectors, path=vectors, words=["a", "c"])
if find_spec("onnx"):  # of the extra "onnx"
    call("interop.to_onnx", nf.interop.to_onnx, model=classifier(), path=place("model.onnx"))


# Arrays, parameters, tables -----------------------------------------------------------------------
def switch_kernels(enabled):
    with nf.use_kernels(enabled):
        pass


call("asarray", nf.asarray, x=[[1.0, 2.0]])
call("to_numpy", nf.to_numpy, x=[[1.0, 2.0]])
call("use_kernels", switch_kernels, enabled=True)
call("use_precision", nf.use_precision, precision="float32")
call(
    "Context",
    nf.Context,
    training=True,
    generator=rng,
    keep=True,
    mask=KEEP,
    types=TYPES,
    padding=None,
)
call("Parameter", nf.Parameter, value=f32(2, 3), trainable=True)
call("Parameters", nf.Parameters, named={"w": nf.Parameter(f32(3))})
call("Gradients", nf.Gradients, layer=classifier())
call("fast", nf.fast, model=classifier())
call("generators.from_seed", generators.from_seed)
call("initializers.normal", initializers.normal)
table = Registry("shape", {"box": lambda width=1: width})
method("Registry.register", table, name="mine", builder=lambda: 1)
for do in ("parse", "make", "add_options"):
    method(f"Registry.{do}", table, spec="box")
for registry in (
    nf.MIXERS,
    L.ACTIVATIONS,
    L.NORMS,
    L.POOLINGS,
    L.FFNS,
    losses.LOSSES,
    SCHEDULES,
    initializers.INITIALIZERS,
):
    call(f"{registry.table}.parse", registry.parse, spec=next(iter(registry)))
