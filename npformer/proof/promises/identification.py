"""Which formula an optimizer follows: its own, a known fault of it, or another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from npformer.core import describe
from npformer.proof.promises.conventions import SHAPES, OneForEach, Target, steppers_of
from npformer.proof.promises.courses import SMALL, courses_for
from npformer.proof.promises.guesses import guesses
from npformer.proof.promises.kinds import (
    KINDS,
    Variant,
    kind_in_name,
    other_kinds,
    right_variants,
    wrong_variants,
)
from npformer.proof.promises.optimizer_report import OptimcheckReport
from npformer.proof.promises.runs import (
    Difference,
    Run,
    compare,
    follow,
    is_impossible,
    ratio_of_changes,
    run,
)
from npformer.proof.promises.setting_names import SETTINGS_OF_KIND, flag_of, pick_settings
from npformer.proof.promises.steppers import ArgumentStepper, OwnStepper, Stepper
from npformer.proof.promises.update_rules import Settings

FLOAT32_TOLERANCE = 1e-3

ONE_SHAPE = [SHAPES[0], SHAPES[0]]


class Identification:
    """The search for the formula that one target follows."""

    def __init__(
        self,
        target: Target,
        kind: str | None,
        stated: dict[str, float],
        steps: int,
        seed: int,
        tolerance: float,
    ) -> None:
        self.target = target
        self.kind = kind or kind_in_name(target.name)
        self.stated = stated
        self.steps = steps
        self.seed = seed
        self.tolerance = tolerance
        self.lr_factor = 1.0

    def stepper_of_user(self, step: Callable[..., Any]) -> Stepper:
        """Return the stepper that calls what the user wrote."""
        words = "the step that was passed"
        return OwnStepper(words, self.target.make, "", [], self.stated, own_step=step)

    def first_stepper(self, parameters: Any) -> Stepper:
        """Return the first stepper that runs and moves a parameter, or else that runs."""
        stands_still: Stepper | None = None
        errors: list[str] = []
        for stepper in steppers_of(self.target, self.stated, parameters):
            trial = self._try(stepper, stepper.shapes or SHAPES)
            if trial.error:
                errors.append(f"{stepper.words}: {trial.error}")
                if self._takes_one_shape(stepper):
                    return stepper
            elif trial.moves():
                return stepper
            elif isinstance(stepper, ArgumentStepper | OneForEach):
                stands_still = stands_still or stepper
        if stands_still is None:
            raise TypeError(self._no_call(errors))
        return stands_still

    def _takes_one_shape(self, stepper: Stepper) -> bool:
        """Return whether a stepper for all parameters runs if they have one shape."""
        if not isinstance(stepper, ArgumentStepper) or not stepper.packing.is_container:
            return False
        trial = self._try(stepper, ONE_SHAPE)
        return stepper.shapes is None and trial.moves() and not trial.error

    def _try(self, stepper: Stepper, shapes: list[tuple[int, ...]]) -> Run:
        """Take two steps."""
        return run(stepper, courses_for(shapes, self.seed, steps=2)[0])

    def _no_call(self, errors: list[str]) -> str:
        tries = "".join(f"\n  {error}" for error in errors[:6])
        return (
            f"{self.target.name} could not be called in a usual way; expected a method such as "
            "step(params, grads), update(w, dw) or update_params(layer). Write "
            "optimcheck(optimizer, step=lambda optimizer, params, grads: ...), which changes the "
            f"list params or returns a new one. What was tried:{tries or ' nothing'}"
        )

    def report(self, stepper: Stepper) -> OptimcheckReport:
        """Run a stepper, and say which formula it follows."""
        runs = self._runs(stepper)
        self.float32 = any(result.float32 for result in runs)
        kind = self._kind_with_options(stepper, runs)
        self._lr_of_changes(stepper, runs)
        variant = self._identify_with_guesses(runs, kind)
        shown = variant if variant is not None and variant.is_right else None
        reference = shown or next(iter(right_variants(kind, Settings(lr=1.0))))
        settings = self._settings(runs[0], kind)
        passed = shown is not None and not any(result.error for result in runs)
        return OptimcheckReport(
            title=self.target.name,
            formula=KINDS[kind].formula,
            passed=passed,
            diagnosis=self._diagnose(runs, variant, kind),
            called=stepper.words,
            settings=settings,
            differences=self._differences(runs, reference),
            notes=list(self._notes(stepper, runs, kind, settings)),
            tolerance=self._tolerance(),
        )

    def _tolerance(self) -> float:
        return max(self.tolerance, FLOAT32_TOLERANCE) if self.float32 else self.tolerance

    def _runs(self, stepper: Stepper) -> list[Run]:
        courses = courses_for(stepper.shapes or SHAPES, self.seed, self.steps)
        if stepper.shapes is None:
            same = courses_for(ONE_SHAPE, self.seed, self.steps)[0]
            courses.append(replace(same, name="drawn, for two of one shape"))
        return [run(stepper, course) for course in courses]

    def _kind_with_options(self, stepper: Stepper, runs: list[Run]) -> str:
        """Return the kind, where Nesterov, momentum or AMSGrad may be an option of the class."""
        kind = self.kind or "adam"
        if kind in ("sgd", "momentum") and flag_of(stepper.optimizer, "nesterov"):
            return "nesterov"
        if kind == "sgd":
            return "momentum" if self._momentum(runs[0]) else "sgd"
        if kind == "adam" and flag_of(stepper.optimizer, "amsgrad"):
            return "amsgrad"
        return kind

    def _momentum(self, result: Run) -> float:
        """Return what is called momentum, for a class called SGD."""
        numbers = result.numbers_before[0] if result.numbers_before else {}
        return self.stated.get("momentum", numbers.get("momentum", 0.0))

    def _settings(self, result: Run, kind: str) -> dict[str, float]:
        """Return the settings of the formula, in the first step."""
        settings = self._settings_of_steps(result, kind)
        if not settings:
            return {}
        values = settings[0][0]
        return {name: getattr(values, name) for name in ("lr", *SETTINGS_OF_KIND[kind])}

    def _settings_of_steps(self, result: Run, kind: str) -> list[list[Settings]]:
        """Return the settings of all steps, as they were before each step and after it."""
        if not result.numbers_after:
            return []
        series = [
            result.settings(kind, self.stated, when, self.guess) for when in ("before", "after")
        ]
        known = [
            [replace(s, lr=s.lr * self.lr_factor) for s in settings]
            for settings in series
            if settings
        ]
        if not known:
            raise TypeError(
                f"{self.target.name} has no learning rate under a usual name; its numbers are "
                f"{describe(sorted(result.numbers_after[-1]))}. Pass it: "
                "optimcheck(optimizer, lr=0.01)"
            )
        return known[:1] if len(known) == 2 and known[0] == known[1] else known

    def _variants(self, kind: str, settings: Settings) -> Iterator[Variant]:
        """Yield what the optimizer may be: right forms, known faults, then other kinds."""
        yield from right_variants(kind, settings)
        if self.kind is None:
            yield from (replace(v, is_right=True) for v in other_kinds(kind, settings))
        yield from wrong_variants(kind, settings)
        if self.kind is not None:
            yield from other_kinds(kind, settings)
        for other in KINDS:
            if other != kind:
                yield from _single_faults(other, settings)

    def _lr_of_changes(self, stepper: Stepper, runs: list[Run]) -> None:
        """Take 1 for lr where an optimizer returns changes that its caller multiplies by lr."""
        inner = stepper.stepper if isinstance(stepper, OneForEach) else stepper
        returns_changes = isinstance(inner, ArgumentStepper) and inner.returns_changes
        numbers = next((r.numbers_after[-1] for r in runs if r.numbers_after), {})
        self.lr_is_outside = returns_changes and "lr" not in pick_settings(numbers, "sgd")
        self.guess = {"lr": 1.0} if self.lr_is_outside else {}

    def _identify_with_guesses(self, runs: list[Run], kind: str) -> Variant | None:
        """Return the first variant that all runs follow, with usual values for hidden settings."""
        complete = [result for result in runs if result.parameters]
        missing = complete[0].missing_settings(kind, self.stated) if complete else []
        base = dict(self.guess)
        wrong: Variant | None = None
        guess_of_wrong = {**base, **next(guesses(missing))}
        for guess in guesses(missing):
            self.guess = {**base, **guess}
            variant = self._identify(runs, kind)
            if variant is not None and variant.is_right:
                return variant
            if variant is not None and wrong is None:
                wrong = variant
                guess_of_wrong = self.guess
        self.guess = guess_of_wrong
        return wrong

    def _identify(self, runs: list[Run], kind: str) -> Variant | None:
        """Return the first variant that all runs follow."""
        complete = [result for result in runs if result.parameters]
        if not complete or not any(result.moves() for result in complete):
            return None
        for variant in self._variants(kind, self._first_settings(complete[0], kind)):
            if self._all_follow(complete, variant):
                return variant
        return None

    def _first_settings(self, result: Run, kind: str) -> Settings:
        return self._settings_of_steps(result, kind)[0][0]

    def _all_follow(self, runs: list[Run], variant: Variant) -> bool:
        return all(self._follows(result, variant) for result in runs)

    def _follows(self, result: Run, variant: Variant) -> bool:
        if is_impossible(variant, result.course):
            return bool(result.error)
        return self._difference(result, variant).error <= self._tolerance()

    def _difference(self, result: Run, variant: Variant) -> Difference:
        """Return the difference from a rule, with lr from before each step or from after it."""
        differences = [
            compare(result, follow(variant, result.course, settings), self._tolerance())
            for settings in self._settings_of_steps(result, variant.kind)
        ]
        return min(differences, key=lambda d: d.error)

    def _differences(self, runs: list[Run], variant: Variant) -> list[Difference]:
        return [self._difference(result, variant) for result in runs if result.parameters]

    def _diagnose(self, runs: list[Run], variant: Variant | None, kind: str) -> str:
        """Return in words what the optimizer is."""
        raising = next((result for result in runs if result.error), None)
        moving = any(result.moves() for result in runs)
        if not moving and raising is None:
            return "no optimizer yet: the parameters do not change, it updates copies of them"
        if raising is not None:
            where = f"a step raises {raising.error}"
            return f"{variant}; for parameters of two shapes {where}" if variant else where
        if variant is None:
            return self._describe_unknown(runs, kind)
        if variant.kind != kind and self.kind is not None:
            return f"{variant}, not {KINDS[kind].title}"
        return str(variant)

    def _describe_unknown(self, runs: list[Run], kind: str) -> str:
        """Return that it is no known formula, or that its steps are longer than those of one."""
        for variant in right_variants(kind, self._first_settings(runs[0], kind)):
            ratio = self._ratio(runs, variant)
            if ratio is not None:
                return f"{variant}, with each step {ratio:.4g} times as long"
        small = [result for result in runs if result.course.name == SMALL]
        for variant in right_variants(kind, self._first_settings(runs[0], kind)):
            if self._all_follow(small, variant):
                return f"{variant} where gradients are small, and something else where they are not"
        return f"neither {KINDS[kind].title} nor a fault of the table"

    def _ratio(self, runs: list[Run], variant: Variant) -> float | None:
        """Return by how much all steps are longer than a rule's; None if not by one number."""
        settings = self._settings_of_steps(runs[0], variant.kind)[0]
        ratio = ratio_of_changes(runs[0], follow(variant, runs[0].course, settings))
        if ratio is None:
            return None
        self.lr_factor = ratio
        follows = self._all_follow(runs, variant)
        self.lr_factor = 1.0
        return ratio if follows else None

    def _notes(
        self, stepper: Stepper, runs: list[Run], kind: str, settings: dict[str, float]
    ) -> Iterator[str]:
        if runs[0].numbers_after and self.kind is not None:
            yield from self._settings_guessed(runs[0], kind)
        if self.lr_is_outside:
            yield "it has no lr: what it returns was compared with lr 1"
        if isinstance(stepper, OneForEach):
            yield (
                "one object keeps one set of moments, which two parameters would share: make one "
                "for each parameter"
            )
        if isinstance(stepper, ArgumentStepper) and stepper.changes_gradients:
            yield "a step changes the gradients that it is given"
        if self.float32:
            yield "parameters are float32: compared up to its rounding"
        if settings.get("weight_decay") == 0.0 and kind in ("adamw", "lion"):
            yield "weight_decay is 0, so it was not compared; pass weight_decay=0.1, too"

    def _settings_guessed(self, result: Run, kind: str) -> Iterator[str]:
        """Yield which settings were found under no name, and which values were taken for them."""
        missing = result.missing_settings(kind, self.stated)
        missing = [name for name in missing if name != "weight_decay"]
        if missing:
            values = ", ".join(f"{name} {self.guess[name]:g}" for name in missing)
            yield f"found no {' or '.join(missing)} by name; the formula was given {values}"


def _single_faults(kind: str, settings: Settings) -> list[Variant]:
    """Return the faults of another kind, one at a time."""
    return [v for v in wrong_variants(kind, settings) if ";" not in v.words]
