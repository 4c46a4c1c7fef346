"""The base of attention maps: statistics, indexing, conversion to arrays."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from attlas.errors import AttlasError, quoted
from attlas.recording.maps import statistics as questions
from attlas.recording.maps.blocks import Block, Cut, blocks_of_weights
from attlas.recording.maps.operators import ArrayOperators
from attlas.recording.maps.row_kernels import RowKernels
from attlas.recording.maps.row_tiles import RowTiles, TileRequest
from attlas.recording.maps.statistics import Summary, summarize

THRESHOLD = 0.01
"""A weight above it counts as looked at, by default."""


class Statistics:
    """Statistics of a map of weights w, exact, in memory O(length × width + result).

    Rows are read in blocks that fit a cache, and only where the pattern allows. Positions i of
        queries and j of keys are counted alike: in self-attention a query has the position of its
        own key. If the positions of queries are unknown, as for a class token that looks at a text,
        `distance`, `self_weight`, `previous_weight` and `next_weight` are errors. A query that sees
        no key has 0 for everything, and the key −1.
    """

    def summary(self, *names: str, threshold: float = THRESHOLD) -> Summary:
        """Several statistics at once, from one pass: `summary("entropy", "received")`.

        Without names, it has all but `gini`, which sorts every row. If the positions of the queries
        or the scores are unknown, it leaves out what needs them.

        Args:
            names: The statistics: names of the methods of this class.
            threshold: The threshold of `count_above`.

        Raises:
            AttlasError: For an unknown name, for a threshold that is no weight, and for a statistic
                that needs positions, if the map has none.

        Example:
            >>> import torch, attlas
            >>> weights = torch.tensor([[[[0.5, 0.5], [1.0, 0.0]]]])
            >>> attention_map = attlas.recording.DenseAttentionMap(weights)
            >>> summary = attention_map.summary("max_weight", "num_visible")
            >>> summary.max_weight.tolist()
            [[[0.5, 1.0]]]
        """
        return summarize(self._map, names, threshold)

    def entropy(self) -> Float[Tensor, "batch heads queries"]:
        """−Σ_j w_j log w_j, in nats: how spread out a query looks."""
        return self._one("entropy")

    def normalized_entropy(self) -> Float[Tensor, "batch heads queries"]:
        """Entropy / log n, of the n keys that the query may see: from 0 to 1; 0 where n < 2."""
        return self._one("normalized_entropy")

    def effective_keys(self) -> Float[Tensor, "batch heads queries"]:
        """exp(entropy): the number of keys with uniform weights of the same entropy."""
        return self._one("effective_keys")

    def count_above(self, threshold: float = THRESHOLD) -> Float[Tensor, "batch heads queries"]:
        """How many keys have a weight greater than `threshold`."""
        return self._one("count_above", threshold)

    def num_visible(self) -> Float[Tensor, "batch heads queries"]:
        """How many keys the query may see."""
        return self._one("num_visible")

    def max_weight(self) -> Float[Tensor, "batch heads queries"]:
        """max_j w_j."""
        return self._one("max_weight")

    def max_logit(self) -> Float[Tensor, "batch heads queries"]:
        """max_j s_ij of the scores s that the softmax is taken of: scaled, capped, with their bias.

        Large ones precede a divergence (Dehghani et al., 2023). A query that sees no key has −∞.

        Raises:
            AttlasError: If the map holds the weights alone, which do not say their scores.
        """
        return self._one("max_logit")

    def argmax(self) -> Int[Tensor, "batch heads queries"]:
        """The key of the greatest weight, the first of equals."""
        return self._one("argmax")

    def distance(self) -> Float[Tensor, "batch heads queries"]:
        """Σ_j w_j |i − j|, in keys: how far a query looks (Vig & Belinkov, 2019, section 4.3)."""
        return self._one("distance")

    def gini(self) -> Float[Tensor, "batch heads queries"]:
        """Gini's coefficient of the weights of the n keys that the query may see.

        Σ_k (2k − n − 1) w_(k) / (n Σ w), ascending: 0 where all are equal, (n − 1) / n where one
        has all.
        """
        return self._one("gini")

    def received(self) -> Float[Tensor, "batch heads keys"]:
        """Σ_i w_ij: how much all queries together look at each key."""
        return self._one("received")

    def first_weight(self) -> Float[Tensor, "batch heads queries"]:
        """The weight of the first token, the commonest sink (Xiao et al., 2024).

        If padding is unknown, a key that some query may see counts as a token.
        """
        return self._one("first_weight")

    def last_weight(self) -> Float[Tensor, "batch heads queries"]:
        """The weight of the last token, of those that a query may reach; see `first_weight`."""
        return self._one("last_weight")

    def self_weight(self) -> Float[Tensor, "batch heads queries"]:
        """w_ii."""
        return self._one("self_weight")

    def previous_weight(self) -> Float[Tensor, "batch heads queries"]:
        """w_i,i−1."""
        return self._one("previous_weight")

    def next_weight(self) -> Float[Tensor, "batch heads queries"]:
        """w_i,i+1."""
        return self._one("next_weight")

    def topk(
        self, k: int
    ) -> tuple[Float[Tensor, "batch heads queries k"], Int[Tensor, "batch heads queries k"]]:
        """The k greatest weights of each query, descending, and their keys.

        A visible key counts even if its weight is 0 in floats. If a query sees fewer than k keys,
        the rest have weight 0 and key −1.

        Raises:
            AttlasError: For k below 1.
        """
        return questions.topk(self._map, k)

    def mass(
        self, groups: Shaped[Tensor, "..."] | Sequence[int]
    ) -> Float[Tensor, "batch heads queries groups"]:
        """Σ_{j ∈ g} w_j for each group g of keys: special tokens, sentences, parts of speech.

        Args:
            groups: The number of the group of each key, from 0; below 0 = of none.

        Raises:
            AttlasError: If there is not one number for each key.
        """
        return questions.mass(self._map, groups)

    def pool(
        self,
        rows: tuple[int, int] | None = None,
        key_range: tuple[int, int] | None = None,
        shape: tuple[int, int] | None = None,
        how: str = "mean",
    ) -> Float[Tensor, "batch heads cell_rows cell_slots"]:
        """A window of the map, pooled to a grid of cells, for a zooming viewer.

        Args:
            rows, key_range: The window, first and one past the last, None = all.
            shape: Cells of each axis, None = at most 1,024.
            how: Sum, mean or max of its weights. Cell r of n rows begins at row ⌊r · n / shape⌋.

        Raises:
            AttlasError: For a window outside of the map, or with fewer places than cells.
        """
        return questions.pool_map(self._map, rows, key_range, shape, how)

    def _one(self, name: str, threshold: float = THRESHOLD) -> Tensor:
        statistic: Tensor = getattr(self.summary(name, threshold=threshold), name)
        return statistic

    @property
    def _map(self) -> Any:
        return self


# The attention map.


_AT_MOST = 1 << 28  # weights, a gigabyte of them

Dtype: TypeAlias = torch.dtype  # `torch` is a method of an attention map
Device: TypeAlias = torch.device


class MapIndexError(AttlasError, IndexError):
    """An index that the map does not have."""

    __str__ = AttlasError.__str__


class AttentionMap(Statistics, ArrayOperators, ABC):
    """The attention of one call of one layer; weights are before dropout.

    It is an array of (batch, heads, queries, keys): `np.asarray(attention_map)`,
    `torch.as_tensor(attention_map)`, `attention_map[0, 3]`. An index computes only the texts, heads
    and rows that it names. `attention_map > 0.1` and `attention_map * 2` are tensors; methods of
    arrays are those of the array. More than 2²⁸ weights (1 GiB) at once are refused.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, queries, keys)."""

    @property
    @abstractmethod
    def position(self) -> int | None:
        """The position of the first query, counted as keys are; None = unknown."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Float[Tensor, "batch heads rows keys"]:
        """The exact weights of queries start … stop − 1."""

    @abstractmethod
    def allowed_rows(self, start: int, stop: int) -> Bool[Tensor, "#batch #heads rows keys"]:
        """Which keys the queries start … stop − 1 may see, as far as it is known."""

    @property
    @abstractmethod
    def causal(self) -> bool | None:
        """Return True if no query looks ahead; None if positions are unknown."""

    @abstractmethod
    def select(self, rows: Int[Tensor, " chosen"]) -> "AttentionMap":
        """The same attention map for these batch rows alone."""

    @abstractmethod
    def select_heads(self, heads: Int[Tensor, " chosen"]) -> "AttentionMap":
        """The same attention map for these heads alone."""

    @abstractmethod
    def at(self, row: int) -> "AttentionMap":
        """The same attention map for one batch row, which shares the numbers of this one."""

    @abstractmethod
    def detached_copy(self) -> "AttentionMap":
        """A detached copy with its own tensors, because a model may overwrite its tensors later.
        Masks are shared.
        """

    @property
    def device(self) -> Device:
        """The device of its tensors."""
        return torch.device("cpu")

    @property
    def thread_safe(self) -> bool:
        """Return True if several threads may read it at the same time."""
        return False

    @property
    def of_softmax(self) -> bool:
        """Return True if the scores of its blocks are the inputs of the softmax."""
        return False

    def iter_blocks(self, batch: int, cuts: Iterable[Cut]) -> Iterator[Block]:
        """The blocks of an attention map of one batch row, which has this number among all rows."""
        return blocks_of_weights(self, self.rows, self.allowed_rows, batch, cuts)

    def row_kernels(self, rows: tuple[int, int], names: frozenset[str]) -> RowKernels | None:
        """Kernels that answer for these queries without blocks; None where there are none."""
        return None

    def row_tiles(self, rows: tuple[int, int], request: TileRequest) -> RowTiles | None:
        """Answers for these queries by tiles, on a CPU; None where there are none."""
        return None

    def weights(self, at_most: int = _AT_MOST) -> Float[Tensor, "batch heads queries keys"]:
        """All weights at once: O(queries × keys) memory.

        Raises:
            AttlasError: If there are more than `at_most` of them; statistics need not hold them.
        """
        batch, heads, queries, num_keys = self.shape
        count = batch * heads * queries * num_keys
        if count > at_most:
            raise AttlasError(
                f"a map of at most {at_most:,} weights to be held whole",
                f"{batch} × {heads} × {queries:,} × {num_keys:,} = {count:,}",
                "take a part, such as attention_map[0, 0] or attention_map[0, 0, :1000]; ask for "
                "`summary`, `pool` or `blocks`; or pass weights(at_most=…)",
            )
        return self.rows(0, queries)

    @property
    def ndim(self) -> int:
        """The number of axes: 4."""
        return len(self.shape)

    @property
    @abstractmethod
    def dtype(self) -> Dtype:
        """Of its weights."""

    def torch(
        self, *, dtype: Dtype | None = None, device: Device | str | None = None
    ) -> Float[Tensor, "batch heads queries keys"]:
        """All weights as a tensor outside of any graph; None = the type and the device that they
        have.

        A map that holds its weights shares their memory with the tensor.

        Raises:
            AttlasError: For more than 2²⁸ weights.
        """
        return self.weights().detach().to(device=device, dtype=dtype)

    def numpy(self) -> NDArray[Any]:
        """All weights as a NumPy array on the CPU.

        NumPy has no bfloat16: such weights become float32, which is exact.

        Raises:
            AttlasError: As `torch`.
        """
        return _as_array(self.weights())

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False and not self.is_shareable:
            raise AttlasError(
                "weights that are held as an array, for copy=False",
                f"{self!r}, which computes or converts its weights on request",
                "leave copy out: np.asarray(attention_map)",
            )
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    @property
    def is_shareable(self) -> bool:
        """Return True if an array of NumPy can have the memory of the weights."""
        return False

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.torch().__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return torch.empty(0, device=self.device).__dlpack_device__()

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Float[Tensor, "heads queries keys"]]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """The weights at an index, as a tensor has it: `[0, 3]`, `[..., :10]`, `[:, [0, 2]]`.

        Raises:
            AttlasError: Which is an IndexError, for an index that the map does not have.
            AttlasError: For more than 2²⁸ weights.
        """
        indices = index if isinstance(index, tuple) else (index,)
        try:
            index_lists, local = _parts_of(indices, self.shape)
            texts, heads, rows = index_lists
            if not (texts and heads and rows):
                shape = len(texts), len(heads), sum(map(len, rows)), self.shape[3]
                return torch.empty(shape, dtype=self.dtype, device=self.device)[local]
            part = self
            if len(texts) != self.shape[0]:
                part = part.at(texts[0]) if len(texts) == 1 else part.select(_places(texts))
            if len(heads) != self.shape[1]:
                part = part.select_heads(_places(heads))
            return part._rows_at_most(rows)[local].detach()
        except AttlasError:
            raise
        except (IndexError, TypeError, ValueError, RuntimeError) as error:
            raise MapIndexError(
                f"an index into a map of shape {self.shape}: (batch, heads, queries, keys)",
                f"{quoted(index)} ({error})",
                "count from 0, such as attention_map[0, 3] for head 3 of the first text",
            ) from None

    def _rows_at_most(self, runs: Sequence[range]) -> Float[Tensor, "batch heads rows keys"]:
        batch, heads, _, num_keys = self.shape
        rows = sum(map(len, runs))
        count = batch * heads * rows * num_keys
        if count > _AT_MOST:
            raise AttlasError(
                f"a part of at most {_AT_MOST:,} weights to be held",
                f"{batch} × {heads} × {rows:,} × {num_keys:,} = {count:,}",
                "take fewer heads or rows, such as attention_map[0, 0, :1000]; or ask for "
                "`summary`, `pool` or `blocks`",
            )
        parts = [self.rows(run.start, run.stop) for run in runs]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)

    def blocks(self, size: int) -> Iterator[Float[Tensor, "batch heads rows keys"]]:
        """All rows in order, at most `size` of them held at a time."""
        if size < 1:
            raise AttlasError("a block size of at least one row", str(size), "pass e.g. 256")
        for start in range(0, self.shape[2], size):
            yield self.rows(start, min(start + size, self.shape[2]))

    def __repr__(self) -> str:
        """Only its shape, because it may have millions of numbers."""
        batch, heads, queries, num_keys = self.shape
        name = type(self).__name__
        return f"{name}(batch={batch}, heads={heads}, queries={queries}, keys={num_keys})"

    def _checked(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.shape[2]:
            raise AttlasError(
                f"rows within 0 … {self.shape[2]}", f"{start} … {stop}", "count queries from 0"
            )


def _as_array(values: Tensor) -> NDArray[Any]:
    values = values.detach().cpu()
    if values.dtype not in _OF_NUMPY:
        values = values.float()
    array: NDArray[Any] = values.resolve_conj().resolve_neg().numpy()
    return array


_OF_NUMPY = (torch.float64, torch.float32, torch.float16, *(torch.int64, torch.int32, torch.bool))
"""Types of weights that NumPy has."""


def _parts_of(
    index: tuple[Any, ...], shape: tuple[int, int, int, int]
) -> tuple[tuple[list[int], list[int], list[range]], tuple[Any, ...]]:
    """The texts, heads and runs of rows that an index names, and the same index into these alone.

    Runs with a small gap between them are one. Where an index is no number, slice or list of
    numbers (as a mask over several axes), all are.
    """
    items = [_as_item(item) for item in index]
    dots = [number for number, item in enumerate(items) if item is Ellipsis]
    axes = sum(item is not None for item in items) - len(dots)
    is_plain = all(
        item is None
        or item is Ellipsis
        or _is_number(item)
        or isinstance(item, slice)
        or _is_list(item)
        for item in items
    )
    batch, heads, queries, _ = shape
    if not is_plain or axes > len(shape) or len(dots) > 1:
        return (list(range(batch)), list(range(heads)), [range(queries)]), tuple(items)
    ellipsis_index = dots[0] if dots else len(items)
    items[ellipsis_index : ellipsis_index + 1] = [slice(None)] * (len(shape) - axes)
    index_lists: list[list[int]] = []
    local: list[Any] = []
    for item in items:
        if item is None:
            local.append(None)
            continue
        axis = len(index_lists)
        size = shape[axis]
        positions = _positions_of(item, size)
        if axis == 2:
            positions = [row for run in _runs(positions) for row in run]
        elif axis == 3:
            positions = list(range(size))
        index_lists.append(positions)
        local.append(_within(item, positions, size))
    return (index_lists[0], index_lists[1], _runs(index_lists[2])), tuple(local)


_GAP = 16  # rows: computing so many more is quicker than another call


def _runs(rows: list[int]) -> list[range]:
    """These rows, ascending, as ranges; none of less than a gap lies between two of them."""
    runs: list[range] = []
    for row in rows:
        if runs and row - runs[-1].stop < _GAP:
            runs[-1] = range(runs[-1].start, row + 1)
        else:
            runs.append(range(row, row + 1))
    return runs


def _as_item(item: Any) -> Any:
    """Numbers of NumPy and torch as Python's, arrays as tensors."""
    if isinstance(item, np.ndarray):
        item = torch.from_numpy(item)
    if isinstance(item, Tensor):
        item = item.cpu()
        is_integer = not (item.is_floating_point() or item.is_complex() or item.dtype == torch.bool)
        return int(item) if item.ndim == 0 and is_integer else item
    if isinstance(item, Integral) and not isinstance(item, bool):
        return int(item)
    if isinstance(item, range):
        return torch.tensor(list(item), dtype=torch.int64)
    if isinstance(item, list):
        return torch.tensor(item, dtype=None if item else torch.int64)
    return item


def _is_list(item: Any) -> bool:
    if not isinstance(item, Tensor) or item.ndim != 1 or item.dtype == torch.bool:
        return False
    return not item.is_floating_point() and not item.is_complex()


def _is_number(item: Any) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)


def _positions_of(item: int | slice | Tensor, size: int) -> list[int]:
    """The places of an axis that an index names, ascending.

    Raises:
        IndexError: If not.
        ValueError: If not.
    """
    if isinstance(item, slice):
        if item.step is not None and item.step < 0:
            raise ValueError("a step below 0, which tensors do not have")
        return list(range(size)[item])
    numbers = [item] if isinstance(item, int) else item.tolist()
    invalid = [number for number in numbers if not -size <= number < size]
    if invalid:
        raise IndexError(f"{invalid[0]} is not within an axis of {size:,}")
    return sorted({number % size for number in numbers})


def _within(item: int | slice | Tensor, index_numbers: list[int], size: int) -> Any:
    """The same index into the named places alone."""
    numbers = {position: number for number, position in enumerate(index_numbers)}
    if isinstance(item, int):
        return numbers[item % size]
    if isinstance(item, slice):
        positions = range(size)[item]
        start = numbers[positions[0]] if positions else 0
        stop = numbers[positions[-1]] + 1 if positions else 0
        return slice(start, stop, positions.step if stop - start > len(positions) else None)
    return _places([numbers[index % size] for index in item.tolist()])


def _places(numbers: list[int]) -> Int[Tensor, " chosen"]:
    return torch.tensor(numbers, dtype=torch.int64)


def are_same(first: Sequence[AttentionMap], second: Sequence[AttentionMap]) -> bool:
    """Return True if these maps hold the same, bit by bit; where their queries stand may be said or
    known.
    """
    return len(first) == len(second) and all(map(_is_same, first, second))


def _is_same(first: AttentionMap, second: AttentionMap) -> bool:
    if type(first) is not type(second) or first.position != second.position:
        return False
    if not is_dataclass(first):
        return first is second
    names = [field.name for field in fields(first) if field.name != "query_offset"]
    return all(_equal(getattr(first, name), getattr(second, name)) for name in names)


def _equal(first: Any, second: Any) -> bool:
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)):
        return bool(type(first) is type(second) and first == second)
    same_kind = first.shape == second.shape and first.dtype == second.dtype
    return same_kind and torch.allclose(first.cpu(), second.cpu(), rtol=0, atol=0, equal_nan=True)
