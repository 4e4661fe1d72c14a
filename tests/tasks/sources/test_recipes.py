"""Every task of `npformer train` can be built and trained."""

import numpy as np
import pytest

import npformer as nf
from npformer.tasks.sources.recipes import RECIPES


@pytest.fixture(scope="module", params=list(RECIPES))
def built(request):
    """Return a recipe and its data."""
    recipe = RECIPES[request.param]
    return recipe, recipe.load(next(iter(recipe.splits)), 0)


def test_a_recipe_takes_a_training_step(built):
    recipe, data = built
    model = recipe.model(data)
    guessed = nf.evaluate(model, (data.test[0][:256], data.test[1][:256]))
    assert guessed.accuracy < 1.0 / data.n_classes + 0.2
    x, y = data.train[0][:8], data.train[1][:8]
    options = {n: v for n, v in recipe.training.items() if n not in ("epochs", "warmup")}
    before = model.parameters().flat.copy()
    assert np.isfinite(nf.fit(model, (x, y), epochs=1, progress=False, **options).train_loss).all()
    assert not np.array_equal(model.parameters().flat, before)


def test_a_model_takes_the_seed_the_dtype_and_other_changes(built):
    recipe, data = built
    first, other = recipe.model(data, seed=1), recipe.model(data, seed=2)
    assert not np.array_equal(first.parameters().flat, other.parameters().flat)
    assert first.config.max_len == data.length == data.test[0].shape[1]
    changes = {"n_layers": 1, "mixer": "identity", "pooling": "first"}
    changed = recipe.model(data, dtype="float64", **changes)
    assert (changed.dtype, changed.config.mixers()) == ("float64", ("identity",))
    assert (first.pooling, changed.pooling) == (recipe.pooling, "first")
    assert recipe.summary
    assert recipe is RECIPES[recipe.name]
    names = "epochs batch_size lr warmup weight_decay label_smoothing clip_norm"
    assert set(recipe.training) == set(names.split())


def test_generated_data_follows_the_seed():
    one, other = (RECIPES["reverse"].load("generated", seed) for seed in (0, 1))
    assert not np.array_equal(one.train[0], other.train[0])
