"""How do I train a classifier on my own arrays?
=============================================

The example uses digits: 8 tokens of 8 features. Replace x and y with your own.
"""

from contextlib import suppress

import npformer as nf

dataset = nf.data.digits()
x, y = dataset.train  # (1252, 8, 8) float32 and (1252,) whole numbers

config = nf.EncoderConfig(
    d_model=64, n_layers=2, n_heads=4, d_ff=128, max_len=8, dropout=0.2, positions="learned"
)
model = nf.SequenceClassifier(config, n_classes=10, n_features=8, pooling="flatten", seed=0)

epochs, batch_size = 30, 32
steps = epochs * -(-len(x) // batch_size)
history = nf.fit(
    model,
    (x, y),
    validation=dataset.validation,  # chooses the best weights
    epochs=epochs,
    batch_size=batch_size,
    lr=1e-3,
    schedule=nf.optim.cosine(steps, warmup=steps // 20),
    weight_decay=0.01,
    label_smoothing=0.1,
    seed=0,
)

found = nf.evaluate(model, dataset.test)  # used once, at the end
print(f"weights of epoch {history.best_epoch}: test accuracy {found.accuracy:.4f}")

nf.save(model, "digits.safetensors")
again = nf.load("digits.safetensors")
print("loaded again, predicts", again.predict(dataset.test[0][:10]))
print("         and labels are", dataset.test[1][:10])

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    by_epoch = range(1, epochs + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    left.plot(by_epoch, history.train_loss, label="training")
    left.plot(by_epoch, history.validation_loss, label="validation")
    left.set(xlabel="epoch", ylabel="loss", ylim=(0, None))
    left.legend()
    right.plot(by_epoch, history.validation_accuracy, c="C1")
    right.axvline(history.best_epoch, ls=":", c="C2")
    right.set(xlabel="epoch; dotted: the best", ylabel="validation accuracy", ylim=(0.8, 1))
    plt.show()
