"""Who is speaking?
================

Nine men said two vowels. Each recording is a series of 7 to 29 steps with 12 features, and the task
is to name the speaker. `SeriesClassifier` scales the features, pads the series, makes the mask, and
can be saved as one file.
"""

import tempfile
from contextlib import suppress
from pathlib import Path

import npformer as nf

vowels = nf.data.vowels()
series, speakers = vowels.train
print(f"{len(series)} series of {min(map(len, series))} to {max(map(len, series))} steps")

classifier = nf.SeriesClassifier(seed=0)
classifier.fit(series, speakers, epochs=30, validation=None, progress=False)

scores = classifier.evaluate(*vowels.test)
print(f"accuracy on {len(vowels.test[0])} other recordings: {scores.accuracy:.3f}")
print(f"macro F1: {scores.macro_f1:.3f}")

# One file holds the weights, the scaling and the names of the classes.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "speakers.safetensors"
    nf.save(classifier, path)
    again = nf.load(path)
    print("the first three speakers:", *again.predict(vowels.test[0][:3]))

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    said = classifier.predict(vowels.test[0])
    names = sorted(set(speakers))
    counts = [[0] * len(names) for _ in names]
    for spoke, heard in zip(vowels.test[1], said, strict=True):
        counts[names.index(spoke)][names.index(heard)] += 1
    figure, axis = plt.subplots(figsize=(5, 4), layout="constrained")
    figure.colorbar(axis.imshow(counts), label="recordings")
    axis.set_xticks(range(len(names)), names, rotation=90)
    axis.set_yticks(range(len(names)), names)
    axis.set(xlabel="the classifier hears", ylabel="who spoke")
    plt.show()
