"""onnxruntime's time compared with ours: the same model, the same batch, in turn."""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

import npformer as nf
from benchmarks.results_files import markdown, write
from benchmarks.timing import interleave, timed
from npformer.core.arrays import cores

LENGTH, VOCABULARY, CLASSES = 64, 5000, 4
SIZES = {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 512, "max_len": LENGTH}
MIXERS = ("attention", "dense_synthesizer", "fourier", "gated_convolution", "state_space")
BATCHES = (1, 32)
SECONDS = 6.0


def turns(mixer, batch, folder):
    """Return {name: turn} for both sides, for a model with this mixer."""
    config = nf.EncoderConfig(**SIZES, mixer=mixer, padding="per_length")
    model = nf.SequenceClassifier(config, CLASSES, vocab_size=VOCABULARY, seed=0)
    path = Path(folder) / "model.onnx"
    nf.interop.to_onnx(model, path, mask=False, overwrite=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores()
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(path, options, providers=providers)
    x = np.random.default_rng(0).integers(0, VOCABULARY, (batch, LENGTH))
    found, expected = session.run(["logits"], {"x": x})[0], model(x)
    assert abs(found - expected).max() <= 1e-5 * abs(expected).max()
    steps = {
        "npformer": lambda: model(x),
        "onnxruntime": lambda: session.run(["logits"], {"x": x}),
    }
    return {name: lambda n, step=step: timed(step, n) for name, step in steps.items()}


def run():
    """Measure each mixer and batch, and write benchmarks/results/onnx.md and .json."""
    figures, rows = {}, []
    for mixer in MIXERS:
        for batch in BATCHES:
            with tempfile.TemporaryDirectory() as folder:
                seconds = interleave(turns(mixer, batch, folder), SECONDS)
            ours, theirs = (np.array(seconds[each]) for each in ("npformer", "onnxruntime"))
            ratio = float(np.median(theirs / ours))
            figures[f"{mixer}, {batch}"] = ratio
            ms = (f"{1e3 * np.median(each):.2f}" for each in (ours, theirs))
            rows.append((f"`{mixer}`", batch, *ms, f"{ratio:.2f}"))
            print(*rows[-1], flush=True)
    heads = "mixer", "batch", "npformer, ms", "onnxruntime, ms", "onnxruntime / npformer"
    about = (
        f"Logits of a classifier of token ids, {LENGTH} of them, d_model {SIZES['d_model']}, "
        f"{SIZES['n_layers']} layers, with {cores()} threads on both sides; medians of rounds in "
        f"turn. onnxruntime {onnxruntime.__version__}."
    )
    write("onnx", figures, f"{markdown(heads, rows)}\n\n{about}")
