"""Weights times lengths, of vectors that sum to what the layer puts out, whosever it is."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from attlas.analysis.value_norms import ValueNorms
from attlas.analysis.value_norms.inputs import ValueInputs, record_value_inputs
from attlas.analysis.value_norms.projections import ValueMap, projections_of, value_map
from attlas.errors import AttlasError
from attlas.layers import MultiheadAttention
from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, observe

COMMON = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "vocab_size": 50,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 4}
SIDES = {
    f"{side}_{name}": number
    for side in ("encoder", "decoder")
    for name, number in (("layers", 1), ("attention_heads", 4), ("ffn_dim", 24))
}
T5 = {"d_model": 16, "d_kv": 3, "d_ff": 24, "num_layers": 1, "num_heads": 4}
GROUPED = {"num_key_value_heads": 2}
FAMILIES = {
    "bert": {},
    "roberta": {},
    "albert": {"embedding_size": 16},
    "distilbert": {"dim": 16, "n_layers": 1, "n_heads": 4, "hidden_dim": 24},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "mpnet": {},
    "modernbert": {},
    "gpt2": GPT,
    "llama": GROUPED,
    "olmo": {},
    "gemma2": {**GROUPED, "head_dim": 6, "query_pre_attn_scalar": 6},
    "phi": {},
    "phi3": GROUPED,
    "opt": {"ffn_dim": 24, "word_embed_proj_dim": 16},
    "gpt_neox": {},
    "bloom": {"n_layer": 2, "n_head": 4},
    "mpt": {"d_model": 16, "n_heads": 4, "n_layers": 2},
    "t5": {**T5, "decoder_start_token_id": 0},
    "bart": {"d_model": 16, **SIDES},
}
EAGER = {"deberta-v2", "mpnet", "gemma2", "bloom", "mpt"}


def assert_sums_to(out, attention_map, values: ValueMap, source) -> None:
    """That Σ_h Σ_j α f is what the layer put out, without its bias; norms are those vectors'."""
    vectors = values(source.vectors)
    weights = attention_map.weights()
    each = torch.einsum("bhqs,bhsw->bhqsw", weights, vectors)
    summed = each.sum((1, 3)) + (0 if values.bias is None else values.bias)
    torch.testing.assert_close(summed, out, atol=1e-5, rtol=1e-4)
    norms = ValueNorms.of(attention_map, values, source)
    queries = attention_map.shape[2]
    torch.testing.assert_close(norms.rows(0, queries), each.norm(dim=-1), atol=1e-6, rtol=1e-4)
    whole = each.double().sum(1).norm(dim=-1)
    torch.testing.assert_close(norms.summed_rows(0, queries), whole, atol=1e-6, rtol=1e-4)
    # Blocks of other sizes multiply queries and keys in float32 in another order.
    parts = torch.cat(list(norms.summed_blocks(2)), 1)
    torch.testing.assert_close(parts, norms.summed_rows(0, queries), atol=1e-6, rtol=1e-5)
    heads = torch.cat(list(norms.blocks(2)), 2)
    torch.testing.assert_close(heads, norms.rows(0, queries), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_hugging_face_layer_puts_out_is_the_sum_of_the_vectors(family: str) -> None:
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **COMMON | FAMILIES[family])
    way = "eager" if family in EAGER else "sdpa"
    model = AutoModel.from_config(config, attn_implementation=way).eval()
    for parameter in model.parameters():  # biases are zero in a new model
        nn.init.normal_(parameter, std=0.3)
    ids = torch.randint(1, 40, (2, 7))
    outputs: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        given = {"decoder_input_ids": ids[:, :5]} if family in ("t5", "bart") else {}
        with observe(model) as dry:
            model(ids, **given)
        hooks = [
            projections_of(model, layer).output.register_forward_hook(
                lambda module, inputs, out, layer=layer: outputs.setdefault(layer, out)
            )
            for layer in dry
        ]
        with observe(model) as trace, record_value_inputs(model) as sources:
            model(ids, **given)
    assert set(sources) == set(trace) == set(outputs)
    for hook in hooks:
        hook.remove()
    for layer in trace:
        attention_map = trace.calls(layer)[0]
        values = value_map(model, layer, attention_map.shape[1])
        assert_sums_to(outputs[layer], attention_map, values, sources[layer][0])
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bias": False},
        {"kdim": 5, "vdim": 6},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True},
        {"batch_first": True},
    ],
)
def test_what_pytorchs_layer_puts_out_is_the_sum_of_the_vectors(settings) -> None:
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, **settings).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    first = settings.get("batch_first", False)
    query = torch.randn(3, 5, 8)
    keys, source = torch.randn(3, 4, settings.get("kdim", 8)), torch.randn(3, 4, model.vdim)
    given = [one if first else one.transpose(0, 1) for one in (query, keys, source)]
    with torch.no_grad(), observe(model) as trace, record_value_inputs(model) as sources:
        out, weights = model(*given, average_attn_weights=False)
    values = value_map(model, "", 2)
    torch.testing.assert_close(sources[""][0].vectors, source)
    out = out if first else out.transpose(0, 1)
    assert_sums_to(out, DenseAttentionMap(weights), values, sources[""][0])
    if trace[""].shape == weights.shape:
        assert_sums_to(out, trace[""], values, sources[""][0])


@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("bias", [True, False])
def test_what_our_layer_puts_out_is_the_sum_of_the_vectors(num_kv_heads: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer = MultiheadAttention(
        8, 4, kdim=6, vdim=6, num_kv_heads=num_kv_heads, head_dim=3, value_dim=5, bias=bias
    )
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    model = nn.ModuleDict({"attention": layer})
    source = torch.randn(2, 7, 6)
    token_mask = torch.ones(2, 7, dtype=torch.bool)
    token_mask[1, 4:] = False
    source[1, 4:] = torch.nan  # junk in padding changes nothing
    with torch.no_grad(), observe(model) as trace, record_value_inputs(model) as sources:
        out = layer.attend(
            torch.randn(2, 3, 8), layer.project_kv(source, token_mask), query_offset=0
        )
    values = value_map(model, "attention", 4)
    assert values.value.shape == (num_kv_heads, 6, 5)
    assert_sums_to(out, trace["attention"], values, sources["attention"][0])
    norms = ValueNorms.of(trace["attention"], values, ValueInputs(source))
    assert bool(norms.summed_rows(0, 3).isfinite().all())


def test_a_long_weight_on_a_short_vector_brings_little_as_worked_by_hand() -> None:
    # Two heads of width 1 over a source of width 1; head 0 puts out (x, 0), head 1 (0, 2x).
    one = torch.ones(2, 1, 1)
    values = ValueMap(one, None, torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]]]))
    attention_map = DenseAttentionMap(torch.tensor([[[[0.9, 0.1]], [[0.5, 0.5]]]]))
    norms = ValueNorms.of(attention_map, values, ValueInputs(torch.tensor([[[0.1], [3.0]]])))
    torch.testing.assert_close(norms.rows(0, 1)[0, :, 0], torch.tensor([[0.09, 0.3], [0.1, 3.0]]))
    whole = torch.tensor([(0.09**2 + 0.1**2) ** 0.5, (0.3**2 + 3.0**2) ** 0.5]).double()
    torch.testing.assert_close(norms.summed_rows(0, 1)[0, 0], whole, atol=1e-6, rtol=0)


def test_heads_that_undo_each_other_bring_nothing() -> None:
    values = ValueMap(torch.ones(2, 1, 1), None, torch.tensor([[[1.0]], [[-1.0]]]))
    norms = ValueNorms.of(
        DenseAttentionMap(torch.full((1, 2, 1, 1), 0.7)),
        values,
        ValueInputs(torch.tensor([[[5.0]]])),
    )
    assert norms.summed_rows(0, 1).item() == pytest.approx(0, abs=1e-7)
    assert norms.rows(0, 1).flatten().tolist() == pytest.approx([3.5, 3.5])


def test_slots_are_taken_some_at_a_time_without_a_difference(monkeypatch) -> None:
    torch.manual_seed(0)
    attention_map = FactoredAttentionMap(*torch.randn(2, 1, 2, 6, 4), 1.0, causal, 0)
    values = ValueMap(torch.randn(1, 5, 3), torch.randn(1, 3), torch.randn(2, 3, 7))
    source = ValueInputs(torch.randn(1, 6, 5))
    whole = ValueNorms.of(attention_map, values, source)
    monkeypatch.setattr("attlas.analysis.value_norms._AT_ONCE", 1)
    parts = ValueNorms.of(attention_map, values, source)
    torch.testing.assert_close(parts.lengths, whole.lengths)
    torch.testing.assert_close(parts.products, whole.products)
    with pytest.raises(AttlasError, match="a block size of at least one row"):
        list(whole.blocks(0))


def test_a_trace_of_some_heads_is_reported_from_one_of_all() -> None:
    model = AutoModel.from_config(AutoConfig.for_model("llama", **COMMON | GROUPED)).eval()
    ids = torch.randint(1, 40, (1, 5))
    with observe(model, heads=[0, 3]) as trace:
        model(ids)
    layer = next(iter(trace))
    with pytest.raises(AttlasError, match=r"the 4 heads that layer .* has; got 2; observe all"):
        value_map(model, layer, trace[layer].shape[1])


def test_a_layer_whose_projections_nobody_knows_says_so() -> None:
    model = nn.ModuleDict({"odd": nn.Linear(2, 2)})
    with pytest.raises(AttlasError, match=r"v_proj.*got Linear at 'odd'; make a ValueMap"):
        value_map(model, "odd", 2)
    with pytest.raises(AttlasError, match="path of a module of ModuleDict; got 'even'"):
        value_map(model, "even", 2)
    with (
        pytest.raises(AttlasError, match="values are projected as `value_map` knows"),
        record_value_inputs(model),
    ):
        pass
    known = nn.ModuleDict({"v_proj": nn.Linear(4, 4), "o_proj": nn.Linear(4, 4)})
    with pytest.raises(AttlasError, match="values of 3 heads in layer ''; got 4 numbers"):
        value_map(known, "", 3)
    with (
        pytest.raises(AttlasError, match="at least one attention call"),
        record_value_inputs(known),
    ):
        pass
    known.clip_qkv = 8.0
    with pytest.raises(AttlasError, match="projected and nothing else; got ModuleDict at ''"):
        value_map(known, "", 2)


MORE = {
    "olmo": ({"clip_qkv": 0.5}, "clip_qkv"),
    "bitnet": ({}, "attn_sub_norm"),
    "diffllama": ({}, "groupnorm"),
    "qwen3_next": (
        {"layer_types": ["full_attention"] * 2, "head_dim": 4, "num_experts": 2},
        "more than queries in q_proj",
    ),
    "afmoe": ({"head_dim": 4, "num_experts": 2, "num_dense_layers": 2}, "gate_proj"),
}


@pytest.mark.parametrize("family", MORE)
def test_a_layer_that_clips_norms_or_gates_is_refused(family: str) -> None:
    settings, reported = MORE[family]
    model = AutoModel.from_config(AutoConfig.for_model(family, **COMMON | GROUPED | settings))
    layer = next(path for path, module in model.named_modules() if hasattr(module, "v_proj"))
    with pytest.raises(
        AttlasError, match=f"projected and nothing else; got .* which has {reported}"
    ):
        value_map(model, layer, 4)


def heard_once(family: str, batch: int):
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **COMMON | GROUPED | SIDES | {"d_model": 16})
    model, ids = AutoModel.from_config(config).eval(), torch.randint(1, 40, (batch, 7))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    with torch.no_grad(), observe(model) as trace, record_value_inputs(model) as sources:
        model(ids)
    return model, trace, sources


def test_a_layer_that_scales_what_its_heads_read_is_refused() -> None:
    """granite_swa does so in a function, and no attribute tells."""
    model, trace, sources = heard_once("granite_swa", 2)
    layer = next(iter(trace))
    values = value_map(model, layer, trace[layer].shape[1])
    with pytest.raises(AttlasError, match="heads that read something else, by up to"):
        ValueNorms.of(trace[layer], values, sources[layer][0])
    unchecked = ValueNorms.of(trace[layer], values, ValueInputs(sources[layer][0].vectors))
    assert unchecked.lengths.shape == (2, 4, 7)


@pytest.mark.parametrize("batch", [2, 7])  # as many texts as places: what the heads read decides
def test_a_layer_that_has_places_first_is_turned(batch: int) -> None:
    model, trace, sources = heard_once("fsmt", batch)
    for layer in trace:
        source, values = sources[layer][0], value_map(model, layer, 4)
        norms = ValueNorms.of(trace[layer], values, source)
        texts_first = values(source.vectors.transpose(0, 1)).norm(dim=-1)
        torch.testing.assert_close(norms.lengths, texts_first)


def test_the_steps_of_a_generation_are_joined() -> None:
    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", **COMMON | GROUPED)
    model = AutoModelForCausalLM.from_config(config).eval()
    text = torch.randint(1, 40, (1, 4))
    with torch.no_grad(), observe(model) as trace, record_value_inputs(model) as sources:
        model.generate(text, max_new_tokens=3, min_new_tokens=3, do_sample=False)
    layer = next(iter(trace))
    whole = ValueInputs.joined(sources[layer])
    assert whole.vectors.shape == (1, 6, 16)
    norms = ValueNorms.of(trace[layer], value_map(model, layer, 4), whole)
    assert norms.rows(0, 6).shape == (1, 4, 6, 6)
    wrong = replace(whole, read=whole.read.flip(1))
    with pytest.raises(AttlasError, match="heads that read something else"):
        ValueNorms.of(trace[layer], value_map(model, layer, 4), wrong)


@pytest.mark.parametrize("rate", [0.5, 0.0])
def test_dropped_weights_say_nothing_of_what_heads_read(rate: float) -> None:
    rates = {"attention_probs_dropout_prob": rate, "hidden_dropout_prob": 0.0}
    model = AutoModel.from_config(AutoConfig.for_model("bert", **COMMON, **rates)).train()
    with observe(model) as trace, record_value_inputs(model) as sources:
        model(torch.randint(1, 40, (2, 7)))
    layer = next(iter(trace))
    assert (sources[layer][0].read is None) == (rate > 0)
    ValueNorms.of(trace[layer], value_map(model, layer, 4), sources[layer][0])


def test_steps_with_places_first_are_joined_along_the_places() -> None:
    first = ValueInputs(torch.randn(4, 2, 8), torch.randn(4, 2, 8))
    steps = [first, *(ValueInputs(torch.randn(1, 2, 8), torch.randn(1, 2, 8)) for _ in range(2))]
    whole = ValueInputs.joined(steps)
    assert whole.vectors.shape == whole.read.shape == (6, 2, 8)
    assert torch.equal(whole.vectors[:4], first.vectors)


def test_what_is_not_of_one_call_says_so() -> None:
    values = ValueMap(torch.ones(2, 3, 1), None, torch.ones(2, 1, 3))
    attention_map = FactoredAttentionMap(*torch.randn(2, 1, 2, 4, 2), 1.0, everywhere, 0)
    with pytest.raises(AttlasError, match="values of 1 × 4 keys for 2 heads; got those of 1 × 5"):
        ValueNorms.of(attention_map, values, ValueInputs(torch.ones(1, 5, 3)))
    with pytest.raises(AttlasError, match="of width 3; got width 2"):
        ValueNorms.of(attention_map, values, ValueInputs(torch.ones(1, 4, 2)))
    with pytest.raises(AttlasError, match=r"for 1 heads; got .* for 2"):
        ValueNorms.of(
            attention_map.select_heads(torch.tensor([0])), values, ValueInputs(torch.ones(1, 4, 3))
        )
