"""Errors that say where; warnings that are said once are tested with the mixers that say them."""

import pytest

from npformer.core.explained_errors import located_errors


def test_an_error_says_where_and_keeps_its_kind():
    for kind in (TypeError, ValueError, Narrower):
        with pytest.raises(kind, match=r"^in data, x is 3$"), located_errors("in data, "):
            raise kind("x is 3")
    with pytest.raises(KeyError, match=r"^'x'$"), located_errors("in data, "):
        raise KeyError("x")


class Narrower(ValueError):
    """A kind of its own."""
