"""Hybrid layouts: attention in some layers, another mixer in the rest.

The layouts are those of Lee-Thorp et al., 2021, arXiv 2105.03824, section 4.3 and appendix.
"""

from npformer.core import checks

LAYOUTS = ("bottom", "middle", "mixed", "top")


def hybrid(
    n_layers: int,
    n_attention: int = 2,
    layout: str = "top",
    mixer: str = "fourier",
    attention: str = "attention",
) -> tuple[str, ...]:
    """Return the name of each layer's mixer, for ``EncoderConfig(mixer=...)``.

    Parameters
    ----------
    n_layers : int
        Layer 0 is the bottom one, where the input enters.
    n_attention : int
        How many layers have attention; FNet-Hybrid has 2 of 12.
    layout : {"bottom", "middle", "mixed", "top"}
        Which layers have attention. "mixed" spreads them evenly, beginning at the bottom. The paper
        found "top" best.

    Notes
    -----
    There are always n_attention layers with attention, as the paper says. For "mixed", its
    published code takes every (n_layers // n_attention)-th one. These are more if the division has
    a remainder: 3 for 5 layers and n_attention=2, where this function takes the first 2 of them.

    Examples
    --------
    >>> import npformer as nf
    >>> nf.mixers.hybrid(4)
    ('fourier', 'fourier', 'attention', 'attention')
    """
    checks.whole("n_layers", n_layers, at_least=1, at_most=checks.MOST_LAYERS)
    checks.text("mixer", mixer)
    checks.text("attention", attention)
    checks.choice("layout", layout, LAYOUTS)
    n_attention = checks.whole("n_attention", n_attention, at_least=0, at_most=n_layers)
    middle = (n_layers - n_attention + 1) // 2
    step = n_layers // max(n_attention, 1)
    attention_layers = {
        "bottom": range(n_attention),
        "middle": range(middle, middle + n_attention),
        "mixed": range(0, n_attention * step, step),
        "top": range(n_layers - n_attention, n_layers),
    }[layout]
    return tuple(attention if i in attention_layers else mixer for i in range(n_layers))
