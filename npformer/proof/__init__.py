"""Proof: gradients against finite differences, fast layers against plain ones."""
