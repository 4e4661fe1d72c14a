"""Other people's code, as gradcheck sees it: objects with state, functions of a loss and gradient.

No library of tensors is imported here. What torch, JAX and others compute is checked by the library
that made the object or the tensor that was handed over, in `frameworks`.
"""
