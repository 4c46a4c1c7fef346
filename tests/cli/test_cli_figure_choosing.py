"""`attlas figure` of a part of a trace: a layer, a text, a query."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from calling import called

from attlas.recording import Trace

ENCODER = {".41", ".59", ".52", ".48"}  # of the first text
DECODER = {".11", ".89", ".72", ".28"}


def figure(*arguments: object) -> tuple[int, str, str]:
    return called("figure", *arguments)


def drawn(path: Path) -> tuple[set[str], set[str]]:
    """The weights and the other texts that stand in a figure."""
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    texts = {text.text or "" for text in found}
    weights = {text for text in texts if re.fullmatch(r"\.\d\d", text)}
    return weights, texts - weights


def test_a_query_becomes_the_bars_of_its_own_weights(two_texts: Path, tmp_path: Path) -> None:
    for query, token, weights in ((0, "a", {".11", ".89"}), (1, "dog", {".72", ".28"})):
        path = tmp_path / f"{query}.svg"
        of_one = ("--layer", "decoder", "--query", query)
        assert figure(two_texts, *of_one, "-o", path) == (0, f"{path}\n", "")
        found, texts = drawn(path)
        assert found == weights
        assert texts >= {"ein", "Hund", "source", "attention weight"}
        assert {text for text in texts if text.startswith("“")} == {f"“{token}”"}


@pytest.mark.parametrize(
    ("layer", "weights"),
    [(None, ENCODER | DECODER), ("decoder", DECODER), ("encoder.attention", ENCODER)],
)
def test_of_a_layer_its_own_map_alone_is_drawn(
    two_texts: Path, tmp_path: Path, layer: str | None, weights: set[str]
) -> None:
    of_layer = () if layer is None else ("--layer", layer)
    assert figure(two_texts, *of_layer, "-o", tmp_path / "m.svg")[0] == 0
    found, texts = drawn(tmp_path / "m.svg")
    assert found == weights
    named = {"encoder.attention", "decoder.attention"} if layer is None else set()
    assert {text for text in texts if "attention" in text} == {*named, "attention weight"}


def test_another_row_is_another_text(two_texts: Path, tmp_path: Path) -> None:
    assert figure(two_texts, "--row", 1, "-o", tmp_path / "m.svg")[0] == 0
    weights, texts = drawn(tmp_path / "m.svg")
    assert weights == {".43", ".57", ".54", ".46", ".13", ".87", ".74", ".26"}
    assert texts >= {"zwei", "Katzen", "two", "cats"}
    assert not texts & {"ein", "Hund", "a", "dog"}


def test_tokens_that_leave_padding_unnamed_are_told_once(two_texts: Path, tmp_path: Path) -> None:
    trace = Trace.load(two_texts)
    trace.label([["ein", "Hund"], ["Katzen"]], [["a", "dog"], ["cats"]])
    trace.save(tmp_path / "t.safetensors")
    code, _, error = figure(tmp_path / "t.safetensors", "--row", 1, "-o", tmp_path / "m.svg")
    told = "attlas: row 1 has 1 token for 2 places, some of padding: positions are shown; "
    assert (code, error) == (0, f"{told}label the padding too\n")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--row", 5), "a batch row from 0 to 1; got 5; choose a row of the trace"),
        (
            ("--query", 1),
            "one map to take a query of; got 2: encoder.attention; decoder.attention; choose one "
            "with --layer",
        ),
    ],
)
def test_what_is_not_there_or_not_one_thing_is_told_with_what_helps(
    two_texts: Path, tmp_path: Path, options: tuple[object, ...], told: str
) -> None:
    path = tmp_path / "m.svg"
    assert figure(two_texts, *options, "-o", path) == (2, "", f"attlas: wanted {told}\n")
    assert not path.exists()
