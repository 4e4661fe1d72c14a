"""Wrong calls of every command: exit status 2, words on stderr, and no traceback."""

import numpy as np
import pytest

import npformer as nf
from npformer import cli
from npformer.core import get_backend

TINY = "--epochs 1 --d-model 16 --heads 2 --d-ff 16 --layers 1 --quiet --out {folder}/run"

WRONG = [
    # What no command takes.
    ("", "the following arguments are required: COMMAND"),
    ("trian digits", "'trian'"),
    ("tran digits", "Did you mean 'train'?"),
    ("--versoin", "COMMAND"),
    ("train", "the following arguments are required: TASK"),
    ("train nope", "TASK|FILE: 'nope' is neither a task nor a file; expected one of digits"),
    ("train digits more", "more is unknown; npformer train --help-all shows what it takes"),
    ("train digits --epoch 1", "Did you mean '--epochs'?"),
    (
        "train reverse --split ordered",
        "of task reverse is 'ordered'; expected one of 'generated', 'b",
    ),
    ("predict m --probablities", "Did you mean '--probabilities'?"),
    ("evaluate", "MODEL"),
    ("predict", "MODEL"),
    ("doctor --fast", "npformer doctor: --fast is unknown"),
    # Numbers that are none, or out of range.
    *(
        (f"train digits {TINY} --{option} {value}", f"--{option}")
        for option, values in (
            ("epochs", "0 -1 1.5 nan many"),
            ("batch-size", "0 -3 x"),
            ("micro-batch", "0 two"),
            ("layers", "0 10000000000"),
            ("d-model", "0 -8"),
            ("heads", "0 3"),
            ("d-ff", "0"),
            ("lr", "0 -1 nan inf"),
            ("dropout", "1 -0.1 nan"),
            ("weight-decay", "-1 nan"),
            ("label-smoothing", "1 -0.5"),
            ("clip-norm", "0 nan"),
            ("seed", "-1 1.5"),
            ("workers", "0 some"),
        )
        for value in values.split()
    ),
    # Words.
    *(
        (f"train digits {TINY} --{words}", words.split()[1].partition("(")[0])
        for words in (
            "mixer atention",
            "mixer attention(heads=2)",
            "mixer attention(",
            "norm rms",
            "activation swish",
            "ffn moe",
            "initializer norml(std=-1)",
            "pooling sum",
            "output hinge",
            "positions rotational",
            "dtype float16",
            "schedule liner",
            "schedule cosine(totl=3)",
            "split random",
            "backend torch",
            "precision fp8",
            "masks disk",
            "plugin no_such_module",
            "plugin no/such/file.py",
        )
    ),
    *(
        (f"train digits {TINY} --{words}", message)
        for words, message in (
            ("mixer nope", "mixer is 'nope'; expected one of 'attention'"),
            ("mixer attention,fourier", "mixer has 2 names; expected one name, or one for each"),
            ("split nope", "--split of task digits is 'nope'; expected one of 'stratified', 'o"),
            ("heads 3", "--heads is 3 and d_model is 16; expected n_heads to divide d_model"),
            ("epochs 0", "--epochs is 0; expected a whole number of at least 1"),
            ("batch-size 0", "--batch-size is 0; expected a whole number of at least 1"),
            ("layers 0", "--layers is 0; expected a whole number of at least 1"),
            ("dropout 1", "dropout is 1.0; expected a number from 0 up to"),
            ("seed -1", "--seed is -1; expected 0 or more"),
            ("lr fast", "argument --lr: invalid float value: 'fast'"),
            ("workers many", "'many' is neither a whole number nor 'auto'"),
            ("d-model 5", "d_model"),
            ("d-ff 1000000000000", "GiB"),
            ("initializer normal(std=-1)", "std is -1; expected 0 or more"),
            ("epohcs 3", "npformer train: --epohcs is unknown. Did you mean '--epochs'?"),
            ("nonsense", "--nonsense is unknown; npformer train --help-all shows"),
        )
    ),
    # Files.
    *(
        row
        for command in ("evaluate {folder}", "predict {folder}")
        for row in (
            (f"{command}/missing", "there is no folder {folder}/missing"),
            (f"{command}/missing.safetensors", "there is no file {folder}/missing.safetensors"),
            (command, "there is no file {folder}/model.safetensors"),
        )
    ),
    ("evaluate {text}", "safetensors"),
    ("evaluate {model}", "task"),
    # What was typed comes before what lies on the disk.
    *(
        (f"{words} {{folder}}/missing --{option}", f"--{option.split()[0]} is ")
        for words, options in (
            ("evaluate", ["batch-size 0"]),
            ("predict", ["batch-size -1", "samples 0", "beams 0"]),
            ("look", ["samples 0", "samples few", "batch-size 0"]),
            ("generate", ["tokens 0", "temperature -1", "top-k 0", "top-p 0", "seed -1"]),
            ("play", ["port 0"]),
        )
        for option in options
    ),
    *(
        (f"train {file} --quiet --out {{used}} --{option}", f"--{option.split()[0]} is ")
        for file in ("digits", "{table}", "{folder}/missing.csv")
        for option in ("workers 0", "lr 0", "members 0", "seed -1", "micro-batch 0 --overwrite")
    ),
    ("train {table} --quiet --out {used} --pooling nope --overwrite", "--pooling is 'nope'"),
    ("train {table} --quiet --out {used} --split ordered", "--split is for tasks; expected none"),
    ("predict {model}", "task"),
    ("predict {model} {folder}/missing.npy", "missing.npy"),
    ("predict {model} {text}", "notes.txt ends in '.txt'; expected .npy or .csv"),
    ("predict {model} {ids} --mask {folder}/missing.npy", "missing.npy"),
    ("predict {model} {ids} --mask {ids}", "mask"),
    ("predict {model} {ids} --mask -", "argument --mask: '-' is standard input; expected"),
    ("evaluate -", "argument MODEL: '-' is standard input"),
    ("bench --json -", "argument --json: '-' is standard input"),
    ("predict {model} {ids} --batch-size 0", "--batch-size is 0"),
    ("predict {model} {ids} --out {folder}/no/such/y.npy", "is in a folder that does not exist"),
    ("predict {model} {ids} --out {folder}/y.txt", "expected the name of a file that ends in .npy"),
    ("predict {model} {vectors}", "x has"),
    ("predict {model} --mask {ids}", "--mask is given without INPUT"),
    ("predict {model} --samples 0", "--samples is 0; expected a whole number"),
    ("predict {folder}/missing {ids}", "no folder"),
    ("look", "MODEL"),
    ("look {folder}/missing", "no folder"),
    ("look {text}", "safetensors"),
    ("look {model}", "npformer.report(npformer.load(path), x, y)"),
    ("look {model} --samples few", "--samples is 'few'; expected how many, such as 4, or which"),
    ("look {model} --nonsense", "--nonsense"),
    ("gradcheck nosuchlayer", "no case is called nosuchlayer"),
    ("gradcheck layer_nrom", "Did you mean 'layer_norm'"),
    ("gradcheck no.such_module", "no.such_module"),
    ("bench --batch 0", "batch"),
    ("bench --workload Q", "workload is 'Q'"),
    ("bench --mixer nope", "mixer is 'nope'"),
    ("bench --seconds -1", "seconds is -1.0"),
    ("bench --json {folder}/no/such/figures.json", "does not exist"),
    ("bench --nonsense", "--nonsense"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A model of token ids, fitting and other data, a text, a table, and a folder of a run."""
    folder = tmp_path_factory.mktemp("commands")
    names = {name: folder / f"{name}.npy" for name in ("ids", "vectors")}
    config = nf.EncoderConfig(d_model=4, n_layers=1, n_heads=2, d_ff=4, max_len=5)
    names["model"] = folder / "tokens.safetensors"
    nf.save(nf.SequenceClassifier(config, 3, vocab_size=7), names["model"])
    np.save(names["ids"], np.ones((2, 3), dtype="int64"))
    np.save(names["vectors"], np.full((2, 3, 4), 0.5))
    names["text"] = folder / "notes.txt"
    names["text"].write_text("no model\n")
    names["table"] = folder / "table.csv"
    names["table"].write_text("text,label\ngood day,1\nbad day,0\n" * 4)
    names["used"] = folder / "runs" / "used"
    names["used"].mkdir(parents=True)
    nf.save(nf.load(names["model"]), names["used"] / "model.safetensors")
    return {"folder": folder, **names}


@pytest.mark.parametrize(
    ("words", "message"), WRONG, ids=[words or "nothing" for words, _ in WRONG]
)
def test_a_wrong_command_is_explained_in_a_line(words, message, places, capsys):
    try:
        status = cli.main([word.format(**places) for word in words.split()])
    except SystemExit as end:  # as argparse ends
        status = end.code
    out, err = capsys.readouterr()
    assert status == 2
    assert out in ("", f"{get_backend('numpy').device()}\n")  # `bench` begins with the device
    assert message.format(**places) in err
    assert "Traceback" not in err
    assert err.startswith(("npformer: ", f"npformer {words.partition(' ')[0]}: "))
    assert err.count("\n") == 1
    assert not (places["folder"] / "run").exists()
    assert [path.name for path in places["used"].rglob("*")] == ["model.safetensors"]
