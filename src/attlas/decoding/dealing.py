"""Work for several."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def in_shares(
    work: Callable[[Sequence[Sequence[Item]]], Sequence[Sequence[Found]]],
    items: Sequence[Item],
    costs: Sequence[int],
    crew: int,
) -> list[Found]:
    """What is found for each item, where `work(shares)` finds it for the items of each share."""
    shares = dealt(costs, crew)
    found = work([[items[place] for place in share] for share in shares])
    places = chain.from_iterable(shares)
    by_place = dict(zip(places, chain.from_iterable(found), strict=True))
    return [by_place[place] for place in range(len(items))]


def dealt(costs: Sequence[int], crew: int) -> list[list[int]]:
    """Which items each of the crew gets, by their places, so that all have about as much to do.

    The dearest is given first, each to whoever has least so far (Graham, 1969); everybody's are
    then in their own order. Who would get nothing is left out.
    """
    loads = [0] * crew
    shares: list[list[int]] = [[] for _ in range(crew)]
    for place in sorted(range(len(costs)), key=lambda place: -costs[place]):
        least = loads.index(min(loads))
        loads[least] += costs[place]
        shares[least].append(place)
    return [sorted(share) for share in shares if share]
