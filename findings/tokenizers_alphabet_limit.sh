#!/usr/bin/env bash
# tokenizers 0.23.3: with limit_alphabet, the BPE trainer makes another vocabulary in each
# process.
#
# Expected: the same vocabulary: without the limit, it is the same in every process; the limit
# keeps the most frequent characters.
#
# Seen: characters that are equally frequent are left out at random, by the order of a hash table.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --quiet tokenizers==0.23.3
cd "$folder"
env/bin/python - <<'PYTHON'
import subprocess
import sys

SCRIPT = """
from tokenizers import Tokenizer, models, trainers
tokenizer = Tokenizer(models.BPE())
trainer = trainers.BpeTrainer(vocab_size=30, show_progress=False, {})
tokenizer.train_from_iterator(["To be or not to be, that is the question."], trainer)
print(sorted(tokenizer.get_vocab()))
"""


def vocabularies(option):
    command = [sys.executable, "-c", SCRIPT.format(option)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(12)]
    return {run.stdout for run in runs}


limited, unlimited = vocabularies("limit_alphabet=8"), vocabularies("")
print("of 12 processes:", len(limited), "vocabularies with the limit,", len(unlimited), "without")
assert len(limited) > 1 and len(unlimited) == 1
PYTHON
