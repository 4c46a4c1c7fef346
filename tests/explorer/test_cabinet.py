import pytest
import torch

from attlas.errors import AttlasError
from attlas.explorer.maps import Atlas, Cabinet
from attlas.patterns import everywhere
from attlas.recording import DenseReading, FactoredReading, Trace


def test_the_least_recently_used_goes_first() -> None:
    cabinet = Cabinet(most=2)
    first, second = cabinet.put(Atlas(())), cabinet.put(Atlas(()))
    assert cabinet.get(first) is not None
    third = cabinet.put(Atlas(()))
    assert len(cabinet) == 2
    assert cabinet.get(second) is None
    assert cabinet.get(first) is not None
    assert cabinet.get(third) is not None


def test_an_id_that_was_never_given_holds_nothing() -> None:
    assert Cabinet().get("0000") is None


def test_no_two_maps_share_an_id() -> None:
    cabinet = Cabinet()
    assert len({cabinet.put(Atlas(())) for _ in range(100)}) == 100


def test_a_cabinet_without_room_is_refused() -> None:
    with pytest.raises(AttlasError, match="room for at least one map"):
        Cabinet(most=0)


def dense(size: int) -> Atlas:
    """One map of size × size weights, of which each takes four bytes."""
    trace = Trace()
    trace.note("a", DenseReading(torch.rand(1, 1, size, size)))
    return Atlas.of(trace)


def test_the_size_of_an_atlas_is_that_of_the_memory_which_its_readings_share() -> None:
    assert dense(16).size == 4 * 16 * 16
    vectors = torch.rand(2, 3, 4, 5, 6)
    trace = Trace()
    for name in ("a", "b"):
        trace.note(name, FactoredReading(vectors[0], vectors[1], 1.0, everywhere, 0))
    assert Atlas.of(trace).size == vectors.nbytes
    assert Atlas(()).size == 0


def test_of_large_atlases_only_those_are_kept_that_fit_and_the_latest_anyway() -> None:
    cabinet = Cabinet(most_bytes=3 * dense(8).size)
    small = [cabinet.put(dense(8)) for _ in range(4)]
    assert [cabinet.get(one) is not None for one in small] == [False, True, True, True]
    large = cabinet.put(dense(64))
    assert len(cabinet) == 1
    assert cabinet.get(large) is not None
