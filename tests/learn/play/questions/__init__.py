"""What a page can ask a run: each number is that of the Python interface."""
