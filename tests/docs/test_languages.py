"""A page says in which language it is."""

from docs.site.languages import language_of
from tests.in_turn import separately


@separately(
    ("questions/dense_or_conv.zh", "zh"),
    ("questions/dense_or_conv", "en"),
    ("reference/npformer.layers", "en"),
)
def test_the_end_of_a_name_tells_the_language(page, language):
    assert language_of(page) == language
