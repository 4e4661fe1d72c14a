"""A training step that runs with arrays without numbers, to see how much memory it would take."""
