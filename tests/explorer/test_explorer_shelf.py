import pytest

from attlas.errors import AttlasError
from attlas.explorer.atlas import Atlas
from attlas.explorer.shelf import Shelf


def test_the_least_recently_used_goes_first() -> None:
    shelf = Shelf(most=2)
    first, second = shelf.put(Atlas(())), shelf.put(Atlas(()))
    assert shelf.get(first) is not None
    third = shelf.put(Atlas(()))
    assert len(shelf) == 2
    assert shelf.get(second) is None
    assert shelf.get(first) is not None
    assert shelf.get(third) is not None


def test_an_id_that_was_never_given_holds_nothing() -> None:
    assert Shelf().get("0000") is None


def test_no_two_maps_share_an_id() -> None:
    shelf = Shelf()
    assert len({shelf.put(Atlas(())) for _ in range(100)}) == 100


def test_a_shelf_without_room_is_refused() -> None:
    with pytest.raises(AttlasError, match="room for at least one map"):
        Shelf(most=0)
