"""The contract: what holds for every mechanism, whatever the sizes, the padding and the pattern."""

import inspect
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.layers import LocalAttention
from attlas.patterns import both, causal, everywhere, strided, window
from attlas.recording import intervene, observe
from support.mechanisms import MECHANISMS, Layout, Mechanism, layouts

of_every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
of_every_unordered_mechanism = pytest.mark.parametrize(
    "mechanism", [m for m in MECHANISMS if not m.ordered], ids=lambda m: m.name
)
of_every_mechanism_that_can_grow = pytest.mark.parametrize(
    "mechanism", [m for m in MECHANISMS if not m.counts_keys], ids=lambda m: m.name
)
CAUSAL = [causal, both(causal, window(1)), both(causal, strided(2))]


def close(ours, theirs, tolerance=1e-11):
    torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


def all_close(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        close(one, other)


def all_equal(ours, theirs):
    return all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@of_every_mechanism
@given(layout=layouts())
def test_weights_are_shares_of_what_may_be_seen(mechanism: Mechanism, layout):
    scene = layout.on(mechanism)
    weights, seen = scene.attention_weights(), scene.allowed()
    assert (weights >= 0).all()
    assert (weights.masked_select(~seen) == 0).all()
    close(weights.sum(-1), seen.any(-1).expand(weights.shape[:3]).double())


@of_every_mechanism
@given(layout=layouts(), blind=st.integers(0, 2), train=st.booleans())
def test_a_query_that_sees_nothing_reads_zeros_with_finite_gradients(
    mechanism, layout, blind, train
):
    whole = torch.ones(layout.batch, layout.num_keys, dtype=torch.bool)
    token_mask = whole if layout.token_mask is None else layout.token_mask.clone()
    token_mask[blind % layout.batch] = False
    scene = replace(layout, token_mask=token_mask).on(mechanism)
    scene.attention.train(train)
    nothing = ~scene.allowed().any(-1).squeeze(1)
    assert nothing[blind % layout.batch].all()
    context, *gradients = scene.outcome()
    read = context[nothing]
    assert torch.equal(read, scene.nothing().expand_as(read))
    assert all(gradient.isfinite().all() for gradient in gradients)


@of_every_mechanism
@given(layout=layouts(), junk=st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e30]))
def test_junk_in_padding_changes_nothing(mechanism, layout, junk):
    clean = layout.on(mechanism)
    if clean.token_mask is None:
        clean = replace(
            clean, token_mask=torch.arange(layout.num_keys).expand(layout.batch, -1) < 1
        )
    padding = ~clean.token_mask.unsqueeze(-1)
    dirty = replace(clean, source=clean.source.masked_fill(padding, junk))
    assert all_equal(clean.outcome(), dirty.outcome())
    assert torch.equal(clean.attention_weights(), dirty.attention_weights())


@of_every_mechanism
@given(layout=layouts())
def test_step_by_step_is_at_once(mechanism, layout):
    scene = layout.on(mechanism)
    start = layout.num_keys - layout.queries if layout.query_offset is None else layout.query_offset
    steps = range(layout.queries)

    def stepped(requested):
        memory = requested.memory
        contexts = [
            requested.attention.attend(requested.query[:, t, None], memory, start + t)
            for t in steps
        ]
        return torch.cat(contexts, 1)

    all_close(scene.outcome(stepped), scene.outcome())
    memory = scene.memory
    weights = [
        scene.attention.attention_weights(scene.query[:, t, None], memory, start + t) for t in steps
    ]
    close(torch.cat(weights, 2), scene.attention_weights())


@of_every_mechanism
@given(layout=layouts(), cut=st.integers(0, 7))
def test_an_extended_memory_is_one_remembered_at_once(mechanism, layout, cut):
    scene = layout.on(mechanism)
    cut = min(cut, layout.num_keys)

    def extended(requested):
        older, newer = requested.project_kv(0, cut), requested.project_kv(cut, layout.num_keys)
        if older.token_mask is not None and older.token_mask.all():
            older = replace(older, token_mask=None)  # what is all real may say so by None
        memory = older.append(newer)
        assert memory.num_keys == layout.num_keys
        return memory

    all_close(
        scene.outcome(lambda s: s.attention.attend(s.query, extended(s), s.query_offset)),
        scene.outcome(),
    )
    close(
        scene.attention.attention_weights(scene.query, extended(scene), scene.query_offset),
        scene.attention_weights(),
    )


@of_every_mechanism_that_can_grow
@given(layout=layouts(patterns=CAUSAL, square=True))
def test_a_memory_that_grows_with_the_queries_reads_like_the_whole(mechanism, layout):
    scene = layout.on(mechanism)
    memory, contexts = scene.project_kv(0, 0), []
    for t in range(layout.num_keys):
        memory = memory.append(scene.project_kv(t, t + 1))
        contexts.append(scene.attention.attend(scene.query[:, t, None], memory))
    close(torch.cat(contexts, 1), scene.read())


@of_every_mechanism
@given(layout=layouts(), rows=st.lists(st.integers(0, 2), max_size=4))
def test_selecting_rows_before_reading_is_selecting_them_after(mechanism, layout, rows):
    scene = layout.on(mechanism)
    rows = torch.tensor([row % layout.batch for row in rows], dtype=torch.long)
    memory = scene.memory.select(rows)
    close(scene.attention.attend(scene.query[rows], memory, scene.query_offset), scene.read()[rows])
    close(
        scene.attention.attention_weights(scene.query[rows], memory, scene.query_offset),
        scene.attention_weights()[rows],
    )


@of_every_mechanism
@given(layout=layouts(), train=st.booleans())
def test_being_listened_to_changes_nothing(mechanism, layout, train):
    scene = layout.on(mechanism)
    scene.attention.train(train)
    alone = scene.outcome()
    with observe(scene.attention) as trace:
        heard = scene.outcome()
    assert len(trace.calls("")) == 1
    assert all_equal(heard, alone)


@of_every_mechanism
@given(layout=layouts())
def test_a_reading_holds_the_weights_before_dropout(mechanism, layout):
    scene = layout.on(mechanism, dropout=0.5)
    scene.attention.train()
    with observe(scene.attention) as trace:
        scene.read()
    attention_map = trace[""]
    close(attention_map.weights(), scene.attention_weights())
    assert not attention_map.weights().requires_grad


@of_every_mechanism
@given(layout=layouts())
def test_putting_the_weights_back_unchanged_changes_nothing(mechanism, layout):
    scene = layout.on(mechanism)
    weighed = []

    def unchanged(weights, seen, layer):
        weighed.append((weights.detach(), seen))
        return weights

    with intervene(scene.attention, unchanged):
        changed = scene.outcome()
    all_close(changed, scene.outcome())
    ((weights, seen),) = weighed
    close(weights, scene.attention_weights())
    assert torch.equal(seen.expand(layout.batch, -1, -1, -1), scene.allowed())


@of_every_unordered_mechanism
@given(layout=layouts(patterns=[everywhere]), shuffle=st.permutations(range(7)))
def test_permuting_slots_permutes_weights_and_changes_no_context(mechanism, layout, shuffle):
    scene = layout.on(mechanism)
    order = torch.tensor([key for key in shuffle if key < layout.num_keys])
    token_mask = None if scene.token_mask is None else scene.token_mask[:, order]
    permuted = replace(scene, source=scene.source[:, order], token_mask=token_mask)
    close(permuted.attention_weights(), scene.attention_weights()[..., order])
    close(permuted.read(), scene.read())


@of_every_mechanism
@given(layout=layouts())
def test_a_batch_of_one_reads_what_it_reads_inside_a_batch(mechanism, layout):
    scene = layout.on(mechanism)
    context, weights = scene.read(), scene.attention_weights()
    for row in range(layout.batch):
        one = slice(row, row + 1)
        token_mask = None if scene.token_mask is None else scene.token_mask[one]
        alone = replace(
            scene, query=scene.query[one], source=scene.source[one], token_mask=token_mask
        )
        close(alone.read(), context[one])
        close(alone.attention_weights(), weights[one])


@of_every_mechanism
@given(layout=layouts(patterns=CAUSAL, square=True), now=st.integers(0, 6))
def test_what_comes_later_changes_nothing_before_it(mechanism, layout, now):
    scene = layout.on(mechanism)
    later = (torch.arange(layout.num_keys) > now % layout.num_keys).unsqueeze(-1)
    other = replace(
        scene,
        query=scene.query + later * layout.tensor(*scene.query.shape, salt=3),
        source=scene.source + later * layout.tensor(*scene.source.shape, salt=4),
    )
    before = slice(0, now % layout.num_keys + 1)
    close(other.read()[:, before], scene.read()[:, before])
    close(other.attention_weights()[:, :, before], scene.attention_weights()[:, :, before])


@of_every_mechanism
@given(layout=layouts())
def test_a_call_does_not_depend_on_an_earlier_call(mechanism, layout):
    scene = layout.on(mechanism)
    before = scene.outcome()
    replace(scene, query=scene.query + 1.0, source=scene.source - 1.0, token_mask=None).outcome()
    assert all_equal(scene.outcome(), before)


@of_every_mechanism
@given(layout=layouts(most=(2, 2, 3)))
def test_gradients_are_those_of_finite_differences(mechanism, layout):
    scene = layout.on(mechanism)
    query, source = scene.query.requires_grad_(), scene.source.requires_grad_()
    # gradcheck moves its inputs in place, parameters too, so that the layer need not be told.
    assert torch.autograd.gradcheck(
        lambda *_: scene.read(), [query, source, *scene.attention.parameters()], fast_mode=True
    )


@of_every_mechanism
@given(
    layout=layouts(),
    dtype=st.sampled_from([torch.float16, torch.bfloat16]),
    size=st.sampled_from([1.0, 30.0, 300.0]),
)
def test_half_precision_stays_finite(mechanism, layout, dtype, size):
    scene = layout.on(mechanism)
    scene.attention.to(dtype)
    scene = replace(
        scene, query=(scene.query * size).to(dtype), source=(scene.source * size).to(dtype)
    )
    assert scene.attention_weights().dtype == dtype
    close(
        scene.attention_weights().double().sum(-1),
        scene.allowed().any(-1).double().expand_as(scene.attention_weights()[..., 0]),
        2e-2,
    )
    whole = replace(
        scene,
        attention=deepcopy(scene.attention).float(),
        query=scene.query.float(),
        source=scene.source.float(),
    )
    for value, exact in zip(scene.outcome(), whole.outcome(), strict=True):
        fits = exact.abs() < torch.finfo(dtype).max / 2  # a gradient may be greater than a number
        assert value[fits].isfinite().all()


@of_every_mechanism
@given(layout=layouts(), dtype=st.sampled_from([torch.float16, torch.bfloat16]))
def test_a_reading_in_half_precision_holds_the_weights_that_are_weighed(mechanism, layout, dtype):
    scene = layout.on(mechanism)
    scene.attention.to(dtype)
    scene = replace(scene, query=(3 * scene.query).to(dtype), source=(3 * scene.source).to(dtype))
    with observe(scene.attention) as trace:
        scene.read()
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(
        scene.attention_weights().double(), trace[""].weights().double(), rtol=rounding, atol=1e-7
    )


@of_every_mechanism
@pytest.mark.parametrize("change", ["width", "rows"])
@pytest.mark.parametrize("ask", ["attend", "attention_weights"])
def test_a_query_that_does_not_fit_is_named(mechanism, change, ask):
    scene = Layout(0, 2, 3, 4, None, everywhere, 0).on(mechanism)
    query = {
        "width": scene.query.repeat(1, 1, 2),
        "rows": scene.query.repeat(2, 1, 1)[:3],
    }[change]
    with pytest.raises(AttlasError) as caught:
        getattr(scene.attention, ask)(query, scene.memory, 0)
    if change == "rows" or mechanism.name not in ("dot", "local-m", "scaled dot-product"):
        known = scene.attention.query_dim or "dim"  # those three take their width from the keys
        assert str(caught.value) == (
            f"expected a query of shape (batch, queries, dim) = (2, queries, {known}); "
            f"got shape {tuple(query.shape)}; pass as many rows as the source has, with vectors of "
            "the width that the attention was made for"
        )


@of_every_mechanism
@pytest.mark.parametrize(
    ("token_mask", "came"),
    [
        (torch.ones(2, 4), "float32 of shape (2, 4)"),
        (torch.ones(2, 3, dtype=torch.bool), "bool of shape (2, 3)"),
        (torch.ones(4, dtype=torch.bool), "bool of shape (4,)"),
    ],
)
def test_padding_is_reported_by_one_bool_per_slot(mechanism, token_mask, came):
    attention = mechanism.build(0)
    source = torch.zeros(2, 4, mechanism.key_dim, dtype=torch.float64)
    while isinstance(attention, LocalAttention):
        attention = attention.inner
    with pytest.raises(AttlasError) as caught:
        inspect.unwrap(type(attention).project_kv)(attention, source, token_mask)
    assert str(caught.value) == (
        f"expected token_mask of bool and shape (2, 4), True = a token; got {came}; "
        "compare the ids with that of padding: ids != padding"
    )
