"""Model: what a layer that can be trained says, and what it is asked."""

import pytest

from tests.data.test_lengths import model_of


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"mixer": "fourier"}, True),
        ({"mixer": "fourier", "padding": "zero"}, False),
        ({"padding": "zero"}, True),  # attention skips padding, whatever the setting says
        ({"pooling": "flatten"}, False),
    ],
)
def test_whether_the_amount_of_padding_changes_no_output(settings, expected):
    assert model_of(**settings).skips_padding() == expected
