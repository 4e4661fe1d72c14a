"""`mpiexec -n 2 npformer ...`: ranks are found, the first prints and writes."""

import json
import re
import subprocess
import sys

import pytest

from tests.training.distributed.ranks import ROOT, environment, mpiexec, needs_mpi

pytestmark = [pytest.mark.processes, needs_mpi]

TINY = ["--epochs=3", "--d-model=16", "--heads=2", "--d-ff=16", "--layers=1", "--split=ordered"]


def npformer(n, *words, status=0):
    """Run the program by n ranks, 0 for none; return what it prints."""
    launcher = [mpiexec(), "-n", str(n)] if n else []
    done = subprocess.run(
        [*launcher, sys.executable, "-m", "npformer", *map(str, words)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_a_task_is_trained_evaluated_and_predicted(tmp_path):
    run, alone = tmp_path / "run", tmp_path / "alone"
    out = npformer(2, "train", "digits", *TINY, "--out", run).stdout
    assert out.count("test accuracy") == 1
    assert "2 ranks, the first on CPU" in out
    assert re.search(r"^2 ranks: 0 is process \d+ on .*, 1 is process \d+ on ", out, re.MULTILINE)
    npformer(0, "train", "digits", *TINY, "--out", alone)
    accuracies = [
        json.loads((each / "metrics.json").read_text())["splits"]["ordered"]["test_accuracy"]
        for each in (run, alone)
    ]
    assert abs(accuracies[0] - accuracies[1]) < 0.01  # float32, in another order of sums
    assert {path.name for path in tmp_path.iterdir()} == {"run", "alone"}
    by_ranks, by_one = (npformer(n, "evaluate", run).stdout.splitlines() for n in (2, 0))
    assert by_ranks[1:] == by_one[1:]
    assert npformer(4, "predict", run).stdout == npformer(0, "predict", run).stdout


def test_the_doctor_sees_all_ranks():
    said = npformer(2, "doctor").stdout
    assert said.count("npformer     ") == 1
    assert re.search(r"^ok +rank 0 +on .*, \d+ cores?$", said, re.MULTILINE)
    assert "rank 1" in said


def test_a_run_goes_on_with_another_number_of_ranks(tmp_path):
    npformer(2, "train", "digits", *TINY, "--out", tmp_path / "run")
    words = ("--epochs=5", "--shard-moments", "--resume", "--out", tmp_path / "run")
    said = npformer(3, "train", "digits", *words)
    assert "steps are computed by 3 ranks" in said.stderr
    history = json.loads((tmp_path / "run" / "history.json").read_text())["ordered"]
    assert len(history["train_loss"]) == 5
    assert len(history["workers"]) == 2


def test_a_file_of_texts(tmp_path):
    run, out = tmp_path / "run", tmp_path / "answers.csv"
    words = ["sentences", "--epochs=1", "--members=2", "--d-model=16", "--heads=2", "--d-ff=16"]
    said = npformer(2, "train", *words, "--quiet", "--out", run).stdout
    assert said.count("TF-IDF") <= 1
    assert said.count("596 test texts") == 1
    texts = ["good food", "bad food", "a film"]
    by_ranks, by_one = (npformer(n, "predict", run, *texts).stdout for n in (4, 0))
    assert by_ranks == by_one
    (tmp_path / "a.csv").write_text(
        "text,label\n" + "".join(f"{text},positive\n" for text in texts)
    )
    npformer(2, "predict", run, tmp_path / "a.csv", "--out", out)
    assert [line.split(",")[0] for line in out.read_text().splitlines()[1:]] == texts
    by_ranks, by_one = (
        npformer(n, "evaluate", run, tmp_path / "a.csv").stdout.splitlines()[1:] for n in (2, 0)
    )
    assert by_ranks == by_one


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["train", "digits", "--epochs=0"], "--epochs is 0"),
        (["train", "digits", "--resume", "--overwrite"], "--resume and --overwrite are both given"),
        (["gradcheck"], "mpiexec started 3 processes, and this command is for one"),
        (["evaluate", "nowhere"], "nowhere"),
    ],
)
def test_one_message_says_what_is_wrong(words, problem, tmp_path):
    out = ["--out", tmp_path / "run"] if words[0] == "train" else []
    said = npformer(3, *words, *out, status=2).stderr
    assert said.count(f"npformer {words[0]}: ") == 1
    assert problem in said
    assert not (tmp_path / "run").exists()


def test_the_first_rank_alone_cannot_write(tmp_path):
    (tmp_path / "run").write_text("a file, where the folder would be")
    said = npformer(2, "train", "digits", *TINY, "--out", tmp_path / "run", status=2).stderr
    assert said.count("npformer train: ") == 1
