"""Marking a broken model: four bugs of the museum in one."""

import copy
from typing import Any

from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import broken_invariants
from npformer.learn.exercises.trials import report_of_failure
from npformer.proof.cases.case import draw

PARTS = ("MyLayerNorm", "MyDropout", "MyAttention", "MyBlock")

WITHOUT_DROPOUT = "each_residual_adds_its_own_input"

WITHOUT_ORDER = "attention_without_positions_knows_no_order"


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Run the museum's invariants on the model, and gradcheck on a block of it."""
    answer.listening = False
    model = answer.call(answer.function("build"))
    _build(model, answer)
    for i, array in enumerate(model.parameters().values()):
        array += 0.3 * draw(*array.shape, seed=i)  # a fresh gamma is 1, a fresh bias 0
    problems = broken_invariants(answer, model, *exercise.invariants)
    plain = copy.deepcopy(model)
    for block in plain.encoder.blocks:
        block.mixer.causal = False
        block.mixer_dropout.rate = block.feed_forward_dropout.rate = 0.0
    problems += broken_invariants(answer, plain, WITHOUT_DROPOUT, WITHOUT_ORDER)
    problems += _gradients(model, answer)
    if problems:
        n = len(exercise.invariants) + 4
        problems.insert(0, f"{n - len(problems)} of {n} checks pass, {len(problems)} fail:")
    return problems


def _build(model: Any, answer: Answer) -> None:
    """Check that the model has the file's own parts, and not stock ones."""
    kinds = {type(layer).__name__ for _, layer in model.layers()}
    if missing := [name for name in PARTS if name not in kinds or name not in answer.names]:
        raise Stuck(
            f"the model has no {' and no '.join(missing)} in it any more; mend the parts of the "
            "file rather than replace them"
        )


def _gradients(model: Any, answer: Answer) -> list[str]:
    """Return which of the two gradient checks of a block fails, without saying in what."""
    block = model.encoder.blocks[0]
    x = draw(2, 3, 8)
    problems = []
    for training, when in ((False, "at evaluation"), (True, "in training")):
        report = report_of_failure(
            answer,
            block,
            x,
            training=training,
            max_entries=4,
            directions=3,
            complex_tolerance=None,
        )
        if report is not None:
            wrong = len(report.wrong_tensors())
            tensors = f"{wrong} of {len(report.tensors)} tensors" if wrong else "its rules"
            problems.append(f"gradcheck of a block fails {when}, in {tensors}")
    return problems
