"""Two alignments of the same sentences, one of each direction, made one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Literal

from attlas.decoding.alignment import Link
from attlas.errors import AttlasError

Links = frozenset[Link]
Free = Literal["either", "both"]
"""Of the two words of a link to be added, how many must have no link yet."""

NEIGHBOURS: tuple[Link, ...] = (
    *((-1, 0), (0, -1), (1, 0), (0, 1)),
    *((-1, -1), (-1, 1), (1, -1), (1, 1)),
)
"""What is beside a link, in the order in which Moses looks: straight first, then across."""


def flipped(links: Iterable[Link]) -> Links:
    """{(j, i)}: the links of the other direction, with what was its target named first."""
    return frozenset((target, source) for source, target in links)


def intersection(forward: AbstractSet[Link], backward: AbstractSet[Link]) -> Links:
    """A ∩ B: what both directions say. Both name the source first, see `flipped`."""
    return frozenset(forward & backward)


def union(forward: AbstractSet[Link], backward: AbstractSet[Link]) -> Links:
    """A ∪ B: what any of them says."""
    return frozenset(forward | backward)


def grow_diagonal(
    forward: AbstractSet[Link],
    backward: AbstractSet[Link],
    *,
    free: Free = "either",
    neighbours: Sequence[Link] = NEIGHBOURS,
) -> Links:
    """A ∩ B, and again and again links of A ∪ B that are beside one, diagonally too.

    A link is added while one of its words has none (Koehn, Och & Marcu, 2003, section 3.1), or,
    with free="both", while neither has: so does Moses' manual, and what was written after it. Links
    are gone through by source, then by target, and the neighbours of each in the order given; where
    neighbours compete for a word, the first has it.
    """
    return frozenset(_grown(forward, backward, free, neighbours))


def grow_diagonal_final(
    forward: AbstractSet[Link],
    backward: AbstractSet[Link],
    *,
    free: Free = "either",
    free_finally: Free | None = None,
    neighbours: Sequence[Link] = NEIGHBOURS,
) -> Links:
    """`grow_diagonal`, and then links of A, and of B, wherever they are, by the same rule.

    free_finally: the rule for this last step, None = the same; free_finally="both" after
    free="either" is known as grow-diag-final-and.
    """
    links = _grown(forward, backward, free, neighbours)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    rule = free_finally or free
    for direction in (forward, backward):
        for link in sorted(direction):
            if link not in links and _may(link, sources, targets, rule):
                _add(link, links, sources, targets)
    return frozenset(links)


METHODS: Mapping[str, Callable[[AbstractSet[Link], AbstractSet[Link]], Links]] = {
    "intersection": intersection,
    "union": union,
    "grow-diagonal": grow_diagonal,
    "grow-diagonal-final": grow_diagonal_final,
    "grow-diagonal-final-and": partial(grow_diagonal_final, free="either", free_finally="both"),
}


def symmetrised(forward: AbstractSet[Link], backward: AbstractSet[Link], method: str) -> Links:
    """Both directions as one, by the name of a method. Errors: `AttlasError` for another name."""
    if method not in METHODS:
        raise AttlasError(f"one of {list(METHODS)}", repr(method), "choose one of them")
    return METHODS[method](forward, backward)


def _grown(
    forward: AbstractSet[Link],
    backward: AbstractSet[Link],
    free: Free,
    neighbours: Sequence[Link],
) -> set[Link]:
    links = set(forward & backward)
    candidates = forward | backward
    order = sorted(candidates)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    before = -1
    while len(links) > before:
        before = len(links)
        for i, j in order:
            if (i, j) not in links:
                continue
            for down, right in neighbours:
                link = i + down, j + right
                if link in candidates and link not in links and _may(link, sources, targets, free):
                    _add(link, links, sources, targets)
    return links


def _may(link: Link, sources: set[int], targets: set[int], free: Free) -> bool:
    taken = (link[0] in sources) + (link[1] in targets)
    return taken == 0 if free == "both" else taken < 2


def _add(link: Link, links: set[Link], sources: set[int], targets: set[int]) -> None:
    links.add(link)
    sources.add(link[0])
    targets.add(link[1])
