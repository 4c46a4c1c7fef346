"""The explorer around a model of Hugging Face."""

from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.explorer import app
from attlas.explorer.tiles import unpack
from attlas.inference.huggingface import HuggingFaceModel
from support.minilm import minilm
from support.small_models import saved


def requested(folder: Path, text: str) -> tuple[dict[str, Any], dict[str, Any], TestClient]:
    model = HuggingFaceModel(folder)
    client = TestClient(app(model), base_url="http://localhost")
    reported = client.post("/api/translate", json={"text": text}).json()
    return client.get("/api/model").json(), reported, client


@pytest.mark.parametrize(
    ("kind", "task", "writes"),
    [("bert", "read", False), ("gpt2", "continue", True), ("bart", "answer", True)],
)
def test_a_model_says_what_it_does_and_its_maps_are_served(
    tmp_path: Path, kind: str, task: str, writes: bool
) -> None:
    said, reported, client = requested(saved(tmp_path / kind, kind), "the cat sat")
    facts = said["facts"]
    assert (facts["name"], facts["task"], said["texts"]) == (kind, task, None)
    assert facts["parameters"] > 0
    assert (reported["text"] is not None, reported["score"], reported["blank"]) == (
        writes,
        None,
        "",
    )
    again = HuggingFaceModel(tmp_path / kind)("the cat sat")
    assert again.trace is not None
    names = [layer["name"] for layer in reported["layers"]]
    assert sorted(names) == sorted(again.trace)
    for index, name in enumerate(names):
        tile = unpack(client.get(f"/api/maps/{reported['map']}/{index}").content)
        torch.testing.assert_close(tile, again.trace[name].weights()[0], atol=1e-5, rtol=0)
        tokens = client.get(f"/api/maps/{reported['map']}/{index}/tokens").json()
        assert [len(tokens["rows"]), len(tokens["keys"])] == list(tile.shape[1:])


def test_what_a_model_does_not_read_is_an_answer_of_400(tmp_path: Path) -> None:
    client = TestClient(
        app(HuggingFaceModel(saved(tmp_path / "bert", "bert"))), base_url="http://localhost"
    )
    reported = client.post("/api/translate", json={"text": "cat " * 300})
    assert reported.status_code == 400
    assert reported.json()["expected"] == "a text of at most 24 tokens"


def test_the_previous_token_head_of_a_real_model_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    said, reported, client = requested(minilm(), "The cat sat on the mat because it was tired.")
    assert said["facts"]["task"] == "read"
    assert [layer["heads"] for layer in reported["layers"]] == [12] * 6
    numbers = client.get(f"/api/maps/{reported['map']}/statistics").json()
    previous = numbers["layers"][0]["previous_weight"]
    assert max(range(12), key=previous.__getitem__) == 2
