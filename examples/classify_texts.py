"""Is a review good or bad?
========================

Texts and labels go in, a classifier comes out: `TextClassifier` makes the vocabulary, the padding,
the mask and the numbers of the classes. Here it is compared with counting words. On the command
line all this is one command: ``npformer train sentences``.
"""

import tempfile
from contextlib import suppress
from pathlib import Path

import npformer as nf
from npformer.tasks.estimators import baselines

sentences = nf.data.sentences(seed=0)
texts, labels = sentences.train
texts, labels = texts[:1200], labels[:1200]  # half of them, so that this takes only seconds
print(f"{len(texts)} texts, such as {texts[0]!r}: {labels[0]}")

classifier = nf.TextClassifier(members=1, seed=0, max_len=512)
classifier.fit(texts, labels, epochs=10, progress=False)

scores = classifier.evaluate(*sentences.test)
print(scores)

# The mistakes that it was surest of show what it has not understood.
others, right = sentences.test
for i, probability in scores.worst[:3]:
    print(f"{right[i]}, with a probability of only {probability:.3f}: {others[i]}")

# Does the order of words matter here? Compare with a classifier that only counts them.
y, y_test = classifier.names.numbers(labels), classifier.names.numbers(right)
counted = baselines.logistic_regression(classifier.names.names, (texts, y), (others, y_test))
if counted is None:
    print('for the comparison: python -m pip install "npformer[sklearn]"')
else:
    print(f"accuracy {scores.accuracy:.3f}, by counting words {counted.accuracy:.3f}")

# Tokenizer, class names and weights are one file.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "reviews.safetensors"
    nf.save(classifier, path)
    again = nf.load(path)
    for text in ("The food was great.", "It never worked. A waste of money!", "Not bad at all."):
        print(f"{text:36} {again.predict([text])[0]}")

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    classes = classifier.classes_.tolist()
    shares = classifier.predict_probabilities(others)
    of_right = [row[classes.index(label)] for row, label in zip(shares, right, strict=True)]
    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    _, _, bars = axis.hist(of_right, bins=[k / 20 for k in range(21)])
    for bar in bars[:10]:
        bar.set_color("C1")
    axis.set(xlabel="probability of the right answer; orange: mistakes", ylabel="texts")
    plt.show()
