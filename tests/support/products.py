"""Which library multiplies, for the tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from torch import Tensor

from attlas.ops import linear as module


@contextmanager
def by_onednn(chosen: bool = True) -> Iterator[list[Tensor]]:
    """Products of any size go to oneDNN, whatever the processor; what they were of is listed."""
    products: list[Tensor] = []
    product = module._product

    def listed(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        products.append(rows)
        return product(rows, weight, bias)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "onednn_is_faster", lambda: chosen)
        patch.setattr(module, "_LEAST", 0)
        patch.setattr(module, "_FEWEST_ROWS", 1)
        patch.setattr(module, "_product", listed)
        yield products
