"""Models of Hugging Face whose attention is of a kind of its own: read exactly, or told."""

import gc
import re
import shutil
import subprocess
import sys
import weakref

import pytest
import torch
import transformers
from transformers import (
    AttentionInterface,
    DynamicCache,
    FSMTConfig,
    FSMTForConditionalGeneration,
    GptOssConfig,
    GptOssForCausalLM,
    LEDConfig,
    LEDModel,
    LlamaConfig,
    LlamaForCausalLM,
    LongformerConfig,
    LongformerModel,
    LongT5Config,
    LongT5Model,
    MistralConfig,
    MistralForCausalLM,
    StaticCache,
)

from attlas.errors import AttlasError
from attlas.patterns import causal
from attlas.recording import DenseAttentionMap, intervene, observe, uniform


def gpt_oss():
    """Two layers, of which the first looks through a window; every head has a logit of its own."""
    torch.manual_seed(0)
    config = GptOssConfig(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_local_experts=2,
        num_experts_per_tok=1,
        sliding_window=4,
    )
    model = GptOssForCausalLM._from_config(config, attn_implementation="eager").eval()
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks)
    return model


def test_a_sink_takes_its_share_so_that_rows_sum_to_less_than_one():
    model, text = gpt_oss(), torch.randint(1, 40, (2, 7))
    with torch.no_grad():
        plain = model(text, output_attentions=True)
        with observe(model) as trace:
            assert torch.equal(model(text).logits, plain.logits)
    assert tuple(trace) == ("model.layers.0.self_attn", "model.layers.1.self_attn")
    for layer, expected in zip(trace, plain.attentions, strict=True):
        assert isinstance(trace[layer], DenseAttentionMap)
        weights = trace[layer].weights()
        torch.testing.assert_close(weights, expected, atol=1e-5, rtol=0)
        assert bool((weights.sum(-1) < 1).all())


def sinking(module, query, key, value, attention_mask, scaling, s_aux, **named):
    """A kernel with sinks that no function of torch shows: it reckons in NumPy."""
    groups = query.shape[1] // key.shape[1]
    q, k, v = (part.detach().double().numpy() for part in (query, key, value))
    k, v = k.repeat(groups, 1), v.repeat(groups, 1)
    scores = q @ k.swapaxes(-1, -2) * scaling
    if attention_mask is None:
        back = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        attention_mask = (
            back if module.sliding_window is None else back.triu(1 - module.sliding_window)
        )
    scores[~attention_mask.expand(scores.shape).numpy()] = -1e30
    sinks = s_aux.detach().double().numpy().reshape(1, -1, 1, 1)
    shares = 2.718281828459045**scores
    shares /= shares.sum(-1, keepdims=True) + 2.718281828459045**sinks
    return torch.from_numpy(shares @ v).to(query.dtype).transpose(1, 2).contiguous(), None


@pytest.fixture
def kernel():
    AttentionInterface.register("sinking", sinking)
    yield "sinking"
    del AttentionInterface._global_mapping["sinking"]


def test_a_kernel_that_is_given_sinks_is_reported_with_the_way_to_read_them(kernel):
    model, text = gpt_oss(), torch.randint(1, 40, (2, 7))
    with torch.no_grad():
        plain = model(text).logits
        model.set_attn_implementation(kernel)
        seen = []
        reported = r"layers.0.self_attn', 'model.layers.1.self_attn'\] \(1 × each\).*sinks.*'eager'"
        with pytest.raises(AttlasError, match=reported), observe(model):
            seen.append(model(text).logits)
        torch.testing.assert_close(seen[0], plain, atol=1e-5, rtol=0)
        with pytest.raises(AttlasError, match="logits of sinks"), intervene(model, uniform):
            model(text)


SMALL = {"vocab_size": 40, "attention_window": 4}


def longformer():
    config = LongformerConfig(
        **SMALL,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    return LongformerModel(config)


def led():
    config = LEDConfig(
        **SMALL,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
    )
    return LEDModel(config)


def long_t5(kind):
    config = LongT5Config(
        vocab_size=40,
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=2,
        num_heads=2,
        local_radius=3,
        global_block_size=4,
        encoder_attention_type=kind,
    )
    return LongT5Model(config)


LONG = {
    "Longformer": (longformer, "encoder.layer.{}.attention.self"),
    "LED": (led, "encoder.layers.{}.self_attn.longformer_self_attn"),
    "LongT5, local": (lambda: long_t5("local"), "encoder.block.{}.layer.0.LocalSelfAttention"),
    "LongT5, global": (
        lambda: long_t5("transient-global"),
        "encoder.block.{}.layer.0.TransientGlobalSelfAttention",
    ),
}


@pytest.mark.parametrize(
    ("name", "looks_everywhere"),
    [("Longformer", False), ("LED", False), ("Longformer", True), ("LED", True)],
)
def test_local_attention_is_reported_by_its_layer_and_all_else_is_read(name, looks_everywhere):
    torch.manual_seed(0)
    make, path = LONG[name]
    model, text = make().eval(), torch.randint(3, 40, (1, 16))
    local = [path.format(layer) for layer in range(2)]
    named = {"input_ids": text, "output_attentions": True}
    if name != "Longformer":
        named["decoder_input_ids"] = text[:, :5]
    if looks_everywhere:
        named["global_attention_mask"] = torch.zeros_like(text)
        named["global_attention_mask"][0, [0, 3]] = 1
    reported, seen = f"{local} (1 × each): a softmax that is not multiplied with values", []
    with torch.no_grad():
        plain = model(**named)
        if name == "Longformer" and not looks_everywhere:
            with pytest.raises(AttlasError, match=re.escape(reported)), observe(model):
                seen.append(model(**named))
            trace = None
        else:
            with pytest.warns(UserWarning, match=re.escape(reported)), observe(model) as trace:
                seen.append(model(**named))
    assert torch.equal(plain[0], seen[0][0])
    if trace is None:
        return
    expected = {}
    if looks_everywhere:  # the rows of what looks everywhere, which the model gives as columns
        everywhere = plain.get("global_attentions") or plain.encoder_global_attentions
        expected |= {layer: rows.mT for layer, rows in zip(local, everywhere, strict=True)}
    read = [layer for layer in trace if layer not in local]
    both = zip(plain.get("decoder_attentions", ()), plain.get("cross_attentions", ()), strict=True)
    expected |= dict(zip(read, (each for pair in both for each in pair), strict=True))
    assert set(trace) == set(expected)
    for layer, weights in expected.items():
        torch.testing.assert_close(trace[layer].weights(), weights, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["LongT5, local", "LongT5, global"])
def test_blocks_of_a_text_that_have_an_axis_of_their_own_count_as_texts(name, recwarn):
    torch.manual_seed(0)
    make, path = LONG[name]
    model, text = make().eval(), torch.randint(3, 40, (2, 16))
    named = {"input_ids": text, "decoder_input_ids": text[:, :5], "output_attentions": True}
    with torch.no_grad(), observe(model) as trace:
        plain = model(**named)
    for layer, weights in enumerate(plain.encoder_attentions):
        expected = weights.flatten(0, 1)  # of texts × blocks
        found = trace[path.format(layer)].weights()
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    assert not [one for one in recwarn.list if "cannot read" in str(one.message)]


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


def llama(implementation):
    """Two layers whose four heads share two keys."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=98,
    )
    return LlamaForCausalLM._from_config(config, attn_implementation=implementation).eval()


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("new", [1, 5])
def test_a_generation_with_a_static_cache_may_begin_with_a_single_token(implementation, new):
    model, text = llama(implementation), torch.tensor([[3], [7]])
    named = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False}
    cache = StaticCache(config=model.config, max_cache_len=12)
    with torch.no_grad(), observe(model) as trace:
        written = model.generate(text, past_key_values=cache, **named)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        whole = model(written[:, :-1], output_attentions=True)
    for layer, expected in zip(trace, whole.attentions, strict=True):
        attention_map = trace[layer]
        assert attention_map.query_offset == 0
        assert attention_map.shape == (2, 4, new, new)
        torch.testing.assert_close(attention_map.weights(), expected, atol=1e-5, rtol=0)


def test_a_trace_does_not_keep_the_caches_of_generations_that_are_over():
    model, text = llama("sdpa"), torch.randint(3, 90, (1, 5))
    kept = []
    with torch.no_grad(), observe(model) as trace:
        for _ in range(2):
            cache = DynamicCache(config=model.config)
            kept.append(weakref.ref(cache))
            model.generate(text, past_key_values=cache, max_new_tokens=3, min_new_tokens=3)
            del cache
            gc.collect()
            assert kept[-1]() is None
    assert [attention_map.shape for attention_map in trace.calls(next(iter(trace)))] == [
        (1, 4, 7, 7)
    ] * 2


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("room", [None, 8, 20])
def test_a_padded_generation_is_one_map_whatever_cache_and_numbers_it_has(
    implementation, kind, room
):
    model = llama(implementation).to(kind)
    text, token_mask = torch.randint(3, 90, (2, 5)), torch.ones(2, 5, dtype=torch.long)
    text[0, :2] = token_mask[0, :2] = 0
    named = {
        "max_new_tokens": 4,
        "min_new_tokens": 4,
        "do_sample": False,
        "attention_mask": token_mask,
    }
    if room is not None:
        named["past_key_values"] = StaticCache(config=model.config, max_cache_len=room)
    with torch.no_grad(), observe(model) as trace:
        written = model.generate(text, **named)
    model = model.float()
    model.set_attn_implementation("eager")
    seen = torch.cat((token_mask, torch.ones(2, 3, dtype=torch.long)), 1)
    with torch.no_grad():
        positions = (seen.cumsum(-1) - 1).clamp(min=0)
        whole = model(
            written[:, :-1], attention_mask=seen, position_ids=positions, output_attentions=True
        )
    for layer, expected in zip(trace, whole.attentions, strict=True):
        attention_map = trace[layer]
        assert attention_map.shape == (2, 4, 8, 8)
        assert attention_map.pattern == causal
        close = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2}[kind]
        requested = seen.bool()[:, None, :, None]
        torch.testing.assert_close(
            attention_map.weights() * requested, expected * requested, atol=close, rtol=0
        )
        assert not attention_map.weights()[0, :, :2].any()  # padding, which sees nothing


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("chunk", [None, 2, 4, 6, 9])
def test_a_text_that_is_read_in_pieces_through_a_window_is_one_map(implementation, padded, chunk):
    """The cache drops what the window of six does not reach; pieces are shorter and longer."""
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=99, num_key_value_heads=2, intermediate_size=32, sliding_window=6, **SIZES
    )
    model = MistralForCausalLM._from_config(config, attn_implementation=implementation).eval()
    text, token_mask = torch.randint(3, 90, (2, 17)), torch.ones(2, 17, dtype=torch.long)
    if padded:
        text[0, :2] = token_mask[0, :2] = 0
    named = {
        "max_new_tokens": 4,
        "min_new_tokens": 4,
        "do_sample": False,
        "attention_mask": token_mask,
    }
    if chunk is not None:
        named["prefill_chunk_size"] = chunk
    with torch.no_grad(), observe(model) as trace:
        written = model.generate(text, **named)
    model.set_attn_implementation("eager")
    seen = torch.cat((token_mask, torch.ones(2, 3, dtype=torch.long)), 1)
    with torch.no_grad():
        positions = (seen.cumsum(-1) - 1).clamp(min=0)
        whole = model(
            written[:, :-1], attention_mask=seen, position_ids=positions, output_attentions=True
        )
    requested = seen.bool()[:, None, :, None]
    for layer, expected in zip(trace, whole.attentions, strict=True):
        assert len(trace.calls(layer)) == 1
        weights = trace[layer].weights()
        torch.testing.assert_close(weights * requested, expected * requested, atol=1e-5, rtol=0)


STATIC = {
    "Bloom": {"vocab_size": 40, "hidden_size": 16, "n_layer": 1, "n_head": 4},
    "T5": {"vocab_size": 40, "d_model": 16, "d_kv": 4, "num_layers": 1, "num_heads": 4},
    "GptOss": {
        "vocab_size": 40,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 4,
        "intermediate_size": 8,
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
        "layer_types": ["full_attention"],
    },
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.*")
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", STATIC)
def test_what_biases_and_sinks_make_of_a_static_cache_is_as_of_a_growing_one(name, batch):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**STATIC[name])
    kind = f"{name}ForConditionalGeneration" if name == "T5" else f"{name}ForCausalLM"
    model, text = getattr(transformers, kind)(config).eval(), torch.randint(3, 40, (batch, 6))
    named = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "num_beams": 1}
    if name == "T5":
        named["decoder_start_token_id"] = 0
    with torch.no_grad():
        with observe(model) as append_self_attention_step:
            model.generate(text, **named)
        with observe(model) as static:
            model.generate(text, **named, cache_implementation="static")
    assert tuple(static) == tuple(append_self_attention_step)
    for layer in append_self_attention_step:
        assert static.kind(layer) == append_self_attention_step.kind(layer)
        attention_maps = static.calls(layer), append_self_attention_step.calls(layer)
        for one, other in zip(*attention_maps, strict=True):
            assert one.position == other.position
            slots = other.shape[3]
            torch.testing.assert_close(one.weights()[..., :slots], other.weights())
            assert not one.weights()[..., slots:].any()
            torch.testing.assert_close(one.self_weight(), other.self_weight())
            torch.testing.assert_close(one.distance(), other.distance())


def test_the_attention_of_a_model_that_assists_is_not_that_of_the_model():
    model, helper = llama("sdpa"), llama("sdpa")
    helper.generation_config.num_assistant_tokens = 2
    text = torch.randint(3, 90, (1, 5))
    named = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    with torch.no_grad(), observe(model) as trace, observe(helper) as helping:
        model.generate(text, assistant_model=helper, **named)
    for one in (trace, helping):
        assert tuple(one) == ("model.layers.0.self_attn", "model.layers.1.self_attn")


def test_a_generation_with_places_first_is_one_map_for_each_layer():
    torch.manual_seed(0)
    sides = {f"{side}_layers": 1 for side in ("encoder", "decoder")}
    sides |= {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    config = FSMTConfig(
        langs=["en", "de"], src_vocab_size=50, tgt_vocab_size=50, d_model=16, **sides
    )
    model = FSMTForConditionalGeneration(config).eval()
    named = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "num_beams": 1}
    with torch.no_grad(), observe(model) as trace:
        model.generate(torch.randint(5, 40, (2, 7)), **named)
    assert [(trace.kind(layer), trace[layer].shape) for layer in trace] == [
        ("self", (2, 4, 7, 7)),
        ("self", (2, 4, 5, 5)),
        ("cross", (2, 4, 5, 7)),
    ]
    assert all(len(trace.calls(layer)) == 1 for layer in trace)


ONE_LAYER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
OWN_NAMES = {
    "OpenAIGPT": {"vocab_size": 40, "n_embd": 16, "n_layer": 1, "n_head": 2},
    "XLM": {"vocab_size": 40, "emb_dim": 16, "n_layers": 1, "n_heads": 2},
    "Flaubert": {"vocab_size": 40, "emb_dim": 16, "n_layers": 1, "n_heads": 2},
    "MobileBert": {
        "vocab_size": 40,
        "embedding_size": 16,
        "intra_bottleneck_size": 16,
        "num_feedforward_networks": 1,
        "intermediate_size": 16,
        **ONE_LAYER,
    },
    "XLNet": {"vocab_size": 40, "d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16},
    "SqueezeBert": {"vocab_size": 40, "embedding_size": 16, "intermediate_size": 16, **ONE_LAYER},
    "Luke": {
        "vocab_size": 40,
        "entity_vocab_size": 9,
        "entity_emb_size": 8,
        "intermediate_size": 16,
        **ONE_LAYER,
    },
}


@pytest.mark.parametrize("name", OWN_NAMES)
def test_a_layer_that_is_given_one_text_looks_at_itself_whatever_the_model_calls_it(name):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**OWN_NAMES[name])
    model, text = getattr(transformers, f"{name}Model")(config).eval(), torch.randint(3, 40, (3, 7))
    with torch.no_grad():
        plain = model(text)[0]
        with observe(model) as trace:
            assert torch.equal(model(text)[0], plain)
    assert [(trace.kind(layer), trace[layer].shape) for layer in trace] == [("self", (3, 2, 7, 7))]
    assert trace.causal(next(iter(trace))) == (name == "OpenAIGPT")


FLEX = """
import torch, transformers
from attlas.recording import observe

sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
eager, flex = (
    transformers.BertModel._from_config(
        transformers.BertConfig(vocab_size=20, intermediate_size=24, **sizes),
        attn_implementation=name,
    ).eval()
    for name in ("eager", "flex_attention")
)
flex.load_state_dict(eager.state_dict())
text = torch.tensor([[2, 5, 6, 7, 3]])
with torch.no_grad(), observe(flex) as trace:
    flex(input_ids=text)
wanted = eager(input_ids=text, output_attentions=True).attentions
for layer, weights in zip(trace, wanted, strict=True):
    torch.testing.assert_close(trace[layer].weights(), weights, rtol=1e-5, atol=1e-5)
"""


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles it with g++")
def test_flex_attention_is_read_though_it_is_compiled():
    """In a process of its own: what torch has compiled before changes what it does."""
    done = subprocess.run([sys.executable, "-c", FLEX], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("own", "keys"), [([8, 12], 2), ([8, 16], 8)])
def test_grouped_heads_may_be_others_in_each_layer(own, keys):
    pytest.importorskip("transformers.models.laguna")
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(
        "laguna", hidden_size=32, num_hidden_layers=2, num_attention_heads=8,
        num_attention_heads_per_layer=own, num_key_value_heads=keys, head_dim=8,
        intermediate_size=48, moe_intermediate_size=16, shared_expert_intermediate_size=16,
        num_experts=2, num_experts_per_tok=1, vocab_size=64, max_position_embeddings=64,
        sliding_window=32, layer_types=["full_attention"] * 2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    text, mask = torch.randint(5, 60, (2, 7)), torch.ones(2, 7, dtype=torch.long)
    mask[0, :3] = 0  # torch then takes each query of a step for as many of its key head
    named = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    with torch.no_grad(), observe(model) as trace:
        model.generate(text, attention_mask=mask, **named)
    assert [trace[layer].shape for layer in trace] == [(2, each, 10, 10) for each in own]
    assert all(len(trace.calls(layer)) == 1 for layer in trace)


def test_a_configuration_that_refuses_to_answer_stops_no_forward():
    class Refusing:
        _attn_implementation = "sdpa"

        @property
        def num_attention_heads(self):
            raise RuntimeError("another one in each layer")

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.config, self.num_key_value_groups = Refusing(), 2

        def forward(self, query, key):
            return torch.nn.functional.scaled_dot_product_attention(query, key, key)

    layer = Layer()
    with observe(layer) as trace:
        layer(*torch.randn(2, 1, 4, 5, 8))
    assert trace[""].shape == (1, 4, 5, 5)


@pytest.mark.parametrize("beams", [1, 3])
def test_whisper_looks_at_its_source_in_one_map_whatever_the_search(beams):
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    sides = {f"{side}_layers": 1 for side in ("encoder", "decoder")}
    sides |= {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
    sides |= {f"{side}_ffn_dim": 16 for side in ("encoder", "decoder")}
    config = WhisperConfig(
        vocab_size=50, d_model=16, num_mel_bins=8, max_source_positions=30,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
        suppress_tokens=None, begin_suppress_tokens=None, **sides,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).eval()
    sound = torch.randn(1, 8, 60)
    named = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "num_beams": beams}
    with torch.no_grad(), observe(model) as trace:
        model.generate(input_features=sound, **named)
    own, across = "model.decoder.layers.0.self_attn", "model.decoder.layers.0.encoder_attn"
    assert len(trace.calls(own)) == len(trace.calls(across)) == 1
    assert trace[across].shape[2:] == (trace[own].shape[2], 30)
