"""Additive scores whose tanh is computed again, and gradients that wait for the end of a loop."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attlas.data import ToyData
from attlas.layers import AdditiveAttention, ConcatAttention, additive
from attlas.models import RecurrentConfig
from attlas.ops import additive as recomputed
from attlas.ops import deferred_reads
from attlas.ops.additive import recomputed_scores
from attlas.ops.cache import KeyValueCache
from attlas.ops.deferred_reads import (
    LONG,
    defer_gradients,
    deferred_gradient,
    reads_are_long,
    weighted_mean,
)
from attlas.training.recipe import read_recipe, shipped_recipes
from support.recurrent_kinds import LOOKING, SOURCES, TARGETS, made

_sizes = st.integers(1, 5)
Reads = Callable[[Tensor, Tensor, Tensor], Tensor]


def written_out(query: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
    return torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ energy[0]


def drawn(shapes: list[tuple[int, ...]], seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    ]


@settings(deadline=None)
@given(_sizes, _sizes, _sizes, _sizes, st.integers(1, 100), st.integers(0, 2**31))
def test_scores_and_gradients_are_those_written_out_however_many_at_once(
    batch: int, queries: int, keys: int, width: int, at_once: int, seed: int
) -> None:
    inputs = drawn([(batch, queries, width), (batch, keys, width), (1, width)], seed)
    gradient = torch.randn(batch, queries, keys, dtype=torch.float64)
    expected = written_out(*inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recomputed, "_AT_ONCE", at_once)
        found = recomputed_scores(*inputs)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        of_found = torch.autograd.grad(found, inputs, gradient)
    of_expected = torch.autograd.grad(expected, inputs, gradient)
    torch.testing.assert_close(of_found, of_expected, rtol=1e-10, atol=1e-10)


def test_either_way_to_compute_a_tanh_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(*shape, requires_grad=True) for shape in ((2, 3, 64), (2, 150, 64))]
    inputs.append((torch.rand(1, 64) - 0.5).requires_grad_())
    found = []
    for faster in (False, True):
        monkeypatch.setattr(recomputed, "sigmoid_is_faster", lambda faster=faster: faster)
        scores = recomputed_scores(*inputs)
        found.append((scores, *torch.autograd.grad(scores.square().sum(), inputs)))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)
    assert not torch.equal(found[0][0], found[1][0])
    monkeypatch.undo()
    recomputed.sigmoid_is_faster.cache_clear()
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    for maker in ("AuthenticAMD", "GenuineIntel"):
        monkeypatch.setattr(recomputed, "processor_maker", lambda maker=maker: maker)
        has_mkl = torch.backends.mkl.is_available()
        assert recomputed.sigmoid_is_faster() == (has_mkl and maker == "AuthenticAMD")
        recomputed.sigmoid_is_faster.cache_clear()


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_gradients_come_of_what_they_are_asked_for_alone(wanted: tuple[int, ...]) -> None:
    inputs = drawn([(2, 3, 4), (2, 5, 4), (1, 4)], 0)
    chosen = [inputs[index] for index in wanted]
    for index in {0, 1, 2}.difference(wanted):
        inputs[index].requires_grad_(False)
    found = torch.autograd.grad(recomputed_scores(*inputs).square().sum(), chosen)
    expected = torch.autograd.grad(written_out(*inputs).square().sum(), chosen)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def recurrence(read: Reads, query: Tensor, keys: Tensor, values: Tensor, energy: Tensor) -> Tensor:
    """q_t = q_{t−1} + the context that q_{t−1} finds: every step reads the same cache."""
    cache = defer_gradients(KeyValueCache(keys, values))
    for _ in range(4):
        weights = torch.softmax(read(query, cache.keys, energy), dim=-1)
        query = torch.tanh(query + weighted_mean(weights, cache.values))
    return query.square().sum()


SHAPES = [(2, 2, 3), (2, 6, 3), (2, 6, 3), (1, 3)]


@pytest.fixture
def deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of these small tensors of float64 are deferred, too."""
    monkeypatch.setattr(deferred_reads, "reads_are_long", lambda *tensors: True)


@pytest.mark.parametrize("read", [recomputed_scores, written_out])
@pytest.mark.usefixtures("deferred")
def test_gradients_at_the_end_of_a_loop_are_those_of_its_steps(read: Reads) -> None:
    inputs = drawn(SHAPES, 1)
    found = torch.autograd.grad(recurrence(read, *inputs), inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deferred_reads, "reads_are_long", lambda *tensors: False)
        expected = torch.autograd.grad(recurrence(written_out, *inputs), inputs)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@settings(deadline=None, max_examples=25)
@given(_sizes, _sizes, _sizes, st.integers(1, 100), st.integers(0, 2**31))
def test_a_step_of_a_loop_reads_by_exponentials_what_is_written_out(
    batch: int, keys: int, width: int, at_once: int, seed: int
) -> None:
    inputs = drawn([(batch, 1, width), (batch, keys, width), (1, width)], seed)
    gradient = torch.randn(batch, 1, keys, dtype=torch.float64)
    expected = written_out(*inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recomputed, "_AT_ONCE", max(at_once, keys * width))
        patch.setattr(deferred_reads, "reads_are_long", lambda *tensors: True)
        query, source, energy = inputs
        found = recomputed_scores(
            query, defer_gradients(KeyValueCache(source, source.detach())).keys, energy
        )
        assert type(found.grad_fn).__name__ == "_StepScoresBackward"
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        of_found = torch.autograd.grad(found, inputs, gradient)
    of_expected = torch.autograd.grad(expected, inputs, gradient)
    torch.testing.assert_close(of_found, of_expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0])
def test_a_tanh_by_exponentials_is_off_by_less_than_a_millionth(scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    query, keys = (scale * torch.randn(4, n, 64, generator=generator) for n in (1, LONG))
    query, keys = query.clamp(-20, 20), keys.clamp(-20, 20)
    pairs = recomputed._exponentials(query), recomputed._exponentials(keys)
    assert pairs[0] is not None
    assert pairs[1] is not None
    found = torch.cat([1 - 2 * r for (r,) in recomputed._quotients(pairs[0], pairs[1], [])])
    expected = torch.tanh(query.double() + keys.double())
    assert float((found - expected).abs().max()) < 1e-6


@pytest.mark.parametrize("number", [21.0, -21.0, 1e30, float("nan")])
@pytest.mark.parametrize("where", [0, 1], ids=["query", "keys"])
def test_where_an_exponential_is_too_large_a_step_takes_the_tanh(number: float, where: int) -> None:
    inputs = [torch.randn(shape) for shape in ((2, 1, 4), (2, LONG, 4), (1, 4))]
    inputs[where][0, 0, 0] = number
    query, keys, energy = (tensor.requires_grad_() for tensor in inputs)
    cache = defer_gradients(KeyValueCache(keys, keys.detach()))
    found = recomputed_scores(query, cache.keys, energy)
    assert type(found.grad_fn).__name__ == "_ScoresBackward"
    torch.testing.assert_close(found, written_out(*inputs), equal_nan=True)


@pytest.mark.usefixtures("deferred")
def test_steps_of_both_ways_add_up() -> None:
    inputs = drawn([(2, 1, 3), (2, 6, 3), (2, 6, 3), (1, 3)], 5)
    query, keys, values, energy = inputs

    def read(query: Tensor, keys: Tensor, energy: Tensor) -> Tensor:
        near, far = (
            recomputed_scores(query, keys, energy),
            recomputed_scores(query + 30, keys, energy),
        )
        return near + far

    found = torch.autograd.grad(recurrence(read, *inputs), inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deferred_reads, "reads_are_long", lambda *tensors: False)
        expected = torch.autograd.grad(
            recurrence(
                lambda q, k, v: written_out(q, k, v) + written_out(q + 30, k, v),
                query, keys, values, energy,
            ),
            inputs,
        )  # fmt: skip
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("deferred")
def test_a_graph_that_is_kept_can_be_walked_back_twice_and_for_a_part() -> None:
    inputs = drawn(SHAPES, 2)
    loss = recurrence(recomputed_scores, *inputs)
    once = torch.autograd.grad(loss, inputs, retain_graph=True)
    (of_query,) = torch.autograd.grad(loss, inputs[:1], retain_graph=True)
    (of_values,) = torch.autograd.grad(loss, inputs[2:3], retain_graph=True)
    twice = torch.autograd.grad(loss, inputs)
    assert all(map(torch.equal, once, twice))
    assert torch.equal(of_query, once[0])
    assert torch.equal(of_values, once[2])


@pytest.mark.usefixtures("deferred")
def test_second_derivatives_are_those_written_out() -> None:
    inputs = drawn(SHAPES, 3)

    def derived(read: Reads) -> list[Tensor]:
        loss = recurrence(read, *inputs)
        first = torch.autograd.grad(loss, inputs, create_graph=True)
        both = loss + sum(one.square().sum() for one in first)
        return [*first, *torch.autograd.grad(both, inputs, retain_graph=True)]

    found = derived(recomputed_scores)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deferred_reads, "reads_are_long", lambda *tensors: False)
        expected = derived(written_out)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def test_nothing_is_deferred_of_short_texts_and_where_no_gradient_is_wanted() -> None:
    short, long = torch.randn(1, LONG - 1, 2), torch.randn(1, LONG, 2)
    assert not reads_are_long(short)
    assert reads_are_long(long)
    assert not reads_are_long(long.double())
    assert not reads_are_long(long, torch.randn(2).bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        assert not reads_are_long(long)
    leaf = long.clone().requires_grad_()
    cache = KeyValueCache(leaf, long)
    with torch.no_grad():
        assert defer_gradients(cache) is cache
    of_keys = defer_gradients(cache)
    assert deferred_gradient(of_keys.keys) is not None
    assert deferred_gradient(of_keys.keys * 1) is None  # another tensor
    assert of_keys.values is long


def test_the_texts_of_every_recurrent_recipe_are_too_short_for_deferred_reads() -> None:
    recipes = [read_recipe(name) for name in shipped_recipes()]
    lengths = [
        recipe.batching.max_length
        for recipe in recipes
        if isinstance(recipe.model, RecurrentConfig) and not isinstance(recipe.data, ToyData)
    ]
    assert lengths
    assert max(lengths) + 1 < LONG  # and END


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: AdditiveAttention(6, 8, 16, dropout=0.2),
        lambda: ConcatAttention(6, 8, 16, dropout=0.2),
    ],
    ids=["additive", "concat"],
)
def test_a_layer_reads_long_sources_as_it_reads_short_ones(
    make: Callable[[], AdditiveAttention | ConcatAttention],
    training: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    layer = make().train(training)
    query, source = torch.randn(3, 2, 6), torch.randn(3, 200, 8)
    token_mask = torch.arange(200) < torch.tensor([200, 150, 3])[:, None]
    inputs = [query.requires_grad_(), source.requires_grad_(), *layer.parameters()]

    def passed() -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        torch.manual_seed(8)  # of dropout
        context, weights = layer(query, source, token_mask=token_mask)
        return context, weights, torch.autograd.grad(context.square().sum(), inputs)

    calls: list[tuple[int, ...]] = []
    scores = recomputed_scores

    def counted(*tensors: Tensor) -> Tensor:
        calls.append(tuple(tensors[1].shape))
        return scores(*tensors)

    monkeypatch.setattr(additive, "recomputed_scores", counted)
    ours = passed()
    assert calls == [(3, 200, 16)]
    monkeypatch.setattr(deferred_reads, "LONG", 1000)
    torch.testing.assert_close(ours, passed(), rtol=1e-5, atol=1e-6)
    assert len(calls) == 1


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("kind", LOOKING)
def test_a_recurrent_model_learns_the_same_of_long_texts(
    kind: str, training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = {"dropout": 0.2, "attention_dropout": 0.2}
    model = made(LOOKING[kind].model_copy(update=dropped)).float().train(training)
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(4, SOURCES, (2, LONG + 10), generator=generator)
    target = torch.randint(4, TARGETS, (2, 5), generator=generator)
    token_mask = torch.arange(LONG + 10) < torch.tensor([LONG + 10, 90])[:, None]
    parameters = list(model.parameters())

    def passed() -> tuple[Tensor, list[Tensor]]:
        torch.manual_seed(8)  # of dropout
        logits = model(source, target, token_mask=token_mask)
        found = torch.autograd.grad(logits.logsumexp(-1).sum(), parameters, allow_unused=True)
        return logits, [torch.zeros(()) if part is None else part for part in found]

    ours, of_ours = passed()
    monkeypatch.setattr(deferred_reads, "LONG", 1000)
    theirs, of_theirs = passed()
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    largest = max(1.0, *(float(part.abs().max()) for part in of_theirs))
    for one, other in zip(of_ours, of_theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * largest)


def test_no_tanh_of_a_long_source_is_kept() -> None:
    layer = AdditiveAttention(4, 4, 64)
    query, source = torch.randn(2, 3, 4), torch.randn(2, 300, 4)
    kept = 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept = max(kept, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer.score(query, layer.project_kv(source).keys)
    assert kept <= 2 * 300 * 64


def test_an_energy_that_is_more_than_its_weight_is_called() -> None:
    layer = AdditiveAttention(4, 4, 8)
    query, keys = torch.randn(1, 2, 4), layer.project_kv(torch.randn(1, 200, 4)).keys
    called: list[nn.Module] = []
    expected = layer.score(query, keys)
    layer.score_proj.register_forward_hook(lambda module, *_: called.append(module))
    torch.testing.assert_close(layer.score(query, keys), expected, rtol=1e-5, atol=1e-6)
    assert called == [layer.score_proj]
