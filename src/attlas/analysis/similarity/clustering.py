"""Heads that look alike, put together: a tree of them, and groups of any number."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.errors import AttlasError


@dataclass(frozen=True, slots=True)
class Merge:
    """Two clusters made one: numbers below `leaves` are leaves, leaves + k is the k-th merge.

    height: the mean distance between a member of the one and a member of the other; size: members.
    """

    left: int
    right: int
    height: float
    size: int


@dataclass(frozen=True, slots=True)
class Tree:
    """leaves − 1 merges, the closest first; heights never fall."""

    leaves: int
    merges: tuple[Merge, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The leaves in an order in which every cluster stands together: that of a dendrogram."""
        return self.members(self.leaves + len(self.merges) - 1)

    def members(self, cluster: int) -> tuple[int, ...]:
        """The leaves of a cluster, by its number, those of its left part first."""
        found, waiting = [], [cluster]
        while waiting:
            number = waiting.pop()
            if number < self.leaves:
                found.append(number)
            else:
                merge = self.merges[number - self.leaves]
                waiting += [merge.right, merge.left]
        return tuple(found)

    def labels(self, clusters: int) -> tuple[int, ...]:
        """The cluster of each leaf where so many are left, numbered as their first leaves come.

        Errors: `AttlasError` for fewer than one, and for more than there are leaves.
        """
        if not 1 <= clusters <= self.leaves:
            raise AttlasError(f"1 to {self.leaves} clusters", str(clusters), "choose within these")
        return self._labelled(self.leaves - clusters)

    def labels_within(self, height: float) -> tuple[int, ...]:
        """The same after all merges up to this height."""
        return self._labelled(sum(merge.height <= height for merge in self.merges))

    def _labelled(self, merged: int) -> tuple[int, ...]:
        cluster = {leaf: leaf for leaf in range(self.leaves)}
        for number in range(merged):
            for leaf in self.members(self.leaves + number):
                cluster[leaf] = self.leaves + number
        numbers: dict[int, int] = {}
        return tuple(numbers.setdefault(cluster[leaf], len(numbers)) for leaf in sorted(cluster))


def clustered(distances: Float[Tensor, "..."]) -> Tree:
    """Average linkage: again and again the two clusters whose members are closest on the mean.

    d(A ∪ B, C) = (|A| d(A, C) + |B| d(B, C)) / (|A| + |B|)    Sokal & Michener, 1958 (UPGMA).

    distances: (leaves, leaves), symmetric, 0 on the diagonal, e.g. of `head_divergences`. Of
    equal distances, that of the clusters whose leaves come first. Time O(leaves³), memory
    O(leaves²).
    Errors: `AttlasError` for anything else, NaN among it: heads that cannot be compared.
    """
    _check(distances)
    leaves = len(distances)
    left = distances.to(torch.float64).cpu().clone().fill_diagonal_(torch.inf)
    numbers, sizes = list(range(leaves)), [1] * leaves  # of the cluster in each row that is in use
    merges: list[Merge] = []
    for number in range(leaves, 2 * leaves - 1):
        least = int(left.argmin())
        one, other = sorted(divmod(least, leaves))
        height, size = float(left[one, other]), sizes[one] + sizes[other]
        first, second = sorted((numbers[one], numbers[other]))
        # Means of means round; a cluster is never closer than those it is made of.
        height = max(height, merges[-1].height) if merges else height
        merges.append(Merge(first, second, height, size))
        joined = (sizes[one] * left[one] + sizes[other] * left[other]) / size
        left[one], left[:, one] = joined, joined
        left[other], left[:, other] = torch.inf, torch.inf
        left[one, one] = torch.inf
        numbers[one], sizes[one] = number, size
    return Tree(leaves, tuple(merges))


def _check(distances: Float[Tensor, "..."]) -> None:
    square = distances.ndim == 2 and distances.shape[0] == distances.shape[1] > 0
    if not (
        square
        and bool(distances.isfinite().all())
        and bool((distances >= 0).all())
        and bool((distances.diagonal() == 0).all())
        and torch.allclose(distances, distances.mT)
    ):
        raise AttlasError(
            "distances of each to each: square, symmetric, finite, 0 to itself",
            f"shape {tuple(distances.shape)}, {int((~distances.isfinite()).sum())} not finite",
            "leave out what cannot be compared",
        )
