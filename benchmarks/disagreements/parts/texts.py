"""How texts are divided into words."""

from benchmarks.disagreements.question import Part, Question, ask
from npformer.data.tokenizers.word_tokenizer import split


def count_words(arrays, settings, dy):
    return {"y": len(split(settings["text"]))}


def ask_words(call: str, name: str, text: str, how: str) -> Question:
    """Return a question about the number of words of a text."""
    settings = {"text": text}
    return ask(count_words, call, f"{how}: {text}", name=name, arrays={}, settings=settings)


APOSTROPHES = "Don't stop: it's 3.14!"
MARKS = "nai\u0308ve hindi \u0939\u093f\u0928\u094d\u0926\u0940"
CHINESE = "\u4e2d\u6587 and \u65e5\u672c"

PARTS = [
    Part(
        "words",
        "Texts into words",
        "How many words and other symbols a text has, before any vocabulary. npformer keeps "
        "apostrophes, numbers with a point, and marks inside of words.",
        (
            ask_words("whitespace_words", "apostrophes", APOSTROPHES, "`Whitespace`"),
            ask_words("bert_words", "apostrophes_bert", APOSTROPHES, "BERT's normalizer and rules"),
            ask_words("whitespace_words", "marks", MARKS, "`Whitespace`, with combining marks"),
            ask_words("bert_words", "marks_bert", MARKS, "BERT's, with combining marks"),
            ask_words("whitespace_words", "chinese", CHINESE, "`Whitespace`"),
            ask_words("bert_words", "chinese_bert", CHINESE, "BERT's"),
        ),
    ),
]
