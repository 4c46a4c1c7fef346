"""`attlas.hook_patterns`: the weights of a trace by the names of TransformerLens."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

import attlas
from attlas.errors import AttlasError

T5 = {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 32, "d_kv": 8, "vocab_size": 99}
LLAMA = {
    "hidden_size": 32, "num_hidden_layers": 12, "num_attention_heads": 4, "intermediate_size": 32,
    "vocab_size": 99,
}  # fmt: skip


def trace_of(name, settings, **inputs):
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(name, **settings)).eval()
    with attlas.observe(model) as trace, torch.no_grad():
        model(**inputs)
    return trace


def test_every_layer_of_a_decoder_has_its_number():
    trace = trace_of("llama", LLAMA, input_ids=torch.arange(5, 14)[None])
    patterns = attlas.hook_patterns(trace)
    assert list(patterns) == [f"blocks.{number}.attn.hook_pattern" for number in range(12)]
    for path, pattern in zip(trace, patterns.values(), strict=True):
        torch.testing.assert_close(pattern, trace[path][:], rtol=0, atol=0)
    chosen = attlas.hook_patterns(trace, "layers.3.*", "middle.{layer}")
    torch.testing.assert_close(chosen["middle.0"], patterns["blocks.3.attn.hook_pattern"])


def test_an_encoder_decoder_has_one_stack_at_a_time():
    ids = torch.arange(5, 14)[None]
    trace = trace_of("t5", T5, input_ids=ids, decoder_input_ids=ids[:, :7])
    with pytest.raises(AttlasError, match="self-attention and cross-attention together"):
        attlas.hook_patterns(trace)
    name = "decoder_blocks.{layer}.cross_attn.hook_pattern"
    patterns = attlas.hook_patterns(trace, "decoder.*.EncDecAttention", name)
    assert [tuple(pattern.shape) for pattern in patterns.values()] == [(1, 4, 7, 9)] * 2
    assert next(iter(patterns)) == "decoder_blocks.0.cross_attn.hook_pattern"


def test_a_name_without_a_place_for_the_number_is_refused():
    trace = trace_of("llama", LLAMA, input_ids=torch.arange(5, 14)[None])
    with pytest.raises(AttlasError, match=r"a name with \{layer\}"):
        attlas.hook_patterns(trace, name="blocks.0.attn.hook_pattern")
