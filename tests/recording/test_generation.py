"""Generations by other people's searches: one map for each layer, that of one pass over it all."""

import copy
import itertools
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import attlas
from attlas.recording import observe
from attlas.recording.torch_functions.calls import RecentCalls

transformers = pytest.importorskip("transformers")

WIDTH, HEADS, WORDS = 16, 2, 40
SIZES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS}
SIZES |= {"num_key_value_heads": 1, "intermediate_size": 32, "head_dim": 8}
WORDLESS = {"vocab_size": WORDS, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
PROMPT = torch.tensor([[5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7]])
PADDED = torch.tensor([[0, 0, 0, 4, 9, 5, 6], [3, 8, 5, 2, 7, 6, 3]])


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **WORDLESS))


def mistral():
    config = transformers.MistralConfig(**SIZES, **WORDLESS, sliding_window=5)
    return transformers.MistralForCausalLM(config)


def gemma():
    kinds = ["sliding_attention", "full_attention"]
    config = transformers.Gemma3TextConfig(**SIZES, **WORDLESS, sliding_window=5, layer_types=kinds)
    return transformers.Gemma3ForCausalLM(config)


def llama4():
    config = transformers.Llama4TextConfig(
        **{**SIZES, "num_hidden_layers": 4}, **WORDLESS, attention_chunk_size=4,
        intermediate_size_mlp=32, num_local_experts=2,
    )  # fmt: skip
    return transformers.Llama4ForCausalLM(config)


def bloom():
    config = transformers.BloomConfig(hidden_size=WIDTH, n_layer=2, n_head=HEADS, **WORDLESS)
    return transformers.BloomForCausalLM(config)


def t5():
    config = transformers.T5Config(
        d_model=WIDTH, d_kv=8, num_layers=2, num_heads=HEADS, d_ff=32, vocab_size=WORDS,
        eos_token_id=None, pad_token_id=0, decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def bart():
    config = transformers.BartConfig(
        d_model=WIDTH, encoder_layers=2, decoder_layers=2, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=WORDS,
        eos_token_id=None, forced_eos_token_id=None, pad_token_id=0, bos_token_id=1,
        decoder_start_token_id=1,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


MODELS = {one.__name__: one for one in (llama, mistral, gemma, llama4, bloom, t5, bart)}
SEARCHES = {
    "greedy": {},
    "beam": {"num_beams": 3, "num_return_sequences": 3},
    "sample": {"do_sample": True, "num_return_sequences": 2},
    "lookup": {"prompt_lookup_num_tokens": 3},
    "static": {"cache_implementation": "static"},
}


def made(name, seed=0):
    torch.manual_seed(seed)
    return MODELS[name]().eval()


def generated(model, prompt, **search):
    """The trace of a generation, and what was written."""
    given = {"do_sample": False, "max_new_tokens": 9} | search
    torch.manual_seed(1)
    with warnings.catch_warnings(), observe(model) as trace:
        warnings.simplefilter("ignore")
        written = model.generate(prompt, attention_mask=(prompt > 0).long(), **given)
    return trace, written


def read_at_once(model, prompt, written):
    """The trace of one pass over the text, without a cache."""
    rows = len(written) // len(prompt)
    prompt = prompt.repeat_interleave(rows, 0)
    token_mask = (prompt > 0).long()
    with torch.no_grad(), observe(model) as trace:
        if model.config.is_encoder_decoder:
            target = written[:, :-1]
            model(prompt, attention_mask=token_mask, decoder_input_ids=target, use_cache=False)
            return trace
        token_mask = F.pad(token_mask, (0, written.shape[1] - 1 - prompt.shape[1]), value=1)
        places = {"position_ids": (token_mask.cumsum(1) - 1).clamp(min=0)}
        if isinstance(model, transformers.BloomForCausalLM):
            places = {}
        model(written[:, :-1], attention_mask=token_mask, use_cache=False, **places)
    return trace


def check_alike(trace, whole, padded=0):
    """That both traces have the same weights; of queries that are no padding."""
    for layer in whole:
        right, found = whole[layer].weights(), trace[layer].weights()
        if layer.startswith("encoder") or ".encoder." in layer:
            continue  # read once for all hypotheses
        assert found.shape == right.shape, layer
        found[0, :, :padded], right[0, :, :padded] = 0, 0
        torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", MODELS)
def test_a_search_makes_the_map_of_one_pass_over_what_it_wrote(name, search):
    model = made(name)
    trace, written = generated(model, PROMPT, **SEARCHES[search])
    if search == "beam":  # which of the rows is which text is told by their order at the end
        assert {len(trace.calls(layer)) for layer in trace} == {1}
        for layer in trace:
            assert trace[layer].shape[0] in (1, 3)
        return
    check_alike(trace, read_at_once(model, PROMPT, written))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("t5", "bart")])
def test_padding_on_the_left_is_seen_by_nobody_in_a_generation(name):
    model = made(name)
    trace, written = generated(model, PADDED)
    check_alike(trace, read_at_once(model, PADDED, written), padded=3)


@pytest.mark.parametrize("name", ["llama", "mistral", "llama4", "t5", "bart"])
def test_assisted_decoding_makes_the_map_of_one_pass(name):
    model = made(name)
    trace, written = generated(model, PROMPT, assistant_model=made(name, seed=3))
    check_alike(trace, read_at_once(model, PROMPT, written))


@pytest.mark.parametrize("name", ["llama", "t5", "bart"])
@pytest.mark.parametrize("search", ["greedy", "lookup"])
def test_attention_that_is_written_out_makes_the_same_map(name, search):
    model = made(name)
    model.set_attn_implementation("eager")
    trace, written = generated(model, PROMPT, **SEARCHES[search])
    check_alike(trace, read_at_once(model, PROMPT, written))


def test_heads_that_are_kept_alone_are_those_of_the_whole_map():
    model = made("llama")
    with observe(model, heads=[1]) as trace:
        written = model.generate(PROMPT, max_new_tokens=9, do_sample=False)
    whole = read_at_once(model, PROMPT, written)
    for layer in whole:
        torch.testing.assert_close(trace[layer].weights(), whole[layer].weights()[:, 1:])


def test_a_generation_that_goes_on_from_a_cache_is_one_map_with_it():
    model = made("llama")
    with observe(model) as trace:
        first = model.generate(
            PROMPT, max_new_tokens=4, do_sample=False, return_dict_in_generate=True
        )
        written = model.generate(
            first.sequences,
            past_key_values=first.past_key_values,
            max_new_tokens=4,
            do_sample=False,
        )
    check_alike(trace, read_at_once(model, PROMPT, written))


def test_two_generations_are_two_maps_and_the_trace_says_why():
    model = made("llama")
    with observe(model) as trace:
        for _ in range(2):
            written = model.generate(PROMPT, max_new_tokens=4, do_sample=False)
    whole = read_at_once(model, PROMPT, written)
    for layer in trace:
        for call in trace.calls(layer):
            torch.testing.assert_close(call.weights(), whole[layer].weights())
        assert "a call with a new text" in trace.split_reasons(layer)[0]
        with pytest.raises(attlas.AttlasError, match="a call with a new text"):
            trace[layer]


def steps(model, cache, words):
    for word in words:
        model(torch.tensor([[word]]), past_key_values=cache)


def test_candidates_that_a_cropped_cache_has_dropped_go_from_the_map():
    model = made("llama")
    with torch.no_grad(), observe(model) as trace:
        cache = transformers.DynamicCache(config=model.config)
        model(PROMPT, past_key_values=cache)
        model(torch.tensor([[1, 2, 3, 4]]), past_key_values=cache)
        cache.crop(-2)
        steps(model, cache, [9, 8])
    text = torch.tensor([[*PROMPT[0].tolist(), 1, 2, 9, 8, 0]])
    check_alike(trace, read_at_once(model, PROMPT, text))


def test_a_cache_that_is_cropped_by_whole_calls_has_a_map_of_each_text():
    model = made("llama")
    with torch.no_grad(), observe(model) as trace:
        cache = transformers.DynamicCache(config=model.config)
        model(PROMPT, past_key_values=cache)
        steps(model, cache, [1, 2, 3])
        cache.crop(-2)
        steps(model, cache, [9, 8])
    for call, words in enumerate(([1, 2, 3], [1, 9, 8])):
        text = torch.tensor([[*PROMPT[0].tolist(), *words, 0]])
        whole = read_at_once(model, PROMPT, text)
        for layer in whole:
            found = trace.calls(layer)[call].weights()
            torch.testing.assert_close(found, whole[layer].weights(), atol=1e-5, rtol=1e-4)
            assert "cropped" in trace.split_reasons(layer)[0]


def test_copies_of_a_cache_go_on_each_for_itself():
    model = made("llama")
    with torch.no_grad(), observe(model) as trace:
        cache = transformers.DynamicCache(config=model.config)
        model(PROMPT, past_key_values=cache)
        for words in ([1, 2], [3, 4]):
            steps(model, copy.deepcopy(cache), words)
    for call, words in enumerate(([1, 2], [3, 4])):
        text = torch.tensor([[*PROMPT[0].tolist(), *words, 0]])
        whole = read_at_once(model, PROMPT, text)
        for layer in whole:
            found = trace.calls(layer)[call].weights()
            torch.testing.assert_close(found, whole[layer].weights(), atol=1e-5, rtol=1e-4)


def test_keys_that_were_changed_in_a_cache_are_not_taken_for_those_of_before():
    model = made("llama")
    with torch.no_grad(), observe(model) as trace:
        cache = transformers.DynamicCache(config=model.config)
        model(PROMPT, past_key_values=cache)
        cache.layers[0].keys[:, :, 3] += 1
        steps(model, cache, [1])
    first, second = trace
    assert len(trace.calls(first)) == 2
    assert "changes what it keeps" in trace.split_reasons(first)[0]
    assert trace[second].shape[2:] == (12, 12)


class Bytes(TorchDispatchMode):
    """How many bytes the operators have made, copied or compared, by their results and inputs."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func not in _VIEWS:
            tensors = [one for one in (*args, result) if isinstance(one, torch.Tensor)]
            self.count += sum(one.numel() * one.element_size() for one in tensors)
            lists = [one for one in args if isinstance(one, list | tuple)]
            tensors = [one for many in lists for one in many if isinstance(one, torch.Tensor)]
            self.count += sum(one.numel() * one.element_size() for one in tensors)
        return result


aten = torch.ops.aten
_VIEWS = {aten.view.default, aten.detach.default, aten.transpose.int, aten.slice.Tensor}
_VIEWS |= {aten.expand.default, aten.unsqueeze.default, aten.permute.default, aten.select.int}
_VIEWS |= {aten.alias.default, aten._unsafe_view.default, aten.squeeze.dim, aten.t.default}


def bytes_of_steps(model, prompt, *, seen, places):
    """The bytes that were touched by the step at each of these places."""
    cache = transformers.DynamicCache(config=model.config)
    found, step = [], torch.tensor([[3]])
    with torch.no_grad():
        watch = observe(model) if seen else warnings.catch_warnings()
        with watch:
            model(prompt, past_key_values=cache)
            for place in range(prompt.shape[1], max(places) + 1):
                with Bytes() as count:
                    model(step, past_key_values=cache)
                if place in places:
                    found.append(count.count)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_what_a_step_costs_does_not_grow_with_what_was_kept(name):
    model, prompt = made(name), torch.full((1, 8), 5)
    places = [10, 40, 120]
    plain = bytes_of_steps(model, prompt, seen=False, places=places)
    seen = bytes_of_steps(model, prompt, seen=True, places=places)
    more = [mine - others for mine, others in zip(seen, plain, strict=True)]
    assert more[2] == more[1] == more[0], more


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "bloom", "t5"])
def test_a_step_follows_no_more_calls_the_longer_the_text_has_grown(name, monkeypatch):
    model, counts, per_step = made(name), {"at": 0, "record": 0}, []

    def counting(which):
        method = getattr(RecentCalls, which)

        def counted(*given):
            counts[which] += 1
            return method(*given)

        return counted

    for which in counts:
        monkeypatch.setattr(RecentCalls, which, counting(which))
    model.register_forward_pre_hook(lambda *_: per_step.append(tuple(counts.values())))
    generated(model, PROMPT, max_new_tokens=122)
    followed, noted = zip(
        *(
            (after[0] - before[0], after[1] - before[1])
            for before, after in (per_step[step : step + 2] for step in (10, 40, 120))
        ),
        strict=True,
    )
    assert followed[0] == followed[1] == followed[2] < 3 * noted[0], followed
    assert noted[0] == noted[1] == noted[2], noted


def test_keys_of_an_earlier_call_of_the_model_are_followed_no_further():
    class Looking(torch.nn.Module):
        """Keys of all calls, one behind another."""

        keys = None

        def forward(self, x):
            self.keys = x * 2 if self.keys is None else torch.cat((self.keys, x * 2), -2)
            return F.scaled_dot_product_attention(x, self.keys, self.keys)

    model, followed, at = Looking(), [], RecentCalls.at
    words = torch.randn(200, 1, 1, 1, 4)
    with pytest.MonkeyPatch.context() as patch, observe(model) as trace:
        patch.setattr(RecentCalls, "at", lambda *given: followed.append(given) or at(*given))
        for word in words:
            followed.append(None)
            model(word)
    steps = [place for place, one in enumerate(followed) if one is None]
    assert len({end - begin for begin, end in itertools.pairwise(steps[1:])}) == 1
    assert trace.kind("") == "self"
