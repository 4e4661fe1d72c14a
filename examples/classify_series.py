"""Who is speaking?
================

Nine men said two vowels. Each recording is a series of 7 to 29 steps with 12 features, and the task
is to name the speaker. `SeriesClassifier` scales the features, pads the series, makes the mask, and
is one file in the end.
"""

import tempfile
from pathlib import Path

import npformer as nf

vowels = nf.data.vowels()
series, speakers = vowels.train
print(f"{len(series)} series of {min(map(len, series))} to {max(map(len, series))} steps")

classifier = nf.SeriesClassifier(seed=0)
classifier.fit(series, speakers, epochs=30, validation=None, progress=False)

scores = classifier.evaluate(*vowels.test)
print(f"accuracy on {len(vowels.test[0])} others: {scores.accuracy:.3f}")
print(f"macro F1: {scores.macro_f1:.3f}")

# One file holds the weights, the scaling and the names of the classes.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "speakers.safetensors"
    nf.save(classifier, path)
    again = nf.load(path)
    print("the first three say:", *again.predict(vowels.test[0][:3]))
