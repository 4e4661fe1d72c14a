"""The weights of three mixers for two digits."""

import matplotlib.pyplot as plt

import npformer as nf

NAMES = {
    "attention": "attention",
    "dense_synthesizer": "dense",
    "random_synthesizer": "random",
}


def draw():
    """Return the weights for two digits that have three rows in common."""
    images = nf.data.digits().test[0][:2].copy()
    images[1, :3] = images[0, :3]
    figure, axes = plt.subplots(2, 4, figsize=(6.4, 3.3))
    for row, (line, image) in enumerate(zip(axes, images, strict=True)):
        line[0].pcolormesh(image, cmap="gray_r")
        for axis, (mixer, title) in zip(line[1:], NAMES.items(), strict=True):
            config = nf.EncoderConfig(
                d_model=32, n_layers=1, n_heads=1, d_ff=8, max_len=8, mixer=mixer
            )
            model = nf.SequenceClassifier(config, 10, n_features=8, seed=2)
            axis.pcolormesh(model.explain(image[None])[0].matrices[0, 0], vmin=0.0, vmax=0.4)
            if row == 0:
                axis.set_title(title, fontsize=10)
        for axis in line:
            axis.invert_yaxis()
            axis.set(xticks=[], yticks=[], aspect="equal")
            axis.spines[:].set_visible(False)
    axes[0, 0].set_title("digit", fontsize=10)
    axes[1, 0].set_xlabel("rows 1 to 3 are\nthose above", fontsize=9)
    return {"weights": figure}
