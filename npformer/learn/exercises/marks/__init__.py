"""Hints, derivations, and how each exercise is marked: one file per exercise."""
