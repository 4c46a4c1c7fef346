"""`--to huggingface`: transformers is the referee."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, MarianMTModel, MarianTokenizer

from attlas.data import END, Subwords
from attlas.decoding import DecodingConfig, decode
from attlas.errors import AttlasError
from attlas.export import export
from support.exportable import MARIAN, logits_of, run_of, sentences, small, subwords

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")


def marian(run: Any, folder: Path) -> MarianMTModel:
    export(run, "huggingface", folder)
    model, loading = MarianMTModel.from_pretrained(folder, output_loading_info=True)
    assert not any(loading.values())
    return model.eval()


@pytest.mark.parametrize("kind", MARIAN)
def test_the_logits_are_ours(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path / "run", MARIAN[kind])
    model, ours = marian(run, tmp_path / "out"), run.model()
    sizes = len(run.vocabularies().source), len(run.vocabularies().target)
    source, token_mask = sentences(sizes[0], (7, 4, 2, 1))
    target = torch.cat([torch.full((4, 1), 2), torch.randint(4, sizes[1], (4, 30))], dim=1)
    with torch.no_grad():
        found = model(source, attention_mask=token_mask.long(), decoder_input_ids=target).logits
    expected = logits_of(ours, source, token_mask, target)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", MARIAN)
def test_greedy_search_finds_the_same_tokens(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path / "run", MARIAN[kind], method="greedy")
    model = marian(run, tmp_path / "out")
    assert model.generation_config.num_beams == 1
    source, token_mask = sentences(len(run.vocabularies().source), (9, 6, 5, 5, 4, 3, 2, 1))
    config = DecodingConfig(method="greedy", max_len_a=0.0, max_len_b=12)
    found = [best.tokens for (best,) in decode(run.model(), source, token_mask, config)]
    generated = model.generate(source, attention_mask=token_mask.long(), max_new_tokens=12)
    rows = generated[:, 1:].tolist()
    assert found == [tuple(row[: row.index(END)] if END in row else row) for row in rows]


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Subwords, Any, Subwords]:
    folder = tmp_path_factory.mktemp("tokenizers")
    vocabularies = subwords()
    run = run_of(folder / "run", small(norm="post"), vocabularies)
    export(run, "huggingface", folder / "out")
    tokenizer = AutoTokenizer.from_pretrained(folder / "out")
    assert isinstance(tokenizer, MarianTokenizer)
    source, target = vocabularies.source, vocabularies.target
    assert isinstance(source, Subwords)
    assert isinstance(target, Subwords)
    return source, tokenizer, target


_PLAIN = st.text(st.characters(exclude_characters="▁", exclude_categories=["Cs"]), min_size=1)
_LIKELY = st.text("Thehousis milaw“”日0123456789 ", min_size=1)


@given(text=_LIKELY | _PLAIN.filter(lambda text: not text.startswith(">>")))
def test_the_tokenizer_gives_our_ids(tokenizers: Any, text: str) -> None:
    source, tokenizer, target = tokenizers
    assert tokenizer(text)["input_ids"] == [*source.encode(text), END]
    assert tokenizer(text_target=text)["input_ids"] == [*target.encode(text), END]


@given(text=_LIKELY.map(str.strip).filter(bool))
def test_the_tokenizer_reads_our_ids_back(tokenizers: Any, text: str) -> None:
    _, tokenizer, target = tokenizers
    ids = [*target.encode(text), END]
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_one_vocabulary_is_one_for_both_sides(tmp_path: Path) -> None:
    vocabularies = subwords()
    joint = type(vocabularies)(vocabularies.source, vocabularies.source)
    run = run_of(tmp_path / "run", small(norm="post", tie_source=True), joint)
    export(run, "huggingface", tmp_path / "out")
    tokenizer = MarianTokenizer.from_pretrained(tmp_path / "out")
    expected = [*joint.target.encode("The 3rd house"), END]
    assert tokenizer("The 3rd house")["input_ids"] == expected
    assert tokenizer(text_target="The 3rd house")["input_ids"] == expected
    assert not (tmp_path / "out" / "target_vocab.json").exists()


def test_of_words_there_is_no_tokenizer_and_the_folder_says_so(tmp_path: Path) -> None:
    exported = export(run_of(tmp_path / "run", small(norm="post")), "huggingface", tmp_path / "out")
    assert {"source.json", "target.json"} < set(exported.files)
    assert not {"tokenizer.json", "vocab.json", "source.spm"} & set(exported.files)
    assert any("no tokenizer for words" in remark for remark in exported.remarks)


@pytest.mark.parametrize(
    ("settings", "lacking"),
    [
        ({}, 'norm = "post" for Marian; got norm = "pre"'),
        (
            {"norm": "post", "norm_type": "rms"},
            'norm_type = "layer" for Marian; got norm_type = "rms"',
        ),
        ({"norm": "post", "positions": "learned"}, 'got positions = "learned"'),
        ({"norm": "post", "positions": "rotary"}, 'got positions = "rotary"'),
        ({"norm": "post", "activation": "swiglu"}, 'got activation = "swiglu"'),
    ],
)
def test_what_marian_lacks_is_named(tmp_path: Path, settings: dict[str, Any], lacking: str) -> None:
    run = run_of(tmp_path / "run", small(**settings))
    with pytest.raises(
        AttlasError, match=f"{lacking}.*use --to ctranslate2, --to onnx, or --to safetensors"
    ):
        export(run, "huggingface", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_marian_ranks_by_its_own_formula_and_the_folder_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", small(norm="post"), length_penalty=0.6, num_beams=4)
    exported = export(run, "huggingface", tmp_path / "out")
    model = MarianMTModel.from_pretrained(tmp_path / "out")
    assert model.generation_config.num_beams == 4
    assert model.generation_config.length_penalty == pytest.approx(0.6)
    assert any("log P / |Y|^α" in remark for remark in exported.remarks)
