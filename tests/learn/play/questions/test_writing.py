"""What the page shows of the next token, with a tokenizer whose tokens have their spaces before."""

from types import SimpleNamespace

import numpy as np

import npformer as nf
from npformer.data.tokenizers import LibraryTokenizer
from npformer.learn.play.model_answers import Names
from npformer.learn.play.questions.writing import write
from tests.interop.pieces import PADDED, llama_tokenizer


def test_a_written_token_is_one_of_the_tokenizer_with_its_space():
    tokenizer = LibraryTokenizer(llama_tokenizer(begins=False), padding="</s>")
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=8, causal=True)
    model = nf.LanguageModel(config, PADDED, tied=False)
    be = tokenizer.library.token_to_id("\u2581be")
    unused = PADDED - 1
    model.output.bias.value[[be, unused]] = 40.0, 80.0
    work = SimpleNamespace(
        check_kind=lambda *_: None,
        estimator=SimpleNamespace(ids=lambda _, text: np.array(tokenizer.ids(text))),
        names=Names(tokenizer=tokenizer),
    )
    answer = write(SimpleNamespace(work=work, plain=model), "To")
    assert answer["token"] == " be"
    assert answer["candidates"][0]["token"] == " be"
