"""Data-parallel training over a network: a model in closed form, and a simulator of its messages.

`networks` has what was measured and published, `formulas` the closed form, `schedules` who sends
what to whom, `simulator` the time that it takes, `measure` what is measured on this machine.
"""
