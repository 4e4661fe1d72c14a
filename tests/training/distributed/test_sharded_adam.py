"""ShardedAdam by itself, with ranks that are threads: bits, errors, what is lent and given back."""

import copy
import tracemalloc

import numpy as np
import pytest

import npformer as nf
from npformer.core import Gradients
from npformer.layers import Linear
from npformer.optim import NORMS_AND_BIASES, Adam
from npformer.training.distributed import Communicator
from npformer.training.distributed.clipping import clip_over_ranks
from npformer.training.distributed.sharded_adam import ShardedAdam
from tests.training.distributed.fake_ranks import run_threads
from tests.training.distributed.train import model_of

STEPS = 8
SETTINGS = {"lr": 3e-3, "weight_decay": 0.1, "no_decay": NORMS_AND_BIASES, "layer_decay": 0.8}
SETTINGS |= {"schedule": "cosine(total=30, warmup=3)", "betas": (0.9, 0.98)}


def model_in(dtype, frozen=()):
    model = model_of("attention")
    if dtype == "float32":
        model = nf.SequenceClassifier(model.config, 3, vocab_size=30, seed=1)
    if frozen:
        model.freeze(*frozen)
        model.flatten()
    return model


def gradients_of(model, step, rank):
    gradients = Gradients(model)
    rng = np.random.default_rng([step, rank])
    for g in gradients.values():
        g[...] = 10.0 ** rng.integers(-6, 1) * rng.normal(size=g.shape)
    return gradients


def take_steps(ranks, model, optimizer, steps, shard, max_norm=0.5):
    for step in steps:
        gradients = gradients_of(model, step, ranks.rank)
        (ranks.reduce_scatter if shard else ranks.all_reduce)(gradients.flat)
        clip_over_ranks(gradients, max_norm, ranks, own_shard=shard)
        optimizer.step(gradients)


def train(n, shard, dtype="float64", kernels=True, frozen=()):
    """Return weights and state after some steps, of each rank."""

    def work(ranks):
        model = model_in(dtype, frozen)
        optimizer = Adam(model.parameters(), **SETTINGS)
        stepped = ShardedAdam(optimizer, ranks) if shard else optimizer
        take_steps(ranks, model, stepped, range(STEPS), shard)
        return model.parameters().flat.tobytes(), stepped.state()

    with nf.use_kernels(kernels):
        return run_threads(n, work)


def bits(arrays):
    return {name: x.tobytes() for name, x in arrays.items()}


@pytest.mark.parametrize(
    ("n", "dtype", "kernels"),
    [
        (2, "float32", True),
        (2, "float64", False),
        (3, "float32", False),
        (3, "float64", True),
        (7, "float32", True),
    ],
)
def test_shards_change_no_bit_of_a_training(n, dtype, kernels):
    frozen = ("embed.*",) if n == 3 else ()
    (weights, (values, arrays)), *_ = train(n, False, dtype, kernels, frozen)
    by_shards = train(n, True, dtype, kernels, frozen)
    assert {weights_of_rank for weights_of_rank, _ in by_shards} == {weights}
    (values_by_shards, arrays_by_shards), *other_states = [state for _, state in by_shards]
    assert values_by_shards == values
    assert bits(arrays_by_shards) == bits(arrays)
    assert {x.dtype.name for x in arrays_by_shards.values()} == {dtype}
    assert all(its_values == values and not its for its_values, its in other_states)


@pytest.mark.parametrize("n", [1, 5, 20])
def test_a_buffer_that_is_smaller_than_the_number_of_ranks(n):
    def work(ranks, shard):
        layer = Linear(3, 1, seed=0)
        layer.flatten()
        optimizer = Adam(layer.parameters(), lr=0.1)
        stepped = ShardedAdam(optimizer, ranks) if shard else optimizer
        take_steps(ranks, layer, stepped, range(3), shard)
        return layer.parameters().flat.tobytes()

    unsharded, sharded = (run_threads(n, lambda ranks, s=s: work(ranks, s)) for s in (False, True))
    assert set(sharded) == set(unsharded) == {unsharded[0]}


@pytest.mark.parametrize("bad", range(3))
@pytest.mark.parametrize(
    "value",
    [
        np.nan,
        np.inf,
        -np.inf,
        1e300,
    ],
)
def test_a_gradient_that_is_not_finite_stops_all_ranks_before_the_update(bad, value):
    def work(ranks):
        model = model_in("float64")
        optimizer = ShardedAdam(Adam(model.parameters()), ranks)
        take_steps(ranks, model, optimizer, range(2), True)
        gradients = gradients_of(model, 2, 0)
        ranks.reduce_scatter(gradients.flat)
        shard = ranks.shard(gradients.flat.size)
        if ranks.rank == bad:
            name, _, at = next(iter(model.parameters().overlaps(shard)))
            gradients.flat[shard][at][-1] = value
        else:
            name = ""
        arrays = [model.parameters().flat, *optimizer._moments._arrays[""]]
        before = [x.tobytes() for x in arrays]
        with pytest.raises(nf.NonFiniteGradientError) as caught:
            optimizer.step(gradients)
        assert [x.tobytes() for x in arrays] == before
        assert optimizer.steps == 2
        return name, caught.value.parameter, str(caught.value)

    errors = run_threads(3, work)
    assert {parameter for _, parameter, _ in errors} == {errors[bad][0]}
    problem = {np.inf: "holds infinity", -np.inf: "holds infinity", 1e300: "its square is more"}
    assert all(problem.get(value, "holds NaN") in message for *_, message in errors)


@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize(
    ("value", "problem"), [(np.nan, "holds NaN"), (1.7e308, "reaches 1.7e+308")]
)
def test_clipping_names_the_gradient_on_all_ranks(shard, value, problem):
    def work(ranks):
        gradients = gradients_of(model_in("float64"), 0, 0)
        ranks.reduce_scatter(gradients.flat)
        shard_of_rank = ranks.shard(gradients.flat.size)
        if ranks.rank == ranks.size - 1:
            gradients["classify.weight"][...] = value
        if not shard:
            ranks.all_gather(gradients.flat)
        before = gradients.flat[shard_of_rank].tobytes()
        with pytest.raises(nf.NonFiniteGradientError) as caught:
            clip_over_ranks(gradients, 1.0, ranks, own_shard=shard)
        assert gradients.flat[shard_of_rank].tobytes() == before
        return caught.value.parameter, str(caught.value)

    for parameter, message in run_threads(3, work):
        assert parameter == "classify.weight"
        assert f"of classify.weight {problem}" in message


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_clipping_over_ranks_is_clipping(size):
    """Neither tiny nor huge gradients lose their norm; one rank's shard holds nothing but 0."""

    def work(ranks):
        gradients = gradients_of(model_in("float64"), 0, 0)
        gradients.flat[...] *= size
        gradients.flat[ranks.shard(gradients.flat.size, 1)] = 0.0
        expected = gradients.copy()
        nf.clip_by_global_norm(expected, 0.3 * size)
        clip_over_ranks(gradients, 0.3 * size, ranks, own_shard=False)
        np.testing.assert_allclose(gradients.flat, expected.flat, rtol=1e-14, atol=0)

    run_threads(3, work)


@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 3), (1, 4), (4, 0), (0, 4)])
def test_a_state_goes_on_with_another_number_of_ranks(before, after):
    """0: without sharding. The gradients are the same whatever the number of ranks."""

    def optimizer_of(ranks, model, n):
        optimizer = Adam(model.parameters(), **SETTINGS)
        return ShardedAdam(optimizer, ranks) if n else optimizer

    def work(ranks, n, steps, weights=None, state=None):
        model = model_in("float64")
        optimizer = optimizer_of(ranks, model, n)
        if state is not None:
            model.parameters().flat[...] = weights
            optimizer.restore(*copy.deepcopy(state))
        for step in steps:
            optimizer.step(gradients_of(model, step, 0))
        return model.parameters().flat.copy(), optimizer.state()

    def run(n, *arguments):
        return run_threads(max(n, 1), lambda ranks: work(ranks, n, *arguments))[0]

    expected = run(0, range(10))
    weights, state = run(before, range(4))
    training = run(after, range(4, 10), weights, state)
    assert training[0].tobytes() == expected[0].tobytes()
    assert training[1][0] == expected[1][0]
    assert bits(training[1][1]) == bits(expected[1][1])


def test_an_optimizer_whose_moments_are_shared_out_is_refused():
    def work(ranks):
        optimizer = Adam(model_in("float64").parameters(), **SETTINGS)
        ShardedAdam(optimizer, ranks)
        with pytest.raises(RuntimeError, match=r"are shared out over .* state\.optimizer, which"):
            optimizer.state()
        with pytest.raises(RuntimeError, match="make a new Adam, or restore this one"):
            ShardedAdam(optimizer, ranks)

    run_threads(3, work)


def test_an_optimizer_gets_its_moments_back():
    def work(ranks):
        model, alone = model_in("float64"), model_in("float64")
        optimizer, other = (Adam(m.parameters(), **SETTINGS) for m in (model, alone))
        for step in range(6):
            other.step(gradients_of(model, step, 0))
        for step in range(2):
            optimizer.step(gradients_of(model, step, 0))
        optimizer.steps = 0  # its moments are not 0 for that
        sharded = ShardedAdam(optimizer, ranks)
        sharded.steps = 2
        for step in range(2, 4):
            sharded.step(gradients_of(model, step, 0))
        sharded.lr *= 1.0
        sharded.give_back()
        assert vars(optimizer).keys() == vars(other).keys()
        for step in range(4, 6):
            optimizer.step(gradients_of(model, step, 0))
        assert model.parameters().flat.tobytes() == alone.parameters().flat.tobytes()
        assert bits(optimizer.state()[1]) == bits(other.state()[1])

    run_threads(3, work)


def test_an_optimizer_whose_moments_are_lost_takes_those_of_a_checkpoint():
    model = model_in("float64")
    optimizer = Adam(model.parameters())
    optimizer.step(gradients_of(model, 0, 0))
    state = optimizer.state()
    ShardedAdam(optimizer, Communicator())  # its training ends with an error
    with pytest.raises(RuntimeError, match="they are lost"):
        optimizer.step(gradients_of(model, 1, 0))
    optimizer.restore(*state)
    optimizer.step(gradients_of(model, 1, 0))
    assert optimizer.steps == 2


def test_no_rank_makes_room_for_all_moments():
    """Rank 1 of 4, which hears nothing of the others: what it takes at most, in all it does."""

    class Deaf(Communicator):
        rank, size = 1, 4

        def agree(self, *values):
            return np.array([values] * 4)

        def join_shards(self, x, n):
            return None

    config = nf.EncoderConfig(d_model=64, n_layers=4, n_heads=2, d_ff=256, max_len=4)
    model = nf.SequenceClassifier(config, 3, vocab_size=50, dtype="float64")
    unsharded = Adam(model.parameters())
    gradients = gradients_of(model, 0, 0)
    unsharded.step(gradients)
    state = unsharded.state()
    n_bytes = model.parameters().flat.nbytes
    lender = Adam(model.parameters())
    tracemalloc.start()
    optimizer = ShardedAdam(lender, Deaf())
    for _ in range(2):
        optimizer.step(gradients)
        optimizer.state()
        optimizer.restore(*state)  # new moments, while the old ones are there
    at_most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 * n_bytes <= at_most < (2 * 0.5 + 0.25) * n_bytes


def test_what_cannot_be_sharded_is_refused():
    class Mine(Adam):
        pass

    model = model_in("float64")
    with pytest.raises(TypeError, match=r"optimizer is a Mine; expected an npformer\.Adam itself"):
        ShardedAdam(Mine(model.parameters()), Communicator())
    with pytest.raises(ValueError, match="do not lie in one buffer"):
        ShardedAdam(Adam(dict(model.parameters())), Communicator())
