"""`attlas.hook_patterns`: the weights of a trace by the names of TransformerLens."""

from collections import OrderedDict

import pytest
import torch
from transformers import AutoConfig, AutoModel

import attlas
from attlas.errors import AttlasError

T5 = {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 32, "d_kv": 8, "vocab_size": 99}
BART = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "vocab_size": 99,
}  # fmt: skip
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
    torch.testing.assert_close(chosen["middle.3"], patterns["blocks.3.attn.hook_pattern"])
    backwards = attlas.hook_patterns(trace, list(trace)[::-1], "{layer}")
    assert list(backwards) == [str(number) for number in reversed(range(12))]
    torch.testing.assert_close(backwards["11"], patterns["blocks.11.attn.hook_pattern"])


def test_an_encoder_decoder_has_one_stack_at_a_time():
    ids = torch.arange(5, 14)[None]
    trace = trace_of("t5", T5, input_ids=ids, decoder_input_ids=ids[:, :7])
    with pytest.raises(AttlasError, match="the layers of one stack"):
        attlas.hook_patterns(trace)
    name = "decoder_blocks.{layer}.cross_attn.hook_pattern"
    patterns = attlas.hook_patterns(trace, "decoder.*.EncDecAttention", name)
    assert [tuple(pattern.shape) for pattern in patterns.values()] == [(1, 4, 7, 9)] * 2
    assert next(iter(patterns)) == "decoder_blocks.0.cross_attn.hook_pattern"


def test_a_name_without_a_place_for_the_number_is_refused():
    trace = trace_of("llama", LLAMA, input_ids=torch.arange(5, 14)[None])
    with pytest.raises(AttlasError, match=r"a name with \{layer\}"):
        attlas.hook_patterns(trace, name="blocks.0.attn.hook_pattern")


def test_encoder_and_decoder_are_two_stacks_though_both_look_at_themselves():
    ids = torch.arange(5, 10)[None]
    trace = trace_of("bart", BART, input_ids=ids, decoder_input_ids=ids[:, :4])
    with pytest.raises(AttlasError, match=r"got 'encoder.layers.0.self_attn' and 'decoder"):
        attlas.hook_patterns(trace, "*self_attn*")
    decoder = attlas.hook_patterns(trace, "decoder.*.self_attn")
    assert [(key, pattern.shape[-1]) for key, pattern in decoder.items()] == [
        ("blocks.0.attn.hook_pattern", 4),
        ("blocks.1.attn.hook_pattern", 4),
    ]


def test_of_blocks_with_numbered_parts_the_number_of_the_block_counts():
    ids = torch.arange(5, 14)[None]
    trace = trace_of("t5", T5, input_ids=ids, decoder_input_ids=ids[:, :7])
    assert list(attlas.hook_patterns(trace, "decoder.block.1.*EncDecAttention", "{layer}")) == ["1"]


def test_a_stack_of_stages_has_no_number_for_each_layer():
    def attention():
        return torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)

    stages = torch.nn.ModuleList(
        torch.nn.Sequential(attention(), attention()) for _ in range(2)
    ).eval()
    model = torch.nn.Sequential(*stages)
    with attlas.observe(model) as trace, torch.no_grad():
        model(torch.zeros(1, 3, 8))
    with pytest.raises(AttlasError, match="differ in one number"):
        attlas.hook_patterns(trace)


def test_one_layer_without_a_number_is_the_first():
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with attlas.observe(attention) as trace, torch.no_grad():
        attention(*[torch.zeros(1, 3, 8)] * 3)
    assert list(attlas.hook_patterns(trace)) == ["blocks.0.attn.hook_pattern"]


class Numbered(torch.nn.Module):
    """As torchvision names its layers."""

    def __init__(self):
        super().__init__()
        layers = {
            f"encoder_layer_{number}": torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
            for number in range(3)
        }
        self.layers = torch.nn.Sequential(OrderedDict(layers))

    def forward(self, x):
        return self.layers(x)


def test_a_number_may_stand_behind_a_name():
    model = Numbered().eval()
    with attlas.observe(model) as trace, torch.no_grad():
        model(torch.randn(1, 3, 8))
    assert list(attlas.hook_patterns(trace, name="{layer}")) == ["0", "1", "2"]
    assert list(attlas.hook_patterns(trace, "*encoder_layer_2*", "{layer}")) == ["2"]
