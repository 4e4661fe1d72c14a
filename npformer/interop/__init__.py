"""Reading weights from other libraries, and writing models for other programs."""

from npformer.core.support.missing_names import lead_to_names
from npformer.interop.families import ARCHITECTURES
from npformer.interop.from_pretrained import from_pretrained
from npformer.interop.huggingface import from_bert, from_fnet, to_bert, to_fnet
from npformer.interop.onnx import to_onnx
from npformer.interop.pretrained_encoder import PretrainedEncoder
from npformer.interop.save_pretrained import save_pretrained
from npformer.interop.word_vectors import read_word_vectors, set_word_vectors
from npformer.interop.writers import PretrainedTranslator, PretrainedWriter

__all__ = [
    "ARCHITECTURES",
    "PretrainedEncoder",
    "PretrainedTranslator",
    "PretrainedWriter",
    "from_bert",
    "from_fnet",
    "from_pretrained",
    "read_word_vectors",
    "save_pretrained",
    "set_word_vectors",
    "to_bert",
    "to_fnet",
    "to_onnx",
]

lead_to_names(__name__)
