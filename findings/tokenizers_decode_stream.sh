#!/usr/bin/env bash
# tokenizers 0.23.3: DecodeStream gives another text than decode, or an error.
#
# Expected: the pieces of a stream, joined, are the text that decode gives for the same ids.
#
# Seen: where bytes of a character are missing, decode writes U+FFFD, and the stream raises
# 'Invalid prefix' or leaves the end out.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet tokenizers==0.23.3
cd "$folder"
env/bin/python - <<'PYTHON'
from tokenizers import Tokenizer, decoders, models

words = ["a", "<0x41>", "<0xE2>"]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "a"))
tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])


def streamed(ids):
    stream = decoders.DecodeStream(skip_special_tokens=True)
    try:
        return "".join(piece for piece in (stream.step(tokenizer, i) for i in ids) if piece)
    except Exception as error:
        return repr(error)


for ids in ([0, 2], [1, 2, 0]):
    print(ids, "decode:", ascii(tokenizer.decode(ids)), "stream:", ascii(streamed(ids)))
assert tokenizer.decode([0, 2]) == "a\ufffd" and streamed([0, 2]) == "a"
assert tokenizer.decode([1, 2, 0]) == "\ufffd\ufffda" and "Invalid prefix" in streamed([1, 2, 0])
PYTHON
