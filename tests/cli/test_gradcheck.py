"""npformer gradcheck: which cases it runs, and what it prints."""

import numpy as np

import npformer as nf
from npformer import functional as F
from npformer.proof import cases


def test_a_name_selects_cases(prints):
    out = prints("gradcheck", "relu")
    rows = [line for line in out.splitlines() if line.endswith(("passed", "a derivative)"))]
    assert rows
    assert all("relu" in row.lower() for row in rows)
    assert f"{len(rows)} cases, {len(rows)} passed, 0 failed" in out


def test_names_match_whatever_their_case(prints):
    assert prints("gradcheck", "LayerNorm") == prints("gradcheck", "layer_norm")


def test_a_wrong_backward_pass_fails(prints, monkeypatch):
    def wrong():
        def twice(dy, cache):
            return 2.0 * F.relu_backward(dy, cache)

        return nf.gradcheck((F.relu, twice), np.random.default_rng(0).normal(size=(3, 4)))

    case = cases.Case("wrong", "functional", (), wrong)
    monkeypatch.setattr(cases, "cases", lambda: [case])
    assert "1 case, 0 passed, 1 failed" in prints("gradcheck", status=1)


def test_an_unknown_name_is_one_line(fails):
    assert "no case is called zzz" in fails("gradcheck", "zzz")
    assert "Did you mean 'layer_norm'" in fails("gradcheck", "layer_nrom")
