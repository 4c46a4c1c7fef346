"""Other tools with "attlas" or a trace, against the same tools with "eager", as their authors ask.

Each test is an example of the tool's own documentation. `make other-tools` runs them.
"""

import json
import os
from importlib import import_module
from importlib.util import find_spec

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

import attlas
from support.minilm import minilm
from support.story_model import story_model

pytestmark = pytest.mark.filterwarnings("ignore")  # what the tools warn of is theirs
NO_OTHER_TOOL = "other tools have environments of their own: make other-tools"  # as conftest has it
TEXT = "Once upon a time, there was a little girl named Lily. She"
IDS = torch.arange(5, 16)[None]
T5 = {
    "d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 32, "d_kv": 8, "vocab_size": 512,
    "decoder_start_token_id": 0,
}  # fmt: skip
BERT = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32,
    "vocab_size": 512,
}  # fmt: skip


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    attlas.register_attention_interface()


@pytest.fixture(scope="module")
def stories(shared_data, tmp_path_factory):
    return story_model(shared_data / "stories260K", tmp_path_factory.mktemp("stories"))


def tool(name, module=None):
    if find_spec(name) is None and os.environ.get("ATTLAS_OTHER_TOOL") != name:
        pytest.skip(NO_OTHER_TOOL)
    return import_module(module or name)


def model_of(folder, implementation, kind=AutoModelForCausalLM):
    return kind.from_pretrained(folder, attn_implementation=implementation).eval()


def random_model(kind, name, settings, implementation):
    torch.manual_seed(0)
    config = AutoConfig.for_model(name, architectures=[kind.__name__], **settings)
    return kind._from_config(config, attn_implementation=implementation).eval()


def largest_gap(first, second):
    assert first.shape == second.shape
    assert torch.equal(first.isnan(), second.isnan())
    return (first - second).nan_to_num().abs().max()


# bertviz: the two views of its README.


@pytest.mark.parametrize("view", ["head_view", "model_view"])
def test_bertviz_draws_what_it_draws_with_eager(view):
    draw = getattr(tool("bertviz"), view)
    tokenizer = AutoTokenizer.from_pretrained(minilm())
    inputs = tokenizer("The cat sat on the mat.", return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    drawn = []
    for implementation in ("eager", "attlas"):
        model = model_of(minilm(), implementation, transformers.AutoModel)
        with torch.no_grad():
            attentions = model(**inputs, output_attentions=True).attentions
        page = draw(attentions, tokens, html_action="return").data
        shown, _ = json.JSONDecoder().raw_decode(page[page.index('{"attention"') :])
        drawn.append(shown["attention"][0])
    assert drawn[0]["left_text"] == drawn[1]["left_text"]
    weights = [torch.tensor(one["attn"]) for one in drawn]
    assert weights[0].sum() > 0
    assert largest_gap(*weights) < 1e-5


# captum: its tutorial of BERT, which attributes what a model says to its embeddings, and reads and
# attributes attention.


def share_of_bert(model):
    """The attention of one head to the token that it looks at most, summed over queries."""
    return lambda ids: model(ids, output_attentions=True).attentions[3][:, 2].amax(-1).sum(-1)


def bert_inputs():
    tokenizer = AutoTokenizer.from_pretrained(minilm())
    ids = tokenizer("The cat sat on the mat.", return_tensors="pt")["input_ids"]
    baseline = torch.full_like(ids, tokenizer.mask_token_id)
    baseline[:, [0, -1]] = ids[:, [0, -1]]
    return ids, baseline


def test_captum_attributes_attention_to_embeddings_as_with_eager():
    gradients = tool("captum", "captum.attr").LayerIntegratedGradients
    ids, baseline = bert_inputs()
    attributions = []
    for implementation in ("eager", "attlas"):
        model = model_of(minilm(), implementation, transformers.BertModel)
        method = gradients(share_of_bert(model), model.embeddings)
        attributions.append(method.attribute(ids, baselines=baseline, n_steps=20))
    assert attributions[0].abs().max() > 1e-2
    assert largest_gap(*attributions) < 1e-6


def test_captum_cannot_attribute_an_output_to_weights_that_were_computed_beside_it():
    conductance = tool("captum", "captum.attr").LayerConductance
    ids, baseline = bert_inputs()

    def attribution(implementation):
        model = model_of(minilm(), implementation, transformers.BertModel)
        embed = model.embeddings.word_embeddings

        def first_feature(embeds):
            return model(inputs_embeds=embeds, output_attentions=True).pooler_output[:, 0]

        method = conductance(first_feature, model.encoder.layer[0].attention.self)
        return method.attribute(embed(ids).detach(), embed(baseline).detach(), n_steps=5)

    assert attribution("eager")[1].abs().sum() > 0
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        attribution("attlas")


# inseq: its README, with "attention" as the method.


def test_inseq_attributes_a_decoder_by_attention_as_with_eager(stories):
    inseq = tool("inseq")
    found = []
    for implementation in ("eager", "attlas"):
        settings = {"attn_implementation": implementation}
        model = inseq.load_model(str(stories), "attention", model_kwargs=settings)
        assert model.model.config._attn_implementation == implementation
        out = model.attribute(TEXT, generation_args={"max_new_tokens": 6}, show_progress=False)
        found.append((out.info["generated_texts"], out[0].target_attributions))
        assert out.show(display=False, return_html=True)
    assert found[0][0] == found[1][0] != [TEXT]
    assert largest_gap(found[0][1], found[1][1]) < 1e-5


def test_inseq_attributes_an_encoder_decoder_by_attention_as_with_eager(stories):
    inseq = tool("inseq")
    found = []
    for implementation in ("eager", "attlas"):
        model = random_model(transformers.T5ForConditionalGeneration, "t5", T5, implementation)
        tokenizer = AutoTokenizer.from_pretrained(stories)
        model = inseq.load_model(model, "attention", tokenizer=tokenizer)
        out = model.attribute(TEXT, "She was happy.", attribute_target=True, show_progress=False)
        found.append(out[0])
    assert found[0].source_attributions.nan_to_num().sum() > 0
    assert largest_gap(*(one.source_attributions for one in found)) < 1e-5
    assert largest_gap(*(one.target_attributions for one in found)) < 1e-5


# kvpress: its README, with the press that reads attention.


def test_kvpress_keeps_the_keys_that_it_keeps_with_eager(stories):
    press = tool("kvpress").ObservedAttentionPress(compression_ratio=0.5)
    ids = AutoTokenizer.from_pretrained(stories)(TEXT, return_tensors="pt")["input_ids"]
    caches = []
    for implementation in ("eager", "attlas"):
        model = model_of(stories, implementation)
        with torch.no_grad(), attlas.attention_weights_in_every_call(), press(model):
            caches.append(model(ids).past_key_values)
    assert caches[0].layers[0].keys.shape[2] == ids.shape[1] // 2
    for ours, of_eager in zip(caches[1].layers, caches[0].layers, strict=True):
        assert largest_gap(ours.keys, of_eager.keys) < 1e-4
        assert largest_gap(ours.values, of_eager.values) < 1e-4
    with torch.no_grad(), pytest.raises(AssertionError, match="eager"), press(model):
        model(ids)


def test_kvpress_answers_what_it_answers_with_eager(stories):
    press = tool("kvpress").ObservedAttentionPress(compression_ratio=0.5)
    tokenizer, answers = AutoTokenizer.from_pretrained(stories), []
    for implementation in ("eager", "attlas"):
        answer = transformers.pipeline(
            "kv-press-text-generation", model=model_of(stories, implementation), tokenizer=tokenizer
        )
        with attlas.attention_weights_in_every_call():
            answers.append(answer(TEXT, question="One day", press=press, max_new_tokens=12))
    assert answers[0] == answers[1]
    assert answers[0]["answer"]


# TransformerLens: hook_pattern, and the head detector of its demonstrations.


def bridge_of(model, tokenizer):
    booted = tool("transformer_lens", "transformer_lens.model_bridge").TransformerBridge
    return booted.boot_transformers("local", hf_model=model, tokenizer=tokenizer, device="cpu")


def test_transformer_lens_finds_the_heads_in_a_trace_that_it_finds_by_itself(stories):
    lens = tool("transformer_lens")
    detect_head = tool("transformer_lens", "transformer_lens.head_detector").detect_head
    tokenizer = AutoTokenizer.from_pretrained(stories)
    bridge = bridge_of(model_of(stories, "eager"), tokenizer)
    ids = bridge.to_tokens(TEXT)
    _, cache = bridge.run_with_cache(ids)
    model = model_of(stories, "sdpa")
    with attlas.observe(model) as trace, torch.no_grad():
        model(ids)
    patterns = attlas.hook_patterns(trace)
    assert list(patterns) == [name for name in cache if name.endswith("hook_pattern")]
    for name, pattern in patterns.items():
        assert largest_gap(pattern, cache[name]) < 1e-5
    ours = lens.ActivationCache(patterns, bridge).remove_batch_dim()
    heads = detect_head(bridge, TEXT, "previous_token_head", cache=ours)
    assert heads.max() > 0.5
    assert largest_gap(heads, detect_head(bridge, TEXT, "previous_token_head")) < 1e-5


@pytest.mark.parametrize(
    ("kind", "name", "settings", "hooks"),
    [("BertForMaskedLM", "bert", BERT, 2), ("T5ForConditionalGeneration", "t5", T5, 6)],
)
def test_transformer_lens_has_the_patterns_of_eager(stories, kind, name, settings, hooks):
    model = random_model(getattr(transformers, kind), name, settings, "eager")
    bridge = bridge_of(model, AutoTokenizer.from_pretrained(stories))
    caches = {}
    for implementation in ("eager", "attlas", "sdpa"):
        bridge.original_model.set_attn_implementation(implementation)
        _, cache = bridge.run_with_cache(IDS)
        caches[implementation] = {k: cache[k] for k in cache if k.endswith("hook_pattern")}
    assert len(caches["eager"]) == hooks
    assert caches["sdpa"] == {}
    assert caches["attlas"].keys() == caches["eager"].keys()
    for hook, pattern in caches["eager"].items():
        assert largest_gap(caches["attlas"][hook], pattern) < 1e-5
