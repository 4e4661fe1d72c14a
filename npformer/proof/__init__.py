"""Proofs: gradients against finite differences and the complex step, fast layers against plain."""
