import pytest
import torch

from attlas.errors import AttlasError
from attlas.explorer.maps import MapCache, TextMaps
from attlas.patterns import everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace


def test_the_least_recently_used_goes_first() -> None:
    cache = MapCache(most=2)
    first, second = cache.put(TextMaps(())), cache.put(TextMaps(()))
    assert cache.get(first) is not None
    third = cache.put(TextMaps(()))
    assert len(cache) == 2
    assert cache.get(second) is None
    assert cache.get(first) is not None
    assert cache.get(third) is not None


def test_an_id_that_was_never_given_holds_nothing() -> None:
    assert MapCache().get("0000") is None


def test_no_two_maps_share_an_id() -> None:
    cache = MapCache()
    assert len({cache.put(TextMaps(())) for _ in range(100)}) == 100


def test_a_cabinet_without_room_is_refused() -> None:
    with pytest.raises(AttlasError, match="room for at least one map"):
        MapCache(most=0)


def dense(size: int) -> TextMaps:
    """One map of size × size weights, of which each takes four bytes."""
    trace = Trace()
    trace.record("a", DenseAttentionMap(torch.rand(1, 1, size, size)))
    return TextMaps.of(trace)


def test_the_size_of_an_atlas_is_that_of_the_memory_which_its_readings_share() -> None:
    assert dense(16).size == 4 * 16 * 16
    vectors = torch.rand(2, 3, 4, 5, 6)
    trace = Trace()
    for name in ("a", "b"):
        trace.record(name, FactoredAttentionMap(vectors[0], vectors[1], 1.0, everywhere, 0))
    assert TextMaps.of(trace).size == vectors.nbytes
    assert TextMaps(()).size == 0


def test_of_large_atlases_only_those_are_kept_that_fit_and_the_latest_anyway() -> None:
    cache = MapCache(most_bytes=3 * dense(8).size)
    small = [cache.put(dense(8)) for _ in range(4)]
    assert [cache.get(one) is not None for one in small] == [False, True, True, True]
    large = cache.put(dense(64))
    assert len(cache) == 1
    assert cache.get(large) is not None
