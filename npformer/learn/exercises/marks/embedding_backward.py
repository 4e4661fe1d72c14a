"""embedding_backward: the backward pass of an embedding."""

import numpy as np

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

EXERCISE = Exercise(
    name="embedding_backward",
    title="dtable of y = table[ids]",
    page="chapters/embedding.md",
    hints=(
        "In which rows of y is row 7 of the table? What does the chain rule do with all of them?",
        "Begin with zeros in the shape (and dtype) of the table, and let each row of dy be added "
        "to the row that it was looked up from. Try it with an id that occurs twice.",
        "`dtable[ids] += dy` adds once for each id, however often it occurs. NumPy has a function "
        "that adds at indices, repeated ones too: look at np.add.at.",
    ),
    why="""\
Row v of the table is a copy in every y_t with ids_t = v. So dtable_v is the sum of their dy_t, and
0 if v does not occur. In matrices: y = H table with a one-hot row of H for each id, and
dtable = H^T dy.""",
    mark=Pair(
        "embedding",
        "embedding_backward",
        ("dtable",),
        (
            Trial("ids that all differ", (np.array([4, 1, 2]), draw(6, 3))),
            Trial("ids that occur twice", (np.array([[1, 1, 4], [0, 4, 4]]), draw(5, 3))),
            Trial("larger arrays", (np.arange(60).reshape(3, 20) % 50, draw(70, 8))),
        ),
    ),
    wrong=(
        Wrong(
            "where an id occurs more than once, only one of its rows is there",
            "np.add.at(dtable, ids, dy)",
            "dtable[ids] = dy",
        ),
        Wrong(
            "it counts how often each id occurs; what is added is missing",
            "np.add.at(dtable, ids, dy)",
            "np.add.at(dtable, ids, 1.0)",
        ),
        Wrong(
            "where an id occurs more than once, its rows are averaged; they add up",
            "    return dtable",
            "    number = np.zeros(table_shape[0])\n    np.add.at(number, ids, 1.0)\n"
            "    return dtable / np.maximum(number, 1.0)[:, None]",
        ),
    ),
)
