# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=var-annotated
"""Beam search for the likeliest sequence of n tokens.

`follow(tokens)` is the model: it takes a list of tokens, empty at first, and returns the log
probability of each token that may follow, (V,). The log probability of a sequence is the sum of
those of its tokens.

In each step all `beams` sequences are continued by all tokens, and the `beams` likeliest of these
go on. One beam is greedy. Return the likeliest sequence at the end, a list of n tokens.
"""

# %% Your part


def beam_search(follow, n, beams):
    """Return the likeliest of the sequences that are left after n steps."""
    # your code
    live = [(0.0, [])]
    for _ in range(n):
        grown = [
            (log_p + more, [*tokens, token])
            for log_p, tokens in live
            for token, more in enumerate(follow(tokens))
        ]
        live = sorted(grown, key=lambda each: -each[0])[:beams]
    return live[0][1]
    # end of your code
