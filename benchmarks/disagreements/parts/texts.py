"""How texts are divided into words."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, draw_questions
from npformer.data.tokenizers.word_tokenizer import split


def count_words(arrays, settings, dy):
    return {"y": len(split(settings["text"]))}


def lengths_of_words(arrays, settings, dy):
    return {"y": [len(word) for word in split(settings["text"])]}


def draw_words(rng: np.random.Generator) -> Question:
    words = rng.choice(WORDS, size=rng.integers(3, 12))
    text = "".join(str(word) + str(rng.choice(SEPARATORS)) for word in words)
    return ask(lengths_of_words, "words", arrays={}, settings={"text": text})


def ask_words(call: str, name: str, text: str, how: str) -> Question:
    """Return a question about the number of words of a text."""
    settings = {"text": text}
    return ask(count_words, call, f"{how}: {text}", name=name, arrays={}, settings=settings)


APOSTROPHES = "Don't stop: it's 3.14!"
MARKS = "nai\u0308ve hindi \u0939\u093f\u0928\u094d\u0926\u0940"
CHINESE = "\u4e2d\u6587 and \u65e5\u672c"

WORDS = (
    "Don't",
    "3.14",
    "snake_case",
    MARKS,
    CHINESE,
    "col\u00b7lega",
    '\u05e6\u05d4"\u05dc',
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
    "\U0001f44d\U0001f3fd",
    "\U0001f468\u200d\U0001f469",
    "\u0130\u00df",
)
"""Words with apostrophes, marks, two scripts, flags and joined emoji."""

SEPARATORS = (" ", "", ", ", "-", "\u200b", '"')

PARTS = [
    Part(
        "words",
        "Texts into words",
        "How many words and other symbols a text has, before any vocabulary. npformer keeps "
        "apostrophes and marks inside of words.",
        (
            ask_words("whitespace_words", "apostrophes", APOSTROPHES, "`Whitespace`"),
            ask_words("bert_words", "apostrophes_bert", APOSTROPHES, "BERT's normalizer and rules"),
            ask_words("whitespace_words", "marks", MARKS, "`Whitespace`, with combining marks"),
            ask_words("bert_words", "marks_bert", MARKS, "BERT's, with combining marks"),
            ask_words("whitespace_words", "chinese", CHINESE, "`Whitespace`"),
            ask_words("bert_words", "chinese_bert", CHINESE, "BERT's"),
        ),
        draw_questions(draw_words, seed=81),
    ),
]
