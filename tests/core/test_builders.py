"""How many arguments a function takes; other checks of builders are tested with the registries."""

import pytest

from npformer.core.builders import check_takes


@pytest.mark.parametrize("function", [lambda x, y: x, lambda *all_of_them: 0, max, print])
def test_what_takes_as_many_arguments_is_taken_and_so_is_what_has_no_signature(function):
    check_takes("f", function, 2, "x and y", "two")


@pytest.mark.parametrize("function", [lambda x: x, lambda x, y, z: x, lambda *, x, y: x])
def test_what_takes_fewer_or_more_is_refused(function):
    with pytest.raises(TypeError, match=r"^f cannot be called with x and y \(.*\); expected two$"):
        check_takes("f", function, 2, "x and y", "two")
