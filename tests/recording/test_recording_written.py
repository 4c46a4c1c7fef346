"""Attention as people write it: whatever they do on the way, what is read is what was computed."""

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.bias import causal_lower_right
from torch.utils.checkpoint import checkpoint

from attlas.errors import AttlasError
from attlas.patterns import causal
from attlas.recording import DenseReading, FactoredReading, intervene, observe, uniform
from attlas.recording.foreign.interface_call import InterfaceCall

QUERIES = 5


class Calling(nn.Module):
    """Runs a function that it is given."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *given):
        return self.function(*given)


def vectors(*shape, count=3):
    torch.manual_seed(0)
    return torch.randn(count, *shape)


def same(weights, seen, layer):
    return weights


def check(function, expected, *given, kind=FactoredReading):
    """What is read of it is as expected; looking, and putting the same weights, changes nothing."""
    model = Calling(function)
    plain = model(*given)
    with observe(model) as trace:
        seen = model(*given)
    assert torch.equal(plain, seen)
    assert isinstance(trace[""], kind)
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-6, rtol=1e-5)
    with intervene(model, same):
        torch.testing.assert_close(model(*given), plain, atol=1e-5, rtol=1e-5)
    return trace[""]


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("kind", ["float", "bool"])
@pytest.mark.parametrize("fused", [False, True])
def test_a_mask_of_three_axes_beside_four_is_one_of_heads(batch, kind, fused):
    query, key, value = vectors(batch, 2, QUERIES, 4)
    mask = vectors(2, QUERIES, QUERIES, count=1)[0]
    if kind == "bool":
        mask = (mask > 0) | torch.eye(QUERIES, dtype=torch.bool)
    added = mask if kind == "float" else torch.zeros(()).masked_fill(~mask, -math.inf)
    expected = (query @ key.mT / 2 + added).softmax(-1)

    def written(query, key, value):
        scores = query @ key.mT / 2
        scores = scores + mask if kind == "float" else scores.masked_fill(~mask, -math.inf)
        return scores.softmax(-1) @ value

    def called(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    reading = check(called if fused else written, expected, query, key, value)
    for row in range(batch):
        torch.testing.assert_close(reading.at(row).entropy(), reading.entropy()[row : row + 1])


HIDDEN = ~causal.mask(QUERIES, QUERIES, 0)


def assigned(scores):
    scores[HIDDEN.expand_as(scores)] = -math.inf
    return scores


def subtracted(scores):
    return scores - HIDDEN * 1e9


def subtracted_in_place(scores):
    scores -= HIDDEN * 1e9
    return scores


def added_whole_numbers(scores):
    return scores + HIDDEN.long() * -10_000


def filled_by_name(scores):
    return scores.masked_fill(mask=HIDDEN, value=-math.inf)


def filled_in_place_by_name(scores):
    return scores.masked_fill_(mask=HIDDEN, value=-math.inf)


KNOWN = (assigned, subtracted, subtracted_in_place, added_whole_numbers, filled_by_name)


@pytest.mark.parametrize("hide", [*KNOWN, filled_in_place_by_name])
@pytest.mark.parametrize("inference", [False, True])
def test_however_it_is_hidden_the_future_is_hidden(hide, inference):
    def written(query, key, value):
        return hide(query @ key.mT).softmax(-1) @ value

    with torch.inference_mode(inference):
        query, key, value = vectors(2, 2, QUERIES, 4)
        expected = (query @ key.mT).masked_fill(HIDDEN, -math.inf).softmax(-1)
        reading = check(written, expected, query, key, value)
        assert reading.pattern == causal
        assert reading.bias is None
        assert reading.visible()[0, 0].tolist() == [1, 2, 3, 4, 5]


def through_a_view(scores):
    scores.view(-1, QUERIES, QUERIES).masked_fill_(HIDDEN, -math.inf)
    return scores


def partly_assigned(scores):
    scores[..., 0] = 3.0
    return scores


def bounded_in_place(scores):
    return scores.clamp_(-0.5, 0.5)


@pytest.mark.parametrize("change", [through_a_view, partly_assigned, bounded_in_place])
@pytest.mark.parametrize("inference", [False, True])
def test_scores_that_were_changed_in_their_place_are_not_taken_for_what_they_were(
    change, inference
):
    if inference and change is through_a_view:
        pytest.xfail("tensors of inference mode do not tell that a view of them was changed")

    def written(query, key, value):
        return change(query @ key.mT).softmax(-1) @ value

    with torch.inference_mode(inference):
        query, key, value = vectors(2, 2, QUERIES, 4)
        expected = change(query @ key.mT).softmax(-1)
        check(written, expected, query, key, value, kind=DenseReading)


@pytest.mark.parametrize("inference", [False, True])
def test_dropout_in_place_leaves_the_weights_before_it_in_the_reading(inference):
    drop = nn.Dropout(0.5, inplace=True)

    def written(query, key, value):
        torch.manual_seed(1)
        return drop((query @ key.mT).softmax(-1)) @ value

    with torch.inference_mode(inference):
        query, key, value = vectors(2, 2, QUERIES, 4)
        model = Calling(written)
        plain = model(query, key, value)
        with observe(model) as trace:
            assert torch.equal(model(query, key, value), plain)
        torch.testing.assert_close(trace[""].weights(), (query @ key.mT).softmax(-1))


@pytest.mark.parametrize("number", [-1e4, -1e9, -65504.0, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("fused", [False, True])
def test_a_low_number_hides_as_infinity_does(number, fused):
    added = HIDDEN * number

    def written(query, key, value):
        return (query @ key.mT / 2 + added).softmax(-1) @ value

    def called(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=added)

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = (query @ key.mT / 2).masked_fill(HIDDEN, -math.inf).softmax(-1)
    reading = check(called if fused else written, expected, query, key, value)
    assert reading.pattern == causal
    assert reading.bias is None


def test_a_low_number_beside_a_bias_hides_too():
    query, key, value = vectors(2, 2, QUERIES, 4)
    added = vectors(1, 2, QUERIES, QUERIES, count=1)[0] + HIDDEN * -1e9

    def called(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=added)

    reading = check(called, (query @ key.mT / 2 + added).softmax(-1), query, key, value)
    assert torch.equal(reading.seen(0, QUERIES)[0, 0], ~HIDDEN)


def test_a_held_map_knows_what_was_hidden_so_that_nobody_looks_there():
    def bent(query, key, value):
        scores = F.relu(query @ key.mT).masked_fill(HIDDEN, -math.inf)
        return scores.softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = F.relu(query @ key.mT).masked_fill(HIDDEN, -math.inf).softmax(-1)
    reading = check(bent, expected, query, key, value, kind=DenseReading)
    assert reading.visible()[0, 0].tolist() == [1, 2, 3, 4, 5]
    model = Calling(bent)
    with intervene(model, uniform):
        found = model(query, key, value)
    means = value.cumsum(-2) / torch.arange(1, QUERIES + 1).unsqueeze(-1)
    torch.testing.assert_close(found, means)


def test_scores_that_are_capped_are_read_as_factors():
    def capped(query, key, value):
        scores = torch.tanh(query @ key.mT / 2 / 3.0) * 3.0
        return scores.masked_fill(HIDDEN, -math.inf).softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    scores = torch.tanh(query @ key.mT / 6.0) * 3.0
    reading = check(capped, scores.masked_fill(HIDDEN, -math.inf).softmax(-1), query, key, value)
    assert reading.softcap == 3.0
    assert reading.pattern == causal


def test_what_is_capped_after_it_was_masked_is_held():
    def written(query, key, value):
        return (torch.tanh(query @ key.mT + HIDDEN * -2.0) * 3.0).softmax(-1) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    scores = torch.tanh(query @ key.mT + HIDDEN * -2.0) * 3.0
    check(written, scores.softmax(-1), query, key, value, kind=DenseReading)


def test_a_softmax_that_is_a_module_is_its_holders():
    class ReadingAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.softmax = nn.Softmax(-1)

        def forward(self, query, key, value):
            weights = self.softmax(query @ key.mT)
            return value.mT @ weights.mT  # nobody reads it this way round

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = ReadingAttention(), Calling(F.scaled_dot_product_attention)

        def forward(self, *given):
            return self.one(*given), self.other(*given)

    model = Model()
    with pytest.warns(UserWarning, match=r"cannot read.*\['one'\]"), observe(model) as trace:
        model(*vectors(1, 2, QUERIES, 4))
    assert trace.layers == ("other",)


def test_layers_that_were_not_heard_are_told():
    model = nn.Sequential(Calling(F.scaled_dot_product_attention))
    model.forward = lambda *given: model[0](*given)
    with (
        pytest.warns(UserWarning, match=r"layers=\['typo'\] match none"),
        observe(model, layers=["0", "typo"]) as trace,
    ):
        model(*vectors(1, 2, QUERIES, 4))
    assert list(trace.layers) == ["0"]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_scripted_model_says_that_nobody_can_hear_it():
    scripted = torch.jit.trace(nn.Softmax(-1), torch.zeros(2, 3))
    with pytest.raises(AttlasError, match="scripted"), observe(scripted):
        pass


def test_a_forward_that_was_compiled_says_so():
    model = Calling(F.scaled_dot_product_attention)
    model.forward = torch.compile(model.forward, backend="eager")
    with pytest.raises(AttlasError, match="compiled"), observe(model):
        pass


def test_a_mask_that_is_the_same_for_all_heads_is_kept_once():
    query, key, value = vectors(2, 3, QUERIES, 4)
    mask = vectors(2, 1, QUERIES, QUERIES, count=1)[0]
    with torch.inference_mode():
        model = Calling(F.scaled_dot_product_attention)
        with observe(model) as trace:
            model(query, key, value, mask.clone().expand(2, 3, -1, -1))
    assert trace[""].bias.shape == (2, 1, QUERIES, QUERIES)
    torch.testing.assert_close(trace[""].weights(), (query @ key.mT / 2 + mask).softmax(-1))


def gated(weights):
    return weights * torch.tensor([1.0, 0.5])[:, None, None]


def renormalised(weights):
    weights = weights * (weights > 0.1)
    return weights / weights.sum(-1, keepdim=True)


def emptied_in_place(weights):
    return weights.masked_fill_(HIDDEN, 0.0)


@pytest.mark.parametrize("change", [gated, renormalised, emptied_in_place])
def test_what_multiplies_the_values_is_read_where_weights_were_changed(change):
    def written(query, key, value):
        return change((query @ key.mT).softmax(-1)) @ value

    query, key, value = vectors(2, 2, QUERIES, 4)
    expected = change((query @ key.mT).softmax(-1))
    check(written, expected, query, key, value, kind=DenseReading)


def test_a_softmax_that_no_product_follows_is_told():
    model = Calling(lambda scores, values: (scores.softmax(-1)[..., None] * values).sum(-2))
    with pytest.raises(AttlasError, match="no product with values followed"), observe(model):
        model(torch.randn(2, 3, 5), torch.randn(2, 3, 5, 4))


@pytest.mark.parametrize("wrong", ["torch.ones(2, 3)", "torch.ones(1, 1, 2, 2).numpy()"])
def test_weights_that_are_no_tensor_of_four_axes_are_refused(wrong):
    code = f"import torch; from attlas.recording import DenseReading; DenseReading({wrong})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "AttlasError: wanted weights as a tensor (batch, heads, queries, slots)" in done.stderr


def test_a_change_that_returns_nothing_is_told():
    query, key, value = vectors(1, 2, QUERIES, 4)
    model = Calling(F.scaled_dot_product_attention)
    with (
        pytest.raises(AttlasError, match="return them from the function"),
        intervene(model, lambda weights, seen, layer: None),
    ):
        model(query, key, value)


def test_a_saved_trace_may_be_read_by_whom_the_users_mask_allows(tmp_path):
    model = Calling(F.scaled_dot_product_attention)
    with observe(model) as trace:
        model(*vectors(1, 2, QUERIES, 4))
    trace.save(tmp_path / "trace.safetensors")
    (tmp_path / "other").touch()
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


SUMS = {
    "heads in front": ("bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd", "bhnd"),
    "heads behind": ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "bnhd"),
    "queries in front of heads": ("bqhd,bkhd->bqhk", "bqhk,bkhd->bqhd", "bnhd"),
    "queries first": ("bqhd,bkhd->qbhk", "qbhk,bkhd->bqhd", "bnhd"),
    "keys asked first": ("bkhd,bqhd->bhqk", "bkhd,bhqk->bqhd", "bnhd"),
    "values shared by heads": ("bhqd,bhkd->bhqk", "bhqk,bkd->bhqd", "bhnd"),
}


@pytest.mark.parametrize("way", SUMS)
@pytest.mark.parametrize("listed", [False, True])
def test_the_letters_of_a_sum_say_what_is_a_query(way, listed):
    scores, context, axes = SUMS[way]
    query, key, value = vectors(*({"b": 2, "h": 3, "n": QUERIES, "d": 4}[axis] for axis in axes))
    if way == "values shared by heads":
        value = value[:, 0]

    def einsum(equation, *tensors):
        return torch.einsum(equation, tensors) if listed else torch.einsum(equation, *tensors)

    def written(query, key, value):
        given = (key, query) if scores.startswith("bk") else (query, key)
        weights = einsum(scores, *given).softmax(-1)
        pair = (value, weights) if context.startswith("bk") else (weights, value)
        return einsum(context, *pair)

    asked, keys = (t if axes == "bhnd" else t.transpose(1, 2) for t in (query, key))
    expected = (asked @ keys.mT).softmax(-1)
    model = Calling(written)
    plain = model(query, key, value)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value), plain)
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-6, rtol=1e-5)
    with intervene(
        model, lambda weights, seen, layer: weights * torch.tensor([1.0, 0.0, 1.0])[:, None, None]
    ):
        changed = model(query, key, value)
    of_head = changed[:, 1] if context.endswith("bhqd") else changed[:, :, 1]
    assert not of_head.any()
    assert changed.any()


@pytest.mark.parametrize("equation", ["bhqs,bhqs->bh", "bte,bted->btd"])
def test_a_sum_without_queries_is_no_attention(equation):
    letters = dict(zip("bhqstedk", [2, 3, 4, 5, 4, 5, 6, 7], strict=True))
    terms = equation.split("->")[0].split(",")

    def written(first, second):
        return torch.einsum(equation, first.softmax(-1), second)

    model = Calling(written)
    with pytest.raises(AttlasError, match="at least one attention call"), observe(model):
        model(*(torch.randn([letters[letter] for letter in term]) for term in terms))


def test_a_distribution_over_a_table_is_no_attention():
    table = nn.Embedding(11, 4)

    class Soft(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = table

        def forward(self, logits):
            return logits.softmax(-1) @ self.table.weight

    model = Soft()
    with pytest.raises(AttlasError, match="at least one attention call"), observe(model):
        model(torch.randn(2, 3, 11))


def test_one_text_without_a_batch_is_read():
    query, key, value = vectors(QUERIES, 4)

    def written(query, key, value):
        return (query @ key.T / 2).softmax(-1) @ value

    check(written, (query @ key.T / 2).softmax(-1)[None, None], query, key, value)


def test_the_mask_that_torch_calls_causal_is_read():
    query, key, value = vectors(1, 2, QUERIES, 4)
    query = query[:, :, -3:]

    def called(query, key, value):
        mask = causal_lower_right(3, QUERIES)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    expected = (query @ key.mT / 2).masked_fill(HIDDEN[-3:], -math.inf).softmax(-1)
    model = Calling(called)
    plain = model(query, key, value)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value), plain)
    torch.testing.assert_close(trace[""].weights(), expected)
    assert trace[""].pattern == causal


@pytest.mark.parametrize("batch_first", [False, True])
def test_positions_added_to_queries_and_keys_alone_leave_it_self_attention(batch_first):
    model = nn.MultiheadAttention(8, 2, batch_first=batch_first)
    source, positions = torch.randn(2, 4, 3, 8)
    asking = source + positions
    with observe(model) as trace:
        model(asking, asking, source)
    assert trace.relation("") == "self"
    with observe(model) as trace:
        model(asking, source, source)
    assert trace.relation("") == "cross"


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_backward_pass_computes_again_is_not_heard_again(reentrant):
    def written(query, key, value):
        return checkpoint(
            F.scaled_dot_product_attention, query, key, value, use_reentrant=reentrant
        )

    model = Calling(written)
    query, key, value = vectors(1, 2, QUERIES, 4).requires_grad_().unbind()
    with observe(model) as trace:
        model(query, key, value).sum().backward()
    assert len(trace.calls("")) == 1


def test_blocks_of_two_generators_may_end_in_the_order_in_which_they_began():
    query, key, value = vectors(1, 2, QUERIES, 4)
    model = Calling(F.scaled_dot_product_attention)

    def looking():
        with observe(model) as trace:
            yield trace
            model(query, key, value)
            yield trace

    one, other = looking(), looking()
    next(one), next(other)
    assert len(next(one).calls("")) == 1
    one.close()
    assert len(next(other).calls("")) == 2
    other.close()
    with observe(model) as trace:
        model(query, key, value)
    assert len(trace.calls("")) == 1


def test_heads_in_the_first_axis_are_found_by_the_width_of_a_map():
    class Folded(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads, self.to_q = 2, nn.Linear(6, 8)

        def forward(self, source):
            query = self.to_q(source).unflatten(-1, (2, 4)).transpose(1, 2).flatten(0, 1)
            return (query @ query.mT).softmax(-1) @ query

    model, source = Folded(), torch.randn(3, QUERIES, 6)
    with observe(model) as trace:
        model(source)
    assert trace[""].shape == (3, 2, QUERIES, QUERIES)


def test_several_texts_in_one_row_are_not_read_as_one():
    query, key, value = vectors(1, 2, QUERIES, 4)
    module = nn.Module()
    packed, one = torch.tensor([[0, 1, 2, 0, 1]]), torch.arange(5)[None]
    given = module, query, key, value, None
    assert InterfaceCall.of(*given, {"is_causal": True, "position_ids": packed}) is None
    assert InterfaceCall.of(*given, {"is_causal": True, "position_ids": one}) is not None


def test_beside_a_source_the_first_query_stands_at_the_first_slot():
    weights = torch.eye(3, 5)[None, None]
    newest, first = DenseReading(weights), DenseReading(weights, first=0)
    assert newest.position == 2
    assert first.distance().tolist() == [[[0, 0, 0]]]
    assert newest.distance().tolist() == [[[2, 2, 2]]]
    assert first.of_heads(torch.tensor([0])).at(0).kept().position == 0
