"""Data-parallel training over a network: a model in closed form, and a simulator of its messages.

`networks` holds measured and published costs, `formulas` the closed form, `schedules` who sends
what to whom, `simulator` how long it takes, and `measure` measures this machine.
"""
