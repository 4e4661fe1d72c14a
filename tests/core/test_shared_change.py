"""Changes of the process: those who need them may overlap in any order."""

import csv
import os
from contextlib import ExitStack

import pytest

from npformer.core.support.shared_change import SharedChange
from npformer.data.csv_table import large_fields
from npformer.data.tokenizers.hugging_face import one_thread

NAME = "TOKENIZERS_PARALLELISM"


def test_the_last_who_leaves_takes_the_change_back():
    values = ["before"]

    def make():
        values.append("changed")
        return values[0]

    change = SharedChange(make, values.append)
    first, second = ExitStack(), ExitStack()
    first.enter_context(change())
    second.enter_context(change())
    first.close()
    assert values == ["before", "changed"]
    second.close()
    assert values == ["before", "changed", "before"]


def test_an_error_takes_the_change_back():
    values = []
    change = SharedChange(lambda: "before", values.append)
    with pytest.raises(ZeroDivisionError), change():
        raise ZeroDivisionError
    assert values == ["before"]


@pytest.mark.parametrize("value", ["true", None])
def test_the_threads_of_tokenizers_are_as_before(monkeypatch, value):
    monkeypatch.delenv(NAME, raising=False)
    if value is not None:
        monkeypatch.setenv(NAME, value)
    first, second = ExitStack(), ExitStack()
    first.enter_context(one_thread())
    second.enter_context(one_thread())
    first.close()
    assert os.environ[NAME] == "false"
    second.close()
    assert os.environ.get(NAME) == value


def test_the_limit_of_csv_is_as_before():
    limit = csv.field_size_limit()
    first, second = ExitStack(), ExitStack()
    first.enter_context(large_fields())
    second.enter_context(large_fields())
    first.close()
    assert csv.field_size_limit() > limit
    second.close()
    assert csv.field_size_limit() == limit
