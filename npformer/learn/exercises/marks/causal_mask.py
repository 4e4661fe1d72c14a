"""causal_mask: which query sees which key, with and without a cache."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.function import Function
from npformer.learn.exercises.pair import Trial

EXERCISE = Exercise(
    name="causal_mask",
    title="which query sees which key, also after a cache",
    page="chapters/cross_attention.md",
    hints=(
        "Write down the rows for three queries and three keys, and then the one row for a fourth "
        "query after a cache of three tokens.",
        "Compare positions: that of a key is its number, that of a query is begin plus its "
        "number. NumPy compares a column with a row and gives a table.",
    ),
    why="""\
Token t may know the tokens 0 to t, itself included, and none after it. Query i is token begin + i,
so it sees key j if j <= begin + i. The diagonal ends at the bottom right of the table, where the
newest query meets the newest key; without a cache that is the usual triangle.""",
    mark=Function(
        "causal_mask",
        ("mask",),
        (
            Trial("four tokens without a cache", (4, 4)),
            Trial("one query after three tokens", (1, 4, 3)),
            Trial("three queries after two tokens", (3, 5, 2)),
            Trial("a longer sequence", (40, 100, 60)),
        ),
        "what a query may see",
    ),
    wrong=(
        Wrong(
            "it begins at the top left: after a cache a query sees only the first keys",
            "begin + query",
            "query",
        ),
        Wrong("a query sees its own token, too", "key <= begin", "key < begin"),
        Wrong("it is turned round: a query sees what comes later", "key <= begin", "key >= begin"),
        Wrong(
            "it is one token too wide: a query sees the token it should predict",
            "begin + query",
            "begin + query + 1",
        ),
    ),
)
