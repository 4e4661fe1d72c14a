"""Wrong and right layers by people who did not write gradcheck.

They are 77 of 176, which central differences of their own had judged before (at commit 20f91e5);
benchmarks/results/gradcheck_layers.md has all verdicts.
"""
