"""What is observed, against the weights that Hugging Face's models return with eager attention."""

import pytest
import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

from attlas.patterns import both, causal, everywhere, window
from attlas.recording import FactoredAttentionMap, intervene, observe, without
from support.minilm import minilm

COMMON = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 99,
    "max_position_embeddings": 64,
}
GROUPED = {"num_key_value_heads": 2}
SIDES = {
    f"{side}_{name}": number
    for side in ("encoder", "decoder")
    for name, number in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))
}
ENCODERS = {
    "bert": {},
    "roberta": {},
    "electra": {"embedding_size": 32},
    "albert": {"embedding_size": 16},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "modernbert": {"pad_token_id": 0, "local_attention": 4, "global_attn_every_n_layers": 2},
    "mpnet": {},
    "esm": {"pad_token_id": 0, "mask_token_id": 1, "position_embedding_type": "rotary"},
}
DECODERS = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "llama": GROUPED,
    "mistral": {**GROUPED, "sliding_window": 4},
    "gemma2": {**GROUPED, "head_dim": 8, "sliding_window": 4, "query_pre_attn_scalar": 8},
    "gemma3_text": {
        **GROUPED,
        "head_dim": 8,
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "qwen3": {**GROUPED, "head_dim": 8},
    "bloom": {"n_layer": 2, "n_head": 4},
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2},
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "gpt_neox": {},
    "gpt_oss": {
        **GROUPED,
        "head_dim": 8,
        "sliding_window": 4,
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
    },
}
TRANSLATORS = {
    "t5": {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_layers": 2,
        "num_heads": 4,
        "decoder_start_token_id": 0,
    },
    "bart": {"d_model": 32, **SIDES},
    "marian": {
        "d_model": 32,
        **SIDES,
        "pad_token_id": 0,
        "decoder_start_token_id": 0,
        "eos_token_id": 1,
        "forced_eos_token_id": None,
    },
    "m2m_100": {"d_model": 32, **SIDES},
}
EAGER_ALONE = {"deberta-v2", "mpnet", "gemma2", "bloom", "mpt", "gpt_oss"}
ONE_SIDED = [
    (name, implementation)
    for name in (*ENCODERS, *DECODERS)
    for implementation in ("sdpa", "eager")
    if implementation == "eager" or name not in EAGER_ALONE
]


def made(kind, name, settings, implementation):
    """A small model of that family with random weights."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **COMMON, **settings)
    try:
        return kind.from_config(config, attn_implementation=implementation).eval()
    except ValueError as error:
        if "does not support an attention implementation" not in str(error):
            raise
        pytest.skip("this release of transformers computes it eagerly alone")


def compared(trace, expected, token_mask=None):
    """That each attention map has the weights of its layer; rows of padding say nothing."""
    attention_maps = [attention_map for layer in trace for attention_map in trace.calls(layer)]
    for attention_map, weights in zip(attention_maps, expected, strict=True):
        ours = attention_map.weights()
        if token_mask is not None and token_mask.shape[1] == weights.shape[2]:
            ours, weights = (part * token_mask[:, None, :, None] for part in (ours, weights))
        torch.testing.assert_close(ours, weights, atol=1e-5, rtol=0)


@pytest.fixture
def sentences():
    torch.manual_seed(1)
    ids = torch.randint(2, 90, (2, 9))
    token_mask = torch.ones_like(ids)
    token_mask[0, 6:] = 0
    return {"input_ids": ids, "attention_mask": token_mask}


@pytest.mark.parametrize(("name", "implementation"), ONE_SIDED)
def test_one_sided_models_are_observed_as_they_compute(name, implementation, sentences):
    kind = AutoModel if name in ENCODERS else AutoModelForCausalLM
    settings = ENCODERS.get(name) or DECODERS.get(name, {})
    model = made(kind, name, settings, implementation)
    referee = made(kind, name, settings, "eager")
    with torch.no_grad():
        plain = model(**sentences)[0]
        with observe(model) as trace:
            seen = model(**sentences)[0]
        expected = referee(**sentences, output_attentions=True).attentions
    assert torch.equal(plain, seen)
    compared(trace, expected, sentences["attention_mask"])
    assert {trace.kind(layer) for layer in trace} == {"self"}
    assert {trace.causal(layer) for layer in trace} == {name in DECODERS}
    if implementation == "sdpa":
        patterns = [
            attention_map.pattern for layer in trace for attention_map in trace.calls(layer)
        ]
        assert all(trace.calls(layer)[0].bias is None for layer in trace)
        windowed = {"mistral": 2, "gemma3_text": 1}.get(name, 0)
        assert patterns.count(both(causal, window(3))) == windowed
        if name not in ("modernbert", "mistral", "gemma3_text"):
            assert set(patterns) == {causal if name in DECODERS else everywhere}


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", TRANSLATORS)
def test_two_sided_models_are_observed_as_they_compute(name, implementation, sentences):
    models = [
        made(AutoModelForSeq2SeqLM, name, TRANSLATORS[name], way)
        for way in (implementation, "eager")
    ]
    target = {"decoder_input_ids": torch.randint(2, 90, (2, 5))}
    with torch.no_grad():
        plain = models[0](**sentences, **target)[0]
        with observe(models[0]) as trace:
            seen = models[0](**sentences, **target)[0]
        expected = models[1](**sentences, **target, output_attentions=True)
    assert torch.equal(plain, seen)
    inside = zip(expected.decoder_attentions, expected.cross_attentions, strict=True)
    decoder = [weights for pair in inside for weights in pair]
    compared(trace, [*expected.encoder_attentions, *decoder], sentences["attention_mask"])
    relations = [trace.kind(layer) for layer in trace]
    assert relations == ["self"] * 2 + ["self", "cross"] * 2
    causals = [trace.causal(layer) for layer in trace]
    assert causals == [False] * 2 + [True, False] * 2


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["marian", "t5", "bart"])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_generated_translation_is_one_map_a_layer(name, implementation, beams, sentences):
    model = made(AutoModelForSeq2SeqLM, name, TRANSLATORS[name], implementation)
    named = {"do_sample": False, "num_beams": beams, "num_return_sequences": beams}
    named |= {"max_new_tokens": 6, "min_new_tokens": 6}
    with torch.no_grad():
        plain = model.generate(**sentences, **named)
        with observe(model) as trace:
            seen = model.generate(**sentences, **named)
        assert torch.equal(plain, seen)
    steps = seen.shape[1] - 1
    for layer in trace:
        if "encoder" in layer and "decoder" not in layer:
            assert trace[layer].shape == (2, 4, 9, 9)
        elif trace.kind(layer) == "cross":
            assert trace[layer].shape == (2 * beams, 4, steps, 9)
        else:
            assert trace[layer].shape == (2 * beams, 4, steps, steps)
    if beams == 1:
        with torch.no_grad(), observe(model) as read:
            model(**sentences, decoder_input_ids=seen[:, :-1])
        for layer in trace:
            torch.testing.assert_close(
                trace[layer].weights(), read[layer].weights(), atol=1e-5, rtol=0
            )


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["llama", "mistral", "gpt2", "gemma3_text"])
def test_a_generated_text_is_one_map_a_layer(name, cache):
    model = made(AutoModelForCausalLM, name, DECODERS[name], "sdpa")
    torch.manual_seed(1)
    ids = torch.randint(3, 90, (2, 5))
    token_mask = torch.ones_like(ids)
    token_mask[0, :2] = 0
    named = {
        "attention_mask": token_mask,
        "max_new_tokens": 7,
        "min_new_tokens": 7,
        "do_sample": False,
    }
    with torch.no_grad():
        plain = model.generate(ids, **named, cache_implementation=cache)
        with observe(model) as trace:
            seen = model.generate(ids, **named, cache_implementation=cache)
        assert torch.equal(plain, seen)
        token_mask = torch.cat((token_mask, torch.ones(2, 6, dtype=token_mask.dtype)), 1)
        with observe(model) as read:
            positions = (token_mask.cumsum(1) - 1).clamp(min=0)
            model(seen[:, :-1], attention_mask=token_mask, position_ids=positions)
    if cache == "static" and name in ("mistral", "gemma3_text"):
        return  # a window of its own, over which it writes: its steps stay apart
    for layer in trace:
        ours, theirs = trace[layer].weights(), read[layer].weights()
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


WRITERS = {
    "bloom": DECODERS["bloom"],
    "mpt": {**DECODERS["mpt"], "use_cache": True},
    "codegen": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64},
    "gpt_neo": {
        "num_layers": 2,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 4,
    },
    "xglm": {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4},
}


@pytest.mark.parametrize(
    ("name", "padded", "beams"),
    [
        (name, padded, beams)
        for name in WRITERS
        for padded, beams in ((0, 1), (2, 1), (0, 3))
        if not (name == "mpt" and padded)  # rows that see nothing: the prompt stays apart
    ],
)
def test_a_text_generated_by_attention_written_out_is_one_map_a_layer(name, padded, beams):
    model = made(AutoModelForCausalLM, name, WRITERS[name], "eager")
    torch.manual_seed(1)
    ids = torch.randint(3, 90, (2, 5))
    token_mask = torch.ones_like(ids)
    token_mask[0, :padded] = 0
    named = {"max_new_tokens": 7, "min_new_tokens": 7, "num_beams": beams, "pad_token_id": 0}
    named |= {"attention_mask": token_mask, "do_sample": False, "num_return_sequences": beams}
    with torch.no_grad():
        plain = model.generate(ids, **named)
        with observe(model) as trace:
            seen = model.generate(ids, **named)
        assert torch.equal(plain, seen)
        token_mask = torch.cat((token_mask, torch.ones(2, 6, dtype=token_mask.dtype)), 1)
        expected = model(
            seen[:, :-1],
            attention_mask=token_mask.repeat_interleave(beams, 0),
            output_attentions=True,
            use_cache=False,
            **(
                {"position_ids": (token_mask.cumsum(1) - 1).clamp(min=0)}
                if padded and name != "bloom"
                else {}
            ),
        ).attentions
    assert len(trace) == 2
    if beams == 1:
        compared(trace, expected, token_mask)
    for layer in trace:
        assert trace[layer].shape == (2 * beams, 4, 11, 11)
        assert trace.causal(layer)


def test_interventions_reach_every_kernel(sentences):
    changed = []
    for implementation in ("sdpa", "eager"):
        model = made(AutoModelForCausalLM, "llama", GROUPED, implementation)
        with torch.no_grad():
            plain = model(**sentences)[0]
            with intervene(model, without(0, 3)):
                changed.append(model(**sentences)[0])
        assert not torch.allclose(changed[-1], plain, atol=1e-3)
    token_mask = sentences["attention_mask"].bool()
    torch.testing.assert_close(changed[0][token_mask], changed[1][token_mask], atol=1e-5, rtol=0)


def test_a_real_llama_with_grouped_heads_is_observed_without_eager_attention(shared_data):
    """stories260K: 8 heads share 4 key heads; a prompt, and a text that it writes with a cache."""
    folder = shared_data / "stories260K" / "hf"
    model, referee = (
        AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation=way, local_files_only=True
        ).eval()
        for way in ("sdpa", "eager")
    )
    ids = torch.tensor([[1, 403, 407, 261, 378, 402, 383, 286, 261, 410]])
    with torch.no_grad():
        with observe(model) as trace:
            seen = model(ids)[0]
        assert torch.equal(model(ids)[0], seen)
        compared(trace, referee(ids, output_attentions=True).attentions)
        with observe(model) as trace:
            written = model.generate(ids, max_new_tokens=60, do_sample=False)
        assert written.shape == (1, 70)
        compared(trace, referee(written[:, :-1], output_attentions=True).attentions)
    for layer in trace:
        attention_map = trace[layer]
        assert isinstance(attention_map, FactoredAttentionMap)
        assert attention_map.keys.shape[1] == 4


def test_a_real_bert_is_observed_without_eager_attention():
    """MiniLM: a batch of sentences of different lengths; head 2 of layer 0 looks one back."""
    folder = minilm()
    model, referee = (
        AutoModel.from_pretrained(folder, attn_implementation=way, local_files_only=True).eval()
        for way in ("sdpa", "eager")
    )
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    texts = ["The cat sat on the mat.", "Attention is not an explanation, or is it?", "Yes."]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        with observe(model) as trace:
            seen = model(**batch)[0]
        assert torch.equal(model(**batch)[0], seen)
        expected = referee(**batch, output_attentions=True).attentions
    compared(trace, expected, batch["attention_mask"])
    assert tuple(trace) == tuple(f"encoder.layer.{i}.attention.self" for i in range(6))
    length = int(batch["attention_mask"][1].sum())
    looking = trace["encoder.layer.0.attention.self"].weights()[1, 2, 1:length]
    assert looking[:, :length].diagonal().mean() > 0.5


SMALL = {"vocab_size": 99, "d_model": 64, "eos_token_id": None, "decoder_start_token_id": 2}
LISTENERS = {
    "bart": lambda: transformers.BartForConditionalGeneration(
        transformers.BartConfig(
            encoder_layers=1,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=96,
            decoder_ffn_dim=96,
            forced_eos_token_id=None,
            pad_token_id=1,
            **SMALL,
        )
    ),
    "t5": lambda: transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            num_layers=2, num_heads=4, d_kv=16, d_ff=96, pad_token_id=0, dropout_rate=0.0, **SMALL
        )
    ),
}


@pytest.mark.parametrize("name", LISTENERS)
@pytest.mark.parametrize("texts", [1, 2])
def test_a_beams_queries_of_the_source_go_with_the_hypothesis_that_asked(name, texts, monkeypatch):
    """All hypotheses of a text look at the same keys: self-attention says which went on."""
    torch.manual_seed(0)
    model = LISTENERS[name]().eval()
    for parameter in model.parameters():
        parameter.data.mul_(4 if parameter.ndim > 1 else 1)
    source = torch.randint(3, 90, (texts, 8))
    requested: list[
        torch.Tensor
    ] = []  # what each row has been asked so far, as the search moves it
    last: list[torch.Tensor] = []  # the same when the model was asked last
    kind = transformers.EncoderDecoderCache
    reorder = kind.reorder_cache

    def moved(cache, rows):
        requested[0] = requested[0][rows]
        reorder(cache, rows)

    def heard(module, args, kwargs):
        tokens = kwargs["input_ids"]
        requested[:] = last[:] = [torch.cat((requested[0], tokens), 1) if requested else tokens]

    monkeypatch.setattr(kind, "reorder_cache", moved)
    hook = model.get_decoder().register_forward_pre_hook(heard, with_kwargs=True)
    with torch.no_grad(), observe(model) as trace:
        model.generate(source, num_beams=3, max_new_tokens=7, min_new_tokens=7, do_sample=False)
    hook.remove()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        reported = model(
            source.repeat_interleave(3, 0),
            decoder_input_ids=last[0],
            output_attentions=True,
            use_cache=False,
        )
    crossing = [layer for layer in trace if trace.kind(layer) == "cross"]
    assert len(crossing) == 2
    for layer, expected in zip(crossing, reported.cross_attentions, strict=True):
        torch.testing.assert_close(trace[layer].weights(), expected, atol=1e-5, rtol=1e-4)
