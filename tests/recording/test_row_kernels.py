"""Statistics of maps by Triton's kernels, in Triton's interpreter, beside float64 and the twin."""

import importlib
import math
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attlas._hardware import tf32_products, whole_products
from attlas.monitoring.statistics import totals_of
from attlas.patterns import (
    Pattern,
    both,
    causal,
    either,
    everywhere,
    landmarks,
    scattered,
    strided,
    window,
)
from attlas.recording import AttentionMap, FactoredAttentionMap
from attlas.recording.maps import row_kernels, triton_kernels
from attlas.recording.maps.reductions import PassCancelledError
from attlas.recording.maps.row_kernels import Band, RowKernels, marked_band_of
from attlas.recording.maps.statistics import NAMES, pool_map

pytest.importorskip("triton", reason="Triton has no wheel for this machine")
interpreter = importlib.import_module("triton.runtime.interpreter")

NUMBERS = tuple(name for name in (*NAMES, "max_logit") if name != "gini")


def patch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter patches its language in each function of a kernel: half of its time."""
    plain = getattr(interpreter, "_patch_lang", None)
    if plain is None:  # in another version
        return
    active: list[Any] = []

    def patch_lang(function: Any) -> Any:
        if active:
            return SimpleNamespace(restore=lambda: None)
        active.extend((plain(function), plain(triton_kernels.tl.cdiv.fn)))  # tl and tl.core
        return SimpleNamespace(restore=restore)

    def restore() -> None:
        while active:
            active.pop().restore()

    monkeypatch.setattr(interpreter, "_patch_lang", patch_lang)


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> list[RowKernels | None]:
    """The kernels run on a CPU, in small blocks; what each map got of them."""
    given_out: list[RowKernels | None] = []
    plain = row_kernels.kernels_of

    def kernels_of(*arguments: Any) -> RowKernels | None:
        given_out.append(plain(*arguments))
        return given_out[-1]

    patch_once(monkeypatch)
    monkeypatch.setattr(row_kernels, "is_available", lambda device: True)
    monkeypatch.setattr(row_kernels, "_failed", set())
    monkeypatch.setattr(row_kernels, "_blocks_of", lambda scores: (32, 16))
    monkeypatch.setattr("attlas.recording.maps.factored.kernels_of", kernels_of)
    return given_out


_is_available = row_kernels.is_available


@pytest.fixture
def gpu_of_type(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A GPU of this compute capability is said to be there."""

    def of(*capability: int) -> None:
        row_kernels._runs_on.cache_clear()
        monkeypatch.setattr(row_kernels, "is_available", _is_available)
        monkeypatch.setattr(row_kernels, "_capability", lambda index: capability)

    yield of
    row_kernels._runs_on.cache_clear()


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same question without the kernels."""

    def ask(question: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(row_kernels, "is_available", lambda device: False)
            return question()

    return ask


# The referee: everything at once, in float64.


@dataclass(frozen=True)
class Explicit:
    """All weights of a map, its scores, and what a query sees."""

    weights: Tensor
    scores: Tensor
    seen: Tensor
    away: Tensor  # |i − j|

    @classmethod
    def of(cls, attention_map: FactoredAttentionMap) -> "Explicit":
        query, keys = attention_map.query.double(), attention_map.keys.double()
        keys = keys.repeat_interleave(query.shape[1] // keys.shape[1], 1)
        scores = query @ keys.mT * attention_map.scale
        if attention_map.softcap is not None:
            scores = attention_map.softcap * (scores / attention_map.softcap).tanh()
        queries, num_keys = scores.shape[2:]
        i = torch.arange(queries)[:, None] + (attention_map.query_offset or 0)
        j = torch.arange(num_keys)[None, :]
        seen = attention_map.pattern(i, j).expand(scores.shape)
        if attention_map.token_mask is not None:
            seen = seen & attention_map.token_mask[:, None, None]
        bias = attention_map.bias
        if bias is not None and bias.dtype == torch.bool:
            seen = seen & bias
        elif bias is not None:
            scores = scores + bias.double()
            seen = seen & (bias > -torch.inf)
        powers = torch.where(seen, scores, -torch.inf).softmax(-1)
        return cls(torch.where(seen, powers, 0.0), scores, seen, (i - j).abs().double())

    def statistics(self, ends: tuple[Tensor, Tensor]) -> Mapping[str, Tensor]:
        w, seen = self.weights, self.seen
        some, n = seen.any(-1), seen.sum(-1).double()
        entropy = -torch.special.xlogy(w, w).sum(-1)
        most = torch.where(n > 1, n.log(), 1.0)
        batch, heads, queries, _ = w.shape
        first, last = (
            w.gather(-1, end[:, None, None, None].expand(batch, heads, queries, 1)).squeeze(-1)
            for end in ends
        )
        hidden = torch.where(seen, self.scores, -torch.inf)
        return {
            "entropy": entropy,
            "normalized_entropy": torch.where(n > 1, entropy / most, 0.0),
            "effective_keys": torch.where(some, entropy.exp(), 0.0),
            "num_visible": n,
            "count_above": (w > 0.03).sum(-1).double(),
            "max_weight": w.amax(-1),
            "max_logit": hidden.amax(-1),
            "argmax": torch.where(some, hidden.argmax(-1), -1).double(),
            "distance": (w * self.away).sum(-1),
            "received": w.sum(-2),
            "first_weight": first,
            "last_weight": last,
            "self_weight": torch.where(self.away == 0, w, 0.0).sum(-1),
        }


# A block of queries with an edge, and two of keys: the interpreter takes 20 ms for each pair.
SIZES = {"batch": 1, "heads": 2, "kv_heads": 2, "queries": 21, "keys": 21, "width": 12}


def example(
    pattern: Pattern = everywhere, offset: int | None = 0, seed: int = 1, **given: Any
) -> FactoredAttentionMap:
    """A map of random numbers."""
    torch.manual_seed(seed)
    sizes = {name: given.pop(name, size) for name, size in SIZES.items()}
    batch, width = sizes["batch"], sizes["width"]
    dtype = given.pop("dtype", torch.float32)
    query = torch.randn(batch, sizes["heads"], sizes["queries"], width)
    keys = torch.randn(batch, sizes["kv_heads"], sizes["keys"], width)
    return FactoredAttentionMap(query.to(dtype), keys.to(dtype), 0.6, pattern, offset, **given)


def padding(*tokens: tuple[int, int], keys: int = 21) -> Tensor:
    place = torch.arange(keys)
    return torch.stack([(place >= low) & (place < high) for low, high in tokens])


def bias_of(*shape: int, hidden: float = 0.0) -> Tensor:
    torch.manual_seed(6)
    numbers = torch.randn(shape)
    return torch.where(torch.rand(shape) < hidden, -torch.inf, numbers)


def alibi(heads: int, queries: int, keys: int) -> Tensor:
    slopes = 0.5 ** torch.arange(1, heads + 1)
    distance = (torch.arange(queries)[:, None] - torch.arange(keys)).abs()
    return -(slopes[:, None, None] * distance)[None]


def random_mask(share: float, *shape: int) -> Tensor:
    torch.manual_seed(7)
    return torch.rand(shape) < share


CASES: dict[str, FactoredAttentionMap] = {
    "everywhere": example(),
    "of unknown position": example(offset=None, queries=9),
    "causal": example(causal, queries=33, keys=33),
    "causal from a cache": example(causal, 12, queries=7, keys=19),
    "one new query": example(causal, 30, queries=1, keys=31),
    "ahead of its keys": example(causal, -5, queries=20, keys=18),
    "beyond its keys": example(both(causal, window(6)), 10, queries=35, keys=20),
    "window": example(window(5)),
    "window of itself": example(window(0)),
    "causal window": example(both(causal, window(7)), 3, keys=19),
    "strided": example(both(causal, strided(3))),
    "Longformer": example(either(window(2), landmarks(0, 5, 17))),
    "causal Longformer": example(both(causal, either(window(2), landmarks(0, 4))), 3, keys=24),
    "landmarks alone": example(landmarks(3, 20)),
    "landmarks beyond": example(either(window(1), landmarks(0, 90)), -4, queries=25, keys=18),
    "two strides": example(both(strided(2), both(strided(3), window(12)))),
    "padding": example(batch=2, token_mask=padding((0, 21), (0, 11))),
    "padding before": example(causal, batch=2, token_mask=padding((4, 21), (18, 21))),
    "padding within": example(causal, batch=2, token_mask=random_mask(0.6, 2, 21)),
    "a text of padding alone": example(batch=2, token_mask=padding((0, 20), (0, 0))),
    "a mask": example(bias=random_mask(0.7, 1, 2, 21, 21)),
    "a mask of every head": example(causal, bias=random_mask(0.1, 1, 1, 21, 21)),
    "a bias": example(causal, bias=bias_of(1, 2, 21, 21, hidden=0.3)),
    "a bias of the keys": example(batch=2, bias=bias_of(2, 1, 1, 21, hidden=0.5)),
    "a bias in half precision": example(bias=bias_of(1, 2, 21, 21, hidden=0.2).half()),
    "ALiBi": example(causal, bias=alibi(2, 21, 21)),
    "a cap": example(causal, softcap=1.5),
    "a large cap": example(softcap=50.0, queries=5),
    "shared keys": example(causal, heads=4, kv_heads=2, queries=12),
    "one head of keys": example(kv_heads=1, queries=5, keys=40),
    "one number wide": example(width=1, queries=5),
    "a head of forty numbers": example(width=40, queries=5),
    "all of it": example(
        both(causal, both(window(19), strided(2))), 6, batch=2, kv_heads=1, queries=18, keys=23,
        softcap=2.0, token_mask=padding((2, 23), (9, 20), keys=23),
        bias=bias_of(2, 2, 18, 23, hidden=0.2),
    ),
}  # fmt: skip


def ends_of(attention_map: FactoredAttentionMap, explicit: Explicit) -> tuple[Tensor, Tensor]:
    """The first and the last token that some query sees; without padding, the first and the last.

    Where the pattern alone hides, keys before the reach of all queries count.
    """
    reached = explicit.seen.flatten(1, 2).any(1)
    if attention_map.bias is None:
        tokens = attention_map.token_mask
        tokens = torch.ones_like(reached) if tokens is None else tokens
        last = torch.where(
            reached.any(-1), reached.shape[1] - 1 - reached.flip(1).int().argmax(1), 0
        )
        reached = tokens & (torch.arange(reached.shape[1]) <= last[:, None])
    first = reached.int().argmax(1)
    return first, (reached.shape[1] - 1 - reached.flip(1).int().argmax(1)) * reached.any(1)


def names_of(attention_map: AttentionMap) -> tuple[str, ...]:
    placed = ("distance", "self_weight", "previous_weight", "next_weight")
    known = attention_map.position is not None
    return tuple(name for name in NUMBERS if known or name not in placed)


Given = list[RowKernels | None]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("case", CASES)
def test_the_statistics_are_those_of_float64_and_of_the_blocks(
    case: str, on_cpu: Given, without: Any
) -> None:
    attention_map = CASES[case]
    explicit = Explicit.of(attention_map)
    expected = explicit.statistics(ends_of(attention_map, explicit))
    names = names_of(attention_map)
    found = attention_map.summary(*names, threshold=0.03)
    assert [kernels is not None for kernels in on_cpu] == [True]
    twin = without(lambda: attention_map.summary(*names, threshold=0.03))
    for name in names:
        ours, theirs = getattr(found, name), getattr(twin, name)
        assert (ours.dtype, ours.device) == (theirs.dtype, theirs.device)
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-5, msg=name)
        if name in expected:
            wanted = expected[name]
            torch.testing.assert_close(ours.double(), wanted, atol=2e-5, rtol=2e-6, msg=name)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_summed_in_float32(dtype: torch.dtype, on_cpu: Given) -> None:
    attention_map = example(causal, dtype=dtype, kv_heads=1)
    explicit = Explicit.of(attention_map)
    expected = explicit.statistics(ends_of(attention_map, explicit))
    found = attention_map.summary("entropy", "max_logit", "received", "self_weight", "distance")
    assert on_cpu[0] is not None
    for name in ("entropy", "max_logit", "received", "self_weight", "distance"):
        ours = getattr(found, name).double()
        torch.testing.assert_close(ours, expected[name], atol=5e-6, rtol=2e-6, msg=name)


def kernels_for(attention_map: FactoredAttentionMap, *names: str) -> RowKernels:
    found = attention_map.row_kernels((0, attention_map.shape[2]), frozenset(names))
    assert found is not None
    return found


def test_a_pass_has_log_sum_exp_and_squares() -> None:
    attention_map = CASES["all of it"]
    explicit = Explicit.of(attention_map)
    kernels = kernels_for(attention_map, "squares")
    hidden = torch.where(explicit.seen, explicit.scores, -torch.inf)
    expected = (hidden.logsumexp(-1), explicit.weights.square().sum(-1))
    for ours, wanted in zip((kernels.log_sum_exp, kernels.squares), expected, strict=True):
        torch.testing.assert_close(ours.double(), wanted, atol=1e-5, rtol=1e-5)


def test_large_scores_lose_no_digits_to_their_sum() -> None:
    attention_map = replace(example(causal), scale=300.0)
    found = attention_map.summary("max_weight", "max_logit", "received")
    assert float(found.max_logit.max()) > 3000
    assert float(found.max_weight.max()) <= 1
    sums = found.received.sum(-1)  # exp(s − log Σ exp s) would be off by a thousandth
    torch.testing.assert_close(sums, torch.full_like(sums, 21.0), atol=1e-5, rtol=0)
    weights = attention_map.scores(0, 21).masked_fill(~causal.mask(21, 21), -torch.inf).softmax(-1)
    torch.testing.assert_close(found.max_weight, weights.amax(-1), atol=2e-3, rtol=0)


@pytest.mark.parametrize("how", ["max", "mean", "sum"])
@pytest.mark.parametrize("case", ["everywhere", "all of it"])
def test_a_window_is_pooled_as_its_weights_are(case: str, how: str, on_cpu: Given) -> None:
    attention_map = CASES[case]
    weights = Explicit.of(attention_map).weights
    pooled = attention_map.pool((2, 17), (1, 20), (2, 3), how)
    assert on_cpu[0] is not None
    for row in range(2):
        for key in range(3):
            rows = slice(2 + row * 15 // 2, 2 + (row + 1) * 15 // 2)
            keys = slice(1 + key * 19 // 3, 1 + (key + 1) * 19 // 3)
            cell = weights[:, :, rows, keys]
            expected = {"max": cell.amax, "mean": cell.mean, "sum": cell.sum}[how]((-2, -1))
            torch.testing.assert_close(
                pooled[:, :, row, key].double(), expected, atol=1e-6, rtol=1e-5
            )


def test_a_cell_in_which_nothing_is_seen_has_the_number_for_hidden_ones(without: Any) -> None:
    attention_map = CASES["causal window"]
    question = lambda: pool_map(  # noqa: E731
        attention_map, None, None, (3, 4), "max", threading.Event(), hidden=-math.inf
    )
    found, twin = question(), without(question)
    assert (found == -math.inf).any()
    torch.testing.assert_close(found, twin, atol=1e-6, rtol=1e-5)


def test_a_pass_that_nobody_waits_for_ends() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(PassCancelledError):
        pool_map(CASES["everywhere"], None, None, (3, 3), "max", stop)


@pytest.mark.parametrize("case", ["causal", "all of it"])
def test_the_greatest_weights_come_in_their_order(case: str, on_cpu: Given) -> None:
    attention_map = CASES[case]
    explicit = Explicit.of(attention_map)
    weights, keys = attention_map.topk(3)
    assert on_cpu[0] is not None
    some = explicit.seen.sum(-1, keepdim=True) > torch.arange(3)
    order = torch.where(explicit.seen, explicit.scores, -torch.inf).topk(3).indices
    assert torch.equal(keys, torch.where(some, order, -1))
    expected = torch.where(some, explicit.weights.gather(-1, order), 0.0)
    torch.testing.assert_close(weights.double(), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool], ids=str)
def test_nothing_is_read_past_the_end_of_a_bias(
    dtype: torch.dtype, without: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """37 keys are no multiple of a block."""
    bias = torch.randn(1, 1, 64, 37) if dtype == torch.float32 else random_mask(0.9, 1, 1, 64, 37)
    attention_map = example(queries=64, keys=37, batch=1, bias=bias)
    loaded, size = list[int](), bias.element_size()
    plain = interpreter.InterpreterBuilder.create_masked_load

    def load(self: Any, pointers: Any, mask: Any, *given: Any) -> Any:
        loaded.extend(pointers.data[mask.data].ravel().tolist())
        return plain(self, pointers, mask, *given)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_masked_load", load)
    attention_map.summary("entropy", "received", "count_above", threshold=0.01)
    first = bias.data_ptr()
    near = [place for place in loaded if first <= place < first + bias.numel() * size + 64 * size]
    assert near
    assert max(near) < first + bias.numel() * size


def test_the_first_of_equal_scores_is_the_greatest_whatever_block_is_read_first() -> None:
    """The blocks at the edges of a window are read after those that are seen whole."""
    attention_map = example(window(40), queries=90, keys=90)
    attention_map.keys.zero_()
    first = (torch.arange(90) - 40).clamp(min=0)
    kernels = kernels_for(attention_map, "argmax")
    assert torch.equal(kernels.argmax, first.expand(kernels.argmax.shape))
    _, keys = kernels.top(3)
    assert torch.equal(keys, (first[:, None] + torch.arange(3)).expand(keys.shape))


@pytest.mark.parametrize(
    "pattern", [everywhere, causal, window(33), both(causal, window(60))], ids=str
)
def test_long_rows_have_the_statistics_of_the_blocks(pattern: Pattern, without: Any) -> None:
    """Rows with blocks that are seen whole, at both sides of them, and alone."""
    attention_map = example(pattern, 5, batch=1, queries=85, keys=90)

    def ask() -> Any:
        names = ("entropy", "argmax", "distance", "received", "num_visible", "max_weight")
        summary = attention_map.summary(*names, "count_above", threshold=0.02)
        pooled = [attention_map.pool(shape=(3, 2), how=how) for how in ("max", "mean")]
        return [getattr(summary, name) for name in (*names, "count_above")], pooled

    for found, twin in zip(ask(), without(ask), strict=True):
        for one, other in zip(found, twin, strict=True):
            torch.testing.assert_close(one, other)


def test_equal_scores_come_in_the_order_of_their_keys() -> None:
    keys = torch.ones(1, 1, 20, 4)
    keys[..., 17:, :] = 2
    attention_map = FactoredAttentionMap(torch.ones(1, 1, 2, 4), keys, 0.1, everywhere, 0)
    assert attention_map.topk(5)[1].tolist() == [[[[17, 18, 19, 0, 1]] * 2]]
    assert attention_map.argmax().tolist() == [[[17, 17]]]


def test_groups_of_keys_have_the_sum_of_their_weights(on_cpu: Given) -> None:
    attention_map = CASES["all of it"]
    groups = torch.randint(-1, 3, (2, 23))
    found = attention_map.mass(groups)
    assert on_cpu[0] is not None
    member = (groups[:, None, None, :, None] == torch.arange(3)).double()
    expected = (Explicit.of(attention_map).weights.unsqueeze(-1) * member).sum(-2)
    torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=1e-5)


def test_a_watch_reads_the_same_of_kernels_and_of_blocks(on_cpu: Given, without: Any) -> None:
    attention_map = CASES["padding"]
    question = lambda: totals_of(  # noqa: E731
        attention_map, padding((0, 21), (0, 11)), cross_attention=False
    )
    found, twin = question(), without(question)
    assert on_cpu[0] is not None
    assert torch.equal(torch.tensor(found[2]), torch.tensor(twin[2]))
    torch.testing.assert_close(torch.tensor(found[1]), torch.tensor(twin[1]), atol=1e-5, rtol=1e-5)
    for name, sums in twin[0].sums.items():
        torch.testing.assert_close(
            torch.tensor(found[0].sums[name]), torch.tensor(sums), atol=1e-4, rtol=1e-5
        )


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")  # of Triton's interpreter
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_reported_and_stay_in_their_rows(number: float) -> None:
    attention_map = example(queries=5, keys=18)
    attention_map.query[0, 1, 3, 0] = number
    attention_map.keys[..., 0].abs_()
    names = ("entropy", "max_weight", "effective_keys", "max_logit", "num_visible")
    found = attention_map.summary(*names)
    for name in names[:3]:
        finite = getattr(found, name).isfinite()
        assert (~finite).nonzero().tolist() == [[0, 1, 3]], name
    logit = float(found.max_logit[0, 1, 3])
    assert math.isnan(logit) if math.isnan(number) else logit == math.inf
    assert bool((found.num_visible == 18).all())


def test_two_passes_give_the_same_bits() -> None:
    names = ("entropy", "distance", "received")
    one, other = (CASES["all of it"].summary(*names) for _ in range(2))
    for name in names:
        assert torch.equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(
    ("pattern", "blocks"), [(everywhere, 9), (causal, 6), (both(causal, window(10)), 5)], ids=str
)
def test_blocks_that_are_hidden_whole_are_not_read(
    pattern: Pattern, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    plain = triton_kernels._load_rows

    def load(*arguments: Any, **named: Any) -> Any:
        read.append(1)
        return plain(*arguments, **named)

    monkeypatch.setattr(row_kernels, "_blocks_of", lambda scores: (16, 16))
    monkeypatch.setattr(triton_kernels, "_load_rows", load)
    attention_map = example(pattern, heads=1, kv_heads=1, queries=48, keys=48)
    kernels = kernels_for(attention_map)
    assert len(read) == 3 + blocks  # three blocks of queries, and of keys those that they see
    read.clear()
    kernels.received(None)
    assert len(read) == 3 + blocks


# What the kernels do not know.


@pytest.mark.parametrize(
    "attention_map",
    [
        example(dtype=torch.float64),
        example(width=300, queries=3),
        example(either(window(2), scattered(0.3))),
        example(scattered(0.3)),
        example(queries=0),
        example(bias=bias_of(1, 1, 21, 21).masked_fill(random_mask(0.3, 1, 1, 21, 21), -3e38)),
        example(bias=bias_of(1, 1, 21, 21).masked_fill(random_mask(0.3, 1, 1, 21, 21), -1e4)),
        example(bias=bias_of(1, 1, 21, 21).double()),
    ],
    ids=["float64", "wide", "BigBird", "scattered", "empty", "least", "-10,000", "bias64"],
)
def test_what_they_do_not_know_is_left_to_the_blocks(
    attention_map: FactoredAttentionMap, on_cpu: Given, without: Any
) -> None:
    found = attention_map.summary("entropy", "received", "max_logit")
    assert not any(on_cpu)
    twin = without(lambda: attention_map.summary("entropy", "received", "max_logit"))
    for name in ("entropy", "received", "max_logit"):
        assert torch.equal(getattr(found, name), getattr(twin, name))


def test_what_needs_every_weight_is_asked_of_the_blocks_beside_them(
    on_cpu: Given, without: Any
) -> None:
    attention_map = CASES["window"]
    found = attention_map.summary("gini", "entropy")
    assert on_cpu[0] is not None
    twin = without(lambda: attention_map.summary("gini", "entropy"))
    assert torch.equal(found.gini, twin.gini)
    torch.testing.assert_close(found.entropy, twin.entropy)


def test_a_machine_that_cannot_compile_is_reported_once_and_uses_the_blocks(
    monkeypatch: pytest.MonkeyPatch, without: Any
) -> None:
    def fail(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("Failed to find C compiler. Please specify via CC")

    attention_map = CASES["window"]
    with monkeypatch.context() as patch:
        patch.setattr(RowKernels, "_launch", fail)
        with pytest.warns(UserWarning, match="Failed to find C compiler") as warned:
            found = [attention_map.entropy() for _ in range(2)]
    assert len(warned) == 1
    twin = without(attention_map.entropy)
    assert torch.equal(found[0], twin)
    assert torch.equal(found[1], twin)


@pytest.mark.parametrize(
    "error",
    [
        subprocess.CalledProcessError(1, ["gcc"]),
        AssertionError("libcuda.so cannot found!"),
        FileNotFoundError(2, "No such file or directory", "/sbin/ldconfig"),
        PermissionError(13, "Permission denied"),
        RuntimeError("0 active drivers ([]). There should only be one."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_machine_on_which_triton_does_not_run_is_reported_once(
    error: Exception, gpu_of_type: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(device: torch.device) -> None:
        raise error

    gpu_of_type(9, 0)
    monkeypatch.setattr(row_kernels, "_try", fail)
    with pytest.warns(UserWarning, match=type(error).__name__) as warned:
        found = [row_kernels.is_available(torch.device("cuda", 0)) for _ in range(3)]
    assert found == [False] * 3
    assert len(warned) == 1


@pytest.mark.parametrize(
    ("capability", "expected"), [((7, 5), False), ((8, 0), True), ((8, 6), True), ((9, 0), True)]
)
def test_the_kernels_are_for_cards_that_triton_supports(
    capability: tuple[int, int], expected: bool, gpu_of_type: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[torch.device] = []
    gpu_of_type(*capability)
    monkeypatch.setattr(row_kernels, "_try", tried.append)
    assert row_kernels.is_available(torch.device("cuda", 0)) is expected
    assert len(tried) == expected


def test_the_trial_of_triton_runs_a_kernel() -> None:
    row_kernels._try(torch.device("cpu"))


def test_a_later_pass_that_does_not_fit_a_card_is_left_to_the_blocks(
    monkeypatch: pytest.MonkeyPatch, without: Any
) -> None:
    errors = importlib.import_module("triton.runtime.errors")

    def fail(*arguments: Any) -> None:
        raise errors.OutOfResources(70_000, 65_536, "shared memory")

    attention_map = CASES["window"]
    monkeypatch.setattr(RowKernels, "received", fail)
    with pytest.warns(UserWarning, match="shared memory") as warned:
        found = [attention_map.summary("entropy", "received") for _ in range(2)][1]
    assert len(warned) == 1  # it is not tried again
    twin = without(lambda: attention_map.summary("entropy", "received"))
    assert torch.equal(found.received, twin.received)
    torch.testing.assert_close(found.entropy, twin.entropy)


@pytest.mark.parametrize("name", ["window", "causal"])
def test_blocks_that_do_not_fit_a_card_are_made_smaller(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    errors = importlib.import_module("triton.runtime.errors")
    launch, blocks = RowKernels._launch_blocks, list[tuple[int, int]]()

    def launched(self: RowKernels, *given: Any) -> None:
        blocks.append(given[-1])
        if given[-1][0] * given[-1][1] > 32 * 16:
            raise errors.OutOfResources(70_000, 65_536, "shared memory")
        launch(self, *given)

    attention_map = CASES[name]
    wanted = attention_map.summary("entropy", "received", "argmax")
    pooled = attention_map.pool(shape=(3, 4), how="max")
    monkeypatch.setattr(RowKernels, "_launch_blocks", launched)
    found = attention_map.summary("entropy", "received", "argmax")
    for statistic in ("entropy", "received", "argmax"):
        torch.testing.assert_close(getattr(found, statistic), getattr(wanted, statistic))
    torch.testing.assert_close(attention_map.pool(shape=(3, 4), how="max"), pooled)
    assert not row_kernels._failed
    assert len(set(blocks)) > 1


def test_another_error_of_a_kernel_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **named: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(RowKernels, "_launch", fail)
    with pytest.raises(ZeroDivisionError):
        CASES["window"].entropy()


@pytest.mark.parametrize(
    "pattern",
    [
        both(causal, window(4)),
        both(both(window(9), strided(2)), window(3)),
        both(strided(4), strided(6)),
        everywhere,
        landmarks(2, 7),
        landmarks(),
        either(window(3), landmarks(0, 11)),
        either(landmarks(4), window(2), landmarks(9)),
        either(landmarks(4), landmarks(9)),
        either(either(window(2), landmarks(1)), either(window(3), landmarks(4))),
        either(everywhere, landmarks(4)),
        either(both(window(2), either(everywhere, landmarks(3))), landmarks(5)),
        both(causal, either(window(3), landmarks(0, 11))),
        both(either(both(causal, strided(2)), landmarks(5)), window(20)),
        either(both(causal, window(2)), both(causal, landmarks(6))),
    ],
    ids=str,
)
def test_the_band_of_a_pattern_is_the_pattern(pattern: Pattern) -> None:
    band = marked_band_of(pattern)
    assert band is not None
    away = torch.arange(30)[:, None] - torch.arange(30)
    marked = torch.tensor([place in band.marks for place in range(30)])
    seen = within(band.inner, away) | marked[:, None] | marked
    assert torch.equal(within(band.outer, away) & seen, pattern.mask(30, 30))


def patterns(depth: int) -> st.SearchStrategy[Pattern]:
    plain = [everywhere, causal, window(1), window(4), strided(2), landmarks(0), landmarks(3, 7)]
    leaves = st.sampled_from(plain)
    pairs = st.tuples(*[leaves if depth == 0 else patterns(depth - 1)] * 2)
    return st.one_of(leaves, pairs.map(lambda two: both(*two)), pairs.map(lambda two: either(*two)))


@settings(max_examples=400)
@given(pattern=patterns(2))
def test_whatever_has_a_band_is_that_band(pattern: Pattern) -> None:
    band = marked_band_of(pattern)
    if band is not None:
        away = torch.arange(12)[:, None] - torch.arange(12)
        marked = torch.tensor([place in band.marks for place in range(12)])
        seen = within(band.inner, away) | marked[:, None] | marked
        assert torch.equal(within(band.outer, away) & seen, pattern.mask(12, 12))


def within(band: Band, away: Tensor) -> Tensor:
    seen = away % band.step == 0
    seen &= torch.tensor(True) if band.back is None else away <= band.back
    return seen & (torch.tensor(True) if band.ahead is None else away >= -band.ahead)


@pytest.mark.parametrize(
    "pattern",
    [
        scattered(0.2),
        either(causal, window(3)),
        either(strided(3), window(3)),
        either(both(window(5), landmarks(1)), landmarks(2)),
        both(either(window(2), landmarks(1)), landmarks(4)),
        either(both(causal, landmarks(1)), window(2)),
    ],
    ids=str,
)
def test_what_is_no_band_is_not_taken_for_one(pattern: Pattern) -> None:
    assert marked_band_of(pattern) is None


@settings(max_examples=6)
@given(
    pattern=st.sampled_from(
        [
            everywhere,
            causal,
            both(causal, window(9)),
            strided(2),
            either(window(3), landmarks(1, 20)),
        ]
    ),
    queries=st.integers(1, 34),
    num_keys=st.integers(1, 34),
    offset=st.integers(-3, 20),
    shared=st.sampled_from([1, 2]),
    hidden=st.sampled_from([0.0, 0.4, 1.0]),
    softcap=st.sampled_from([None, 3.0]),
    seed=st.integers(0, 99),
)
def test_any_map_has_the_statistics_of_float64(
    pattern: Pattern, queries: int, num_keys: int, offset: int, shared: int, hidden: float,
    softcap: float | None, seed: int,
) -> None:  # fmt: skip
    tokens = torch.rand(1, num_keys, generator=torch.Generator().manual_seed(seed)) >= hidden
    attention_map = example(
        pattern, offset, seed, queries=queries, keys=num_keys, kv_heads=2 // shared, width=3,
        token_mask=tokens, softcap=softcap,
    )  # fmt: skip
    explicit = Explicit.of(attention_map)
    expected = explicit.statistics((torch.zeros(1).long(), torch.zeros(1).long()))
    names = ("entropy", "max_logit", "distance", "received", "num_visible", "self_weight")
    found = attention_map.summary(*names)
    for name in names:
        ours = getattr(found, name).double()
        torch.testing.assert_close(ours, expected[name], atol=2e-5, rtol=2e-6, msg=name)


# What a machine without a GPU can say of one.

COMPILED = Path(__file__).parents[1] / "support" / "compile_row_kernels.py"


@pytest.mark.slow
def test_the_kernels_compile_for_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, COMPILED], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    *lines, last = done.stdout.splitlines()
    kernels = {name for name in vars(triton_kernels) if name.endswith("_pass")}
    assert {line.split()[0] for line in lines} == kernels
    assert last == f"{len(lines)} of {len(lines)} fit"


def test_a_map_on_a_cpu_imports_no_triton() -> None:
    code = (
        "import sys, torch, attlas; from attlas.recording import FactoredAttentionMap as Map; "
        "from attlas.patterns import causal; x = torch.randn(1, 1, 5, 4); "
        "Map(x, x, 1.0, causal, 0).summary(); sys.exit('triton' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_blocks_on_a_gpu_multiply_all_bits_whatever_the_process_has_set() -> None:
    switch = torch.backends.cuda.matmul
    with tf32_products():
        with whole_products(torch.device("cuda")):
            assert switch.fp32_precision == "ieee"
        assert switch.fp32_precision == "tf32"
        with whole_products(torch.device("cpu")):
            assert switch.fp32_precision == "tf32"
