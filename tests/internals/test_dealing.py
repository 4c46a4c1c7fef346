"""Work for several."""

from hypothesis import given
from hypothesis import strategies as st

from attlas._parallel import dealt, in_shares

COSTS = st.lists(st.integers(0, 50), max_size=20)


@given(costs=COSTS, crew=st.integers(1, 5))
def test_everything_is_dealt_out_once_in_order_and_about_evenly(
    costs: list[int], crew: int
) -> None:
    shares = dealt(costs, crew)
    assert sorted(place for share in shares for place in share) == list(range(len(costs)))
    assert all(share == sorted(share) and share for share in shares)
    assert len(shares) <= crew
    loads = [sum(costs[place] for place in share) for share in shares]
    # Graham, 1969: the greatest load is at most the mean and the last piece.
    assert max(loads, default=0) <= sum(costs) / crew + max(costs, default=0)


def test_the_dearest_are_not_all_given_to_one() -> None:
    assert dealt([1, 2, 3, 4, 5, 6, 7], 2) == [[2, 3, 6], [0, 1, 4, 5]]
    assert dealt([5], 4) == [[0]]


@given(costs=COSTS, crew=st.integers(1, 5))
def test_what_is_found_comes_in_the_order_of_the_items(costs: list[int], crew: int) -> None:
    found = in_shares(
        lambda shares: [[-one for one in share] for share in shares], costs, costs, crew
    )
    assert found == [-cost for cost in costs]
