"""`classify.py` of an exported folder: the graph in use, without attlas and without torch."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import Characters, Words
from attlas.export import export
from attlas.export.onnx.templates import classify as onnx_classifier_example
from attlas.inference import Classification, TextClassifier
from attlas.inference.classifier import classification_remarks
from support.exportable import WORDS, classifier_run, small_classifier, subwords
from support.onnx_runtime import ALONE, loaded

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
    "字 字",
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


def said(found: Sequence[Classification]) -> list[str]:
    """What attlas tells of these lines."""
    numbered = enumerate(found, 1)
    return [
        f"line {number}: {remark}"
        for number, one in numbered
        for remark in classification_remarks(one).values()
    ]


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_it_says_what_attlas_says(tmp_path: Path, kind: str) -> None:
    run = classifier_run(tmp_path / "run", small_classifier(), VOCABULARIES[kind])
    export(run, "onnx", tmp_path / "out")
    expected = list(TextClassifier(run).stream(TEXTS))
    found, reported = classified(tmp_path / "out", TEXTS)
    assert [label for label, _ in found] == [one.label for one in expected]
    assert [sure for _, sure in found] == pytest.approx([o.probability for o in expected], abs=1e-4)
    assert reported == said(expected)
    assert reported.count("line 3: there is no word in it") == 1


def test_what_is_beyond_the_learned_positions_is_cut_as_attlas_cuts_it_and_reported(
    tmp_path: Path,
) -> None:
    config = small_classifier(positions="learned", max_positions=6)
    run = classifier_run(tmp_path / "run", config)
    export(run, "onnx", tmp_path / "out")
    texts = [" ".join(f"a{n % 17}" for n in range(length)) for length in (4, 5, 6, 40)]
    expected = list(TextClassifier(run).stream(texts))
    found, reported = classified(tmp_path / "out", texts)
    assert [label for label, _ in found] == [one.label for one in expected]
    assert [sure for _, sure in found] == pytest.approx([o.probability for o in expected], abs=1e-4)
    assert reported == said(expected)
    assert len(reported) == 2
    assert [one.unread for one in expected] == [0, 0, 1, 35]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("example")
    export(classifier_run(path / "run", small_classifier(), SUBWORDS), "onnx", path / "out")
    return path / "out"


@given(text=st.text(st.characters(codec="utf-8"), max_size=40))
def test_it_reads_subwords_as_attlas_does(folder: Path, text: str) -> None:
    vocabulary = loaded(folder / "classify.py").vocabulary(folder)
    ids = SUBWORDS.encode(text)
    assert vocabulary.encode(text) == ids
    assert vocabulary.knows(text, ids) == SUBWORDS.knows(text, ids)


@pytest.mark.parametrize("text", ["Привет, мир!", "Здравствуй?"])
def test_punctuation_makes_no_text_known_to_subwords(text: str) -> None:
    assert not SUBWORDS.knows(text, SUBWORDS.encode(text))
    assert SUBWORDS.knows(f"a1 {text}", SUBWORDS.encode(f"a1 {text}"))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("日 日", False),
        (" ", False),
        ("日 b", True),
        ("a b", True),
        ("日, b", True),
        ("日 ,", False),
        (",", True),
    ],
)
@pytest.mark.parametrize("kind", [Characters, Words])
def test_a_space_or_a_comma_alone_makes_no_text_known(
    tmp_path: Path, kind: type[Characters | Words], text: str, known: bool
) -> None:
    ours = kind.built(["a b ,"], 99)
    ours.save(tmp_path / "tokenizer.json")
    theirs = onnx_classifier_example.Listed(tmp_path / "tokenizer.json")
    assert theirs.knows(text, theirs.encode(text)) == known
    assert ours.knows(text, ours.encode(text)) == known


def test_words_of_which_none_is_known_are_reported_as_attlas_tells_them(tmp_path: Path) -> None:
    run = classifier_run(tmp_path / "run", small_classifier())
    export(run, "onnx", tmp_path / "out")
    texts = ["unheard", "a1 unheard", "", "of what", "a2"]
    reported = classified(tmp_path / "out", texts)[1]
    assert reported == said(list(TextClassifier(run).stream(texts)))
    assert [line.partition(":")[0] for line in reported] == ["line 1", "line 3", "line 4"]


@pytest.mark.parametrize(
    "patterns", [("window(3)",), ("window(0)",), ("strided(2)",), ("causal", "everywhere")]
)
def test_a_text_that_the_first_token_may_not_see_as_a_whole_is_reported(
    tmp_path: Path, patterns: tuple[str, ...]
) -> None:
    config = small_classifier(pooling="first", patterns=patterns)
    run = classifier_run(tmp_path / "run", config)
    exported = export(run, "onnx", tmp_path / "out")
    texts = [" ".join(["a1"] * count) for count in range(1, 12)]
    expected = [one.unread for one in TextClassifier(run).stream(texts)]
    reported = classified(tmp_path / "out", texts)[1]
    numbers = {int(line.partition(":")[0].removeprefix("line ")) for line in reported}
    overlooked = {number for number, unread in enumerate(expected, 1) if unread}
    assert numbers == set(range(min(overlooked, default=len(texts) + 1), len(texts) + 1))
    assert all("what its first token sees, which may not be all of it" in line for line in reported)
    assert any("which of a text of more than" in one for one in exported.remarks) == bool(reported)


@pytest.mark.parametrize(
    "settings",
    [
        {"pooling": "mean"},
        {"pooling": "first", "patterns": ("everywhere",)},
        {"pooling": "first", "patterns": ("either(window(1), landmarks(0))",)},
    ],
    ids=str,
)
def test_where_all_is_seen_nothing_is_reported(tmp_path: Path, settings: dict[str, Any]) -> None:
    run = classifier_run(tmp_path / "run", small_classifier(**settings))
    export(run, "onnx", tmp_path / "out")
    assert classified(tmp_path / "out", [" ".join(["a1"] * 70)])[1] == []


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    run = classifier_run(tmp_path / "run", small_classifier(), Characters("abc \ufeff"))
    export(run, "onnx", tmp_path / "out")
    plain = classified(tmp_path / "out", ["abc", "\ufeffabc"])
    marked = classified(tmp_path / "out", ["\ufeffabc", "\ufeffabc"])
    assert plain == marked
    assert plain[0][0][1] != plain[0][1][1]  # elsewhere it is a character like others


def test_bytes_that_are_not_utf8_are_reported_with_their_line_after_the_lines_before(
    folder: Path,
) -> None:
    texts = b"".join(b"a %d\n" % n for n in range(10)) + b"two \xff words\nmore\n"
    done = subprocess.run(
        [sys.executable, "-c", ALONE, folder / "classify.py"], input=texts, capture_output=True
    )
    assert done.returncode == 1
    assert done.stdout.count(b"\n") == 10
    assert done.stderr.decode().splitlines()[-1] == "line 11 is not UTF-8: byte 0xff at byte 5"
