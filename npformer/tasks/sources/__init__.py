"""What a training learns from: a named task with its data, or a file of samples."""
