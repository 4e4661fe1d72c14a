"""The reference describes all that `import npformer as nf` offers."""

import pytest

pytest.importorskip("sphinx", reason="the site's extra: docs")

from docs.site.reference import PARTS, modules
from docs.site.search import PUBLIC


def test_every_public_name_is_described():
    documented = {module for _, _, parts in PARTS.values() for module in modules(parts)}
    missing = [name for place, name in PUBLIC.items() if place.rpartition(".")[0] not in documented]
    assert missing == ["TwoInputLayer"]  # whose module has attributes with very common names
    assert len(PUBLIC) > 60
