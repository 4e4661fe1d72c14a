#!/usr/bin/env bash
# tokenizers 0.23.3: a token that is added to a vocabulary with gaps gets the id of another token.
#
# Expected: an id that nothing has: the largest id and 1, as get_vocab_size suggests where there
# are no gaps.
#
# Seen: the number of tokens, which may be taken: of the vocabulary {a: 0, b: 2}, the new token c
# gets 2, and b can no longer be written.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet tokenizers==0.23.3
cd "$folder"
env/bin/python - <<'PYTHON'
from tokenizers import Tokenizer, models

tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 2}, "a"))
tokenizer.add_tokens(["c"])
print(tokenizer.get_vocab(), "decode([2]):", tokenizer.decode([2]))
assert tokenizer.token_to_id("b") == 2
assert tokenizer.token_to_id("c") == 2
assert tokenizer.decode([2]) == "c"
PYTHON
