"""npformer: the Transformer encoder written out by hand in NumPy."""

from npformer import functional, initializers, layers, mixers
from npformer.backend import BackendUnavailableError, asarray, backends, to_numpy
from npformer.classifier import SequenceClassifier
from npformer.encoder import Encoder, EncoderBlock, EncoderConfig
from npformer.mixers import MIXERS
from npformer.module import Context, Gradients, Layer, Parameter, Parameters, Workspace
from npformer.optim import Adam, clip_by_global_norm

__version__ = "0.1.0"
