"""At which length do blocks of queries start to pay off? Time and memory of attention alone."""

import tracemalloc
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.results_files import markdown, write
from benchmarks.timing import interleave, ratio, timed
from npformer import functional as F

WAYS = {
    "weights stored": (
        F.scaled_dot_product_attention,
        F.scaled_dot_product_attention_backward,
    ),
    "in blocks": (F.blockwise_attention, F.blockwise_attention_backward),
}
TOKENS, HEADS, D_HEAD, ROUNDS = 4096, 4, 64, 5


def run():
    rng = np.random.default_rng(0)
    figures = []
    with threadpool_limits(1):
        for length in (128, 256, 512, 1024, 2048, 4096):
            shape = (TOKENS // length, HEADS, length, D_HEAD)
            *inputs, dy = (rng.normal(size=shape).astype("float32") for _ in range(4))

            def step(way, inputs=inputs, dy=dy):
                forward, backward = WAYS[way]
                _, cache = forward(*inputs)
                backward(dy, cache)

            turns = {way: partial(timed, partial(step, way)) for way in WAYS}
            taken = interleave(turns, 0.0, least=ROUNDS, warm_up=1)
            peak = {}
            for way in WAYS:
                tracemalloc.start()
                step(way)
                peak[way] = round(tracemalloc.get_traced_memory()[1] / 2**20)
                tracemalloc.stop()
            quotient = ratio(taken["in blocks"], taken["weights stored"])["of_medians"]
            figures.append({"length": length, "time_ratio": quotient, "peak_mib": peak})
            print(figures[-1], flush=True)
    write("blockwise", figures, table(figures))


def table(figures):
    """Return a row for each length."""
    rows = [
        (f["length"], TOKENS // f["length"], f"{f['time_ratio']:.2f}", *f["peak_mib"].values())
        for f in figures
    ]
    heads = "length", "batch", "time, blocks / stored", "peak MiB, stored", "peak MiB, blocks"
    return (
        f"{markdown(heads, rows, left=0)}\n\n"
        f"Forward and backward of attention alone, {HEADS} heads of {D_HEAD}, one BLAS thread, "
        f"medians of {ROUNDS} interleaved rounds."
    )
