"""The largest of many numbers, against a stable sort of all of them."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.ops.topk import largest


@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 4),
    columns=st.integers(1, 300),
    kinds=st.integers(1, 40),
    count=st.integers(1, 20),
)
def test_the_first_of_equals_comes_first(
    seed: int, rows: int, columns: int, kinds: int, count: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(kinds, (rows, columns), generator=generator).float()
    expected, order = values.sort(dim=1, descending=True, stable=True)
    best, found = largest(values, count)
    assert torch.equal(best, expected[:, :count])
    assert torch.equal(found, order[:, :count])


@given(
    seed=st.integers(0, 2**32),
    columns=st.integers(120, 3000),
    kinds=st.sampled_from([1, 2, 5, 10**6]),
    count=st.integers(1, 8),
    hidden=st.floats(0, 1),
)
def test_of_many_columns_the_first_of_equals_comes_first_too(
    seed: int, columns: int, kinds: int, count: int, hidden: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(kinds, (3, columns), generator=generator).float()
    values[torch.rand(values.shape, generator=generator) < hidden] = float("-inf")
    expected, order = values.sort(dim=1, descending=True, stable=True)
    best, found = largest(values, count)
    assert torch.equal(best, expected[:, :count])
    assert torch.equal(found[~best.isneginf()], order[:, :count][~best.isneginf()])
    assert torch.equal(values.gather(1, found), best)


def test_what_is_impossible_comes_last_and_is_not_looked_for() -> None:
    never = float("-inf")
    best, found = largest(torch.tensor([[never, 1.0, never, 2.0, 1.0, never]]), 5)
    assert best.tolist() == [[2.0, 1.0, 1.0, never, never]]
    assert found[0, :3].tolist() == [3, 1, 4]
    assert sorted(found[0, 3:].tolist()) == sorted({*found[0, 3:].tolist()} & {0, 2, 5})
