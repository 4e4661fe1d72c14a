"""CuPy as a backend: it is imported when a model first moves to a GPU."""
