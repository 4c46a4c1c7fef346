"""The table of dependency relations: which head finds which of them, and how often."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from attlas.errors import AttlasError

DIRECTIONS = ("dependent to head", "head to dependent")
"""Who looks: the dependent at its head, or the head at its dependent."""

SYNTACTIC = 0.1
"""Voita et al., 2019, section 5.2: a head is syntactic where it is so much above its baseline."""


@dataclass(frozen=True, slots=True)
class Found:
    """One relation and the attention head that finds it best.

    accuracy: the share of `pairs` whose head is found; baseline: the share that lies at the
    commonest offset, `head − dependent` in words, which needs no model.
    """

    relation: str
    pairs: int
    layer: str
    head: int
    direction: str
    accuracy: float
    baseline: float
    offset: int

    @property
    def syntactic(self) -> bool:
        """accuracy − baseline ≥ 0.1 (Voita et al., 2019, section 5.2)."""
        return self.accuracy - self.baseline >= SYNTACTIC - 1e-9  # 0.6 − 0.5 < 0.1 in floats


@dataclass(frozen=True, slots=True)
class DependencyTable:
    """Counts for each relation, and for "all" of them; `one + other` is the table of both corpora.

    pairs: dependents with a head. offsets: how many of them at each `head − dependent`. hits: of
    how many each attention head finds the head, by relation and layer, in both `DIRECTIONS`.
    left_out: pairs that are in nothing of this, because the model was not shown both words.
    """

    pairs: Mapping[str, int]
    offsets: Mapping[str, Counter[int]]
    hits: Mapping[str, Mapping[str, Int[Tensor, "2 heads"]]]
    left_out: int = 0

    def __add__(self, other: "DependencyTable") -> "DependencyTable":
        mine, theirs = self.layers, other.layers
        if mine and theirs and mine != theirs:
            raise AttlasError(
                f"a table of the layers {list(mine)} too",
                str(list(theirs)),
                "add texts of one model",
            )
        offsets = {relation: Counter(counts) for relation, counts in self.offsets.items()}
        for relation, counts in other.offsets.items():
            offsets.setdefault(relation, Counter()).update(counts)
        hits = {relation: dict(layers) for relation, layers in self.hits.items()}
        for relation, layers in other.hits.items():
            sums = hits.setdefault(relation, {})
            for layer, counted in layers.items():
                sums[layer] = sums[layer] + counted if layer in sums else counted
        pairs = Counter(self.pairs) + Counter(other.pairs)
        return DependencyTable(pairs, offsets, hits, self.left_out + other.left_out)

    @property
    def layers(self) -> tuple[str, ...]:
        """The paths of the layers."""
        return tuple(next(iter(self.hits.values()), {}))

    @property
    def relations(self) -> tuple[str, ...]:
        """Every relation that occurred, the most frequent first, after "all"."""
        return tuple(sorted(self.pairs, key=lambda each: (each != "all", -self.pairs[each], each)))

    def accuracy(self, relation: str, layer: str) -> Tensor:
        """The accuracies of a layer, (direction, head), for one relation or for "all" (UAS).

        Errors: `AttlasError` for what is not in the table.
        """
        self._check(relation)
        if layer not in self.hits[relation]:
            raise AttlasError(
                f"one of the layers {list(self.hits[relation])}",
                repr(layer),
                "name one of the table",
            )
        return self.hits[relation][layer] / self.pairs[relation]

    def baseline(self, relation: str) -> tuple[int, float]:
        """The offset at which most heads of a relation lie, and the share that does.

        Of equals the nearest. Errors: as `accuracy`.
        """
        self._check(relation)
        counts = self.offsets[relation]
        offset = min(counts, key=lambda each: (-counts[each], abs(each), each))
        return offset, counts[offset] / self.pairs[relation]

    def best(self, relation: str) -> Found:
        """The attention head that finds most heads of a relation, in its better direction.

        Chosen by the very pairs that it is measured on: of a rare relation it flatters.
        Errors: as `accuracy`.
        """
        self._check(relation)
        offset, baseline = self.baseline(relation)
        most, layer, direction, head = max(
            (
                (int(count), layer, direction, head)
                for layer, counts in self.hits[relation].items()
                for direction, row in enumerate(counts.tolist())
                for head, count in enumerate(row)
            ),
            key=lambda each: each[0],
        )
        pairs = self.pairs[relation]
        return Found(
            relation, pairs, layer, head, DIRECTIONS[direction], most / pairs, baseline, offset
        )

    def found(self, least: int = 1) -> tuple[Found, ...]:
        """The best head of each relation that has at least so many pairs; "all" first."""
        return tuple(self.best(each) for each in self.relations if self.pairs[each] >= least)

    def _check(self, relation: str) -> None:
        if relation not in self.pairs:
            raise AttlasError(
                f"one of the relations {list(self.relations)}", repr(relation), "choose one of them"
            )
