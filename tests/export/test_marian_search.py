"""How a run searches, in the words of transformers: its own `generate` is the referee."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import GenerationConfig, MarianMTModel, MarianTokenizer
from transformers.generation.logits_process import (
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from attlas.data import END, UNKNOWN
from attlas.decoding import DecodingConfig, decode
from attlas.decoding.sampling import Distribution
from attlas.export import export
from attlas.export.marian import HuggingFaceSearch
from support.exportable import leaning, run_of, sentences, small, subwords

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

POSITIONS = 1024
SEARCHES: dict[str, dict[str, Any]] = {
    "beam": {},
    "beam, every limit": {"num_beams": 4, "n_best": 3, "min_length": 3, "no_repeat_ngram": 2},
    "beam, exhaustive": {"num_beams": 2, "exhaustive": True, "length_penalty": 0.0},
    "greedy": {"method": "greedy", "length_penalty": 0.6, "min_length": 2},
    "sample": {"method": "sample", "n_best": 4, "temperature": 0.7, "top_k": 5, "top_p": 0.9},
    "sample from all": {"method": "sample"},
}


def searching(**settings: Any) -> HuggingFaceSearch:
    return HuggingFaceSearch(DecodingConfig(**settings), POSITIONS)


@pytest.mark.parametrize("kind", SEARCHES)
def test_transformers_finds_nothing_wrong_with_the_file(tmp_path: Path, kind: str) -> None:
    export(
        run_of(tmp_path / "run", small(norm="post"), **SEARCHES[kind]),
        "huggingface",
        tmp_path / "out",
    )
    read = GenerationConfig.from_pretrained(tmp_path / "out")
    read.validate(strict=True)
    expected = DecodingConfig(**SEARCHES[kind])
    assert read.num_return_sequences == expected.n_best
    assert read.do_sample == (expected.method == "sample")
    assert (read.min_new_tokens or 0) == expected.min_length
    assert (read.no_repeat_ngram_size or 0) == expected.no_repeat_ngram
    if expected.method == "sample":
        assert (read.temperature, read.top_k, read.top_p) == pytest.approx(
            (expected.temperature, expected.top_k, expected.top_p)
        )
    if expected.method == "beam":
        assert read.num_beams == expected.num_beams
        assert read.length_penalty == expected.length_penalty
        assert read.early_stopping == ("never" if expected.exhaustive else False)


@pytest.mark.parametrize("min_length", [0, 1, 5, 9])
@pytest.mark.parametrize("no_repeat_ngram", [0, 1, 2, 3])
def test_the_limits_are_those_of_attlas(
    tmp_path: Path, min_length: int, no_repeat_ngram: int
) -> None:
    settings: dict[str, Any] = {
        "method": "greedy",
        "max_len_a": 0.0,
        "max_len_b": 9,
        "min_length": min_length,
        "no_repeat_ngram": no_repeat_ngram,
    }
    run = run_of(tmp_path / "run", small(norm="post"), **settings)
    export(run, "huggingface", tmp_path / "out")
    model = MarianMTModel.from_pretrained(tmp_path / "out").eval()
    source, token_mask = sentences(len(run.vocabularies().source), (9, 6, 5, 5, 4, 3, 2, 1))
    found = decode(run.model(), source, token_mask, DecodingConfig(**settings))
    assert min(len(best.tokens) for (best,) in found) == min_length  # or it would not matter
    rows = model.generate(source, attention_mask=token_mask.long())[:, 1:].tolist()
    assert [best.tokens for (best,) in found] == [
        tuple(row[: row.index(END)] if END in row else row) for row in rows
    ]


@pytest.mark.parametrize("unknown", ["keep", "forbid"])
def test_generate_writes_no_unknown_token_where_attlas_does_not(
    tmp_path: Path, unknown: str
) -> None:
    config = DecodingConfig(method="greedy", unknown=unknown, max_len_a=0.0, max_len_b=9)
    run = run_of(tmp_path / "run", small(norm="post"), **config.model_dump())
    run = leaning(run, UNKNOWN, 3.0)
    export(run, "huggingface", tmp_path / "out")
    model = MarianMTModel.from_pretrained(tmp_path / "out").eval()
    source, token_mask = sentences(len(run.vocabularies().source), (9, 6, 5, 5, 4, 3, 2, 1))
    found = [best.tokens for (best,) in decode(run.model(), source, token_mask, config)]
    rows = model.generate(source, attention_mask=token_mask.long())[:, 1:].tolist()
    assert found == [tuple(row[: row.index(END)] if END in row else row) for row in rows]
    assert any(UNKNOWN in tokens for tokens in found) == (unknown == "keep")


def test_that_generate_replaces_no_unknown_token_is_reported() -> None:
    assert "generate does not: it writes <unk>" in " ".join(searching(unknown="replace").remarks)


@pytest.mark.parametrize("kind", ["beam, every limit", "sample"])
def test_as_many_translations_come_as_attlas_gives(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path / "run", small(norm="post"), **SEARCHES[kind])
    export(run, "huggingface", tmp_path / "out")
    model = MarianMTModel.from_pretrained(tmp_path / "out").eval()
    source, token_mask = sentences(len(run.vocabularies().source), (4, 2))
    rows = model.generate(source, attention_mask=token_mask.long(), max_new_tokens=8)
    assert len(rows) == 2 * SEARCHES[kind]["n_best"]


@given(
    temperature=st.floats(0.3, 3.0),
    top_k=st.integers(1, 12),
    top_p=st.floats(0.1, 0.99),
    seed=st.integers(0, 99),
)
def test_what_is_drawn_from_is_the_same(
    temperature: float, top_k: int, top_p: float, seed: int
) -> None:
    logits = 3.0 * torch.randn(3, 12, generator=torch.Generator().manual_seed(seed)).double()
    ids = torch.zeros(3, 1, dtype=torch.long)
    warped = logits
    for warper in (
        TemperatureLogitsWarper(temperature),
        TopKLogitsWarper(top_k),
        TopPLogitsWarper(top_p),
    ):
        warped = warper(ids, warped)
    found = Distribution(temperature, top_k, top_p).of(logits.log_softmax(-1))
    torch.testing.assert_close(warped.softmax(-1), found)


@given(
    factor=st.floats(0.0, 5.0),
    constant=st.integers(1, 2000),
    cut=st.integers(0, 1500),
    tokens=st.integers(1, POSITIONS),
)
def test_no_translation_is_cut_that_attlas_would_not_cut(
    factor: float, constant: int, cut: int, tokens: int
) -> None:
    search = searching(max_len_a=factor, max_len_b=constant, max_source_length=cut)
    read = min(tokens, search.max_source_length)
    most = search.decoding.max_length(read)
    assert min(most, POSITIONS - 1) <= search.max_new_tokens <= POSITIONS - 1
    if factor == 0.0:
        assert search.max_new_tokens == min(constant, POSITIONS - 1)


def test_a_limit_that_grows_with_the_source_is_reported_and_one_that_does_not_is_none_to_tell() -> (
    None
):
    (said,) = [one for one in searching().remarks if "generate has one limit" in one]
    assert "after ⌊3.0 · n⌋ + 20 tokens" in said
    assert "max_new_tokens = 1,023 here" in said
    still = searching(max_len_a=0.0, max_len_b=30)
    assert not [one for one in still.remarks if "limit" in one]
    (said,) = [
        one
        for one in searching(max_len_a=0.0, max_len_b=3000).remarks
        if "after 3,000 tokens" in one
    ]
    assert "Marian after 1,023" in said


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({}, "log P / |Y|^α"),
        ({}, "a beam search may choose differently where length_penalty is not 0"),
        ({"coverage_penalty": 0.2}, "decoding.coverage_penalty = 0.2 is left out"),
        ({"method": "sample", "seed": 7}, "decoding.seed = 7"),
        ({"max_source_length": 40}, "attlas cuts a source to 40 tokens and the end"),
    ],
)
def test_what_generate_cannot_say_is_reported(
    tmp_path: Path, settings: dict[str, Any], reported: str
) -> None:
    run = run_of(tmp_path / "run", small(norm="post"), **settings)
    exported = export(run, "huggingface", tmp_path / "out")
    assert any(reported in remark for remark in exported.remarks)
    assert reported in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_a_greedy_search_that_is_wholly_said_has_nothing_to_tell() -> None:
    search = searching(method="greedy", max_len_a=0.0, min_length=2, no_repeat_ngram=3)
    assert search.remarks == []


@pytest.mark.parametrize("cut", [1, 4, 30])
def test_the_tokenizer_cuts_a_source_where_attlas_does(tmp_path: Path, cut: int) -> None:
    vocabularies = subwords()
    run = run_of(tmp_path / "run", small(norm="post"), vocabularies, max_source_length=cut)
    export(run, "huggingface", tmp_path / "out")
    tokenizer = MarianTokenizer.from_pretrained(tmp_path / "out")
    text = "The 3rd house is 5 miles away"
    ids = vocabularies.source.encode(text)
    assert tokenizer(text, truncation=True)["input_ids"] == [*ids[:cut], END]
