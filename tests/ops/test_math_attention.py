"""Attention with the weights written out is what the kernel gives, forwards and back."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from attlas.layers import (
    MultiheadAttention,
    RotaryPositions,
)
from attlas.layers import (
    scaled_dot_product_attention as sdpa,
)
from attlas.layers import (
    scaled_dot_product_attention_with_weights as sdpa_with_weights,
)
from attlas.ops import attention as dense
from attlas.ops import attention as written
from attlas.ops.attention import (
    _attend_with_dropout,
    fused_attention,
    math_attention,
    math_is_faster,
)
from attlas.patterns import Pattern, causal, either, everywhere, landmarks, window
from attlas.recording import observe


@pytest.fixture(autouse=True)
def of_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few heads are not worth it, and are here what is quick to check."""
    monkeypatch.setattr(written, "_LEAST_HEADS", 1)


def drawn(
    seed: int, batch: int, heads: int, num_kv_heads: int, queries: int, keys: int, widths: Any
) -> list[Tensor]:
    """Query, keys and values, laid out as a layer does: positions before heads."""
    generator = torch.Generator().manual_seed(seed)
    width, value_dim = widths
    shapes = (
        (queries, heads, width),
        (keys, num_kv_heads, width),
        (keys, num_kv_heads, value_dim),
    )
    return [
        torch.randn((batch, *shape), generator=generator).transpose(1, 2).requires_grad_()
        for shape in shapes
    ]


def masked(seed: int, batch: int, queries: int, keys: int) -> Tensor:
    """Where a query may look; the last key is seen by all."""
    mask = torch.rand(batch, 1, queries, keys, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[..., -1] = True
    return mask


def exactly(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """By definition, in float64."""
    repeats = q.shape[1] // k.shape[1]
    k, v = (one.repeat_interleave(repeats, 1) for one in (k, v))
    scores = q @ k.transpose(-2, -1) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, -1) @ v


_short = st.integers(1, 20)


@given(
    batch=st.integers(1, 3),
    num_kv_heads=st.integers(1, 2),
    shared=st.integers(1, 2),
    queries=_short,
    keys=_short,
    widths=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    kind=st.sampled_from(["none", "bool", "causal"]),
    seed=st.integers(0, 999),
)
def test_output_and_gradients_are_those_of_the_definition(
    batch: int,
    num_kv_heads: int,
    shared: int,
    queries: int,
    keys: int,
    widths: tuple[int, int],
    kind: str,
    seed: int,
) -> None:
    keys = queries if kind == "causal" else keys
    given_ = drawn(seed, batch, num_kv_heads * shared, num_kv_heads, queries, keys, widths)
    assert math_is_faster(*given_, 0.0)
    mask = {"bool": masked(seed, batch, queries, keys), "causal": None, "none": None}[kind]
    y = fused_attention(*given_, mask, 0.7, 0.0, causal=kind == "causal")
    exact = [one.detach().double().requires_grad_() for one in given_]
    if kind == "causal":
        mask = torch.ones(queries, keys, dtype=torch.bool).tril()
    expected = exactly(*exact, mask, 0.7)
    toward = torch.randn(y.shape, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)
    found = torch.autograd.grad(y, given_, toward)
    for one, other in zip(
        found, torch.autograd.grad(expected, exact, toward.double()), strict=True
    ):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("keys", [3, 15, 16, 17, 40])
@pytest.mark.parametrize("learns", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_what_dropout_leaves_is_what_its_twin_reads(keys: int, learns: tuple[int, ...]) -> None:
    given_ = drawn(3, 2, 4, 2, 5, keys, (6, 3))
    for place in {0, 1, 2} - set(learns):
        given_[place].requires_grad_(False)
    mask, results = masked(4, 2, 5, keys), []
    for read in (fused_attention, _attend_with_dropout):
        torch.manual_seed(5)
        y = read(*given_, mask, 0.5, 0.4, False)
        gradients = torch.autograd.grad(y.sin().sum(), [given_[place] for place in learns])
        results.append((y, *gradients))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("keys", [4, 20])
def test_its_gradient_can_be_differentiated(keys: int, dropout: float) -> None:
    given_, mask = drawn(6, 2, 2, 1, 3, keys, (4, 5)), masked(7, 2, 3, keys)
    given_[1].requires_grad_(False)
    requested = [given_[0], given_[2]]

    def second(read: Any) -> tuple[Tensor, ...]:
        torch.manual_seed(8)
        y = read(*given_, mask, 0.5, dropout, False)
        query_offset = torch.autograd.grad(y.tanh().sum(), requested, create_graph=True)
        return torch.autograd.grad(sum(one.square().sum() for one in query_offset), requested)

    for one, other in zip(second(fused_attention), second(_attend_with_dropout), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("keys", [5, 20])
def test_a_hidden_slot_is_nothing_at_all(keys: int) -> None:
    q, k, v = (one.detach() for one in drawn(9, 20, 2, 2, 8, keys, (4, 4)))
    mask = torch.ones(20, 1, 1, keys, dtype=torch.bool)
    mask[..., 1] = False
    far = v.clone()
    far[:, :, 1] = 1e37
    assert torch.equal(
        fused_attention(q, k, far, mask, 0.5, 0.0), fused_attention(q, k, v, mask, 0.5, 0.0)
    )
    k.requires_grad_()
    (gradient,) = torch.autograd.grad(fused_attention(q, k, v, mask, 0.5, 0.0).sum(), k)
    assert not gradient[:, :, 1].any()


@pytest.mark.parametrize("keys", [5, 20])
def test_scores_far_apart_and_far_from_zero_are_weighed_as_by_the_kernel(keys: int) -> None:
    q, k, v = (one.detach() for one in drawn(10, 20, 2, 2, 8, keys, (4, 4)))
    for scale in (1e-3, 1.0, 300.0, -1e4):
        found = math_attention(q, k, v, scale=scale)
        expected = F.scaled_dot_product_attention(q, k, v, scale=scale)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_a_layer_reads_short_texts_so_and_long_ones_by_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    own = dense.math_attention
    monkeypatch.setattr(
        dense, "math_attention", lambda *given_: made.append(given_[1].shape[2]) or own(*given_)
    )
    layer = MultiheadAttention(
        64, 2, pattern=causal
    )  # heads of 32: 64 positions with gradients, 32 without
    for length in (12, 32, 33, 64, 65):
        source = torch.randn(2, length, 64)
        layer.attend(source, layer.project_kv(source))
        with torch.no_grad():
            layer.attend(source, layer.project_kv(source))
    assert made == [12, 12, 32, 32, 33, 64]
    made.clear()
    monkeypatch.setattr(written, "_LEAST_HEADS", 5)
    layer.attend(source[:, :12], layer.project_kv(source[:, :12]))
    assert not made


@pytest.mark.parametrize("keys", [5, 20])
@pytest.mark.parametrize("number", [torch.nan, torch.inf, 1e30])
def test_a_score_that_is_no_number_is_of_nobody_who_does_not_see_it(
    keys: int, number: float
) -> None:
    q, k, v = (one.detach() for one in drawn(12, 20, 2, 2, keys, keys, (4, 4)))
    whole = fused_attention(q, k, v, None, 1e10, 0.0, causal=True)
    k[:, :, -1] = number  # whose scores overflow, if it is finite
    found = fused_attention(q, k, v, None, 1e10, 0.0, causal=True)
    torch.testing.assert_close(found[:, :, :-1], whole[:, :, :-1])


def test_a_backward_pass_under_autocast_is_that_without() -> None:
    given_ = drawn(13, 20, 2, 2, 8, 20, (4, 4))

    def gradients() -> tuple[Tensor, ...]:
        return torch.autograd.grad(y.sum(), given_, retain_graph=True)

    y = fused_attention(*given_, None, 0.5, 0.0)
    exact = gradients()
    with torch.autocast("cpu", torch.bfloat16):
        again = gradients()
    for one, other in zip(again, exact, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("width", "learns", "most"),
    [
        (32, True, 64),
        (32, False, 32),
        (64, True, 32),
        (1, True, 64),
        (1, False, 64),
        (999, True, 15),
    ],
)
def test_no_text_is_written_out_that_is_longer_than_pays(
    width: int, learns: bool, most: int
) -> None:
    for positions, pays in ((most, True), (most + 1, False)):
        given_ = [torch.randn(1, 1, positions, width, requires_grad=learns)] * 3
        assert math_is_faster(*given_, 0.0) is pays
        assert math_is_faster(*given_, 0.1)  # the kernel drops nothing on a CPU


@pytest.mark.parametrize(
    "pattern", [causal, everywhere, window(3), either(window(2), landmarks(0))]
)
@pytest.mark.parametrize("length", [9, 30])
def test_a_layer_in_float32_reads_as_its_explicit_twin(pattern: Pattern, length: int) -> None:
    torch.manual_seed(14)
    layer = MultiheadAttention(
        24, 4, num_kv_heads=2, pattern=pattern, positions=RotaryPositions(6)
    ).eval()
    source = torch.randn(3, length, 24, requires_grad=True)
    token_mask = torch.arange(length) < torch.tensor([[length], [length - 4], [1]])
    toward = torch.randn(3, length, 24)
    for query_offset, requested in (
        (None, source),
        (length - 3, source[:, -3:]),
    ):  # all, and those of a cache

        def read(
            by: Any, requested: Tensor = requested, query_offset: int | None = query_offset
        ) -> tuple[Tensor, ...]:
            y = by(requested, layer.project_kv(source, token_mask), query_offset)
            learnt = [source, *layer.parameters()]
            gradients = torch.autograd.grad(y, learnt, toward[:, : y.shape[1]], allow_unused=True)
            return (y, *(one for one in gradients if one is not None))

        for one, other in zip(read(layer.attend), read(layer.forward_reference), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_attend_reads_short_texts_so_and_they_are_those_of_its_twin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[bool] = []
    own = dense.math_attention
    monkeypatch.setattr(dense, "math_attention", lambda *given_: made.append(True) or own(*given_))
    q, k, v = (one.detach() for one in drawn(15, 3, 2, 2, 7, 9, (4, 5)))
    token_mask = torch.arange(9) < torch.tensor([[9], [4], [0]])
    found = sdpa(q, k, v, pattern=causal, token_mask=token_mask)
    expected, _ = sdpa_with_weights(q, k, v, pattern=causal, token_mask=token_mask)
    assert made
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert not found[2].any()


class AttentionMode(TorchFunctionMode):
    """Somebody who sees every function of torch, and lets it be."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


def test_who_watches_functions_sees_one_that_stands_for_the_kernel() -> None:
    given_ = drawn(16, 20, 2, 2, 8, 20, (4, 4))
    alone = fused_attention(*given_, None, 0.5, 0.0, causal=False)
    with AttentionMode() as watch:
        seen = fused_attention(*given_, None, 0.5, 0.0, causal=False)
    assert torch.equal(alone, seen)
    assert watch.seen.count(math_attention) == 1
    assert not {torch.bmm, torch.softmax, F.scaled_dot_product_attention}.intersection(watch.seen)
    with torch.device("cpu"):  # a mode of torch's own
        assert torch.equal(fused_attention(*given_, None, 0.5, 0.0), alone)


class Reads(torch.nn.Module):
    """A module of somebody else's that calls `attend`."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return sdpa(q, k, v, pattern=causal)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_observing_changes_nothing_of_what_is_written_out(dropout: float) -> None:
    torch.manual_seed(17)
    layer = MultiheadAttention(16, 4, pattern=causal, dropout=dropout)
    source = torch.randn(16, 12, 16)

    def read() -> tuple[Tensor, ...]:
        torch.manual_seed(18)
        y = layer.attend(source, layer.project_kv(source))
        return (y, *torch.autograd.grad(y.sin().sum(), list(layer.parameters())))

    alone = read()
    with observe(layer) as trace:
        observed = read()
    assert trace
    for one, other in zip(alone, observed, strict=True):
        assert torch.equal(one, other)


def test_what_attend_writes_out_is_heard_where_a_module_calls_it() -> None:
    q, k, v = (one.detach() for one in drawn(19, 20, 2, 2, 8, 8, (4, 4)))
    module = Reads()
    alone = module(q, k, v)
    with observe(module) as trace:
        assert torch.equal(module(q, k, v), alone)
    _, weights = sdpa_with_weights(q, k, v, pattern=causal)
    (layer,) = trace
    torch.testing.assert_close(trace[layer].weights(), weights, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.torch.jit.trace. is deprecated")
def test_who_traces_or_counts_finds_the_kernel() -> None:
    given_ = [one.detach() for one in drawn(11, 2, 2, 2, 3, 4, (4, 4))]
    assert math_is_faster(*given_, 0.0)
    with FlopCounterMode(display=False):
        assert not math_is_faster(*given_, 0.0)
    with torch.autocast("cpu", torch.bfloat16):
        assert not math_is_faster(*given_, 0.0)
    assert not math_is_faster(*(one.double() for one in given_), 0.0)
    assert not math_is_faster(*(one.bfloat16() for one in given_), 0.3)
    assert not math_is_faster(given_[0][:, :, :0], *given_[1:], 0.0)
    requested: list[bool] = []

    def one_text(q: Tensor) -> Tensor:
        requested.append(math_is_faster(q[None], *(one[:1] for one in given_[1:]), 0.0))
        return q

    torch.func.vmap(one_text)(given_[0])
    torch.jit.trace(one_text, (given_[0][0],), check_trace=False)
    assert requested == [False, False]
