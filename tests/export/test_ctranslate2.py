"""`--to ctranslate2`: CTranslate2 is the referee."""

import sys
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

from attlas.data import Characters, Vocabularies
from attlas.errors import AttlasError
from attlas.export import export
from attlas.export.ctranslate2 import names, write_ctranslate2
from attlas.runs import Run
from attlas.runs.loaded import LoadedTranslator
from support.exportable import MARIAN, OTHERS, logits_of, run_of, sentences, small, subwords

KINDS = {**MARIAN, **OTHERS}


def probabilities(
    run: Run, folder: Path, computed_in: str = "default"
) -> tuple[torch.Tensor, torch.Tensor]:
    """log P of every token of some targets: CTranslate2's and ours."""
    vocabularies = run.vocabularies()
    source, token_mask = sentences(len(vocabularies.source), (8, 5, 2))
    target = torch.randint(4, len(vocabularies.target), (3, 9))
    of_source, of_target = names(vocabularies.source), names(vocabularies.target)
    # CTranslate2 puts the begin before targets, and the end behind them and the sources.
    ends = (token_mask.sum(1) - 1).tolist()
    sources = [[of_source[i] for i in row[:n]] for row, n in zip(source, ends, strict=True)]
    targets = [[of_target[i] for i in row] for row in target]
    engine = ctranslate2.Translator(str(folder), compute_type=computed_in, intra_threads=1)
    scores = engine.score_batch(sources, targets)
    found = torch.tensor([score.log_probs for score in scores])
    begin, end = torch.full((3, 1), 2), torch.full((3, 1), 3)
    logits = logits_of(run.model(), source, token_mask, torch.cat([begin, target], 1))
    expected = logits.log_softmax(-1).gather(2, torch.cat([target, end], 1).unsqueeze(2)).squeeze(2)
    return found, expected


@pytest.mark.parametrize("kind", KINDS)
def test_the_probabilities_are_ours(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path / "run", KINDS[kind])
    export(run, "ctranslate2", tmp_path / "out")
    found, expected = probabilities(run, tmp_path / "out")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["pre", "post", "rms, swiglu, rotary"])
def test_8_bits_are_smaller_and_near(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path / "run", KINDS[kind])
    export(run, "ctranslate2", tmp_path / "whole")
    export(run, "ctranslate2", tmp_path / "int8", quantization="int8")
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("int8", "whole")]
    assert sizes[0] < sizes[1]
    # In float32: not every CPU multiplies 8 bits as it should.
    found, expected = probabilities(run, tmp_path / "int8", "float32")
    assert 0 < (found - expected).abs().mean() < 0.02 * expected.abs().mean()


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_the_model_itself_stays_as_it_was(tmp_path: Path, quantization: str) -> None:
    run = run_of(tmp_path / "run", small())
    loaded = LoadedTranslator.of(run)
    before = loaded.weights
    tmp_path.joinpath("out").mkdir()
    write_ctranslate2(loaded, tmp_path / "out", quantization)
    assert loaded.weights == before == LoadedTranslator.of(run).weights


def test_subwords_are_named_by_their_pieces_and_the_model_of_them_is_there(tmp_path: Path) -> None:
    vocabularies = subwords()
    run = run_of(tmp_path / "run", small(), vocabularies)
    export(run, "ctranslate2", tmp_path / "out")
    assert names(vocabularies.source) == vocabularies.source.pieces(range(len(vocabularies.source)))
    read = Vocabularies.load(tmp_path / "out").source
    assert read.encode("The 3rd house") == vocabularies.source.encode("The 3rd house")
    found, expected = probabilities(run, tmp_path / "out")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_names_that_would_repeat_carry_their_id(tmp_path: Path) -> None:
    both = Characters(["a", " ", "␣"])
    assert names(both)[4:] == ["a", "␣#5", "␣#6"]
    run = run_of(tmp_path / "run", small(tie_source=True), Vocabularies(both, both))
    export(run, "ctranslate2", tmp_path / "out")
    found, expected = probabilities(run, tmp_path / "out")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_without_ctranslate2_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", small())
    for name in [name for name in sys.modules if name.partition(".")[0] == "ctranslate2"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(AttlasError, match=r"pip install 'attlas\[ctranslate2\]'"):
        export(run, "ctranslate2", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "longest"),
    [({}, 1024), ({"positions": "learned", "max_positions": 60}, 60), ({"positions": "rotary"}, 0)],
)
def test_the_folder_says_how_long_a_text_may_be(
    tmp_path: Path, settings: dict[str, Any], longest: int
) -> None:
    exported = export(run_of(tmp_path / "run", small(**settings)), "ctranslate2", tmp_path / "out")
    said = [remark for remark in exported.remarks if "It reads and writes" in remark]
    assert [f"at most {longest:,} tokens" in remark for remark in said] == [True][: bool(longest)]
