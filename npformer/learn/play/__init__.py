"""A local page on which a model is trained, looked into and tried out: ``npformer play``.

Each run is a separate process (`runner`), which trains by `npformer.fit`. A callback (`remote`)
sends what happens, and answers questions between two steps. The `server` passes both on to the
page, and computes nothing. `questions` has what can be asked.
"""
