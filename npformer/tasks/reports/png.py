"""Pictures of matrices as PNG files, with the standard library alone.

One pixel per entry, which the browser enlarges without blurring, is smaller and sharper than a
plot, and needs no plotting library.
"""

import base64
import struct
import zlib

import numpy as np

LEVELS = 64
"""Colours of a scale. In a PNG 0 is padding, 1 to LEVELS the scale, LEVELS + 1 NaN or infinity."""

PADDING, NO_NUMBER = (150, 150, 150), (255, 0, 200)

SCALES = {
    # From 0 up: dark to bright, anchors of viridis (Smith and van der Walt, CC0).
    "weights": [(68, 1, 84), (59, 81, 139), (33, 144, 141), (92, 200, 99), (253, 231, 37)],
    # Both signs: blue, white at 0, red.
    "signed": [(5, 48, 97), (67, 147, 195), (247, 247, 247), (214, 96, 77), (103, 0, 31)],
    # The input: white paper to ink.
    "ink": [(255, 255, 255), (120, 160, 215), (35, 70, 140), (8, 16, 48)],
}


def scale_for(numbers: np.ndarray) -> tuple[str, float, float]:
    """Return the scale for some finite numbers, and the numbers at its ends."""
    high = float(np.abs(numbers).max(initial=0.0))
    return ("signed", -high, high) if (numbers < 0).any() else ("weights", 0.0, high)


def data_address(values: np.ndarray, kept: np.ndarray, scale: str, low: float, high: float) -> str:
    """Return a picture of a matrix as a data URL, which holds the whole file.

    Entries from `low` to `high` get the colours of the scale; where `kept` is False, that of
    padding.
    """
    with np.errstate(all="ignore"):
        share = (values.astype("float64") - low) / ((high - low) or 1.0)
    numbers = np.isfinite(share)
    level = np.clip(np.where(numbers, share, 0.0), 0.0, 1.0) * (LEVELS - 1)
    index = np.where(numbers, 1 + np.rint(level), LEVELS + 1)
    pixels = np.where(kept, index, 0).astype("uint8")
    return "data:image/png;base64," + base64.b64encode(png(pixels, palette(scale))).decode()


def palette(scale: str) -> bytes:
    """Return the colours of a scale, three bytes each."""
    anchors = np.array(SCALES[scale], dtype="float64")
    at = np.linspace(0, len(anchors) - 1, LEVELS)
    colours = [np.interp(at, np.arange(len(anchors)), channel) for channel in anchors.T]
    ramp = np.rint(np.stack(colours, axis=1)).astype("uint8")
    return b"".join((bytes(PADDING), ramp.tobytes(), bytes(NO_NUMBER)))


def png(pixels: np.ndarray, colours: bytes) -> bytes:
    """Return a PNG file of indexed colours; `pixels` are indices, (height, width)."""
    height, width = pixels.shape
    rows = np.zeros((height, width + 1), dtype="uint8")  # each row begins with its filter: 0, none
    rows[:, 1:] = pixels
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits, indexed
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"PLTE", colours)
        + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG file: the length of its data, its name, the data, a checksum."""
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def shrink(matrix: np.ndarray, kept: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of at most `side` rows and columns, and which of its entries are kept.

    Each block becomes its entry of the largest magnitude; it is padding if all its entries are.
    """
    height, width = -(-matrix.shape[0] // side), -(-matrix.shape[1] // side)  # of a block
    if height == width == 1:
        return matrix, kept

    def blocks(x: np.ndarray) -> np.ndarray:
        padded = np.pad(x, ((0, -x.shape[0] % height), (0, -x.shape[1] % width)))
        cut = padded.reshape(len(padded) // height, height, -1, width).swapaxes(1, 2)
        return cut.reshape(*cut.shape[:2], height * width)

    with np.errstate(all="ignore"):
        magnitude = np.where(np.isnan(matrix), np.inf, np.abs(matrix))
        magnitude = np.where(kept, magnitude, -1.0)
    best = blocks(magnitude).argmax(axis=-1)[..., None]
    known = np.asarray(blocks(kept).any(axis=-1))
    return np.take_along_axis(blocks(matrix), best, axis=-1)[..., 0], known
