"""A model of Hugging Face and its tokenizer: from a text to what it looks at."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.errors import AttlasError, CheckpointError, UnsupportedError
from attlas.inference.huggingface import HuggingFaceModel
from support.small_models import saved, tokenizer

transformers = pytest.importorskip("transformers")

WRITING = ("gpt2", "llama", "bart", "t5")
KINDS = ("bert", "roberta", "albert", *WRITING)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("models")
    return {kind: saved(parent / kind, kind) for kind in KINDS}


def eager(folder: Path, kind: Any) -> Any:
    """The same model, which returns its own weights."""
    return kind.from_pretrained(folder, attn_implementation="eager").eval()


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_an_encoder_reads_and_its_maps_are_those_that_it_returns(
    folders: dict[str, Path], kind: str
) -> None:
    read = HuggingFaceModel(folders[kind])("the cat sat")
    assert (read.text, read.tokens, read.finished, read.blank) == (None, (), True, "")
    assert read.source_tokens == ("[CLS]", "the", "cat", "sat", "[SEP]")
    ids = tokenizer()("the cat sat", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        maps = eager(folders[kind], transformers.AutoModel)(ids, output_attentions=True).attentions
    assert read.trace is not None
    found = [call for layer in read.trace for call in read.trace.calls(layer)]
    assert len(found) == len(maps)
    for one, expected in zip(found, maps, strict=True):
        torch.testing.assert_close(one.weights(), expected, atol=1e-5, rtol=0)
    assert read.trace.source == read.trace.target == (read.source_tokens,)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_decoder_goes_on_with_a_prompt_as_generate_does(
    folders: dict[str, Path], kind: str
) -> None:
    model = HuggingFaceModel(folders[kind], max_new_tokens=5)
    read = model("the cat")
    other = eager(folders[kind], transformers.AutoModelForCausalLM)
    ids = tokenizer()("the cat", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        every = other.generate(ids, max_new_tokens=5, do_sample=False)
        maps = other(every, output_attentions=True).attentions
    names = tokenizer().convert_ids_to_tokens(every[0].tolist())
    assert [*read.source_tokens, *read.tokens] == names
    assert len(read.source_tokens) == ids.shape[1]
    new = every[0, ids.shape[1] :]
    assert read.text == tokenizer().decode(new, skip_special_tokens=True)
    assert read.finished == (int(new[-1]) == 3)
    assert read.trace is not None
    for layer, expected in zip(read.trace, maps, strict=True):
        torch.testing.assert_close(read.trace[layer].weights(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_an_encoder_decoder_answers_and_shows_all_three_kinds_of_maps(
    folders: dict[str, Path], kind: str
) -> None:
    read = HuggingFaceModel(folders[kind], max_new_tokens=6)("the cat sat")
    other = eager(folders[kind], transformers.AutoModelForSeq2SeqLM)
    ids = tokenizer()("the cat sat", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        row = other.generate(ids, max_new_tokens=6, do_sample=False, num_beams=1)
        said = other(ids, decoder_input_ids=row[:, :-1], output_attentions=True)
    assert list(read.tokens) == tokenizer().convert_ids_to_tokens(row[0, 1:].tolist())
    assert read.trace is not None
    found: dict[str, list[torch.Tensor]] = {"encoder": [], "decoder": [], "cross": []}
    for layer in read.trace:
        cross = read.trace.kind(layer) == "cross"
        place = "encoder" if "encoder." in layer else "cross" if cross else "decoder"
        found[place].append(read.trace[layer].weights())
        keys, queries = read.trace.tokens(layer)
        assert keys[0][:1] == (("[CLS]",) if place != "decoder" else keys[0][:1])
        assert queries[0] == (read.source_tokens if place == "encoder" else read.tokens)
    for place, expected in (
        ("encoder", said.encoder_attentions),
        ("decoder", said.decoder_attentions),
        ("cross", said.cross_attentions),
    ):
        for one, own in zip(found[place], expected, strict=True):
            torch.testing.assert_close(one, own, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", WRITING)
def test_no_more_is_written_than_the_limit_says(folders: dict[str, Path], kind: str) -> None:
    read = HuggingFaceModel(folders[kind], max_new_tokens=3)("the cat")
    assert 1 <= len(read.tokens) <= 3
    bounded = HuggingFaceModel(folders[kind]).bounded(target=2)("the cat")
    assert 1 <= len(bounded.tokens) <= 2


@pytest.mark.parametrize("kind", WRITING)
def test_what_is_raised_before_a_step_ends_the_search(folders: dict[str, Path], kind: str) -> None:
    class StopError(Exception):
        pass

    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StopError

    with pytest.raises(StopError):
        HuggingFaceModel(folders[kind], max_new_tokens=20).bounded(before_step=step)("the cat")
    assert calls == 2


def test_a_prompt_that_fills_all_positions_is_shown_without_a_word_more(
    folders: dict[str, Path],
) -> None:
    read = HuggingFaceModel(folders["gpt2"])("cat " * 22)  # 24 positions, with [CLS] and [SEP]
    assert (read.text, read.tokens, read.finished) == ("", (), False)
    assert read.trace is not None
    assert {one.shape[2:] for one in read.trace.values()} == {(24, 24)}


@pytest.mark.parametrize("kind", ["bert", "gpt2", "bart"])
def test_a_text_that_is_too_long_is_refused_with_both_numbers(
    folders: dict[str, Path], kind: str
) -> None:
    model = HuggingFaceModel(folders[kind])
    with pytest.raises(AttlasError, match="at most 24 tokens; got 42"):
        model("cat " * 40)
    with pytest.raises(AttlasError, match="at most 5 tokens; got 6"):
        model.bounded(source=5)("cat " * 4)


@pytest.mark.parametrize(
    "text", ["猫が座った。", "</script><b>", "\u2028 \u202e cat", "🐱 é", "a\u0000b"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_any_kind_are_read_with_one_label_to_each_place(
    folders: dict[str, Path], kind: str, text: str
) -> None:
    read = HuggingFaceModel(folders[kind], max_new_tokens=None)(text)
    assert read.trace is not None
    for layer in read.trace:
        keys, queries = read.trace.tokens(layer)
        for call in read.trace.calls(layer):
            assert call.shape[2:] == (len(queries[0]), len(keys[0]))


def test_a_model_without_attention_says_so_and_has_no_trace(tmp_path: Path) -> None:
    config = transformers.FNetConfig(
        vocab_size=18, hidden_size=16, num_hidden_layers=1, intermediate_size=24,
        max_position_embeddings=24, tpu_short_seq_length=24, pad_token_id=0,
    )  # fmt: skip
    transformers.FNetModel(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    read = HuggingFaceModel(tmp_path)("the cat")
    assert read.trace is None
    assert "no attention by softmax" in read.blank


def test_a_decoder_without_its_head_is_read_and_writes_nothing(tmp_path: Path) -> None:
    config = transformers.LlamaConfig(
        vocab_size=18, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=24, pad_token_id=0,
    )  # fmt: skip
    transformers.LlamaModel(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    model = HuggingFaceModel(tmp_path)
    read = model("the cat")
    assert (model.task, read.text, read.tokens) == ("read", None, ())
    assert read.trace is not None


def test_the_encoder_of_an_encoder_decoder_is_read_alone(tmp_path: Path) -> None:
    config = transformers.T5Config(
        vocab_size=18, d_model=16, d_kv=4, d_ff=24, num_layers=1, num_heads=4, pad_token_id=0
    )
    transformers.T5EncoderModel(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    read = HuggingFaceModel(tmp_path)("the cat")
    assert read.text is None
    assert read.trace is not None
    assert [one.shape for one in read.trace.values()] == [(1, 4, 4, 4)]


def test_a_translation_model_of_marian_answers(tmp_path: Path) -> None:
    config = transformers.MarianConfig(
        vocab_size=18, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, pad_token_id=0,
        max_position_embeddings=24, eos_token_id=3, decoder_start_token_id=0,
        forced_eos_token_id=None,
    )  # fmt: skip
    transformers.MarianMTModel(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    # Its own tokenizer wants two files of SentencePiece; the class is named by the folder.
    read = HuggingFaceModel(tmp_path, max_new_tokens=4)("the cat")
    assert read.trace is not None
    assert {read.trace.kind(layer) for layer in read.trace} == {"self", "cross"}


def test_a_model_of_pictures_is_refused_with_what_it_reads(tmp_path: Path) -> None:
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        image_size=8, patch_size=4,
    )  # fmt: skip
    transformers.ViTModel(config).save_pretrained(tmp_path)
    with pytest.raises(
        UnsupportedError,
        match=r"kind vit, which reads pixel_values; .*--image FILE.*observe_images",
    ):
        HuggingFaceModel(tmp_path)


def test_a_folder_without_a_tokenizer_or_without_a_model_is_named(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    bare = shutil.copytree(folders["bert"], tmp_path / "bare")
    for file in bare.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(CheckpointError, match=r"no tokenizer; .*save_pretrained"):
        HuggingFaceModel(bare)
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        HuggingFaceModel(tmp_path)
    with pytest.raises(CheckpointError, match="no folder there"):
        HuggingFaceModel(tmp_path / "nowhere")


def test_no_code_of_a_folder_runs(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["bert"], tmp_path / "remote")
    ran = tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n", encoding="utf-8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CheckpointError, match="transformers itself can read"):
        HuggingFaceModel(folder)
    assert not ran.exists()


def test_weights_that_are_missing_are_named(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(folders["bert"], tmp_path / "part")
    weights = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "layer.1.attention" not in name}
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"none for .*layer\.1\.attention"):
        HuggingFaceModel(folder)


def test_a_prefix_and_a_limit_of_an_encoder_are_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(UnsupportedError, match="without a prefix"):
        HuggingFaceModel(folders["gpt2"])("the", prefix="cat")
    with pytest.raises(UnsupportedError, match="which only reads"):
        HuggingFaceModel(folders["bert"], max_new_tokens=3)


def of_other_kinds() -> dict[str, Any]:
    """Models whose classes, names and caches differ from those above."""
    of = {"vocab_size": 18, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    wide = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4}
    inner = {"intermediate_size": 24, "max_position_embeddings": 24}
    bert = transformers.BertConfig(**of, **wide, **inner)
    both = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        bert, bert, decoder_start_token_id=2, pad_token_id=0, eos_token_id=3
    )
    return {
        "read": transformers.BertForQuestionAnswering(bert),
        "answer": transformers.EncoderDecoderModel(config=both),
        "continue": transformers.MistralForCausalLM(
            transformers.MistralConfig(
                **of, **wide, **inner, num_key_value_heads=2, sliding_window=4
            )
        ),
    }


@pytest.mark.parametrize("task", ["read", "answer", "continue"])
def test_models_of_other_kinds_are_read_as_their_heads_say(tmp_path: Path, task: str) -> None:
    torch.manual_seed(11)
    of_other_kinds()[task].save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    model = HuggingFaceModel(tmp_path, max_new_tokens=None if task == "read" else 4)
    read = model("the cat sat on")
    assert (model.task, read.text is None) == (task, task == "read")
    assert read.trace is not None
    size = len(read.source_tokens) + (len(read.tokens) if task == "continue" else 0)
    assert next(iter(read.trace.values())).shape[2:] == (size, size)


def test_a_decoder_without_attention_writes_and_says_why_it_has_no_map(tmp_path: Path) -> None:
    config = transformers.MambaConfig(
        vocab_size=18, hidden_size=16, num_hidden_layers=1, pad_token_id=0, bos_token_id=2,
        eos_token_id=3,
    )  # fmt: skip
    torch.manual_seed(11)
    transformers.MambaForCausalLM(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    read = HuggingFaceModel(tmp_path, max_new_tokens=4)("the cat")
    assert (read.text is None, read.trace) == (False, None)
    assert "no attention by softmax" in read.blank
