"""BLEU as papers on Multi30k measure it."""

import math
import sys
from pathlib import Path

import pytest

from attlas.data.lines import read_lines

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from paper_bleu import paper_bleu  # noqa: E402


def test_the_german_of_test2016_has_the_tokens_that_papers_print(shared_data: Path) -> None:
    lines = read_lines(shared_data / "multi30k" / "test_2016_flickr.de.gz").texts
    score = paper_bleu(lines, lines, "de")
    assert score.ref_len == score.sys_len == 12_103  # Wu et al., 2021
    assert score.score == pytest.approx(100)


def test_a_pair_by_hand() -> None:
    score = paper_bleu(["Ein Hund läuft im Park."], ["Ein Hund läuft im großen Park."], "de")
    shares = (6 / 6, 4 / 5, 2 / 4, 1 / 3)  # ein hund läuft im park .
    assert (score.sys_len, score.ref_len) == (6, 7)
    assert score.precisions == pytest.approx([100 * share for share in shares])
    assert score.score == pytest.approx(100 * math.exp(1 - 7 / 6) * math.prod(shares) ** 0.25)


@pytest.mark.parametrize(
    "reference", ["EIN HUND LÄUFT IM PARK.", "ein Hund läuft im Park .", "ein  Hund läuft im Park."]
)
def test_case_and_spaces_do_not_count(reference: str) -> None:
    assert paper_bleu(["Ein Hund läuft im Park."], [reference], "de").score == pytest.approx(100)


def test_quotation_marks_are_made_the_same() -> None:
    found = paper_bleu(["Er sagt „ja“ zu ihr."], ['Er sagt "ja" zu ihr.'], "de")
    assert found.score == pytest.approx(100)


def test_nothing_is_smoothed() -> None:
    assert paper_bleu(["Ein Hund rennt."], ["Ein Hund läuft."], "de").score == 0
