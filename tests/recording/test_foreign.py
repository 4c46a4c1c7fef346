import math
import subprocess
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as imported_by_name

from attlas.errors import AttlasError
from attlas.patterns import causal, everywhere
from attlas.recording import (
    DenseAttentionMap,
    FactoredAttentionMap,
    intervene,
    observe,
    uniform,
    without,
)
from attlas.recording.hooks import attribute
from attlas.recording.torch_functions import call_site as calling
from attlas.recording.torch_functions.mode import _OF_NO_TENSOR


class Fused(nn.Module):
    """Calls the fused function with whatever it is given."""

    def __init__(self, function=F.scaled_dot_product_attention):
        super().__init__()
        self.function = function

    def forward(self, query, key, value, **named):
        return self.function(query, key, value, **named)


def explicit(query, key, mask=None, causal_too=False, scale=None):
    scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if causal_too:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:]).tril().bool(), -math.inf)
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(-1).nan_to_num(0.0)


@pytest.mark.parametrize(
    ("query", "key", "shared"),
    [
        ((2, 3, 4, 5, 8), (1, 3, 4, 6, 8), False),
        ((2, 4, 5, 8), (4, 6, 8), False),
        ((4, 5, 8), (2, 4, 6, 8), False),
        ((1, 4, 5, 8), (2, 1, 6, 8), False),
        ((5, 8), (3, 6, 8), False),
        ((4, 5, 8), (2, 6, 8), True),
    ],
)
def test_axes_that_torch_broadcasts_are_read_and_can_be_changed(query, key, shared):
    torch.manual_seed(0)
    query, key = torch.randn(query), torch.randn(key)
    value, model = torch.randn(*key.shape[:-1], 7), Fused()
    named = {"enable_gqa": True} if shared else {}
    plain = model(query, key, value, **named)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value, **named), plain)
    keys = key.repeat_interleave(2, dim=0) if shared else key
    weights = explicit(query, keys)
    torch.testing.assert_close(
        trace[""].weights().reshape(weights.shape), weights, atol=1e-6, rtol=1e-5
    )
    with intervene(model, lambda weights, seen, layer: weights):
        changed = model(query, key, value, **named)
    torch.testing.assert_close(changed, plain, atol=1e-6, rtol=1e-5)


def test_values_of_more_texts_than_queries_can_be_changed():
    query, key, value = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 6, 8), torch.randn(3, 2, 6, 8)
    plain = Fused()(query, key, value)
    with intervene(model := Fused(), lambda weights, seen, layer: weights):
        torch.testing.assert_close(model(query, key, value), plain, atol=1e-6, rtol=1e-5)


@given(
    st.integers(0, 2**31),
    st.integers(1, 3),
    st.sampled_from([(1, 1), (4, 4), (4, 2), (6, 1)]),
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from(["none", "causal", "bool", "float", "bias of heads"]),
    st.sampled_from([None, 0.3]),
)
def test_a_fused_call_is_read_as_it_was_computed(seed, batch, heads, queries, slots, masked, scale):
    torch.manual_seed(seed)
    (all_heads, num_kv_heads), width = heads, 4
    query = torch.randn(batch, all_heads, queries, width)
    key, value = torch.randn(2, batch, num_kv_heads, slots, width)
    named = {"scale": scale, "enable_gqa": num_kv_heads != all_heads}
    mask = None
    if masked == "bool":
        mask = torch.rand(batch, 1, queries, slots) > 0.3
        mask[..., 0] = True
    elif masked == "float":
        mask = torch.randn(queries, slots)
    elif masked == "bias of heads":
        mask = torch.randn(1, all_heads, queries, slots)
    model = Fused()
    named |= {"is_causal": True} if masked == "causal" else {"attn_mask": mask}
    plain = model(query, key, value, **named)
    with observe(model) as trace:
        seen = model(query, key, value, **named)
    assert torch.equal(plain, seen)
    shared = key.repeat_interleave(all_heads // num_kv_heads, 1)
    expected = explicit(query, shared, mask, masked == "causal", scale)
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-6, rtol=1e-5)
    with intervene(model, lambda weights, seen, layer: weights):
        torch.testing.assert_close(model(query, key, value, **named), plain)


@pytest.mark.parametrize("shape", [(5, 4), (3, 5, 4), (2, 3, 5, 4), (2, 2, 3, 5, 4)])
def test_tensors_of_two_to_five_axes_are_read(shape):
    query, model = torch.randn(shape), Fused()
    with observe(model) as trace:
        model(query, query, query)
    expected = explicit(query, query)
    assert trace[""].shape[2:] == (5, 5)
    torch.testing.assert_close(trace[""].weights().flatten(), expected.flatten())


def test_vectors_of_no_width_look_evenly():
    query, value, model = torch.randn(2, 2, 5, 0), torch.randn(2, 2, 5, 3), Fused()
    plain = model(query, query, value)
    with observe(model) as trace:
        assert torch.equal(model(query, query, value), plain)
    torch.testing.assert_close(trace[""].weights() @ value, plain)


def test_a_function_that_was_imported_by_name_is_heard_too():
    query, model = torch.randn(1, 2, 3, 4), Fused(imported_by_name)
    with observe(model) as trace:
        model(query, query, query)
    torch.testing.assert_close(trace[""].weights(), explicit(query, query))


def test_a_reading_owns_what_it_keeps():
    query, model = torch.randn(1, 2, 3, 4), Fused()
    mask = torch.ones(3, 3, dtype=torch.bool).tril(1)
    with observe(model) as trace:
        model(query, query, query, attn_mask=mask)
    before = trace[""].weights()
    query.zero_()
    mask.fill_(True)
    assert torch.equal(trace[""].weights(), before)


MASKS = {
    "none": None,
    "bool": torch.ones(5, 5, dtype=torch.bool).triu(1),
    "float": nn.Transformer.generate_square_subsequent_mask(5),
    "random": torch.randn(5, 5),
    "per head": torch.randn(8, 5, 5),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("needed", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.filterwarnings("ignore:Support for mismatched")
def test_multihead_attention_is_read_whatever_it_is_asked_for(mask, padded, needed, training):
    torch.manual_seed(0)
    model = nn.MultiheadAttention(16, 4, dropout=0.5, batch_first=True).train(training)
    source = torch.randn(2, 5, 16)
    named = {"attn_mask": mask, "key_padding_mask": None}
    if padded:
        named["key_padding_mask"] = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    torch.manual_seed(1)
    plain = model(source, source, source, need_weights=needed, **named)
    torch.manual_seed(1)
    with observe(model) as trace:
        seen = model(source, source, source, need_weights=needed, **named)
    if training or needed:
        assert torch.equal(plain[0], seen[0])
    else:  # PyTorch leaves its fast path because somebody looks
        torch.testing.assert_close(plain[0], seen[0], atol=1e-6, rtol=0)
    _, expected = model.eval()(
        source, source, source, need_weights=True, average_attn_weights=False, **named
    )
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-6, rtol=1e-5)
    assert isinstance(trace[""], FactoredAttentionMap)
    assert trace.kind("") == "self"
    if mask is None or mask is MASKS["bool"] or mask is MASKS["float"]:
        assert trace[""].bias is None
        assert trace[""].pattern == (everywhere if mask is None else causal)
        assert trace.causal("") == (mask is not None)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_pytorchs_transformer_is_read_layer_by_layer(training, batch_first):
    torch.manual_seed(0)
    model = nn.Transformer(16, 4, 2, 1, 24, 0.1, batch_first=batch_first).train(training)
    source, target = torch.randn(2, 5, 16), torch.randn(2, 3, 16)
    if not batch_first:
        source, target = source.transpose(0, 1), target.transpose(0, 1)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    named = {"tgt_mask": mask, "tgt_is_causal": True}
    torch.manual_seed(1)
    plain = model(source, target, **named)
    torch.manual_seed(1)
    with observe(model) as trace:
        seen = model(source, target, **named)
    torch.testing.assert_close(plain, seen, atol=1e-6, rtol=0)
    assert tuple(trace) == (
        "encoder.layers.0.self_attn",
        "encoder.layers.1.self_attn",
        "decoder.layers.0.self_attn",
        "decoder.layers.0.multihead_attn",
    )
    assert [trace.kind(layer) for layer in trace] == ["self", "self", "self", "cross"]
    assert [trace.causal(layer) for layer in trace] == [False, False, True, False]
    assert [trace[layer].shape for layer in list(trace)[2:]] == [(2, 4, 3, 3), (2, 4, 3, 5)]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_fast_path_of_an_encoder_is_back_when_nobody_looks():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    source = torch.randn(2, 5, 16)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        plain = model(source, src_key_padding_mask=padding)
        with observe(model) as trace:
            seen = model(source, src_key_padding_mask=padding)
        assert torch.equal(model(source, src_key_padding_mask=padding), plain)
    torch.testing.assert_close(plain[~padding], seen[~padding], atol=1e-6, rtol=0)
    assert not plain[padding].any()  # which only the fast path does
    assert tuple(trace) == ("layers.0.self_attn", "layers.1.self_attn")


class Written(nn.Module):
    """Attention written out, in one of the ways in which people write it."""

    def __init__(self, way, width=8, heads=2):
        super().__init__()
        self.num_heads, self.embed_dim, self.way = heads, width, way
        self.packed = nn.Linear(width, 3 * width)
        self.dropout = nn.Dropout(0.2)

    def forward(self, source, mask=None):
        batch, places, width = source.shape
        split = (batch, places, self.num_heads, width // self.num_heads)
        query, key, value = (
            part.view(split).transpose(1, 2) for part in self.packed(source).chunk(3, -1)
        )
        scale = 1 / math.sqrt(split[-1])
        if self.way == "folded":
            query, key, value = (part.flatten(0, 1) for part in (query, key, value))
            scores = torch.bmm(query * scale, key.transpose(1, 2))
            return torch.bmm(self.dropout(F.softmax(scores, dim=-1)), value).view(split)
        if self.way == "einsum":
            scores = torch.einsum("bhqd,bhsd->bhqs", query, key) * scale
        elif self.way == "divided":
            scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(split[-1])
        else:
            scores = query @ key.transpose(-2, -1)
            scores = scores * scale
        if mask is not None:
            if self.way == "filled":
                scores = scores.masked_fill(~mask, -1e9)
            elif self.way == "chosen":
                scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
            else:
                scores = scores.masked_fill(~mask, -math.inf)
        if self.way == "capped":
            scores = torch.tanh(scores / 5) * 5
        weights = scores.softmax(-1, dtype=torch.float32).to(value.dtype)
        if self.way == "einsum":
            return torch.einsum("bhqs,bhsd->bqhd", self.dropout(weights), value)
        return (self.dropout(weights) @ value).transpose(1, 2)

    def expected(self, source, mask):
        kept = []
        handle = self.dropout.register_forward_pre_hook(lambda _, given: kept.append(given[0]))
        with torch.no_grad():
            self.forward(source, mask)
        handle.remove()
        weights = kept[0]
        return weights.view(-1, self.num_heads, *weights.shape[-2:])


WAYS = ["folded", "einsum", "divided", "plain", "filled", "chosen", "capped"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_attention_that_is_written_out_is_read_before_dropout(way, masked, training):
    torch.manual_seed(0)
    model, source = Written(way).train(training), torch.randn(3, 5, 8, requires_grad=True)
    mask = causal.mask(5, 5) if masked and way != "folded" else None
    expected = model.expected(source, mask)
    outcomes = []
    for looking in (False, True):
        torch.manual_seed(1)
        if looking:
            with observe(model) as trace:
                result = model(source, mask)
        else:
            result = model(source, mask)
        outcomes.append((result, *torch.autograd.grad(result.square().sum(), source)))
    for plain, seen in zip(*outcomes, strict=True):
        assert torch.equal(plain, seen)
    attention_map = trace[""]
    torch.testing.assert_close(attention_map.weights(), expected, atol=1e-6, rtol=1e-5)
    if way == "capped" and masked:  # the cap lets through what was masked before it
        assert isinstance(attention_map, DenseAttentionMap)
        return
    assert isinstance(attention_map, FactoredAttentionMap)
    assert attention_map.bias is None
    assert attention_map.pattern == (causal if mask is not None else everywhere)


@pytest.mark.parametrize("way", WAYS)
def test_written_attention_can_be_intervened_in(way):
    torch.manual_seed(0)
    model, source = Written(way).eval(), torch.randn(3, 5, 8)
    plain = model(source)
    with intervene(model, lambda weights, seen, layer: weights):
        assert torch.equal(model(source), plain)
    with intervene(model, without(0)):
        changed = model(source)
    heads = changed.view(3, 2, 5, 4).transpose(1, 2) if way == "folded" else changed
    whole = plain.view(3, 2, 5, 4).transpose(1, 2) if way == "folded" else plain
    assert not heads[:, :, 0].any()
    torch.testing.assert_close(heads[:, :, 1], whole[:, :, 1])


def test_a_row_without_a_slot_that_was_filled_with_a_finite_number_is_read_as_it_was():
    model, source = Written("filled").eval(), torch.randn(1, 3, 8)
    mask = causal.mask(3, 3).clone()
    mask[1] = False
    with observe(model) as trace:
        model(source, mask)
    torch.testing.assert_close(trace[""].weights(), model.expected(source, mask))


def test_a_softmax_that_is_multiplied_with_nothing_is_no_attention():
    class Scoring(nn.Module):
        def forward(self, source):
            return (source @ source.mT).softmax(-1)

    model = Scoring()
    with pytest.raises(AttlasError, match="without a product with values after it"), observe(model):
        model(torch.randn(1, 3, 4))


def test_attention_that_cannot_be_read_is_reported():
    class SlidingAttention(nn.Module):
        def forward(self, source):
            weights = torch.einsum("bqd,bsd->bqs", source, source).softmax(-1)
            return (weights.unsqueeze(-1) * source.unsqueeze(1)).sum(2)

    model = SlidingAttention()
    with (
        pytest.raises(AttlasError, match=r"\[''\] \(1 × each\): a softmax that is not multiplied"),
        observe(model),
    ):
        model(torch.randn(1, 3, 4))
    both = nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), model)
    with pytest.warns(UserWarning, match="not in the trace: \\['1'\\]"), observe(both) as trace:
        both(torch.randn(1, 3, 4))
    assert tuple(trace) == ("0.self_attn",)


def test_only_what_was_chosen_is_kept():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 4, 8, batch_first=True), 3)
    source = torch.randn(2, 5, 8)
    with observe(model) as whole:
        model.eval()(source)
    with observe(model, layers="layers.1.*", heads=[3, 1]) as trace:
        model(source)
    assert tuple(trace) == ("layers.1.self_attn",)
    torch.testing.assert_close(
        trace["layers.1.self_attn"].weights(), whole["layers.1.self_attn"].weights()[:, [3, 1]]
    )
    with observe(model, last_calls=2) as trace:
        for places in (3, 4, 5):
            model(source[:, :places])
    for layer in trace:
        assert [attention_map.shape[2] for attention_map in trace.calls(layer)] == [4, 5]


def test_a_choice_that_fits_nothing_is_an_error():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 4, 8, batch_first=True), 1).eval()
    source = torch.randn(1, 3, 8)
    with (
        pytest.raises(AttlasError, match=r"\['layers.0.self_attn'\]; got layers='decoder.*'"),
        observe(model, layers="decoder.*"),
    ):
        model(source)
    with (
        pytest.raises(AttlasError, match=r"heads from 0 to 3 .*got \[4\]"),
        observe(model, heads=4),
    ):
        model(source)
    for wrong in ({"layers": []}, {"heads": []}, {"last_calls": 0}):
        with pytest.raises(AttlasError, match="at least one"), observe(model, **wrong):
            model(source)


CHOICES = """
import numpy as np, torch
from attlas.errors import AttlasError
from attlas.recording import Trace, observe
from attlas.recording.trace import Selection

for wrong in (
    dict(heads="0"), dict(heads=slice(0, 2)), dict(heads=[0.5]), dict(heads=True),
    dict(heads=torch.tensor([True, False])), dict(layers=1), dict(layers=[0, "1"]),
    dict(last_calls=1.5), dict(last_calls=True), dict(last_calls="1"),
):
    try:
        with observe(torch.nn.Linear(1, 1), **wrong):
            pass
    except AttlasError as error:
        print(wrong, error.expected, error.got, error.hint, sep="; ")
for ask in (Trace().matching_layers, Trace().calls):
    try:
        ask([1])
    except AttlasError as error:
        print(error.expected)
for heads in (1, np.int64(1), torch.tensor(1), [1], range(1, 2), np.array([1]), torch.tensor([1])):
    print(Selection.of(None, heads).heads)
"""


@pytest.mark.slow
def test_what_is_no_path_and_no_number_of_a_head_is_reported():
    """Where nobody checks types; a mask of heads, which would be heads 1 and 0, is none either."""
    done = subprocess.run([sys.executable, "-c", CHOICES], capture_output=True, text=True)
    reported = done.stdout.splitlines()
    assert len(reported) == 10 + 2 + 7, done.stderr
    assert [line.split("; ")[1] for line in reported[:10]] == [
        *["heads by number, as whole numbers"] * 5,
        *["paths of layers, or patterns of them, as text"] * 2,
        *["a whole number of calls of each layer to keep, at least one"] * 3,
    ]
    assert "; heads='0'; count them from 0, such as heads=0 or heads=[0, 3]" in reported[0]
    assert "; layers=1; name them" in reported[5]
    assert "; last_calls=1.5; leave it out for all" in reported[7]
    assert reported[10:12] == [
        "paths of layers, or patterns of them, as text",
        "one of the layers []",
    ]
    assert reported[12:] == ["(1,)"] * 7


def test_an_intervention_that_never_acted_is_an_error():
    model = nn.MultiheadAttention(8, 2)
    with pytest.raises(AttlasError, match="none of MultiheadAttention"), intervene(model, uniform):
        pass


def test_what_is_intervened_in_is_observed_before_the_change():
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    source = torch.randn(2, 3, 8)
    plain = model(source, source, source, average_attn_weights=False)[1]
    for needed in (True, False):
        with observe(model) as outer, intervene(model, uniform), observe(model) as inner:
            model(source, source, source, need_weights=needed)
        for trace in (outer, inner):
            torch.testing.assert_close(trace[""].weights(), plain, atol=1e-6, rtol=1e-5)


def test_threads_do_not_hear_each_other():
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    source = torch.randn(1, 3, 8)

    def elsewhere():
        alone = threading.Thread(target=lambda: model(source, source, source))
        alone.start()
        alone.join()

    with pytest.raises(AttlasError, match="did not run"), observe(model):
        elsewhere()


def test_nothing_of_a_model_is_changed_even_where_the_block_raises():
    model = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval()

    def state():
        return [
            {name: repr(value) for name, value in vars(module).items()}
            for module in model.modules()
        ]

    def fail_inside():
        assert state() == before
        model(torch.randn(1, 3, 8))
        raise ZeroDivisionError

    before = state()
    with pytest.raises(ZeroDivisionError), observe(model):
        fail_inside()
    assert state() == before
    assert not torch.overrides.has_torch_function((torch.ones(1),))


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
def test_a_compiled_model_is_refused_with_the_way_out():
    model = nn.MultiheadAttention(8, 2)
    with (
        pytest.raises(AttlasError, match=r"before torch.compile.*which is compiled"),
        observe(torch.compile(model)),
    ):
        pass
    holder = nn.Sequential(torch.compile(nn.MultiheadAttention(8, 2)))
    with pytest.raises(AttlasError, match="its module '0'"), observe(holder):
        pass
    model.compile()
    with pytest.raises(AttlasError, match="a copy of it"), intervene(model, uniform):
        pass


def test_a_model_in_half_precision_is_read_in_single():
    query, model = torch.randn(1, 2, 5, 8, dtype=torch.bfloat16), Fused()
    with observe(model) as trace:
        model(query, query, query)
    assert trace[""].query.dtype == torch.bfloat16
    torch.testing.assert_close(trace[""].weights(), explicit(query.float(), query.float()))


def compared(student, teacher, *given):
    """A function of somebody's, to which both models are given."""
    student(*given)
    return teacher(*given)


def test_a_function_that_was_given_a_model_does_not_speak_for_it():
    query, key, value = torch.randn(3, 2, 4, 5, 8)
    model, other = Fused(), Fused()
    with observe(model) as trace:
        compared(model, other, query, key, value)
    assert trace[""].shape == (2, 4, 5, 5)
    plain = other(query, key, value)
    with intervene(model, uniform):
        assert torch.equal(compared(model, other, query, key, value), plain)


class Own(nn.Module):
    """Attention that names what it looks at as some models do."""

    def forward(self, hidden_states, context=None):
        source = hidden_states if context is None else context
        return F.scaled_dot_product_attention(hidden_states, source, source)


@pytest.mark.parametrize(
    ("context", "relation", "causal"),
    [(None, "self", True), ("same", None, True), ("other", "cross", False)],
)
def test_what_is_looked_at_beside_hidden_states_is_reported_apart(context, relation, causal):
    text, model = torch.randn(2, 1, 8), Own()
    given = {None: None, "same": text, "other": torch.randn(2, 1, 8)}[context]
    with observe(model) as trace:
        model(text, given)
    assert trace.kind("") == (relation or "self")
    assert trace.causal("") == causal


def test_functions_that_are_passed_by_give_no_tensor_and_change_none():
    for function in _OF_NO_TENSOR:
        tensor = torch.randn(2, 3)
        before = tensor.clone()
        found = function(tensor)
        given = found if isinstance(found, tuple | list) else (found,)
        assert not any(isinstance(one, torch.Tensor) for one in given), function
        assert torch.equal(tensor, before), function
        assert tensor._version == 0, function


class Holder(nn.Module):
    """Has attributes of every kind."""

    of_class = 3

    def __init__(self):
        super().__init__()
        self.num_heads, self.map = 2, nn.Linear(2, 2)

    @property
    def computed(self):
        return self.num_heads + 1


class Asked(Holder):
    """Has whatever it is asked for."""

    def __getattr__(self, name):
        return 7 if name == "answered" else super().__getattr__(name)


@pytest.mark.parametrize("kind", [Holder, Asked])
@pytest.mark.parametrize("name", ["num_heads", "of_class", "computed", "answered", "nothing"])
def test_an_attribute_of_a_module_is_what_getattr_gives(kind, name):
    module = kind()
    assert attribute(module, name) == getattr(module, name, None)


def test_who_is_at_work_is_looked_up_once_for_a_fused_call(monkeypatch):
    class Layer(nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x, x)

    looked_up, look_up = [], calling._look_up
    monkeypatch.setattr(calling, "_look_up", lambda: looked_up.append(1) or look_up())
    layer, x = Layer(), torch.randn(1, 2, 4, 8)
    with observe(nn.Sequential(layer, layer)) as trace:
        layer(x)  # the first of all also says that a model runs
        looked_up.clear()
        layer(x)
    assert looked_up == [1]
    assert len(trace.calls("0")) == 2
