"""`attn_implementation="attlas"`, against the "eager" and the "sdpa" of transformers."""

import sys

import pytest
import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    StaticCache,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward

import attlas
from attlas.errors import AttlasError
from attlas.recording import observe
from attlas.recording.attention_interface import attention_forward

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "vocab_size": 99,
}
GROUPED = {**SMALL, "num_key_value_heads": 2}
ENCODER_DECODER = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "vocab_size": 99,
}  # fmt: skip
T5 = {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 32, "d_kv": 8, "vocab_size": 99}
MODELS = {
    "bert": SMALL,
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99, "eos_token_id": 2},
    "llama": GROUPED,
    "mistral": {**GROUPED, "sliding_window": 4},
    "bart": ENCODER_DECODER,
    "t5": T5,
    # transformers has no "sdpa" for these, whose scores are capped, or go to sinks as well.
    "gemma2": {**GROUPED, "head_dim": 8, "sliding_window": 4},
    "gpt_oss": {**GROUPED, "head_dim": 8, "num_local_experts": 4, "sliding_window": 4},
}
EXPLICIT = {"gemma2", "gpt_oss"}
TWO_SIDED = {"bart", "t5"}


@pytest.fixture(autouse=True)
def registered() -> None:
    assert attlas.register_attention_interface() == "attlas"


def model_of(name, implementation, kind=AutoModel, **settings):
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **{**MODELS[name], "bos_token_id": 1, **settings})
    return kind.from_config(config, attn_implementation=implementation)


def inputs_of(name, padded):
    torch.manual_seed(1)
    inputs = {"input_ids": torch.randint(3, 90, (2, 9))}
    if padded:
        inputs["attention_mask"] = torch.ones(2, 9, dtype=torch.long)
        inputs["attention_mask"][1, 6:] = 0
    if name in TWO_SIDED:
        inputs["decoder_input_ids"] = torch.randint(3, 90, (2, 7))
    return inputs


def kinds_of(outputs):
    return [key for key in outputs if "attentions" in key and outputs[key]]


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("name", MODELS)
def test_the_weights_are_those_of_eager_and_the_output_is_that_of_sdpa(name, padded):
    inputs = inputs_of(name, padded)
    with torch.no_grad():
        eager = model_of(name, "eager").eval()(**inputs, output_attentions=True)
        model = model_of(name, "attlas").eval()
        ours, without = model(**inputs, output_attentions=True), model(**inputs)
    assert kinds_of(ours) == kinds_of(eager) != []
    assert kinds_of(without) == []
    for kind in kinds_of(eager):
        assert len(ours[kind]) == 2
        for weights, expected in zip(ours[kind], eager[kind], strict=True):
            torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(ours[0], without[0], rtol=0, atol=0)
    if name in EXPLICIT:
        torch.testing.assert_close(ours[0], eager[0], rtol=0, atol=1e-5)
        return
    with torch.no_grad():
        fused = model_of(name, "sdpa").eval()(**inputs)
    torch.testing.assert_close(ours[0], fused[0], rtol=0, atol=0)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_flow_through_the_output_and_through_the_weights(name):
    inputs = inputs_of(name, padded=True)
    gradients = []
    for implementation in ("eager", "attlas"):
        model = model_of(name, implementation).eval()
        outputs = model(**inputs, output_attentions=True)
        maps = [weights for kind in kinds_of(outputs) for weights in outputs[kind]]
        (outputs[0].sum() + sum((weights**2).sum() for weights in maps)).backward()
        gradients.append({k: p.grad for k, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() != set()
    for key, expected in gradients[0].items():
        torch.testing.assert_close(gradients[1][key], expected, rtol=1e-3, atol=2e-4)


def test_in_training_the_output_has_dropout_and_the_weights_have_none():
    inputs = inputs_of("bert", padded=True)
    settings = {"attention_probs_dropout_prob": 0.5, "hidden_dropout_prob": 0.0}
    model, fused = (model_of("bert", name, **settings).train() for name in ("attlas", "sdpa"))
    torch.manual_seed(3)
    first = model(**inputs, output_attentions=True)
    torch.manual_seed(3)
    second = fused(**inputs)
    torch.testing.assert_close(first[0], second[0], rtol=0, atol=0)
    sums = first.attentions[0].sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2"])
def test_a_generation_has_the_weights_of_each_step(name, cache):
    ids = inputs_of(name, padded=False)["input_ids"]
    found = []
    for implementation in ("eager", "attlas"):
        model = model_of(name, implementation, AutoModelForCausalLM).eval()
        options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
        if cache == "static":
            options["past_key_values"] = StaticCache(config=model.config, max_cache_len=20)
        found.append(
            model.generate(ids, output_attentions=True, return_dict_in_generate=True, **options)
        )
    assert torch.equal(found[0].sequences, found[1].sequences)
    for step, expected in zip(found[1].attentions, found[0].attentions, strict=True):
        for weights, of_eager in zip(step, expected, strict=True):
            torch.testing.assert_close(weights, of_eager, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_observed_has_one_map_a_layer(name):
    kind = AutoModelForSeq2SeqLM if name in TWO_SIDED else AutoModel
    model, inputs = model_of(name, "attlas", kind).eval(), inputs_of(name, padded=True)
    with observe(model) as trace, torch.no_grad():
        outputs = model(**inputs, output_attentions=True)
    maps = [weights for key in kinds_of(outputs) for weights in outputs[key]]
    assert len(trace) == len(maps)
    for attention_map in trace.values():
        weights = attention_map[:]
        gaps = [(weights - other).abs().max() for other in maps if other.shape == weights.shape]
        assert min(gaps) < 1e-5


@pytest.mark.parametrize(("queries", "keys"), [(3, 5), (5, 3), (4, 4), (1, 4)])
def test_without_a_mask_a_causal_module_looks_back_from_the_first_key_on_as_in_sdpa(queries, keys):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 4, n, 8) for n in (queries, keys, keys))
    module = torch.nn.Module()
    module.is_causal = True
    output, weights = attention_forward(module, query, key, value, None, scaling=0.3)
    expected, _ = sdpa_attention_forward(module, query, key, value, None, scaling=0.3)
    torch.testing.assert_close(output, expected, rtol=0, atol=0)
    torch.testing.assert_close((weights @ value).transpose(1, 2), expected)


def test_a_query_that_sees_no_key_has_no_weights():
    model = model_of("llama", "attlas").eval()
    mask = torch.ones(1, 5, dtype=torch.long)
    mask[0, :2] = 0
    with torch.no_grad():
        outputs = model(torch.arange(5, 10)[None], attention_mask=mask, output_attentions=True)
    weights = outputs.attentions[0]
    assert (weights[..., :2] == 0).all()
    torch.testing.assert_close(weights[:, :, 2:].sum(-1), torch.ones(1, 4, 3))
    assert outputs[0].isfinite().all()


@pytest.mark.parametrize("use_cache", [False, True])
def test_packed_texts_see_what_they_see_in_eager(use_cache):
    ids, positions = torch.arange(5, 13)[None], torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3]])
    maps = []
    for implementation in ("eager", "attlas"):
        model = model_of("llama", implementation).eval()
        with torch.no_grad():
            maps.append(
                model(
                    ids, position_ids=positions, use_cache=use_cache, output_attentions=True
                ).attentions
            )
    for weights, expected in zip(maps[1], maps[0], strict=True):
        torch.testing.assert_close(weights, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("missing", ["transformers", "transformers.utils.output_capturing"])
def test_without_transformers_5_it_says_what_to_install(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delattr(transformers.utils, "output_capturing", raising=False)
    with pytest.raises(AttlasError, match="pip install 'transformers>=5'"):
        attlas.register_attention_interface()


def test_within_a_block_every_call_has_weights_though_none_asks_for_them():
    inputs, seen = inputs_of("llama", padded=True), []
    model = model_of("llama", "attlas").eval()
    for layer in model.layers:
        layer.self_attn.register_forward_hook(lambda module, _, outputs: seen.append(outputs[1]))
    with torch.no_grad():
        requested = model(**inputs, output_attentions=True).attentions
        seen.clear()
        with attlas.attention_weights_in_every_call():
            assert model(**inputs).attentions is None
        within = seen[:]
        model(**inputs)
    assert seen[2:] == [None, None]
    for weights, expected in zip(within, requested, strict=True):
        torch.testing.assert_close(weights, expected, rtol=0, atol=0)
