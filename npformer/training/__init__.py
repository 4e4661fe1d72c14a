"""Training any model: `fit`, what watches it, and what a model must say to be trained.

`trainable/` holds the models that can be trained, `storage/` their files, `distributed/` the
processes that train together; `inspection/` looks into a model, `generation/` lets it write.
"""
