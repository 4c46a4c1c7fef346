"""scripts/syntax.py: whatever the model, its words are those of the sentence."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from attlas.analysis.syntax import word_numbers
from support.small_models import model, saved, tokenizer

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "syntax.py"
FORMS = ("the", "cat", "sat", ".", "the", "dog", "ran", ",", "do", "n't", "it", "'s")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def byte_level() -> Any:
    """A tokenizer as that of GPT-2, which has no padding and writes spaces into its tokens."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    learned = Tokenizer(BPE())
    learned.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(vocab_size=300, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    learned.train_from_iterator([" ".join(FORMS)] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=learned)


def treebank(path: Path, *lengths: int) -> Path:
    """Sentences of so many words, each of which has the one before as its head."""
    with path.open("w", encoding="utf-8") as file:
        for length in lengths:
            for place in range(length):
                relation = "dep" if place else "root"
                form = FORMS[place % len(FORMS)]
                file.write(f"{place + 1}\t{form}\t_\tX\t_\t_\t{place}\t{relation}\t_\t_\n")
            file.write("\n")
    return path


def test_words_have_the_tokens_of_their_text_in_byte_level_bpe_too(script: dict[str, Any]) -> None:
    for one, expected in ((byte_level(), True), (tokenizer(), False)):
        spaced = script["_spaced"](one)
        assert spaced is expected
        words = script["_words"](FORMS, spaced)
        encoding = one([words], is_split_into_words=True)
        assert encoding["input_ids"][0] == one(" ".join(FORMS))["input_ids"]
        assert set(word_numbers(encoding)[0].tolist()) - {-1} == set(range(len(FORMS)))


def test_a_tokenizer_that_makes_other_tokens_of_words_is_refused(script: dict[str, Any]) -> None:
    def odd(text: Any, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [1] if isinstance(text, str) else [2, 3]}

    with pytest.raises(ValueError, match="the same tokens of words and of their text"):
        script["_spaced"](odd)


def test_a_decoder_without_padding_reads_sentences_of_different_length(
    script: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = byte_level()
    folder = tmp_path / "gpt2"
    decoder = model("gpt2")
    decoder.resize_token_embeddings(len(one))
    decoder.save_pretrained(folder)
    one.save_pretrained(folder)
    sentences = treebank(tmp_path / "two.conllu", 8, 3)
    assert script["main"]([str(folder), str(sentences), "--least", "1"]) == 0
    reported = capsys.readouterr().out
    assert reported.startswith("2 sentences, 0 pairs left out")
    assert "dep                 9 " in reported


def test_of_an_encoder_decoder_the_encoder_reads(
    script: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(tmp_path / "bart", "bart")
    sentences = treebank(tmp_path / "two.conllu", 6, 3)
    assert script["main"]([str(folder), str(sentences), "--least", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 sentences")
    assert all(" layers.0.self_attn " in line for line in lines[2:])


def test_what_is_wrong_is_reported_in_one_sentence(
    script: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = saved(tmp_path / "bert", "bert")
    capsys.readouterr()  # of bars that show how a model is saved

    def reported(*lengths: int) -> str:
        sentences = treebank(tmp_path / "some.conllu", *lengths)
        assert script["main"]([str(folder), str(sentences), "--batch", "2"]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    error = reported(4, 4, 30)
    assert (
        "sentences of at most 24 tokens, which this model can read; got 38 in sentence 3" in error
    )
    assert error.endswith("name another model, or what comes before: --sentences 2\n")
    assert reported(30).endswith("; name another model\n")
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)
    assert "transformers itself can read" in reported(4)
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert "run: pip install transformers" in reported(4)
