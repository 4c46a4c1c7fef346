import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.analysis.similarity import Merge, cluster_heads
from attlas.errors import AttlasError


def distances(points: list[float]) -> torch.Tensor:
    line = torch.tensor(points, dtype=torch.float64)
    return (line[:, None] - line).abs()


def test_four_points_on_a_line_are_put_together_as_by_hand() -> None:
    tree = cluster_heads(distances([0.0, 10.0, 1.0, 14.0]))
    # 0 and 2 at 1; 1 and 3 at 4; the pairs at the mean of 10, 9, 14 and 13.
    assert tree.merges == (Merge(0, 2, 1.0, 2), Merge(1, 3, 4.0, 2), Merge(4, 5, 11.5, 4))
    assert tree.order == (0, 2, 1, 3)
    assert [tree.labels(count) for count in (1, 2, 3, 4)] == [
        (0, 0, 0, 0),
        (0, 1, 0, 1),
        (0, 1, 0, 2),
        (0, 1, 2, 3),
    ]
    assert tree.labels_within(4.0) == (0, 1, 0, 1)
    assert tree.labels_within(3.9) == (0, 1, 0, 2)
    assert tree.members(5) == (1, 3)


def test_the_published_example_of_average_linkage_comes_out() -> None:
    """Five bacteria by their 5S ribosomal RNA, whose tree the textbooks on phylogeny draw with
    nodes at 8.5, 11, 14 and 16.5: half the distance of the clusters that they join.
    """
    table = torch.tensor(
        [
            [0.0, 17, 21, 31, 23],
            [17, 0, 30, 34, 21],
            [21, 30, 0, 28, 39],
            [31, 34, 28, 0, 43],
            [23, 21, 39, 43, 0],
        ]
    )
    heights = [merge.height / 2 for merge in cluster_heads(table).merges]
    assert heights == [8.5, 11.0, 14.0, 16.5]
    assert cluster_heads(table).labels(2) == (0, 0, 1, 1, 0)


@given(st.integers(0, 2**31), st.integers(1, 12))
def test_every_merge_is_the_closest_pair_by_the_mean_over_its_members(seed, leaves) -> None:
    torch.manual_seed(seed)
    table = torch.rand(leaves, leaves).double()
    table = (table + table.mT).fill_diagonal_(0)
    tree = cluster_heads(table)
    assert len(tree.merges) == leaves - 1
    assert sorted(tree.order) == list(range(leaves))
    clusters = {leaf: (leaf,) for leaf in range(leaves)}
    for number, merge in enumerate(tree.merges, leaves):
        means = {
            (a, b): float(table[list(clusters[a])][:, list(clusters[b])].mean())
            for a in clusters
            for b in clusters
            if a < b
        }
        assert merge.height == pytest.approx(min(means.values()))
        assert means[merge.left, merge.right] == pytest.approx(merge.height)
        clusters[number] = clusters.pop(merge.left) + clusters.pop(merge.right)
        assert merge.size == len(clusters[number])
        assert set(tree.members(number)) == set(clusters[number])
    heights = [merge.height for merge in tree.merges]
    assert heights == sorted(heights)
    for count in range(1, leaves + 1):
        labels = tree.labels(count)
        assert len(set(labels)) == count
        assert labels[0] == 0


def test_what_are_no_distances_is_refused() -> None:
    for wrong in (
        torch.zeros(2, 3),
        torch.zeros(0, 0),
        torch.tensor([[0.0, 1.0], [2.0, 0.0]]),
        torch.tensor([[0.0, torch.nan], [torch.nan, 0.0]]),
        torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
        torch.tensor([[0.0, -1.0], [-1.0, 0.0]]),
    ):
        with pytest.raises(AttlasError, match="square, symmetric, finite, 0 to itself"):
            cluster_heads(wrong)
    with pytest.raises(AttlasError, match="1 to 2 clusters; got 3"):
        cluster_heads(distances([0.0, 1.0])).labels(3)
