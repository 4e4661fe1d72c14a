"""Hints, derivations, and how each exercise is marked: a file an exercise."""
