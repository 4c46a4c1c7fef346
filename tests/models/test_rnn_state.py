"""What a hypothesis carries, when hypotheses change places."""

import torch

from attlas.models import RecurrentState
from attlas.models.cache import SourceCache
from attlas.ops.cache import KeyValueCache


def state() -> RecurrentState:
    """Three sources, every number its own."""
    hidden, slots, width = torch.rand(3, 2, 4), torch.rand(3, 5), torch.rand(3, 6)
    memory = KeyValueCache(torch.rand(3, 5, 4), torch.rand(3, 5, 4), torch.rand(3, 5) < 0.7)
    return RecurrentState((hidden,), SourceCache((memory,)), slots, width)


def test_hypotheses_that_change_places_within_their_sources_share_the_memory_as_it_is() -> None:
    first = state()
    beams = first.select(torch.tensor([0, 0, 1, 1, 2, 2]))
    order = torch.tensor([1, 1, 3, 2, 4, 5])
    moved = beams.select(order)
    assert moved.source is not None
    assert first.source is not None
    assert moved.source.layers[0] is first.source.layers[0]
    torch.testing.assert_close(moved.hidden[0], beams.hidden[0][order])
    torch.testing.assert_close(moved.coverage, beams.coverage[order])  # type: ignore[index]
    torch.testing.assert_close(moved.attended, beams.attended[order])  # type: ignore[index]


def test_each_row_has_the_memory_of_its_source_however_often_rows_are_selected() -> None:
    first = state()
    assert first.source is not None
    origin, moved = torch.arange(3), first
    for rows in ([2, 0, 1], [1, 1, 0, 2], [1, 0, 2, 3], [3, 0], [1, 0, 1], [2, 1, 0]):
        chosen = torch.tensor(rows)
        origin, moved = origin[chosen], moved.select(chosen)
        expected = first.source.expand_rows(0).select(origin)
        assert moved.source is not None
        found = moved.source.expand_rows(0)
        assert torch.equal(found.keys, expected.keys)
        assert torch.equal(found.values, expected.values)
        assert found.token_mask is not None
        assert expected.token_mask is not None
        assert torch.equal(found.token_mask, expected.token_mask)
