"""Work for several."""

from hypothesis import given
from hypothesis import strategies as st

from attlas._parallel import balance, map_shares

COSTS = st.lists(st.integers(0, 50), max_size=20)


@given(costs=COSTS, thread_group=st.integers(1, 5))
def test_everything_is_dealt_out_once_in_order_and_about_evenly(
    costs: list[int], thread_group: int
) -> None:
    shares = balance(costs, thread_group)
    assert sorted(place for share in shares for place in share) == list(range(len(costs)))
    assert all(share == sorted(share) and share for share in shares)
    assert len(shares) <= thread_group
    loads = [sum(costs[place] for place in share) for share in shares]
    # Graham, 1969: the greatest load is at most the mean and the last piece.
    assert max(loads, default=0) <= sum(costs) / thread_group + max(costs, default=0)


def test_the_dearest_are_not_all_given_to_one() -> None:
    assert balance([1, 2, 3, 4, 5, 6, 7], 2) == [[2, 3, 6], [0, 1, 4, 5]]
    assert balance([5], 4) == [[0]]


@given(costs=COSTS, thread_group=st.integers(1, 5))
def test_what_is_found_comes_in_the_order_of_the_items(costs: list[int], thread_group: int) -> None:
    found = map_shares(
        lambda shares: [[-one for one in share] for share in shares], costs, costs, thread_group
    )
    assert found == [-cost for cost in costs]
