"""The layers and functions that take the place of torch's: torch is the referee."""

import copy
import inspect
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import attlas
from attlas.errors import AttlasError, UnsupportedError
from attlas.layers import (
    AdditiveAttention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    LocalMonotonicAttention,
    LocalPredictiveAttention,
    MultiheadAttention,
    RotaryPositions,
    ScaledDotProductAttention,
)
from attlas.patterns import causal, window

BATCH, QUERIES, KEYS, DIM, HEADS = 3, 4, 5, 8, 2
close = torch.testing.assert_close


def noise(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def twins(**options):
    """torch's module with random parameters, biases too, and ours with a copy of them."""
    theirs = nn.MultiheadAttention(DIM, HEADS, **options).double()
    for place, parameter in enumerate(theirs.parameters()):
        with torch.no_grad():
            parameter.copy_(noise(*parameter.shape, seed=place) / 2)
    return theirs, MultiheadAttention.from_torch(theirs)


def inputs(batch_first, batched, dims=(DIM, DIM, DIM)):
    """Query, key and value with the axes that a module wants."""
    made = []
    for seed, (length, dim) in enumerate(zip((QUERIES, KEYS, KEYS), dims, strict=True)):
        tensor = noise(BATCH, length, dim, seed=seed) if batched else noise(length, dim, seed=seed)
        made.append(tensor if batch_first or not batched else tensor.transpose(0, 1))
    return [one.detach().requires_grad_() for one in made]


def attn_masks(batched):
    """Masks of every kind that torch takes; each query sees the first key."""
    rows = (BATCH if batched else 1) * HEADS
    hidden = noise(QUERIES, KEYS, seed=5) < -0.3
    hidden[:, 0] = False
    own = noise(rows, QUERIES, KEYS, seed=6) < -0.3
    own[..., 0] = False
    added = noise(QUERIES, KEYS, seed=7)
    cut = torch.where(hidden, -torch.inf, 0.0).double()
    return [None, hidden, own, added, noise(rows, QUERIES, KEYS, seed=8), cut]


def key_padding_masks(batched):
    padding = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]).bool()
    added = noise(BATCH, KEYS, seed=9)
    return [None, padding, added] if batched else [None, padding[1], added[1]]


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("dims", [None, (6, 5)])
@pytest.mark.parametrize("more", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("bias", [True, False])
def test_every_call_of_torchs_module_has_the_same_result(bias, more, dims, batch_first, batched):
    kdim, vdim = dims or (None, None)
    theirs, ours = twins(
        bias=bias, add_bias_kv=more[0], add_zero_attn=more[1], kdim=kdim, vdim=vdim,
        batch_first=batch_first,
    )  # fmt: skip
    given = inputs(batch_first, batched, (DIM, *(dims or (DIM, DIM))))
    for mask, padding in product(attn_masks(batched), key_padding_masks(batched)):
        if mask is not None and padding is not None and mask.dtype != padding.dtype:
            continue  # torch warns that it will refuse this
        for average in (True, False):
            options = {"attn_mask": mask, "key_padding_mask": padding}
            expected, weights = theirs(*given, **options, average_attn_weights=average)
            output, found = ours(*given, **options, average_attn_weights=average)
            close(output, expected)
            close(found, weights)
            alone, nothing = ours(*given, **options, need_weights=False)
            assert nothing is None
            close(alone, expected)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", range(6))
def test_gradients_are_torchs(mask, need_weights):
    theirs, ours = twins(batch_first=True)
    grads = []
    for module in (theirs, ours):
        given = inputs(True, True)
        output, _ = module(*given, attn_mask=attn_masks(True)[mask], need_weights=need_weights)
        output.square().sum().backward()
        grads.append([*(one.grad for one in given), module.out_proj.weight.grad])
        maps = (ours.q_proj, ours.k_proj, ours.v_proj)
        joined = module is theirs
        grads[-1].append(
            theirs.in_proj_weight.grad if joined else torch.cat([one.weight.grad for one in maps])
        )
    close(grads[0], grads[1])


@pytest.mark.parametrize(
    "options", [{}, {"kdim": 6, "vdim": 5}, {"bias": False}, {"add_bias_kv": True}]
)
def test_the_state_dict_of_torchs_module_loads_strictly_inside_a_model_too(options):
    theirs = nn.ModuleDict({"attention": twins(**options)[0]})
    ours = nn.ModuleDict({"attention": MultiheadAttention(DIM, HEADS, **options).double()})
    state = theirs.state_dict()
    before = {name: tensor.clone() for name, tensor in state.items()}
    ours.load_state_dict(state)
    assert state.keys() == before.keys()  # the caller's own is as it was
    given = inputs(False, True, (DIM, options.get("kdim", DIM), options.get("vdim", DIM)))
    close(ours["attention"](*given), theirs["attention"](*given))
    again = copy.deepcopy(ours)
    again.load_state_dict(ours.state_dict())


def test_a_state_dict_of_another_size_is_refused():
    state = nn.MultiheadAttention(4, 2).state_dict()
    with pytest.raises(RuntimeError, match="size mismatch"):
        MultiheadAttention(8, 2).load_state_dict(state)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_layers_of_torch_work_with_ours_inside(norm_first, train):
    options = {"dim_feedforward": 16, "dropout": 0.0, "batch_first": True, "dtype": torch.float64}
    encoder = nn.TransformerEncoderLayer(DIM, HEADS, norm_first=norm_first, **options).train(train)
    decoder = nn.TransformerDecoderLayer(DIM, HEADS, norm_first=norm_first, **options).train(train)
    x, y = noise(BATCH, KEYS, DIM), noise(BATCH, QUERIES, DIM, seed=1)
    padding = key_padding_masks(True)[1]
    later = nn.Transformer.generate_square_subsequent_mask(QUERIES, dtype=torch.float64)
    results = []
    for replaced in (False, True):
        if replaced:
            encoder.self_attn = MultiheadAttention.from_torch(encoder.self_attn)
            decoder.self_attn = MultiheadAttention.from_torch(decoder.self_attn)
            decoder.multihead_attn = MultiheadAttention.from_torch(decoder.multihead_attn)
        source = encoder(x, src_key_padding_mask=padding)
        target = decoder(y, x, tgt_mask=later, tgt_is_causal=True, memory_key_padding_mask=padding)
        results.append((source[~padding], target))
    close(*results)


def test_is_causal_counts_both_from_the_first_position():
    _, ours = twins(batch_first=True)
    given = inputs(True, True)
    hidden = torch.ones(QUERIES, KEYS).triu(1).bool()
    expected = ours(*given, attn_mask=hidden)
    close(ours(*given, is_causal=True), expected)
    close(ours(*given, is_causal=True, attn_mask=hidden), expected)
    close(ours(*given, is_causal=True, need_weights=False)[0], expected[0])


def test_a_pattern_counts_the_queries_as_the_newest_positions():
    theirs, _ = twins(batch_first=True)
    ours = MultiheadAttention.from_torch(theirs, pattern=causal)
    given = inputs(True, True)
    hidden = ~causal.mask(QUERIES, KEYS)
    close(ours(*given), theirs(*given, attn_mask=hidden))
    hidden = ~causal.mask(QUERIES, KEYS, 0)
    close(ours(*given, query_offset=0), theirs(*given, attn_mask=hidden))


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_query_that_sees_nothing_reads_zeros_where_torch_reads_nan(need_weights):
    theirs, ours = twins(batch_first=True)
    hidden = torch.zeros(QUERIES, KEYS).bool()
    hidden[1] = True
    for mask in (hidden, torch.where(hidden, -torch.inf, 0.5).double()):
        given = inputs(True, True)
        assert theirs(*given, attn_mask=mask)[0][:, 1].isnan().all()
        output, weights = ours(*given, attn_mask=mask, need_weights=need_weights)
        close(output[:, 1], ours.out_proj.bias.expand(BATCH, -1))
        assert weights is None or (weights[:, 1] == 0).all()
        output.sum().backward()
        assert all(one.grad.isfinite().all() for one in given)


def test_what_padding_holds_changes_nothing():
    _, ours = twins(batch_first=True)
    padding = key_padding_masks(True)[1]
    query, key, value = inputs(True, True)
    dirty = [one.detach().masked_fill(padding[..., None], float("nan")) for one in (key, value)]
    close(ours(query, *dirty, key_padding_mask=padding), ours(query, key, value, padding))


def test_weights_are_those_before_dropout_and_outputs_after_it():
    torch.manual_seed(0)
    ours = MultiheadAttention(DIM, HEADS, dropout=0.5, batch_first=True).double()
    given = inputs(True, True)
    output, weights = ours(*given)
    close(weights.sum(-1), torch.ones(BATCH, QUERIES).double())
    plain, same = ours.eval()(*given)
    close(weights, same)
    assert not torch.allclose(output, plain)


@pytest.mark.parametrize("bias", ["q", ["k", "out"], ["q", "k", "v"], []])
def test_each_of_the_four_maps_may_have_a_bias(bias):
    ours = MultiheadAttention(DIM, HEADS, bias=bias)
    maps = {"q": ours.q_proj, "k": ours.k_proj, "v": ours.v_proj, "out": ours.out_proj}
    assert {name for name, one in maps.items() if one.bias is not None} == set(bias)


def test_parameters_are_made_where_and_as_the_caller_says():
    made = MultiheadAttention(DIM, HEADS, device="meta", dtype=torch.bfloat16, add_bias_kv=True)
    assert {(one.device.type, one.dtype) for one in made.parameters()} == {("meta", torch.bfloat16)}


@pytest.mark.parametrize("mask", range(6))
def test_what_is_observed_are_the_weights_that_are_returned(mask):
    _, ours = twins(batch_first=True)
    given = inputs(True, True)
    options = {"attn_mask": attn_masks(True)[mask], "key_padding_mask": key_padding_masks(True)[1]}
    with attlas.observe(ours) as trace:
        _, weights = ours(*given, **options, average_attn_weights=False)
        ours(*given, **options, need_weights=False)
    maps = trace.calls("")
    assert len(maps) == 2
    for found in maps:
        close(torch.as_tensor(np.asarray(found)), weights.detach(), check_dtype=False)


def test_hooks_of_torch_see_attend():
    ours = MultiheadAttention(DIM, HEADS).double()
    seen = []
    ours.register_forward_hook(lambda _, __, output: seen.append(output))
    source = noise(BATCH, KEYS, DIM)
    context = ours.attend(source, ours.project_kv(source))
    assert seen[0] is context


WRONG = [
    (lambda m, x: m(x), r"got the query alone; for self-attention pass attention\(x, x, x\)"),
    (lambda m, x: m(x, x), "expected query, key and value; got query and key"),
    (lambda m, x: m(x, x, x[0]), "three axes each, or of two without a batch"),
    (lambda m, x: m(x, x, x[:, :2]), "check batch_first, and the widths"),
    (lambda m, x: m(x[..., :4], x, x), "check batch_first, and the widths"),
    (
        lambda m, x: m(x, x, x, key_padding_mask=torch.ones(3, 5).int()),
        "key_padding_mask of bools, True = hidden, .*; got int32; for a mask with 1 = a token",
    ),
    (lambda m, x: m(x, x, x, attn_mask=torch.ones(5, 4).bool()), r"attn_mask of shape \(5, 5\)"),
    (lambda m, x: m(x, x, x, attn_mask=torch.full((5, 5), torch.nan)), "NaN or"),
    (
        lambda m, x: inspect.unwrap(MultiheadAttention.forward)(m, x.numpy(), x, x),
        "a query that is a tensor; got a ndarray",
    ),
    (lambda m, x: m(x, m.project_kv(x), x), "a KeyValueCache alone"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_a_mistake_gets_one_sentence(call, text):
    with pytest.raises(AttlasError, match=text):
        call(MultiheadAttention(8, 2, batch_first=True).double(), noise(3, 5, 8))


# One query a row: the single-head mechanisms as functions.


MECHANISMS = {
    "additive": lambda: AdditiveAttention(6, 4, 3),
    "dot": DotAttention,
    "general": lambda: GeneralAttention(6, 4),
    "concat": lambda: ConcatAttention(6, 4, 3),
    "scaled": ScaledDotProductAttention,
    "local-m": lambda: LocalMonotonicAttention(AdditiveAttention(6, 4, 3), 2),
    "local-p": lambda: LocalPredictiveAttention(AdditiveAttention(6, 4, 3), 2, 6, 3),
}


@pytest.mark.parametrize("as_integers", [False, True])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_called_with_one_query_a_row(name, as_integers):
    torch.manual_seed(0)
    attention = MECHANISMS[name]().double()
    query, keys = noise(4, 6), noise(4, 7, attention.key_dim or 6, seed=1)
    tokens = torch.arange(7) < torch.tensor([[7], [3], [5], [1]])
    given = tokens.int() if as_integers else tokens
    context, weights = attention(query, keys, token_mask=given, query_offset=3)
    assert (context.shape, weights.shape) == ((4, keys.shape[2]), (4, 7))
    close((weights[:, :, None] * keys).sum(1), context)
    assert (weights[~tokens] == 0).all()
    cache = attention.project_kv(keys, given)
    close(attention.attend(query[:, None], cache, 3), context[:, None])
    close(attention.attention_weights(query[:, None], cache, 3), weights[:, None, None])
    values = noise(4, 7, 2, seed=2)
    other, same = attention(query, keys, values, tokens, query_offset=3)
    close(same, weights)
    close((weights[:, :, None] * values).sum(1), other)
    many, theirs = attention(query[:, None], keys, token_mask=tokens, query_offset=3)
    close((many[:, 0], theirs[:, 0]), (context, weights))


def test_a_mechanism_that_is_called_is_observed():
    attention = AdditiveAttention(6, 4, 3).double()
    with attlas.observe(attention) as trace:
        _, weights = attention(noise(4, 6), noise(4, 7, 4))
    (path,) = trace
    close(torch.as_tensor(np.asarray(trace[path]))[:, 0, 0], weights.detach(), check_dtype=False)


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (torch.tensor([[2, 1, 0]] * 2), "token_mask of bools, or of 0 and 1; got integers from 0"),
        (torch.ones(2, 3), "token_mask of bool .*; got float32"),
        (torch.ones(3, 2).bool(), r"token_mask of bool and shape \(2, 3\)"),
    ],
)
def test_a_token_mask_says_what_it_means_or_is_refused(mask, text):
    project_kv = inspect.unwrap(DotAttention.project_kv)  # without the tests' checker of types
    with pytest.raises(AttlasError, match=text):
        project_kv(DotAttention(), noise(2, 3, 4), mask)


# The function.


@given(
    lead=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    heads=st.sampled_from([(1, 1), (2, 2), (4, 1), (4, 2)]),
    queries=st.integers(1, 5),
    keys=st.integers(1, 5),
    masked=st.sampled_from([None, "bool", "float", "causal"]),
    seed=st.integers(0, 99),
)
def test_the_function_is_torchs_for_any_axes(lead, heads, queries, keys, masked, seed):
    q = noise(*lead, heads[0], queries, 4, seed=seed)
    k, v = (noise(*lead, heads[1], keys, dim, seed=seed + dim) for dim in (4, 3))
    added = noise(*lead, 1, queries, keys, seed=seed)
    mask = {"bool": added < 0.5, "float": added}.get(masked)
    options = {"is_causal": masked == "causal", "enable_gqa": heads[1] > 1}
    expected = F.scaled_dot_product_attention(
        q, k if heads[1] > 1 else k.expand(*lead, heads[0], keys, 4),
        v if heads[1] > 1 else v.expand(*lead, heads[0], keys, 3), mask, **options,
    )  # fmt: skip
    close(attlas.scaled_dot_product_attention(q, k, v, mask, **options), expected)
    context, weights = attlas.scaled_dot_product_attention_with_weights(q, k, v, mask, **options)
    close(context, expected)
    assert weights.shape == (*lead, heads[0], queries, keys)
    arrays = [one.numpy() for one in (q, k, v)]
    of_numpy = attlas.scaled_dot_product_attention(
        *arrays, None if mask is None else mask.numpy(), **options
    )
    close(torch.from_numpy(of_numpy), expected)


@pytest.mark.parametrize("options", [{}, {"pattern": window(1)}, {"softcap": 5.0}, {"mask": True}])
def test_dropout_leaves_out_weights_and_scales_the_others_up(options):
    torch.manual_seed(0)
    options = dict(options)
    q, v = torch.zeros(1, 1, 400, 4), torch.ones(1, 1, 400, 1)
    if options.pop("mask", False):
        options["attn_mask"] = torch.ones(400, 400).bool()
    plain = attlas.scaled_dot_product_attention(q, q, v, **options)
    dropped = attlas.scaled_dot_product_attention(q, q, v, dropout_p=0.5, **options)
    close(plain, torch.ones_like(plain))
    assert abs(float(dropped.mean()) - 1) < 0.1
    assert not torch.equal(dropped, plain)
    _, weights = attlas.scaled_dot_product_attention_with_weights(q, q, v, dropout_p=0.5, **options)
    close(weights.sum(-1), torch.ones(1, 1, 400))


def test_batches_that_do_not_fit_are_refused():
    with pytest.raises(AttlasError, match="with the same batches"):
        attlas.scaled_dot_product_attention(
            noise(2, 2, 1, 3, 4), noise(2, 3, 1, 3, 4), noise(2, 3, 1, 3, 4)
        )


# From ours to torch's module.


OPTIONS = [
    {},
    {"bias": False, "dropout": 0.25},
    {"bias": ["q", "out"], "batch_first": True},
    {"kdim": 6, "vdim": 5},
    {"add_bias_kv": True, "add_zero_attn": True},
    {"num_kv_heads": HEADS, "head_dim": DIM // HEADS, "scale": (DIM // HEADS) ** -0.5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("train", [True, False])
def test_torchs_module_of_ours_gives_the_same_results_and_its_state_dict_loads(options, train):
    ours = MultiheadAttention(DIM, HEADS, **options).double().train(train)
    for place, parameter in enumerate(ours.parameters()):
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(place))
    before = torch.get_rng_state()
    theirs = ours.to_torch()
    assert torch.equal(torch.get_rng_state(), before)
    assert type(theirs) is nn.MultiheadAttention
    assert (theirs.training, theirs.dropout, theirs.batch_first) == (
        train,
        ours.dropout,
        ours.batch_first,
    )
    given = inputs(ours.batch_first, True, (DIM, ours.kdim, ours.vdim))
    close(ours.eval()(*given), theirs.eval()(*given))
    fresh = nn.MultiheadAttention(
        DIM,
        HEADS,
        bias=bool(options.get("bias", True)),
        **{k: v for k, v in options.items() if k in ("kdim", "vdim", "add_bias_kv")},
    ).double()
    fresh.load_state_dict(ours.to_torch().state_dict())
    with torch.no_grad():
        theirs.out_proj.weight.zero_()
    assert ours.out_proj.weight.any()  # a copy


def test_what_torchs_module_lacks_is_named():
    ours = MultiheadAttention(
        DIM,
        HEADS,
        num_kv_heads=1,
        value_dim=3,
        pattern=causal,
        scale=0.1,
        positions=RotaryPositions(4),
        qk_norm=True,
    )
    with pytest.raises(
        UnsupportedError,
        match=r"2 heads of width 4 each .*; got num_kv_heads = 1, value_dim = 3, the pattern "
        r"causal, rotary positions, qk_norm = True, scale = 0.1; keep this layer",
    ):
        ours.to_torch()


def test_the_docstring_says_how_fresh_weights_are_drawn_here_and_in_torch():
    torch.manual_seed(0)
    ours, theirs = MultiheadAttention(64, 4), nn.MultiheadAttention(64, 4)
    deviations = {
        "0.125": [ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight, ours.out_proj.weight],
        "0.088": theirs.in_proj_weight.chunk(3),
        "0.072": [theirs.out_proj.weight],
    }
    for number, weights in deviations.items():
        assert number in MultiheadAttention.__doc__
        for weight in weights:
            assert abs(float(weight.detach().std()) - float(number)) < 0.003


def test_the_dropout_is_a_number_that_may_be_set_as_in_torch():
    ours = MultiheadAttention(DIM, HEADS, dropout=0.1, batch_first=True)
    assert ours.dropout + 0.1 == nn.MultiheadAttention(DIM, HEADS, dropout=0.1).dropout + 0.1
    ours.dropout = 1.0
    x = noise(1, 3, DIM).float()
    assert not ours(x, x, x)[0].any()
    with pytest.raises(AttlasError, match=r"a dropout from 0 to 1; got 1\.5"):
        ours.dropout = 1.5
    assert copy.deepcopy(ours).dropout == 1.0


# A cache, and what is none.


@pytest.mark.parametrize("name", [*MECHANISMS, "multihead"])
@pytest.mark.parametrize("what", ["attend", "check_query"])  # the latter is in every other method
def test_a_tensor_in_place_of_a_cache_gets_a_sentence(name, what):
    attention = MECHANISMS[name]() if name in MECHANISMS else MultiheadAttention(6, 2)
    source = noise(2, 3, attention.key_dim or 6).float()
    call = inspect.unwrap(getattr(type(attention), what))  # without the tests' checker of types
    for cache, kind in ((source, "a tensor"), (None, "a NoneType")):
        with pytest.raises(
            AttlasError,
            match=rf"expected a KeyValueCache; got {kind}; make one with cache = "
            r"attention.project_kv\(source\); without a cache, call the layer",
        ):
            call(attention, noise(2, 3, 6).float(), cache)


@pytest.mark.parametrize("hidden", ["attn_mask", "key_padding_mask"])
def test_a_mask_of_the_numbers_0_and_1_is_added_with_a_warning(hidden):
    theirs, ours = twins(batch_first=True)
    given = inputs(True, True)
    mask = torch.ones(QUERIES, KEYS) if hidden == "attn_mask" else torch.ones(BATCH, KEYS)
    mask = torch.tril(mask).double()
    with pytest.warns(
        UserWarning, match=rf"{hidden} holds the numbers 0 .*, pass mask == 0 \(True"
    ):
        found = ours(*given, **{hidden: mask})
    close(found, theirs(*given, **{hidden: mask}))
