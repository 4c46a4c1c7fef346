"""Gold links beside the heads of a trace."""

from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.analysis import Reference
from attlas.errors import AttlasError, DataError
from attlas.explorer import app
from attlas.explorer.gold import check_gold, words_of
from attlas.recording import DenseAttentionMap, Trace

SOURCE = ["▁die", "▁Kat", "ze", "▁schläft", "</s>"]
TARGET = ["▁the", "▁cat", "▁sleep", "s", "</s>"]
GOLD = Reference(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 2), (0, 1)}))


def trace() -> Trace:
    """Head 0 looks where the gold links are, head 1 always at the first token."""
    weights = torch.full((1, 2, 5, 5), 0.05)
    for row, key in enumerate([0, 2, 3, 3, 4]):
        weights[0, 0, row, key] = 0.8
    weights[0, 1, :, 0] = 0.8
    found = Trace()
    found.record("decoder.0", DenseAttentionMap(weights, torch.ones(1, 1, 5, 5, dtype=torch.bool)))
    found.set_kind("decoder.0", cross_attention=True)
    found.record("encoder.0", DenseAttentionMap(weights, torch.ones(1, 1, 5, 5, dtype=torch.bool)))
    found.set_kind("encoder.0", cross_attention=False)
    found.label([SOURCE], [TARGET])
    found.label_layer("encoder.0", [SOURCE], [SOURCE])
    return found


class Opened:
    def __init__(self, *gold: Reference) -> None:
        self.client = TestClient(app(trace(), gold=gold or None), base_url="http://localhost")
        self.model = self.client.get("/api/model").json()
        self.text = self.client.get("/api/texts/0").json()
        self.layers = [layer["name"] for layer in self.text["layers"]]

    def requested(self, layer: str, **query: Any) -> Any:
        place = self.layers.index(layer)
        return self.client.get(f"/api/maps/{self.text['map']}/{place}/alignment", params=query)


def test_a_head_that_finds_the_links_has_the_numbers_worked_by_hand() -> None:
    opened = Opened(GOLD)
    assert opened.model["gold"] is True
    reported = opened.requested("decoder.0", head=0).json()
    # A = {die-the, Katze-cat, schläft-sleeps}; S has the first two, P the third and one more.
    assert (reported["precision"], reported["recall"], reported["error"], reported["guessed"]) == (
        1,
        1,
        0,
        3,
    )
    assert reported["links"] == [
        {"source": [0, 1], "target": [0, 1], "sure": True, "guessed": True},
        {"source": [0, 1], "target": [1, 2], "sure": False, "guessed": False},
        {"source": [1, 3], "target": [1, 2], "sure": True, "guessed": True},
        {"source": [3, 4], "target": [2, 4], "sure": False, "guessed": True},
    ]
    # A = {die-the, die-cat, die-sleeps}: one is sure, one more is possible.
    first = opened.requested("decoder.0", head=1).json()
    assert (first["precision"], first["recall"]) == (pytest.approx(2 / 3), 1 / 2)
    assert first["error"] == pytest.approx(1 - (1 + 2) / (3 + 2))
    # The mean of both heads: what one of them says is as large as what the other says.
    assert opened.requested("decoder.0").json()["guessed"] == 3


@pytest.mark.parametrize(
    ("gold", "layer", "query", "said"),
    [
        (GOLD, "encoder.0", {}, "a layer that looks from a target to a source"),
        (GOLD, "decoder.0", {"head": 2}, "head as a number from 0 to 1"),
        (GOLD, "decoder.0", {"heads": 1}, "one of head"),
        (
            Reference(frozenset({(3, 0)}), frozenset({(3, 0)})),
            "decoder.0",
            {},
            "between 3 source words",
        ),
        (Reference(frozenset(), frozenset({(0, 0)})), "decoder.0", {}, "at least one sure link"),
    ],
)
def test_what_has_no_answer_is_reported_in_a_sentence(
    gold: Reference, layer: str, query: dict[str, Any], said: str
) -> None:
    answer = Opened(gold).requested(layer, **query)
    assert answer.status_code == 400
    assert said in answer.json()["expected"]


def test_without_gold_links_there_is_no_such_route() -> None:
    opened = Opened()
    assert "gold" not in opened.model
    assert opened.requested("decoder.0").status_code == 404


def test_there_are_as_many_sentences_as_texts() -> None:
    with pytest.raises(DataError, match="as many sentences as the trace has texts, 1"):
        app(trace(), gold=[GOLD, GOLD])
    check_gold([GOLD], 1)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["▁a", "b", "▁c", "</s>"], [0, 0, 1, None]),
        (["<s>", "a", "Ġb", "c", "</s>"], [None, 0, 1, 1, None]),
        (["[CLS]", "play", "##ing", "now", "[SEP]"], [None, 0, 0, 1, None]),
        (["the", "cat", "sat"], [0, 1, 2]),
        (["▁", "x", "▁y"], [0, 0, 1]),
        ([], []),
    ],
)
def test_tokens_are_in_the_words_that_they_write(
    tokens: list[str], words: list[int | None]
) -> None:
    assert words_of(tokens) == words


def test_tokens_without_names_are_words_by_their_places(tmp_path: Path) -> None:
    weights = torch.eye(3)[None, None]
    found = Trace()
    found.record("cross", DenseAttentionMap(weights, torch.ones(1, 1, 3, 3, dtype=torch.bool)))
    found.set_kind("cross", cross_attention=True)
    gold = [Reference(frozenset({(0, 0), (2, 2)}), frozenset({(0, 0), (2, 2)}))]
    with TestClient(app(found, gold=gold), base_url="http://localhost") as client:
        name = client.get("/api/texts/0").json()["map"]
        reported = client.get(f"/api/maps/{name}/0/alignment").json()
    assert (reported["precision"], reported["recall"]) == (pytest.approx(2 / 3), 1)
    with pytest.raises(AttlasError):
        app(found, gold=[])
