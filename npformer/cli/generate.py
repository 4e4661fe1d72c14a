"""npformer generate: let a language model write, and print the text as it grows."""

import argparse
import sys
import warnings

from npformer.cli.trained import Trained
from npformer.core import a_type, use_precision
from npformer.interop import PretrainedWriter, from_pretrained
from npformer.interop.folder import CONFIG
from npformer.tasks.estimators import TextWriter


def run(options: argparse.Namespace) -> int:
    """Print the beginning and what the model writes after it."""
    if (options.model / CONFIG).is_file():  # a folder in Hugging Face's layout
        writer = from_pretrained(options.model).to(options.backend)
    else:
        writer = Trained.load(options, options.model).model
    if not isinstance(writer, TextWriter | PretrainedWriter):
        raise ValueError(
            f"{options.model} holds {a_type(writer)}; expected a TextWriter, which npformer train "
            "BOOK.txt makes, or a folder of GPT-2, Llama or Qwen3. Other models: npformer predict"
        )
    if options.ranks.rank:
        return 0  # only the first writes
    tokenizer = writer.tokenizer if isinstance(writer, PretrainedWriter) else writer.tokenizer_
    if unknown := tokenizer.unknown_in(options.prompt):
        warnings.warn(
            f"the model was not trained on {', '.join(map(repr, unknown))}: it knows nothing of "
            "these characters",
            stacklevel=2,
        )
    with use_precision(options.precision, options.backend):
        stream = writer.stream(
            options.prompt,
            options.tokens,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            seed=options.seed,
        )
        sys.stdout.write(options.prompt.removeprefix("\n"))
        for characters in stream:
            sys.stdout.write(characters)
            sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
