"""`mpiexec -n 2 npformer ...`: ranks are found, the first prints and writes."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.training.distributed import ranks

pytestmark = [pytest.mark.processes, ranks.needs_mpi]

DIGITS = ["train", "digits", "--epochs=2", "--d-model=16", "--heads=2", "--d-ff=16", "--layers=1"]
DIGITS += ["--split=ordered"]
SENTENCES = ["train", "sentences", "--epochs=1", "--members=2", "--d-model=16", "--heads=2"]
SENTENCES += ["--d-ff=16", "--quiet"]
TEXTS = ["good food", "bad food", "a film"]

WRONG = {
    "epochs": (["train", "digits", "--epochs=0"], "--epochs is 0"),
    "both": (["train", "digits", "--resume", "--overwrite"], "--resume and --overwrite are both"),
    "alone": (["gradcheck"], "mpiexec started 3 processes, and this command is for one"),
    "nowhere": (["evaluate", "nowhere"], "nowhere"),
    "a file": (DIGITS, "a file"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run the commands by 2, 3 and no ranks; return the folder."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "a file").write_text("where the folder of a run would be")
    texts = folder / "texts.csv"
    texts.write_text("text,label\n" + "".join(f"{text},positive\n" for text in TEXTS))
    run, resumed, of_texts = (folder / name for name in ("run", "resumed", "of texts"))

    def measure(n):
        words = {"evaluate": ["evaluate", run], "predict": ["predict", run]}
        words["predict texts"] = ["predict", of_texts, *TEXTS]
        words["evaluate texts"] = ["evaluate", of_texts, texts]
        answers = folder / f"answers-{n}.csv"
        return words | {"answers": ["predict", of_texts, texts, "--out", answers]}

    def do(n, commands):
        work = {name: ("command", *map(str, words)) for name, words in commands.items()}
        ranks.assert_ended_well(ranks.run_jobs(n, folder / str(n), work))

    do(2, {"train": [*DIGITS, "--out", run], "texts": [*SENTENCES, "--out", of_texts]})
    shutil.copytree(run, resumed)
    of_three = {"resume": ["--epochs=3", "--shard-moments", "--resume", "--out", resumed]}
    of_three["resume"] = [*DIGITS, *of_three["resume"]]
    for name, (words, _) in WRONG.items():
        out = ["--out", folder / (name if name == "a file" else "wrong")]
        of_three[name] = [*words, *(out if words[0] == "train" else [])]
    do(3, {"doctor": ["doctor"]} | of_three | measure(3))
    do(0, {"train": [*DIGITS, "--out", folder / "alone"]} | measure(0))
    return folder


def said_by(n, folder, name):
    """Return what each rank said."""
    files = [folder / str(n) / name / f"{k}.json" for k in range(n or 1)]
    return [json.loads(file.read_text()) for file in files]


def output_of(n, folder, name):
    """Return what all ranks printed, of which only the first may print anything."""
    first, *other_ranks = said_by(n, folder, name)
    assert first["status"] == 0
    assert other_ranks == [{"status": 0, "out": "", "err": ""}] * (n - 1 if n else 0)
    return first["out"]


def test_a_task_is_trained_as_by_one_process(runs):
    out = output_of(2, runs, "train")
    assert out.count("test accuracy") == 1
    assert "2 ranks, the first on CPU" in out
    assert re.search(r"^2 ranks: 0 is process \d+ on .*, 1 is process \d+ on ", out, re.MULTILINE)
    files = (runs / name / "metrics.json" for name in ("run", "alone"))
    splits = [json.loads(file.read_text())["splits"] for file in files]
    of_both, alone = (split["ordered"]["test_accuracy"] for split in splits)
    assert abs(of_both - alone) < 0.01  # float32, in another order of sums


def test_ranks_evaluate_as_one_process_does(runs):
    for name in ("evaluate", "evaluate texts"):
        by_ranks, by_one = (output_of(n, runs, name).splitlines()[1:] for n in (3, 0))
        assert by_ranks == by_one
        assert by_one


def test_ranks_predict_as_one_process_does(runs):
    for name in ("predict", "predict texts"):
        assert output_of(3, runs, name) == output_of(0, runs, name)
    assert (runs / "answers-3.csv").read_bytes() == (runs / "answers-0.csv").read_bytes()
    answers = (runs / "answers-3.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in answers] == TEXTS


def test_an_ensemble_of_ranks_is_measured_once(runs):
    assert output_of(2, runs, "texts").count("596 test texts") == 1


def test_the_doctor_sees_all_ranks(runs):
    out = output_of(3, runs, "doctor")
    assert out.count("npformer     ") == 1
    assert re.search(r"^ok +rank 0 +on .*, \d+ cores?$", out, re.MULTILINE)
    assert "rank 2" in out


def test_a_run_goes_on_with_another_number_of_ranks(runs):
    assert "steps are computed by 3 ranks" in said_by(3, runs, "resume")[0]["err"]
    history = json.loads((runs / "resumed" / "history.json").read_text())["ordered"]
    assert len(history["train_loss"]) == 3
    assert len(history["workers"]) == 2


@pytest.mark.parametrize("name", WRONG)
def test_one_message_says_what_is_wrong(runs, name):
    words, problem = WRONG[name]
    outputs = said_by(3, runs, name)
    errors = "".join(output["err"] for output in outputs)
    assert errors.count(f"npformer {words[0]}: ") == 1
    assert problem in errors
    assert 2 in [output["status"] for output in outputs]
    assert not (runs / "wrong").exists()


def test_a_mistake_is_the_status_of_mpiexec():
    words = [ranks.mpiexec(), "-n", "2", sys.executable, "-m", "npformer", "evaluate", "nowhere"]
    process = subprocess.run(
        words,
        cwd=ranks.ROOT,
        env=ranks.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 2
    assert process.stderr.count("npformer evaluate: ") == 1
