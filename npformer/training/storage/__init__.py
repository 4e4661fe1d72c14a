"""Files: of models and of checkpoints, each whole or not there. They know nothing of training."""
