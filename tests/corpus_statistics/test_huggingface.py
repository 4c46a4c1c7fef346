"""Models of Hugging Face in a corpus: what they write, what stops them, what they look at."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from attlas.corpus_statistics.huggingface import HuggingFaceFolder, HuggingFaceReader
from attlas.corpus_statistics.table import ALSO, frames, measure_map
from attlas.errors import AttlasError
from attlas.recording import observe
from support.small_models import SIZE, model, saved, tokenizer


def reader_of(folder):
    return HuggingFaceReader(HuggingFaceFolder(folder))


def translating(folder):
    """A model whose class does not say how its decoder's input is made of its target."""
    import transformers as hf

    torch.manual_seed(11)
    config = hf.M2M100Config(
        vocab_size=SIZE, pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=3,
        d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24,
        max_position_embeddings=24,
    )  # fmt: skip
    hf.M2M100ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def other_facts(one, other):
    return {name for name in {**one, **other} if one.get(name) != other.get(name)}


def test_the_facts_tell_other_settings_of_generation_and_another_longest(tmp_path):
    folder = saved(tmp_path / "bart", "bart")
    one = HuggingFaceFolder(folder).facts
    path = folder / "generation_config.json"
    reported = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**reported, "no_repeat_ngram_size": 2}), encoding="utf-8")
    other = HuggingFaceFolder(folder).facts
    assert other_facts(one, other) == {"generation"}
    tokenizer(model_max_length=10).save_pretrained(folder)
    shorter = HuggingFaceFolder(folder).facts
    assert other_facts(other, shorter) == {"longest"}
    assert shorter["longest"] == 10


def test_settings_of_generation_that_shape_its_answer_alone_change_nothing(tmp_path):
    folder = saved(tmp_path / "bart", "bart")
    reader = reader_of(folder)
    texts = [reader.read(1, "a b c")]
    plain = reader.completed(texts)
    path = folder / "generation_config.json"
    reported = json.loads(path.read_text(encoding="utf-8"))
    more = {"return_dict_in_generate": True, "output_scores": True}
    path.write_text(json.dumps({**reported, **more}), encoding="utf-8")
    assert reader_of(folder).completed(texts) == plain


def test_a_path_that_no_module_has_is_reported_before_anything_is_read(tmp_path):
    reader = reader_of(saved(tmp_path / "bart", "bart"))
    with pytest.raises(AttlasError, match=r"got \['typo.\*'\], of which it has none"):
        list(reader.map_records([reader.read(1, "a b c")], ["model.encoder.*", "typo.*"]))


def test_a_target_is_shifted_behind_the_token_that_begins_it_where_the_model_cannot(tmp_path):
    reader = reader_of(translating(tmp_path / "m2m"))
    assert not hasattr(reader.model, "prepare_decoder_input_ids_from_labels")
    text = reader.read(1, "the cat", "a big dog")
    assert text.decoder_input == (3, *text.expected[:-1])
    map_records = [record for record in reader.map_records([text]) if record.kind == "cross"]
    assert [record.attention_map.shape[2:] for record in map_records] == [(5, 4)]
    for settings in (reader.model.config, reader.model.generation_config):
        settings.decoder_start_token_id = None
    with pytest.raises(AttlasError, match="got no decoder_start_token_id in"):
        reader.read(1, "the cat", "a big dog")


def test_a_tokenizer_of_another_model_is_explained_where_it_writes_and_where_it_reads(tmp_path):
    small = model("bart")
    small.resize_token_embeddings(6)
    small.save_pretrained(tmp_path / "bart")
    tokenizer().save_pretrained(tmp_path / "bart")
    reader = reader_of(tmp_path / "bart")
    for target in (None, "a dog"):
        with pytest.raises(AttlasError, match="check that the tokenizer is that of the model"):
            list(reader.map_records([reader.read(1, "the cat", target)]))


def test_a_want_of_memory_is_no_mistake_in_the_texts(tmp_path, monkeypatch):
    reader = reader_of(saved(tmp_path / "bart", "bart"))
    reported = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to …"

    def failing(**_):
        raise RuntimeError(reported)

    monkeypatch.setattr(reader.model, "generate", failing)
    with pytest.raises(RuntimeError, match="allocate memory"):
        reader.completed([reader.read(1, "the cat")])
    reported = "mat1 and mat2 shapes cannot be multiplied"
    with pytest.raises(AttlasError, match="shapes cannot be multiplied"):
        reader.completed([reader.read(1, "the cat")])


def test_a_model_that_reads_no_text_is_explained(tmp_path, monkeypatch):
    reader = reader_of(saved(tmp_path / "bart", "bart"))

    def failing(**_):
        raise AttributeError("'NoneType' object has no attribute 'shape'")  # as of images

    monkeypatch.setattr(reader.model, "generate", failing)
    with pytest.raises(AttlasError, match=r"reads text alone; .* look at the saved trace"):
        reader.completed([reader.read(1, "the cat")])


def put_together(folder, decoder):
    """An encoder–decoder of a BERT and a decoder of 18 positions."""
    import transformers as hf

    torch.manual_seed(11)
    of = {"vocab_size": SIZE, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    wide = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    writes = {"is_decoder": True, "add_cross_attention": True}
    if decoder == "bert":
        bert = hf.BertConfig(
            **of, **wide, **writes, intermediate_size=24, max_position_embeddings=18
        )
        second = hf.BertLMHeadModel(bert)
    else:
        gpt2 = hf.GPT2Config(**of, **writes, n_embd=16, n_layer=2, n_head=4, n_positions=18)
        second = hf.GPT2LMHeadModel(gpt2)
    first = hf.BertModel(
        hf.BertConfig(**of, **wide, intermediate_size=24, max_position_embeddings=24)
    )
    whole = hf.EncoderDecoderModel(encoder=first, decoder=second)
    for settings in (whole.config, whole.generation_config):
        settings.decoder_start_token_id, settings.pad_token_id, settings.eos_token_id = 2, 0, 3
    whole.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def folder_of(place, kind):
    return put_together(place, kind[5:]) if kind.startswith("bert+") else saved(place, kind)


@pytest.mark.parametrize("kind", ["t5", "bart", "bert+bert", "bert+gpt2"])
def test_the_whole_model_looks_where_it_looks_without_its_logits(tmp_path, kind):
    folder = folder_of(tmp_path / "model", kind)
    reader = reader_of(folder)
    head = reader.model.get_output_embeddings()
    made = []
    watching = head.register_forward_hook(lambda *found: made.append(found[-1].numel()))
    text = reader.read(1, "the cat sat", "a dog ran in")
    map_records = list(reader.map_records([text]))
    assert sum(made) == 0
    watching.remove()
    source, requested = torch.tensor([text.source]), torch.tensor([text.decoder_input])
    with torch.no_grad(), observe(reader.model) as trace:
        logits = reader.model(input_ids=source, decoder_input_ids=requested).logits
    assert logits.shape == (1, len(text.decoder_input), SIZE)  # and the head has its tokens again
    assert [record.layer for record in map_records] == list(trace)
    for record in map_records:
        (whole,) = trace.calls(record.layer)
        torch.testing.assert_close(record.attention_map.weights(), whole.weights())
    assert {record.kind for record in map_records} == {"self", "cross"}


@pytest.mark.parametrize("kind", ["t5", "bart", "bert+bert", "bert+gpt2"])
def test_an_encoder_decoder_looks_where_transformers_itself_says(tmp_path, kind):
    from transformers import AutoModelForSeq2SeqLM

    folder = folder_of(tmp_path / "model", kind)
    reader = reader_of(folder)
    text = reader.read(1, "the cat sat", "a dog ran in")
    found = [record.attention_map.weights() for record in reader.map_records([text])]
    eager = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
    source, requested = torch.tensor([text.source]), torch.tensor([text.decoder_input])
    with torch.no_grad():
        reported = eager(input_ids=source, decoder_input_ids=requested, output_attentions=True)
    both = zip(reported.decoder_attentions, reported.cross_attentions, strict=True)
    expected = [*reported.encoder_attentions, *(one for layer in both for one in layer)]
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


def test_a_decoder_alone_is_read_without_its_head(tmp_path):
    from transformers import AutoModelForCausalLM

    folder = saved(tmp_path / "gpt2", "gpt2")
    reader = reader_of(folder)
    text = reader.read(1, "the cat sat")
    found = {record.layer: record.attention_map.weights() for record in reader.map_records([text])}
    whole = AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad(), observe(whole) as trace:
        whole(torch.tensor([text.source]))
    assert [f"transformer.{layer}" for layer in found] == list(trace)
    for layer, weights in found.items():
        torch.testing.assert_close(weights, trace[f"transformer.{layer}"].weights())
    assert reader.model.get_output_embeddings() is None


@pytest.mark.parametrize("decoder", ["bert", "gpt2"])
def test_a_target_is_cut_to_the_positions_of_a_decoder_with_settings_of_its_own(tmp_path, decoder):
    reader = reader_of(put_together(tmp_path / "model", decoder))
    text = reader.read(1, "red", "a dog " * 20)
    assert (len(text.expected), text.unread) == (18, 42 - 18)
    assert {
        record.attention_map.shape[2]
        for record in reader.map_records([text])
        if "decoder" in record.layer
    } == {18}


@pytest.mark.parametrize("kind", ["bert", "gpt2", "bart"])
def test_further_columns_are_what_the_weights_say(tmp_path, kind):
    reader = reader_of(saved(tmp_path / kind, kind))
    target = "a nonsense dog" if kind == "bart" else None
    text = reader.read(1, "the cat sat on a nonsense mat", target)
    map_records = list(reader.map_records([text]))
    for record in map_records:
        side = (
            text.decoder_input
            if "decoder" in record.layer and record.kind == "self"
            else text.source
        )
        special = [place for place, id_ in enumerate(side) if id_ in (0, 2, 3)]
        assert record.special == tuple(special)
        weights = record.attention_map.weights()[0].double()
        one = measure_map(record, 0.01, reader.named(record), ALSO)
        special_weight = weights[..., special].sum(-1)
        np.testing.assert_allclose(one.of_queries["special_weight"], special_weight, atol=1e-6)
        np.testing.assert_allclose(
            one.of_heads["special_weight"], special_weight.mean(-1), atol=1e-6
        )
        gini = record.attention_map.gini()[0]
        np.testing.assert_allclose(one.of_queries["gini"], gini, atol=1e-6)
        num_visible = record.attention_map.num_visible()[0].double().mean(-1)
        np.testing.assert_allclose(one.of_heads["num_visible"], num_visible)
        (frame,) = frames([one], by_token=True, also=ALSO)
        assert list(frame)[-2:] == list(ALSO)
        assert {len(values) for values in frame.values()} == {special_weight.numel()}


def test_a_token_for_everything_is_special_though_it_is_the_unknown_one_too(tmp_path):
    model("gpt2").save_pretrained(tmp_path)
    one = tokenizer()
    one.add_special_tokens({"unk_token": "[SEP]"})
    one.save_pretrained(tmp_path)
    assert 3 in reader_of(tmp_path).special
    tokenizer().save_pretrained(tmp_path)
    assert reader_of(tmp_path).special == {0, 2, 3}  # without [UNK]


def test_the_types_of_tokens_are_read_and_padded_where_the_model_tells_them_apart(tmp_path):
    from tokenizers.processors import TemplateProcessing

    folders = {}
    for kind, options in (("bert", {"type_vocab_size": 3}), ("bart", {})):
        folders[kind] = saved(tmp_path / kind, kind, **options)
        names = ["input_ids", "token_type_ids", "attention_mask"]
        typed = tokenizer(model_input_names=names)
        typed.backend_tokenizer.post_processor = TemplateProcessing(
            single="[CLS]:2 $A:0 [SEP]:0", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        typed.save_pretrained(folders[kind])
    folder = HuggingFaceFolder(folders["bert"])
    folder.tokenizer._pad_token_type_id = 1
    reader = HuggingFaceReader(folder)
    texts = [reader.read(1, "the cat ran"), reader.read(2, "red")]
    assert [text.types for text in texts] == [(2, 0, 0, 0, 0), (2, 0, 0)]
    reported = folder.inputs(texts)["token_type_ids"].tolist()
    assert reported == [[2, 0, 0, 0, 0], [2, 0, 0, 1, 1]]

    def peaks(text):
        return [
            float(record.attention_map.max_weight().sum()) for record in reader.map_records([text])
        ]

    assert peaks(texts[0]) != pytest.approx(peaks(replace(texts[0], types=None)), abs=1e-6)
    assert reader_of(folders["bart"]).read(1, "the cat").types is None
