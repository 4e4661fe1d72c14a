"""Looking inside a model: every layer's output, what mixers took from where, the first NaN."""
