"""Words to phones: how many unseen words each side writes correctly, running freely.

FILE is a table of words and phones, such as the CMU Pronouncing Dictionary as CSV, with columns
"word" and "phones", phones separated by spaces. It is not in this repository. Both sides start with
the same weights and take the same batches, without dropout.
"""

import statistics
from dataclasses import dataclass

import numpy as np

import npformer as nf
from benchmarks.decoders import Recipe, config_of, parser_of, started, train_both, versions
from benchmarks.results_files import markdown, write
from benchmarks.timing import significant
from npformer.data.tables import read_table

SIZES = 128, 3, 4, 512
"""d_model, layers on each side, heads, d_ff."""

BATCH, STEPS, SEEDS, WARM_UP = 128, 1500, 3, 400
HELD_OUT = 0.05
"""The share of words held out, with all their pronunciations."""

FIRST = 3
"""The first number of a letter or a phone: 0 is padding, 1 the beginning, 2 the end."""

TURN, AT_ONCE = 50, 500


@dataclass(frozen=True)
class Pairs(Recipe):
    """A training on pairs, given as rows of numbers that end in padding."""

    source: np.ndarray
    target: np.ndarray
    vocabs: tuple
    steps: int
    seed: int

    peer = "Translator"
    betas, clip = (0.9, 0.98), 1.0

    @property
    def schedule(self):
        """Return the factor: a warm-up, then a cosine to a hundredth."""
        return f"cosine(total={self.steps}, warmup={min(WARM_UP, self.steps - 1)}, final=0.01)"

    @property
    def max_len(self):
        """Positions on either side."""
        return max(self.source.shape[1], self.target.shape[1])

    def model(self):
        """Return npformer's model."""
        config = config_of(SIZES, self.max_len, activation="relu", norm="pre")
        return nf.EncoderDecoder(config, *self.vocabs, seed=self.seed)

    def shape(self):
        """Return the arguments of PyTorch's model."""
        return {
            "sizes": SIZES,
            "max_len": self.max_len,
            "vocabs": self.vocabs,
            "norm": "pre",
            "scaled": True,
        }

    def batches(self):
        """Yield batches of pairs in a new order each epoch, without columns of only padding."""
        rng = np.random.default_rng(self.seed)
        while True:
            order = rng.permutation(len(self.source))
            for start in range(0, len(order) - BATCH + 1, BATCH):
                rows = order[start : start + BATCH]
                yield tuple(shortened(ids[rows]) for ids in (self.source, self.target))


def shortened(ids):
    """Return rows without the columns that hold only padding."""
    return np.ascontiguousarray(ids[:, : (ids != 0).sum(axis=1).max()])


def pairs(file):
    """Return {word: [its pronunciations]}, each pronunciation a tuple of phones."""
    rows = read_table(file)
    found = {}
    for word, phones in zip(rows.texts("word"), rows.texts("phones"), strict=True):
        found.setdefault(word, []).append(tuple(phones.split()))
    return found


def numbers(symbols):
    """Return a number for each distinct symbol, in order."""
    return {symbol: FIRST + i for i, symbol in enumerate(sorted(set(symbols)))}


def padded(rows):
    """Return lists of numbers as an array."""
    ids = np.zeros((len(rows), max(map(len, rows))), "int64")
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    return ids


def right(written, allowed):
    """Return the share of words written, up to the end token, as one of their pronunciations."""
    ends = [tuple([*row, 2][: [*row, 2].index(2)]) for row in written]
    return float(np.mean([row in of_word for row, of_word in zip(ends, allowed, strict=True)]))


class Words:
    """A dictionary split into a training part and a test part, as numbers."""

    def __init__(self, file, seed=0):
        found = pairs(file)
        letters = numbers(letter for word in found for letter in word)
        phones = numbers(each for many in found.values() for one in many for each in one)
        self.vocabs = FIRST + len(letters), FIRST + len(phones)
        words = sorted(found)
        np.random.default_rng(seed).shuffle(words)
        cut = round(HELD_OUT * len(words))
        known = [(word, one) for word in words[cut:] for one in found[word]]
        self.source = padded([[letters[c] for c in word] for word, _ in known])
        self.target = padded([[1, *(phones[p] for p in one), 2] for _, one in known])
        self.unseen = padded([[letters[c] for c in word] for word in words[:cut]])
        self.allowed = [
            {tuple(phones[p] for p in one) for one in found[word]} for word in words[:cut]
        ]


def of_seed(words, seed, steps, threads=None):
    """Train both sides once; return the shares that they write correctly."""
    recipe = Pairs(words.source, words.target, words.vocabs, steps, seed)
    longest = words.target.shape[1] - 1
    with started(recipe, threads) as sides:
        train_both(*sides, steps, TURN)
        found = {}
        for who, side in zip(("npformer", "PyTorch"), sides, strict=True):
            written = []
            for start in range(0, len(words.unseen), AT_ONCE):
                source = shortened(words.unseen[start : start + AT_ONCE])
                written += side.call("written", source, longest)
            found[who] = significant(right(written, words.allowed))
        return found


def run(options):
    """Train both with several seeds, and write the table."""
    parser = parser_of("pronunciations", __doc__, STEPS, "a table of words and phones")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    chosen = parser.parse_args(options)
    words, figures = Words(chosen.file), {}
    print(
        f"{len(words.source):,} pairs to train on, {len(words.unseen):,} unseen words", flush=True
    )
    for seed in range(chosen.seeds):
        figures[f"seed {seed}"] = of_seed(words, seed, chosen.steps, chosen.threads)
        print(f"seed {seed}: {figures[f'seed {seed}']}", flush=True)
    print(table(figures))
    if chosen.steps < STEPS or chosen.seeds < SEEDS:
        print("Not written: only a run with all steps and seeds is.")
        return
    on = versions() | ({"threads": chosen.threads} if chosen.threads else {})
    write("pronunciations", figures, table(figures), **on)


def table(figures):
    """Return a row for each seed, one for the mean, and what was done."""
    several = list(figures.values())
    mean = {who: statistics.mean(row[who] for row in several) for who in several[0]}
    rows = [
        (name, f"{each['npformer']:.3f}", f"{each['PyTorch']:.3f}")
        for name, each in (*figures.items(), ("mean", mean))
    ]
    return f"{markdown(('exactly right', 'npformer', 'PyTorch'), rows)}\n\n{HOW}"


HOW = (
    f"{100 * HELD_OUT:.0f} % of the words, with all their pronunciations, are held out; a word is "
    "right if what a model writes greedily is one of them, stresses included. "
    f"{STEPS:,} steps of {BATCH} pairs; d_model 128, 3 layers on each side, 4 heads, d_ff 512, "
    "pre-norm, relu, no dropout; Adam 0.9, 0.98, lr 0.001 after "
    f"{WARM_UP} steps, cosine to a hundredth, gradients clipped at 1. PyTorch is eager "
    "torch.nn.Transformer, and begins with the same weights and takes the same batches. How long "
    "such steps take: `python -m benchmarks translating`."
)
