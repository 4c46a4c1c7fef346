"""Statistics of factored maps by the Triton kernels, where these can run: on a GPU.

Elsewhere, and for masks that the kernels do not know, the tiles of `row_tiles.py` and the blocks of
`blocks.py` answer. The blocks are the twin of the kernels, too.
"""

import importlib.util
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from attlas.patterns import (
    Both,
    Causal,
    Either,
    Everywhere,
    Landmarks,
    Pattern,
    Strided,
    Window,
)

# Which maps the kernels know.


@dataclass(frozen=True, slots=True)
class Band:
    """Pairs with i − back ≤ j ≤ i + ahead and (i − j) mod step = 0; None = no bound."""

    back: int | None = None
    ahead: int | None = None
    step: int = 1

    def __and__(self, other: "Band") -> "Band":
        """The pairs of both."""
        backs = [band.back for band in (self, other) if band.back is not None]
        aheads = [band.ahead for band in (self, other) if band.ahead is not None]
        return Band(
            min(backs, default=None), min(aheads, default=None), math.lcm(self.step, other.step)
        )

    @property
    def is_empty(self) -> bool:
        """Return True if it has no pair."""
        return self.back is not None and self.ahead is not None and self.back < -self.ahead

    def contains(self, other: "Band") -> bool:
        """Return True if it has all pairs of the other."""
        return other.is_empty or self & other == other


_NOTHING = Band(back=-1, ahead=-1)


@dataclass(frozen=True, slots=True)
class MarkedBand:
    """Pairs of the band `outer` that are in `inner`, too, or of which i or j is among the marks."""

    outer: Band = Band()
    inner: Band = Band()
    marks: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self._is_plain:  # marks that show nothing more, and would in a narrower band
            object.__setattr__(self, "marks", frozenset())

    def __and__(self, other: "MarkedBand") -> "MarkedBand | None":
        """The pairs of both; None where they are no marked band."""
        plain, marked = (self, other) if self._is_plain else (other, self)
        if not plain._is_plain:
            return self if self == other else None
        return replace(marked, outer=marked.outer & plain.outer)

    def __or__(self, other: "MarkedBand") -> "MarkedBand | None":
        """The pairs of one of them; None where they are no marked band."""
        plain, marked = (self, other) if self._is_plain else (other, self)
        if marked._is_plain:
            outer = _wider(plain.outer, marked.outer)
            return None if outer is None else MarkedBand(outer)
        if plain._is_plain:
            inner = _wider(plain.outer, marked.inner)
            is_inside = marked.outer.contains(plain.outer)
        else:
            inner = _wider(plain.inner, marked.inner)
            is_inside = marked.outer == plain.outer
        if inner is None or not is_inside:
            return None
        return MarkedBand(marked.outer, inner, plain.marks | marked.marks)

    @property
    def _is_plain(self) -> bool:
        return self.inner == Band()


def _wider(first: Band, second: Band) -> Band | None:
    """The one that has all pairs of the other; None where neither has."""
    if first.contains(second):
        return first
    return second if second.contains(first) else None


def marked_band_of(pattern: Pattern) -> MarkedBand | None:
    """The pattern as a band with marks; None if it is none."""
    if isinstance(pattern, Everywhere):
        return MarkedBand()
    if isinstance(pattern, Causal):
        return MarkedBand(Band(ahead=0))
    if isinstance(pattern, Window):
        return MarkedBand(Band(pattern.radius, pattern.radius))
    if isinstance(pattern, Strided):
        return MarkedBand(Band(step=pattern.stride))
    if isinstance(pattern, Landmarks):
        return MarkedBand(inner=_NOTHING, marks=frozenset(pattern.positions))
    if isinstance(pattern, Both | Either):
        left, right = marked_band_of(pattern.left), marked_band_of(pattern.right)
        if left is None or right is None:
            return None
        return left & right if isinstance(pattern, Both) else left | right
    return None


@dataclass(frozen=True, slots=True)
class MaskedScores:
    """cap(scale · q kᵀ) + bias, and which of them a query sees: what a kernel reads.

    Args:
        offset: The position of the first query, counted as keys are.
        token_mask, bias, softcap: As of `FactoredAttentionMap`.
        ends: The first and the last token of a batch row.
    """

    query: Float[Tensor, "batch heads queries head_dim"]
    keys: Float[Tensor, "batch kv_heads keys head_dim"]
    scale: float
    band: MarkedBand
    offset: int
    token_mask: Bool[Tensor, "batch keys"] | None
    bias: Shaped[Tensor, "#batch #heads #queries #keys"] | None
    softcap: float | None
    ends: Callable[[int], tuple[int, int]]

    def of_rows(self, start: int, stop: int) -> "MaskedScores":
        """The scores of queries start … stop − 1."""
        bias = self.bias
        if bias is not None and bias.shape[2] > 1:
            bias = bias[:, :, start:stop]
        query = self.query[:, :, start:stop]
        return replace(self, query=query, bias=bias, offset=self.offset + start)


_FAR = 4500.0  # a bias between −this and this hides no key, whatever the scores are
_LONGEST = 1 << 29  # positions are 32-bit numbers in the kernels
_WIDEST = 256  # a head beyond it leaves no room for blocks
_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_AT_ONCE = 1 << 24  # numbers of a bias that are looked at together
_NO_BOUND = 1 << 30


def is_known(scores: MaskedScores) -> bool:
    """Return True if the kernels compute these scores, and hide what the twin hides."""
    batch, heads, queries, head_dim = scores.query.shape
    num_keys = scores.keys.shape[2]
    return (
        scores.query.dtype in _TYPES
        and scores.keys.dtype == scores.query.dtype
        and scores.keys.device == scores.query.device
        and min(batch, heads, queries, num_keys, head_dim) > 0
        and head_dim <= _WIDEST
        and abs(scores.offset) + queries + num_keys < _LONGEST
        and max(scores.band.marks, default=0) < _LONGEST
        and all(
            max(band.back or 0, band.ahead or 0, band.step) < _NO_BOUND
            for band in (scores.band.outer, scores.band.inner)
        )
        and (scores.bias is None or _is_plain(scores.bias))
    )


def _is_plain(bias: Shaped[Tensor, "..."]) -> bool:
    """Return True for a bool mask, and for numbers that hide by −∞ alone.

    How a large finite number hides depends on all scores of its row: the twin knows it.
    """
    if bias.dtype == torch.bool:
        return True
    if bias.dtype not in _TYPES:
        return False
    if not bias.numel():
        return True
    step = max(1, _AT_ONCE // max(1, bias[:, :, :1].numel()))
    parts = torch.split(bias, step, 2)
    finite = (part.masked_fill(part == -torch.inf, 0.0) for part in parts)
    largest = torch.stack([part.abs().amax() for part in finite])
    return bool((largest <= _FAR).all())  # not of NaN


# Where the kernels run.


_Result = TypeVar("_Result")


@cache
def _is_installed() -> bool:
    return importlib.util.find_spec("triton") is not None


_LEAST_CAPABILITY = (8, 0)  # what Triton supports

_failed: set[tuple[Any, ...]] = set()
"""What could not be compiled in this process: which statistics, of which type, how wide."""


def is_available(device: torch.device) -> bool:
    """Return True if the kernels run on this device: a GPU from Ampere on, with a Triton that works
    there.
    """
    if device.type != "cuda" or not _is_installed():
        return False
    return _runs_on(torch.cuda.current_device() if device.index is None else device.index)


@cache
def _runs_on(index: int) -> bool:
    """Return True if Triton compiles and runs a kernel on this GPU. A warning says why not."""
    if _capability(index) < _LEAST_CAPABILITY:
        return False
    try:
        _try(torch.device("cuda", index))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # a compiler, headers, a driver or rights may be missing
        _warn(error)
        return False
    return True


def _capability(index: int) -> tuple[int, int]:
    return torch.cuda.get_device_capability(index)


def _try(device: torch.device) -> None:
    """Run the least of all kernels."""
    numbers = torch.zeros(_LEAST_BLOCK, dtype=torch.int32, device=device)
    with _on(device):
        _kernels().trial_pass[(1,)](numbers, SIZE=_LEAST_BLOCK)
    if numbers.tolist() != list(range(_LEAST_BLOCK)):
        raise RuntimeError("a kernel of Triton wrote wrong numbers")


def _warn(error: Exception) -> None:
    warnings.warn(
        "Triton cannot run the kernels of attention statistics here; PyTorch computes the "
        f"same numbers in more time ({type(error).__name__}: {str(error)[:200]})",
        stacklevel=3,
    )


def kernels_of(
    scores: MaskedScores, rows: tuple[int, int], names: frozenset[str]
) -> "RowKernels | None":
    """The kernels for these queries, after their first pass; None where they cannot answer.

    Args:
        names: What is asked for: names of statistics.
    """
    if not is_available(scores.query.device) or rows[0] >= rows[1] or not is_known(scores):
        return None
    return attempt(lambda: RowKernels(scores.of_rows(*rows), rows[0], names), scores, sorted(names))


def attempt(
    work: Callable[[], _Result], scores: MaskedScores, names: Sequence[str]
) -> _Result | None:
    """The result of this work with kernels; None, and a warning, where Triton cannot compile them.

    They are not tried again in this process.

    Args:
        names: The statistics that the work computes.
    """
    bias = None if scores.bias is None else scores.bias.dtype
    options = bias, scores.softcap is None, scores.token_mask is None, bool(scores.band.marks)
    key = (*names, scores.query.dtype, scores.query.shape[3], *options)
    if key in _failed:
        return None
    try:
        return work()
    except Exception as error:
        if not _is_of_compiler(error):
            raise
        _failed.add(key)
        _warn(error)
        return None


def _is_out_of_resources(error: Exception) -> bool:
    """Return True for what Triton says where a block does not fit into a card's memory."""
    return type(error).__name__ == "OutOfResources"


def _is_of_compiler(error: Exception) -> bool:
    """Return True for what Triton says where it cannot compile a kernel for a GPU."""
    of_triton = any(kind.__module__.startswith("triton") for kind in type(error).__mro__)
    said = str(error).lower()
    return of_triton or (
        isinstance(error, RuntimeError) and ("compiler" in said or "passmanager" in said)
    )


@cache
def _kernels() -> ModuleType:
    from attlas.recording.maps import triton_kernels

    return triton_kernels


_FIRST_PASS = {
    "entropy": "ENTROPY", "normalized_entropy": "ENTROPY", "effective_keys": "ENTROPY",
    "squares": "SQUARES", "distance": "DISTANCE", "argmax": "BEST",
}  # fmt: skip
_Programs = Callable[[tuple[int, int]], int]
_LEAST_BLOCK = 16  # the least that a product of blocks takes

MOST_KEYS = 32
"""The greatest k of `RowKernels.top`: beyond it one sort of a row takes less time."""

MOST_GROUPS = 64
"""The most groups of `RowKernels.mass`, whose sums a program holds."""


class RowKernels:
    """Statistics of some queries of one map, each as a float32 tensor on its device.

    Args:
        scores: Of these queries alone.
        start: The number of the first of them in the map.
        names: The statistics that the first pass computes.
        blocks: How many queries and keys a program takes at a time; None = by width and type.
    """

    def __init__(
        self,
        scores: MaskedScores,
        start: int,
        names: frozenset[str],
        blocks: tuple[int, int] | None = None,
    ) -> None:
        self.scores, self.start = scores, start
        self._blocks = blocks or _blocks_of(scores)
        batch, heads, queries, _ = scores.query.shape
        self._shape = batch, heads, queries
        self._marks = _marks_of(scores)
        device = scores.query.device
        tokens, bias = scores.token_mask, scores.bias
        self._tokens = None if tokens is None else _bytes_of(tokens.to(device).contiguous())
        self._bias = None if bias is None else _bytes_of(bias.to(device))
        flags = dict.fromkeys(_FIRST_PASS.values(), False)
        flags |= {_FIRST_PASS[name]: True for name in names if name in _FIRST_PASS}
        counts = num_visible_of(scores)
        self.max_logit, self.max_weight = self._new(), self._new()
        self._counts = self._new(dtype=torch.int32)
        if counts is not None:
            self._counts.copy_(counts)
        self._entropy, self._squares, self._distance = (
            self._new() if flags[flag] else self.max_logit
            for flag in ("ENTROPY", "SQUARES", "DISTANCE")
        )
        self._best = self._new(dtype=torch.int32) if flags["BEST"] else self._counts
        self._flags = flags
        self._launch(
            _kernels().row_pass,
            (
                self.max_logit, self.max_weight, self._entropy, self._squares, self._distance,
                self._best, self._counts,
            ),
            self._programs(queries, 0),
            {**flags, "COUNT": counts is None},
        )  # fmt: skip

    @property
    def stop(self) -> int:
        """One past the number of the last query in the map."""
        return self.start + self._shape[2]

    @property
    def num_visible(self) -> Float[Tensor, "batch heads queries"]:
        """How many keys each query sees."""
        return self._counts.to(torch.float32)

    @property
    def log_sum_exp(self) -> Float[Tensor, "batch heads queries"]:
        """log Σ exp s; −∞ for a query that sees no key."""
        return torch.where(self._counts > 0, self.max_logit - self.max_weight.log(), -torch.inf)

    @property
    def entropy(self) -> Float[Tensor, "batch heads queries"]:
        """log Σ exp s − Σ p s, in nats."""
        return self._of_first_pass("ENTROPY", self._entropy)

    @property
    def squares(self) -> Float[Tensor, "batch heads queries"]:
        """Σ p²."""
        return self._of_first_pass("SQUARES", self._squares)

    @property
    def distance(self) -> Float[Tensor, "batch heads queries"]:
        """Σ_j p_j |i − j|."""
        return self._of_first_pass("DISTANCE", self._distance)

    @property
    def argmax(self) -> Int[Tensor, "batch heads queries"]:
        """The key of the greatest score, the first of equals; −1 where there is none."""
        return self._of_first_pass("BEST", self._best).to(torch.int64)

    def _of_first_pass(self, flag: str, numbers: Tensor) -> Tensor:
        assert self._flags[flag], f"the first pass did not compute {flag}"
        return numbers

    def weight_on(self, end: int) -> Float[Tensor, "batch heads queries"]:
        """The weight of the first token of each batch row (`end` = 0), or of the last (1)."""
        keys = [self.scores.ends(batch)[end] for batch in range(self._shape[0])]
        targets = torch.tensor(keys, dtype=torch.int32, device=self.scores.query.device)
        return self._weights_of_pairs(targets, 0, fixed=True)

    def weight_at(self, offset: int) -> Float[Tensor, "batch heads queries"]:
        """The weight of the key at i + offset."""
        return self._weights_of_pairs(self._counts, offset, fixed=False)

    def _weights_of_pairs(
        self, targets: Int[Tensor, "..."], shift: int, *, fixed: bool
    ) -> Float[Tensor, "batch heads queries"]:
        if abs(shift) >= _LONGEST:
            return self._new().zero_()
        weights = self._new()
        self._launch(
            _kernels().pair_pass,
            (self.max_logit, self.max_weight, targets, weights),
            self._programs(self._shape[2], 0),
            {"shift": shift, "FIXED": fixed},
        )
        return weights

    def count_above(self, threshold: float) -> Float[Tensor, "batch heads queries"]:
        """How many weights are greater than `threshold`."""
        counts = self._new(dtype=torch.int32)
        self._launch(
            _kernels().count_pass,
            (self.max_logit, self.max_weight, counts),
            self._programs(self._shape[2], 0),
            {"threshold": float(threshold)},
        )
        return counts.to(torch.float32)

    def received(
        self, query_mask: Bool[Tensor, "batch queries"] | None
    ) -> Float[Tensor, "batch heads keys"]:
        """Σ_i w_ij over the queries that count.

        Args:
            query_mask: Of all queries of the map; None = all count.
        """
        batch = self._shape[0]
        num_keys = self.scores.keys.shape[2]
        sums = self._new(num_keys, dtype=torch.float64)
        counted = self._counts
        if query_mask is not None:
            counted = query_mask[:, self.start : self.stop].to(sums.device, torch.uint8)
            counted = counted.expand(batch, -1).contiguous()
        self._launch(
            _kernels().received_pass,
            (self.max_logit, self.max_weight, counted, sums),
            self._programs(num_keys, 1),
            {"COUNTED": query_mask is not None},
        )
        return sums.to(torch.float32)

    def top(
        self, k: int
    ) -> tuple[Float[Tensor, "batch heads queries k"], Int[Tensor, "batch heads queries k"]]:
        """The k greatest weights and their keys, 0 and −1 where fewer are seen."""
        weights, keys = self._new(k=k), self._new(k=k, dtype=torch.int32)
        self._launch(
            _kernels().top_pass,
            (self.max_logit, self.max_weight, weights, keys),
            self._programs(self._shape[2], 0),
            {"most": k},
        )
        return weights, keys.to(torch.int64)

    def mass(
        self, groups: Int[Tensor, "batch keys"], count: int
    ) -> Float[Tensor, "batch heads queries groups"]:
        """Σ_{j ∈ g} w_j for each of `count` groups."""
        # A number that is beyond 32 bits is one of no group.
        numbers = torch.where((groups >= 0) & (groups < count), groups, -1)
        numbers = numbers.to(self.scores.query.device, torch.int32).contiguous()
        masses = self._new(k=count)
        self._launch(
            _kernels().mass_pass,
            (self.max_logit, self.max_weight, numbers, masses),
            self._programs(self._shape[2], 0),
            {"most": count, "GROUPS": _power_of_two(count)},
            _with_sums(self._blocks, self.scores),
        )
        return masses

    def pool(
        self, key_range: tuple[int, int], shape: tuple[int, int], *, maximum: bool
    ) -> Float[Tensor, "batch heads cell_rows cell_keys"]:
        """The sum or the maximum of the weights of each cell of all queries and these keys.

        A cell in which no query sees a key has the maximum −∞.
        """
        batch, heads, queries = self._shape
        sizes = queries, key_range[1] - key_range[0]
        largest = [-(-size // cells) for size, cells in zip(sizes, shape, strict=True)]
        blocks = tuple(
            min(block, _power_of_two(size))
            for block, size in zip(_with_sums(self._blocks, self.scores), largest, strict=True)
        )
        cells = torch.empty((batch, heads, *shape), device=self.scores.query.device)
        self._launch(
            _kernels().pool_pass,
            (self.max_logit, self.max_weight, cells),
            lambda blocks: cells.numel(),
            {
                "cell_rows": shape[0],
                "cell_keys": shape[1],
                "left": key_range[0],
                "right": key_range[1],
                "MAXIMUM": maximum,
            },
            (blocks[0], blocks[1]),
        )
        return cells

    def _new(
        self, size: int | None = None, *, k: int | None = None, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """An empty tensor of a number for each query, of `size` for each head, or of k numbers."""
        shape = [*self._shape[:2], self._shape[2] if size is None else size]
        shape += [] if k is None else [k]
        return torch.empty(shape, dtype=dtype, device=self.scores.query.device)

    def _programs(self, size: int, side: int) -> "_Programs":
        """How many programs take `size` queries (side 0) or keys (1) of all heads."""
        return lambda blocks: -(-size // blocks[side]) * self._shape[0] * self._shape[1]

    def _launch(
        self,
        kernel: Any,
        outputs: Sequence[Tensor],
        programs: "_Programs",
        arguments: Mapping[str, Any],
        blocks: tuple[int, int] | None = None,
    ) -> None:
        """Run a kernel, with smaller blocks where the card has no room for these."""
        given = blocks or self._blocks
        while True:
            try:
                return self._launch_blocks(kernel, outputs, programs(given), arguments, given)
            except Exception as error:
                if not _is_out_of_resources(error) or given == (_LEAST_BLOCK, _LEAST_BLOCK):
                    raise
            given = max(_LEAST_BLOCK, given[0] // 2), max(_LEAST_BLOCK, given[1] // 2)
            if blocks is None:
                self._blocks = given

    def _launch_blocks(
        self,
        kernel: Any,
        outputs: Sequence[Tensor],
        programs: int,
        arguments: Mapping[str, Any],
        blocks: tuple[int, int],
    ) -> None:
        scores = self.scores
        query, keys, bias = scores.query, scores.keys, self._bias
        outer, inner, marks = scores.band.outer, scores.band.inner, self._marks
        tokens = self._tokens
        bias_kind, bias_strides = "none", [0, 0, 0, 0]
        if bias is not None:
            assert scores.bias is not None
            bias_kind = "mask" if scores.bias.dtype == torch.bool else "number"
            sizes = zip(bias.shape, bias.stride(), strict=True)
            bias_strides = [stride if size > 1 else 0 for size, stride in sizes]
        rows, num_keys = blocks
        width = _power_of_two(query.shape[3])
        launcher = kernel[(programs,)]
        with _on(query.device):
            launcher(
                query, keys, query if tokens is None else tokens, query if bias is None else bias,
                *outputs, *query.stride(), *keys.stride(),
                0 if tokens is None else tokens.stride(0), *bias_strides,
                query.shape[1], query.shape[1] // keys.shape[1], query.shape[2], keys.shape[2],
                query.shape[3], float(scores.scale), float(scores.softcap or 1.0), scores.offset,
                *_numbers_of(outer), *_numbers_of(inner),
                query if marks is None else marks, 0 if marks is None else marks.numel(),
                TOKENS=tokens is not None, BIAS=bias_kind, SOFTCAP=scores.softcap is not None,
                STRIDED=outer.step > 1, MARKS=marks is not None, UPCAST=_is_upcast(query),
                ROWS=rows, KEYS=num_keys, WIDTH=width,
                PADDED=width != query.shape[3], **arguments, **_options(rows, num_keys),
            )  # fmt: skip


def _bytes_of(tensor: Tensor) -> Tensor:
    """Bools as bytes, which a kernel reads; other numbers as they are."""
    return tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor


def num_visible_of(scores: MaskedScores) -> Int[Tensor, "batch heads queries"] | None:
    """How many keys each query sees, where a band and padding alone decide; None elsewhere."""
    if scores.bias is not None or scores.band != MarkedBand(replace(scores.band.outer, step=1)):
        return None
    batch, heads, queries, _ = scores.query.shape
    num_keys, device = scores.keys.shape[2], scores.query.device
    back, ahead, _ = _numbers_of(scores.band.outer)
    places = torch.arange(scores.offset, scores.offset + queries, device=device)
    low, high = (places - back).clamp(0, num_keys), (places + ahead + 1).clamp(0, num_keys)
    high = torch.maximum(low, high)
    if scores.token_mask is None:
        return (high - low).expand(batch, heads, queries)
    before = torch.zeros((batch, num_keys + 1), dtype=torch.int64, device=device)
    torch.cumsum(scores.token_mask.to(device), 1, out=before[:, 1:])
    return (before[:, high] - before[:, low])[:, None].expand(batch, heads, queries)


def _numbers_of(band: Band) -> tuple[int, int, int]:
    back, ahead = (_NO_BOUND if bound is None else bound for bound in (band.back, band.ahead))
    return back, ahead, band.step


def _marks_of(scores: MaskedScores) -> Tensor | None:
    """1 at each position that is marked, and 0 elsewhere; None where none is."""
    positions = max(scores.keys.shape[2], scores.offset + scores.query.shape[2])
    marks = [mark for mark in scores.band.marks if mark < positions]
    if scores.band.inner == Band():
        return None
    # On a CPU first: a list that is put into a tensor of a GPU is waited for.
    found = torch.zeros(max(1, positions), dtype=torch.uint8)
    found[marks] = 1
    return found.to(scores.query.device)


def _on(device: torch.device) -> Any:
    """The device as the current one: Triton launches there."""
    return torch.cuda.device(device) if device.type == "cuda" else torch.no_grad()


def _is_upcast(query: Tensor) -> bool:
    """Triton's interpreter, on a CPU, multiplies the bits of bfloat16 as whole numbers."""
    return query.device.type == "cpu" and query.dtype == torch.bfloat16


def _options(rows: int, num_keys: int) -> dict[str, int]:
    """Eight warps, because with four the scores of a block do not fit into registers."""
    return {"num_warps": 8 if rows * num_keys > 256 else 4, "num_stages": 2}


def _blocks_of(scores: MaskedScores) -> tuple[int, int]:
    """Queries and keys of a program: as many as leave the scores in registers.

    `tests/support/compile_row_kernels.py` compiles them and reads how much does not fit.
    """
    width = _power_of_two(scores.query.shape[3])
    if scores.query.dtype == torch.float32:
        return (64, 32) if width <= 128 else (32, 32)
    if scores.bias is not None:  # in fewer keys than the width it does not fit
        return (64, 64) if width <= 64 else (64, 128) if width <= 128 else (32, 256)
    return (128, 64) if width <= 128 else (64, 64)


def _with_sums(blocks: tuple[int, int], scores: MaskedScores) -> tuple[int, int]:
    """The same of a kernel that holds more numbers for each query."""
    is_wide = scores.query.dtype == torch.float32 and scores.query.shape[3] > 128
    return (min(blocks[0], 16), min(blocks[1], 16)) if is_wide else blocks


def _power_of_two(size: int) -> int:
    """The least power of two from `size`, and from the least block."""
    return max(_LEAST_BLOCK, 1 << (size - 1).bit_length())
