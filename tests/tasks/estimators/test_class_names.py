"""Names of classes, and labels that are none of them."""

import pytest

from npformer.tasks.estimators.class_names import ClassNames

NAMES = ClassNames(["cat", "dog"])


@pytest.mark.parametrize(
    ("unknown", "more"), [(["a", "b", "c"], ""), (["a", "b", "c", "d"], " and 1 more")]
)
def test_three_unknown_labels_are_named_and_the_rest_is_counted(unknown, more):
    with pytest.raises(ValueError, match="never saw") as error:
        NAMES.numbers([*unknown, "cat"])
    of = f"of {len(unknown) + 1}"
    shown = ", ".join(f"'{label}' (1 {of})" for label in unknown[:3])
    assert f"labels have {shown}{more}, which" in str(error.value)
