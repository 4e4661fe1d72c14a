"""Checks of what other people's optimizers, schedules, dropout and masks promise."""
