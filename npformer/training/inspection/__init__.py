"""Looking inside a model: every layer's output, the mixers' matrices, the first NaN."""
