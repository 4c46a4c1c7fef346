"""What several tests of training share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def small_chunks() -> Iterator[None]:
    """A loss takes 64 rows at a time, so that few make many chunks, and R-Drop's a few of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attlas.training.loss._ON_CPU", 1)
        patch.setattr("attlas.training.loss._ROWS", 64)
        patch.setattr("attlas.training.loss._BLOCK", 40)  # logits
        yield
