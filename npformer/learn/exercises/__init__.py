"""Exercises: backward passes, Adam, a mixer, an encoder, a broken model, marked by a referee.

``npformer exercises start DIR`` writes a file for each exercise, with the question, the forward
pass and a blank. ``npformer exercises check DIR`` runs what the reader wrote, and says what is
wrong with it but never what would be right. docs/exercises.md shows how to use them.

Each exercise has a solved file, ``solved/NAME.py``, from which the reader's file is made by leaving
out the solution, and ``texts/NAME.toml`` with hints, a derivation and typical mistakes. `marks` has
the inputs and invariants that mark it. Nothing here is imported by ``import npformer``.
"""
