"""Hybrid layouts: some layers of attention among those of another mixer.

Lee-Thorp et al., 2021, arXiv 2105.03824, section 4.3 and appendix: BOTTOM, MIDDLE, MIXED, TOP.
"""

from __future__ import annotations

from numbers import Integral

from npformer.core import checks

LAYOUTS = ("bottom", "middle", "mixed", "top")


def hybrid(
    n_layers: int,
    n_attention: int = 2,
    layout: str = "top",
    mixer: str = "fourier",
    attention: str = "attention",
) -> tuple[str, ...]:
    """Return one mixer a layer, for ``EncoderConfig(mixer=...)``.

    Parameters
    ----------
    n_layers : int
        Blocks; block 0 is at the bottom, where the input enters.
    n_attention : int
        How many of them have attention; FNet-Hybrid has 2 of 12.
    layout : {"bottom", "middle", "mixed", "top"}
        Where they are. "mixed" spreads them evenly, from the bottom on. The paper found "top" best.
    mixer, attention : str
        Names of the two mixers.

    Examples
    --------
    >>> import npformer as nf
    >>> nf.mixers.hybrid(4)
    ('fourier', 'fourier', 'attention', 'attention')
    """
    checks.positive("n_layers", n_layers)
    checks.choice("layout", layout, LAYOUTS)
    whole = isinstance(n_attention, Integral) and not isinstance(n_attention, bool)
    if not whole or not 0 <= n_attention <= n_layers:
        raise ValueError(
            f"n_attention is {n_attention!r}; expected a whole number from 0 to n_layers, "
            f"which is {n_layers}"
        )
    first, last = 0, n_attention  # "bottom"
    if layout == "top":
        first, last = n_layers - n_attention, n_layers
    elif layout == "middle":
        first = (n_layers - n_attention + 1) // 2
        last = first + n_attention
    places = set(range(first, last))
    if layout == "mixed":
        apart = n_layers // max(n_attention, 1)
        places = {i * apart for i in range(n_attention)}
    return tuple(attention if i in places else mixer for i in range(n_layers))
