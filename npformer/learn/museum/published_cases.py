"""Cases of the published snippets that npformer started from."""

from collections.abc import Iterator

from npformer.learn.museum.published import (
    AskersSynthesizer,
    BlogFNetBlock,
    KerasFeedForward,
    blog_fnet,
)
from npformer.proof.cases import SUBJECTS
from npformer.proof.cases.case import SEEDED, Case, draw, keep, layer


def published_cases() -> Iterator[Case]:
    """Yield the cases."""
    x, v = draw(2, 3, 4), draw(2, 3, 2)
    for ffn in ("linear", "conv1d"):
        keras = KerasFeedForward(4, 6, 0.3, ffn=ffn, **SEEDED)
        yield layer(f"{ffn}, dropout", keras, x, training=True)
    block, three = BlogFNetBlock(4, 6, 0.3, **SEEDED), blog_fnet(4, 6, 0.0, 3, **SEEDED)
    name = "BlogFNetBlock"
    yield layer("one block, dropout", block, x, training=True)
    yield layer("applied three times", three, x, title=name, covers=(name,))
    mask, other = keep([3, 1], 3), keep([2, 3], 3)
    asker = AskersSynthesizer(3, 4, **SEEDED)
    yield layer("without a batch", asker, x[0], v[0])
    yield layer("a batch", asker, x, v)
    yield layer("a batch, a padding mask each", asker, x, v, mask=(other, mask))


SUBJECTS.append(published_cases)
