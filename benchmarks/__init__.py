"""Measurements: `python -m benchmarks NAME` writes benchmarks/results/NAME.json and NAME.md."""
