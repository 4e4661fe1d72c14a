#!/usr/bin/env bash
# tokenizers 0.23.3: without an unknown token, BPE drops unknown characters and merges what is left
# across them.
#
# Expected: an unknown character is left out or raises an error, and 'a?b' becomes 'a' and 'b': the
# merge of a and b is for neighbours.
#
# Seen: 'a?b' is the one token 'ab', with the id of 'ab' and an offset of two characters of three.
# Texts that differ get the same ids, and offsets point at the wrong characters. With an unknown
# token there are three tokens.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet tokenizers==0.23.3
cd "$folder"
env/bin/python - <<'PYTHON'
from tokenizers import Tokenizer, models

VOCABULARY = {"a": 0, "b": 1, "ab": 2, "<unk>": 3}
without = Tokenizer(models.BPE(VOCABULARY, [("a", "b")]))
unknown = Tokenizer(models.BPE(VOCABULARY, [("a", "b")], unk_token="<unk>"))
for text in ("ab", "a?b", "a???b"):
    encoding = without.encode(text)
    print(text, encoding.tokens, encoding.offsets, "with <unk>:", unknown.encode(text).tokens)
assert without.encode("a?b").ids == without.encode("a???b").ids == without.encode("ab").ids == [2]
assert without.encode("a?b").offsets == [(0, 2)]
assert unknown.encode("a?b").tokens == ["a", "<unk>", "b"]
PYTHON
