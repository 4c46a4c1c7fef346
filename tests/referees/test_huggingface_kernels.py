"""Attention kernels that transformers calls by name, against its eager attention."""

import threading

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from attlas.patterns import both, causal, everywhere, window
from attlas.recording import intervene, observe, without
from attlas.recording.torch_functions.transformers import InterfaceCall

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "vocab_size": 99,
}


def unseen(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **named):
    """A kernel that no function of torch shows: it reckons in NumPy."""
    groups = query.shape[1] // key.shape[1]
    q, k, v = (part.detach().double().numpy() for part in (query, key, value))
    k, v = k.repeat(groups, 1), v.repeat(groups, 1)
    scores = q @ k.swapaxes(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if attention_mask is None:
        back = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        attention_mask = back if named.get("is_causal", module.is_causal) else back | True
    if attention_mask.dtype != torch.bool:
        attention_mask = attention_mask >= 0
    scores[~attention_mask.expand(scores.shape).numpy()] = -1e30
    scores -= scores.max(-1, keepdims=True)
    weights = 2.718281828459045**scores
    weights /= weights.sum(-1, keepdims=True)
    return torch.from_numpy(weights @ v).to(query.dtype).transpose(1, 2), None


@pytest.fixture
def kernel():
    AttentionInterface.register("unseen", unseen)
    yield "unseen"
    del AttentionInterface._global_mapping["unseen"]


def made(kind, name, implementation, **settings):
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **{**SMALL, **settings})
    return kind.from_config(config, attn_implementation=implementation).eval()


@pytest.fixture
def sentences():
    torch.manual_seed(1)
    return torch.randint(3, 90, (2, 9))


def test_a_kernel_of_ones_own_is_read_from_what_it_was_given(kernel, sentences):
    model = made(AutoModelForCausalLM, "llama", kernel)
    referee = made(AutoModelForCausalLM, "llama", "eager")
    table = dict(ALL_ATTENTION_FUNCTIONS)
    with torch.no_grad():
        plain = model(sentences).logits
        with observe(model) as trace:
            seen = model(sentences).logits
        expected = referee(sentences, output_attentions=True).attentions
    assert torch.equal(plain, seen)
    assert dict(ALL_ATTENTION_FUNCTIONS) == table
    assert not ALL_ATTENTION_FUNCTIONS._local_mapping
    for layer, weights in zip(trace, expected, strict=True):
        torch.testing.assert_close(trace[layer].weights(), weights, atol=1e-5, rtol=0)
        assert trace[layer].keys.shape[1] == 2


def test_a_kernel_of_ones_own_can_be_intervened_in(kernel, sentences):
    outcomes = []
    for implementation in (kernel, "eager"):
        model = made(AutoModelForCausalLM, "llama", implementation)
        with torch.no_grad(), intervene(model, without(1)):
            outcomes.append(model(sentences).logits)
    torch.testing.assert_close(*outcomes, atol=1e-5, rtol=0)


def test_a_generation_with_a_kernel_of_ones_own_is_one_map(kernel, sentences):
    model = made(AutoModelForSeq2SeqLM, "bart", kernel, d_model=32, encoder_layers=2)
    named = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    with torch.no_grad(), observe(model, layers="model.decoder.layers.0.*") as trace:
        written = model.generate(sentences, **named)
    steps = written.shape[1] - 1
    assert [trace[layer].shape[2:] for layer in trace] == [(steps, steps), (steps, 9)]


def test_another_thread_runs_the_kernel_unheard(kernel, sentences):
    model = made(AutoModelForCausalLM, "llama", kernel)
    heard = []

    def elsewhere():
        with torch.no_grad():
            heard.append(model(sentences).logits)

    with torch.no_grad(), observe(model, last_calls=5) as trace:
        plain = model(sentences).logits
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
    assert torch.equal(heard[0], plain)
    assert all(len(trace.calls(layer)) == 1 for layer in trace)


def test_blocks_inside_each_other_put_the_table_back_once(kernel, sentences):
    model = made(AutoModelForCausalLM, "llama", kernel)
    with torch.no_grad(), observe(model) as outer:
        with observe(model) as inner:
            model(sentences)
        model(sentences)
    assert [len(trace.calls(next(iter(trace)))) for trace in (outer, inner)] == [2, 1]
    assert ALL_ATTENTION_FUNCTIONS["unseen"] is unseen


def read(mask=None, queries=3, slots=5, **named):
    torch.manual_seed(0)
    query, keys = torch.randn(2, 4, queries, 8), torch.randn(2, 2, slots, 8)
    module = torch.nn.Module()
    module.is_causal = True
    call = InterfaceCall.of(module, query, keys, keys, mask, named)
    return None if call is None else call.attention_map()


def test_a_mask_of_two_axes_is_padding_and_queries_are_the_newest():
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    attention_map = read(mask)
    assert (attention_map.pattern, attention_map.query_offset) == (causal, 2)
    assert torch.equal(attention_map.token_mask, mask.bool())
    assert read(torch.ones(2, 9)).token_mask is None


def test_a_sliding_window_holds_so_many_slots_with_the_querys_own():
    assert read(sliding_window=3).pattern == both(causal, window(2))
    assert read(sliding_window=5).pattern == causal
    assert read(sliding_window=3, is_causal=False).pattern == window(2)
    assert read(queries=1).pattern == everywhere


def test_caps_scales_and_biases_are_taken_over():
    bias = torch.randn(1, 4, 3, 5)
    attention_map = read(scaling=0.3, softcap=20.0, position_bias=bias)
    assert (attention_map.scale, attention_map.softcap) == (0.3, 20.0)
    back = torch.ones(3, 5, dtype=torch.bool).tril(2)  # the module is causal
    assert torch.equal(attention_map.bias, torch.where(back, bias, -torch.inf))
    assert torch.equal(read(is_causal=False, position_bias=bias).bias, bias)
    mask = torch.ones(1, 1, 3, 5, dtype=torch.bool).tril(2)
    both_ = read(mask, position_bias=bias)
    assert torch.equal(both_.bias, torch.where(mask, bias, -torch.inf))


@pytest.mark.parametrize("what", ["s_aux", "cache"])
def test_what_a_reading_has_no_words_for_is_not_read(what):
    assert read(**{what: torch.ones(4)}) is None
    assert read(mask="a mask of another kind") is None
