import pytest

from attlas.errors import AttlasError
from attlas.explorer.atlas import Atlas
from attlas.explorer.cabinet import Cabinet


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
