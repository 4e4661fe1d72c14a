"""An encoder in scikit-learn's hands
====================================

A pipeline, cross-validation and a grid search, on 600 handwritten digits.
"""

from contextlib import suppress

from npformer.sklearn import EncoderClassifier
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

pixels, y = load_digits(return_X_y=True)
pixels, y = pixels[:600], y[:600]


def rows(x):
    """Return images as series of eight rows of eight pixels."""
    return x.reshape(-1, 8, 8)


encoder = EncoderClassifier(d_model=32, d_ff=64, max_iter=25, random_state=0)
pipeline = make_pipeline(MinMaxScaler(), FunctionTransformer(rows), encoder)
linear = make_pipeline(MinMaxScaler(), LogisticRegression())
for name, classifier in (("encoder", pipeline), ("logistic regression", linear)):
    scores = cross_val_score(classifier, pixels, y, cv=3)
    print(f"{name:<20}  {scores.mean():.3f}  in each part: {scores.round(3)}")

search = GridSearchCV(
    pipeline,
    {
        "encoderclassifier__mixer": ["attention", "fourier"],
        "encoderclassifier__pooling": ["mean", "flatten"],
    },
    cv=2,
).fit(pixels, y)
for parameters, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    print(f"{score:.3f}", {name.partition("__")[2]: value for name, value in parameters.items()})

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    means = search.cv_results_["mean_test_score"].reshape(2, 2)
    figure, axis = plt.subplots(figsize=(4.4, 3.2), layout="constrained")
    figure.colorbar(axis.imshow(means, vmin=0.5, vmax=1.0), label="accuracy")
    axis.set_xticks([0, 1], search.param_grid["encoderclassifier__pooling"])
    axis.set_yticks([0, 1], search.param_grid["encoderclassifier__mixer"])
    axis.set(xlabel="pooling", ylabel="mixer", title="a grid of four encoders")
    plt.show()
