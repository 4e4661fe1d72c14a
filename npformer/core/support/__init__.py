"""What messages, tables of names and progress bars need; it knows nothing of arrays."""
