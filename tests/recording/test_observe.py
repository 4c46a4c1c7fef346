import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import _get_current_function_mode_stack

from attlas.errors import AttlasError
from attlas.layers import (
    AdditiveAttention,
    DotAttention,
    MultiheadAttention,
    ScaledDotProductAttention,
)
from attlas.patterns import both, causal, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace, observe
from attlas.recording.hooks import listeners


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.below = AdditiveAttention(6, 6, 4)
        self.above = MultiheadAttention(6, 2, num_kv_heads=1, pattern=both(causal, window(2)))

    def forward(self, source, token_mask=None):
        lower = self.below.attend(source, self.below.project_kv(source, token_mask))
        return self.above.attend(lower, self.above.project_kv(lower, token_mask))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TwoLayers()


def test_every_layer_is_heard_by_its_path_with_the_weights_it_used(model):
    source, token_mask = torch.randn(2, 5, 6), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with observe(model) as trace:
        model(source, token_mask)
    assert tuple(trace) == ("below", "above")
    assert isinstance(trace["below"], DenseAttentionMap)
    assert isinstance(trace["above"], FactoredAttentionMap)
    memory = model.below.project_kv(source, token_mask)
    torch.testing.assert_close(
        trace["below"].weights(), model.below.attention_weights(source, memory)
    )
    lower = model.below(source, memory)
    weights = model.above.attention_weights(lower, model.above.project_kv(lower, token_mask))
    torch.testing.assert_close(trace["above"].weights(), weights)


@pytest.mark.parametrize("layer", ["below", "above"])
def test_blocks_and_rows_and_selected_readings_are_parts_of_the_whole_map(model, layer):
    with observe(model) as trace:
        model(torch.randn(3, 7, 6), torch.rand(3, 7) > 0.3)
    attention_map = trace[layer]
    whole = attention_map.weights()
    assert whole.shape == attention_map.shape
    torch.testing.assert_close(torch.cat(list(attention_map.blocks(3)), dim=2), whole)
    torch.testing.assert_close(attention_map.rows(2, 5), whole[:, :, 2:5])
    assert attention_map.rows(4, 4).shape[2] == 0
    chosen = torch.tensor([2, 0, 0])
    torch.testing.assert_close(attention_map.select(chosen).weights(), whole[chosen])


def test_observing_changes_neither_outputs_nor_gradients(model):
    source = torch.randn(2, 5, 6)
    plain = model(source)
    plain.sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    with observe(model) as trace:
        heard = model(source)
    heard.sum().backward()
    assert torch.equal(heard, plain)
    for parameter, before in zip(model.parameters(), gradients, strict=True):
        assert torch.equal(parameter.grad, before)
    assert not trace["above"].weights().requires_grad


def test_several_calls_are_kept_apart_and_in_order(model):
    source = torch.randn(1, 4, 6)
    with observe(model) as trace:
        model(source)
        model(source[:, :2])
    assert [attention_map.shape[2] for attention_map in trace.calls("above")] == [4, 2]
    with pytest.raises(AttlasError, match=r"a single call of layer 'above'; got 2 calls"):
        _ = trace["above"]


def test_a_layer_that_is_not_in_the_trace_is_an_error_that_lists_those_that_are(model):
    with observe(model) as trace:
        model(torch.randn(1, 4, 6))
    with pytest.raises(AttlasError, match=r"one of the layers \['below', 'above'\]; got 'abvoe'"):
        trace.calls("abvoe")


def test_of_many_layers_an_error_lists_a_dozen_and_their_number():
    trace = Trace()
    for number in range(14):
        trace.record(str(number), DenseAttentionMap(torch.ones(1, 1, 1, 1)))
    with pytest.raises(AttlasError, match=r"layers \['0', .*, '11', … \(14 in all\)\]; got 'x'"):
        trace.calls("x")


def test_an_empty_trace_is_an_error_that_says_why(model):
    with pytest.raises(AttlasError, match="at least one attention call") as caught, observe(model):
        pass
    assert caught.value.got == "none: TwoLayers did not run"


def test_an_error_inside_the_block_is_not_hidden_by_the_empty_trace(model):
    with pytest.raises(ZeroDivisionError), observe(model):
        raise ZeroDivisionError


def test_a_model_that_does_not_look_cannot_be_observed():
    with (
        pytest.raises(AttlasError, match="no attention by softmax in PyTorch's functions"),
        observe(still := nn.Linear(2, 2)),
    ):
        still(torch.ones(1, 2))


def test_another_model_and_the_time_after_the_block_are_not_heard(model):
    other = TwoLayers()
    with observe(model) as trace:
        model(torch.randn(1, 4, 6))
        other(torch.randn(1, 4, 6))
    model(torch.randn(1, 4, 6))
    assert len(trace.calls("above")) == 1


def test_observers_may_be_nested(model):
    with observe(model) as outer:
        model(torch.randn(1, 4, 6))
        with observe(model.above) as inner:
            model(torch.randn(1, 4, 6))
    assert len(outer.calls("above")) == 2
    assert tuple(inner) == ("",)


def test_a_thread_hears_its_own_calls_alone(model):
    both_inside, both_done = threading.Barrier(2, timeout=30), threading.Barrier(2, timeout=30)
    lengths = {}

    def listen(length):
        with observe(model) as trace:
            both_inside.wait()
            model(torch.randn(1, length, 6))
            both_done.wait()
        lengths[length] = [attention_map.shape[2] for attention_map in trace.calls("above")]

    threads = [threading.Thread(target=listen, args=(length,)) for length in (3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lengths == {3: [3], 5: [5]}


def test_a_factored_reading_of_half_precision_still_sums_to_one(model):
    above = model.above.bfloat16()
    source = torch.randn(1, 40, 6, dtype=torch.bfloat16)
    with observe(above) as trace:
        above.attend(source, above.project_kv(source))
    sums = trace[""].weights().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_rows_outside_the_map_are_an_error(model):
    with observe(model) as trace:
        model(torch.randn(1, 4, 6))
    with pytest.raises(AttlasError, match="expected rows within 0 … 4; got 2 … 5"):
        trace["above"].rows(2, 5)
    with pytest.raises(AttlasError, match="a block size of at least one row; got 0"):
        next(trace["above"].blocks(0))


def test_a_path_with_brackets_names_its_layer():
    layer = AdditiveAttention(query_dim=4, key_dim=4, hidden_dim=4)
    model = nn.ModuleDict({"a[0]": layer})
    vectors = torch.randn(1, 3, 4)
    with observe(model, layers="a[0]") as trace:
        layer.attend(vectors, layer.project_kv(vectors))
    assert list(trace) == ["a[0]"]


def test_a_block_that_ends_in_another_thread_leaves_both_as_they_were():
    """As web servers go on with a generator: in whichever thread is free."""
    model = nn.Linear(8, 8)
    model.forward = lambda x: F.scaled_dot_product_attention(x, x, x)
    given = torch.randn(1, 2, 5, 8)

    def looking():
        with observe(model) as trace:
            model(given)
            yield len(trace.calls(""))

    def once():
        with observe(model) as trace:
            model(given)
        model(given)  # which nobody hears
        return len(trace.calls(""))

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        generator = looking()
        assert one.submit(next, generator).result() == 1
        other.submit(generator.close).result()
        left = one.submit(lambda: listeners()).result()
        assert left == ()
        assert one.submit(once).result() == 1
        assert other.submit(once).result() == 1
        for thread in (one, other):
            assert thread.submit(lambda: len(_get_current_function_mode_stack())).result() == 0


def test_a_thread_that_has_ended_takes_nothing_from_the_next_of_its_number():
    model = nn.Linear(8, 8)
    model.forward = lambda x: F.scaled_dot_product_attention(x, x, x)
    given, found = torch.randn(1, 2, 5, 8), []

    def looking():
        with observe(model) as trace:
            model(given)
            yield len(trace.calls(""))

    def closing():
        with observe(model) as trace:
            generator.close()
            model(given)
        found.append(len(trace.calls("")))

    generator = looking()
    for work in (lambda: next(generator), closing):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [1]


def test_a_function_that_is_put_around_torchs_own_is_called_once(monkeypatch):
    whole, called = F.multi_head_attention_forward, []

    def around(*args, **kwargs):
        called.append(1)
        return whole(*args, **kwargs)

    monkeypatch.setattr(F, "multi_head_attention_forward", around)
    model = nn.MultiheadAttention(8, 2)
    x = torch.randn(5, 1, 8)
    with observe(model) as trace:
        model(x, x, x)
    assert len(called) == len(trace.calls("")) == 1


def test_a_kernel_that_is_put_in_place_of_torchs_is_called(monkeypatch):
    kernel = F.scaled_dot_product_attention
    monkeypatch.setattr(
        F, "scaled_dot_product_attention", lambda q, k, v, *_, **__: kernel(q, k, v) + 1
    )
    model = nn.MultiheadAttention(8, 2)
    x = torch.randn(5, 1, 8)
    plain = model(x, x, x, need_weights=False)[0]
    with observe(model):
        assert torch.equal(model(x, x, x, need_weights=False)[0], plain)


def test_what_the_caller_writes_over_afterwards_is_kept_as_it_was():
    source, token_mask = torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool)
    for attention in (ScaledDotProductAttention(), MultiheadAttention(4, 2), DotAttention()):
        given, shown = source.clone(), token_mask.clone()
        with torch.no_grad(), observe(attention) as trace:
            memory = attention.project_kv(given, shown)
            attention.attend(given, memory)
            expected = attention.attention_weights(given, memory)
            given += 1.0
            given *= torch.rand(4)
            shown[:, 3:] = False
        torch.testing.assert_close(trace[next(iter(trace))].weights(), expected)


MIXERS = {
    "fourier": lambda x: torch.fft.fft2(x).real,
    "sigmoid": lambda x: torch.sigmoid(x @ x.mT) @ x,
    "linear": lambda x: x.relu() @ (x.relu().mT @ x),
}


@pytest.mark.parametrize("mix", MIXERS.values(), ids=MIXERS)
def test_a_model_without_a_softmax_is_reported_what_is_heard_and_not_to_load_another(mix):
    class Mixer(torch.nn.Module):
        def forward(self, x):
            return mix(x)

    model = Mixer()
    reported = r"got no attention by softmax in PyTorch's functions, although Mixer ran; .*sigmoids"
    with pytest.raises(AttlasError, match=reported), observe(model):
        model(torch.randn(1, 5, 8))


class GraphAttention(torch.nn.Module):
    """Velickovic et al., 2018, of one graph: scores are sums, and have two axes."""

    def __init__(self):
        super().__init__()
        self.query, self.key = (torch.nn.Linear(8, 1) for _ in range(2))

    def forward(self, x):
        scores = self.query(x) + self.key(x).mT
        return torch.softmax(torch.nn.functional.leaky_relu(scores, 0.2), -1) @ x


def test_weights_of_two_axes_that_may_be_of_classes_are_reported_and_how_they_are_read():
    model, nodes = GraphAttention(), torch.randn(5, 8)
    reported = (
        r"a softmax of two axes in \[''\] .*; if its axes are queries and keys, .*scores\[None\]"
    )
    with pytest.raises(AttlasError, match=reported), observe(model):
        model(nodes)
    with torch.no_grad(), observe(model) as trace:
        model(nodes[None])
    scores = (nodes @ model.query.weight.mT + model.query.bias).detach()
    scores = scores + (nodes @ model.key.weight.mT + model.key.bias).detach().mT
    expected = torch.where(scores > 0, scores, 0.2 * scores).double().softmax(-1)
    torch.testing.assert_close(trace[""].weights()[0, 0].double(), expected, atol=1e-6, rtol=0)


def test_calls_that_are_not_one_map_say_why():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)

    model = Model()
    with observe(model) as trace:
        model(torch.randn(1, 2, 5, 8))
        model(torch.randn(3, 2, 5, 8))
    with pytest.raises(
        AttlasError, match=r"2 calls, which do not continue each other: .* 1 × 2 and 3 × 2 texts"
    ):
        trace[""]
    with observe(model) as trace:
        model(torch.randn(1, 2, 5, 8))
        model(torch.randn(1, 2, 5, 8))
    with pytest.raises(AttlasError, match="2 calls, which do not continue each other: a step"):
        trace[""]
