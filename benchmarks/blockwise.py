"""At which length do blocks of queries start to pay off? Time and memory of attention alone."""

import statistics
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.results_files import write
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
            query, key, value, dy = (rng.normal(size=shape).astype("float32") for _ in range(4))

            def step(way, inputs=(query, key, value), dy=dy):
                forward, backward = WAYS[way]
                _, cache = forward(*inputs)
                backward(dy, cache)

            seconds = {way: [] for way in WAYS}
            for _ in range(ROUNDS):  # in turn, so that drift of the machine affects both
                for way in WAYS:
                    began = time.perf_counter()
                    step(way)
                    seconds[way].append(time.perf_counter() - began)
            peak = {}
            for way in WAYS:
                tracemalloc.start()
                step(way)
                peak[way] = tracemalloc.get_traced_memory()[1] / 2**20
                tracemalloc.stop()
            median = {way: statistics.median(s) for way, s in seconds.items()}
            figures.append(
                {
                    "length": length,
                    "batch": shape[0],
                    "time_ratio": median["in blocks"] / median["weights stored"],
                    "peak_mib": {way: round(mib) for way, mib in peak.items()},
                }
            )
            print(figures[-1], flush=True)
    lines = [
        "| length | batch | time, blocks / stored | peak MiB, stored | peak MiB, blocks |",
        "|---|---|---|---|---|",
    ]
    for f in figures:
        stored, blocks = f["peak_mib"].values()
        lines.append(
            f"| {f['length']} | {f['batch']} | {f['time_ratio']:.2f} | {stored} | {blocks} |"
        )
    lines.append(
        f"\nForward and backward of attention alone, {HEADS} heads of {D_HEAD}, one BLAS thread, "
        f"medians of {ROUNDS} interleaved rounds."
    )
    write("blockwise", figures, "\n".join(lines))
