"""fourier_backward: the backward pass of Fourier mixing."""

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.pair import Pair, Trial
from npformer.proof.cases.case import draw

FORWARD = "np.fft.fft2(dy, axes=(-2, -1)).real"

EXERCISE = Exercise(
    name="fourier_backward",
    title="dx of the real part of a two-dimensional Fourier transform",
    page="chapters/fourier.md",
    hints=(
        "The map is linear: y = M x, for a large matrix M. What is dx then? It is not the inverse.",
        "dx = M^T dy. Write F = C - iS with the cosines C and the sines S, and multiply out: y is "
        "made of C x C and S x S. What are the transposes of C and S?",
        "C_jk = cos(2 pi j k / n) does not change when j and k are swapped; nor does S. So the map "
        "is its own transpose: apply to dy what the forward pass applied to x.",
    ),
    why="""\
With F = C - iS on both sides, (C - iS) x (C - iS) = C x C - S x S - i (C x S + S x C), so
    y = C x C - S x S, and dx = C^T dy C^T - S^T dy S^T.
cos(2 pi j k / n) is the same when j and k are swapped: C^T = C, and S^T = S. So the backward pass
is the forward map, applied to dy. (The inverse transform is another map: it undoes F.)""",
    mark=Pair(
        "fourier",
        "fourier_backward",
        ("dx",),
        (
            Trial("x of shape (5, 3)", (draw(5, 3),)),
            Trial("a batch", (draw(2, 4, 6),)),
            Trial("larger arrays", (draw(3, 20, 12),)),
        ),
    ),
    wrong=(
        Wrong(
            "it is the inverse transform. The gradient of a linear map goes back through its "
            "transpose, which is something else",
            "np.fft.fft2(dy",
            "np.fft.ifft2(dy",
        ),
        Wrong(
            "it is transformed over the features alone",
            FORWARD,
            "np.fft.fft(dy, axis=-1).real",
        ),
        Wrong(
            "it is transformed over the sequence alone",
            FORWARD,
            "np.fft.fft(dy, axis=-2).real",
        ),
        Wrong(
            "the real part is taken twice, between the two transforms too",
            FORWARD,
            "np.fft.fft(np.fft.fft(dy, axis=-1).real, axis=-2).real",
        ),
        Wrong("it is the imaginary part", ".real\n    # end", ".imag\n    # end"),
        Wrong(
            "it is the gradient that came in: the map mixes all entries",
            FORWARD,
            "dy * 1.0",
        ),
        Wrong(
            "it is transformed over the batch too; each sequence has its own transform",
            FORWARD,
            "np.fft.fftn(dy).real",
        ),
    ),
)
