"""onnxruntime's side: the model of a case, exported by npformer."""

import tempfile
from pathlib import Path

import onnxruntime

import npformer as nf
from benchmarks import workloads
from benchmarks.ours import classifier
from benchmarks.timing import timed


class Peer:
    """A session of onnxruntime with as many threads as the other sides have.

    Parameters
    ----------
    case : Case
        A prediction; its model is built with the same seed as npformer's.
    """

    def __init__(self, case):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            nf.interop.to_onnx(classifier(case), path, mask=False)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = workloads.THREADS
            self.session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        self.x, _ = workloads.batches(case.workload)[0]

    def logits(self):
        """Return {"onnxruntime": logits of the first batch}."""
        return {"onnxruntime": self.session.run(["logits"], {"x": self.x})[0]}

    def choose(self):
        """Return no figures: there is one way to run a session."""
        return {}

    def predict(self):
        """Return the labels of the first batch."""
        (logits,) = self.session.run(["logits"], {"x": self.x})
        return logits.argmax(axis=-1)

    def turn(self, n):
        """Return the seconds per prediction, over n predictions."""
        return timed(self.predict, n)
