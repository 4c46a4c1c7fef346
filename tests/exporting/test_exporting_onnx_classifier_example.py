"""`classify.py` of an exported folder: the graph in use, without attlas and without torch."""

import subprocess
import sys
from pathlib import Path

import pytest
from exportable import WORDS, classifier_run, small_classifier, subwords
from hypothesis import given
from hypothesis import strategies as st
from onnx_runtime import ALONE, loaded

from attlas.classifying import TextClassifier
from attlas.classifying.remarks import remarks
from attlas.data import Characters
from attlas.exporting import export

SUBWORDS = subwords().source
VOCABULARIES = {
    "subwords": SUBWORDS,
    "words": WORDS.source,
    "characters": Characters("abcdefgh ▁é日"),
}
TEXTS = [
    "The 3th house  is 2 miles away",
    "a0 a5  a16 unknown<br />a3<BR>a4 < br/ >",
    "",
    "  é naïve ▁▁ “quoted” 日本 🎉 ",
    "<br />",
    "bad cafe",
    "a" * 700,
    "a1 " * 500,
    "a2",
    "a3 a4",
]


def classified(folder: Path, texts: list[str]) -> tuple[list[tuple[str, float]], list[str]]:
    """Labels and probabilities, and what was told on the standard error."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, folder / "classify.py"],
        input="".join(f"{text}\n" for text in texts).encode(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    return [(label, float(sure)) for label, sure in rows], done.stderr.decode().splitlines()


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_it_says_what_attlas_says(tmp_path: Path, kind: str) -> None:
    run = classifier_run(tmp_path / "run", small_classifier(), VOCABULARIES[kind])
    export(run, "onnx", tmp_path / "out")
    wanted = list(TextClassifier(run).many(TEXTS))
    found, told = classified(tmp_path / "out", TEXTS)
    assert [label for label, _ in found] == [one.label for one in wanted]
    assert [sure for _, sure in found] == pytest.approx([o.probability for o in wanted], abs=1e-4)
    assert told == [f"line {number}: there is no word in it" for number in (3, 5)]


def test_what_is_beyond_the_learned_positions_is_cut_as_attlas_cuts_it_and_told(
    tmp_path: Path,
) -> None:
    config = small_classifier(positions="learned", longest=6)
    run = classifier_run(tmp_path / "run", config)
    export(run, "onnx", tmp_path / "out")
    texts = [" ".join(f"a{n % 17}" for n in range(length)) for length in (4, 5, 6, 40)]
    wanted = list(TextClassifier(run).many(texts))
    found, told = classified(tmp_path / "out", texts)
    assert [label for label, _ in found] == [one.label for one in wanted]
    assert [sure for _, sure in found] == pytest.approx([o.probability for o in wanted], abs=1e-4)
    assert told == [
        f"line {number}: {remark}"
        for number, one in enumerate(wanted, 1)
        for remark in remarks(one)
    ]
    assert len(told) == 2
    assert [one.unread for one in wanted] == [0, 0, 1, 35]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("example")
    export(classifier_run(path / "run", small_classifier(), SUBWORDS), "onnx", path / "out")
    return path / "out"


@given(text=st.text(st.characters(codec="utf-8"), max_size=40))
def test_it_reads_subwords_as_attlas_does(folder: Path, text: str) -> None:
    assert loaded(folder / "classify.py").encoder(folder)(text) == SUBWORDS.encode(text)
