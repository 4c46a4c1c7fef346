"""The explorer around a real translator of a real (untrained) model."""

import pytest
import torch
from starlette.testclient import TestClient

from attlas.explorer import app
from attlas.explorer.tiles import unpack
from attlas.inference import Translator
from support.small_translators import small_translator


def translator(attention: str) -> Translator:
    return small_translator(attention, text="the quick brown fox jumps", num_beams=2)


@pytest.mark.parametrize("attention", ["additive", "dot", "local"])
def test_the_page_gets_the_weights_of_the_trace(attention: str) -> None:
    speaking = translator(attention)
    with TestClient(app(speaking), base_url="http://localhost") as client:
        reported = client.post("/api/translate", json={"text": "quick fox"}).json()
        tile = unpack(client.get(f"/api/maps/{reported['map']}/0").content)
    translation = speaking("quick fox")
    assert translation.trace is not None
    assert reported["text"] == translation.text
    assert reported["source"] == list(translation.source_tokens)
    assert reported["target"] == list(translation.tokens)
    assert [layer["name"] for layer in reported["layers"]] == ["decoder.attention"]
    weights = translation.trace["decoder.attention"].weights()[0]
    torch.testing.assert_close(tile, weights.float(), atol=1e-5, rtol=0)


def test_a_model_without_attention_is_translated_all_the_same() -> None:
    with TestClient(app(translator("none")), base_url="http://localhost") as client:
        reported = client.post("/api/translate", json={"text": "quick fox"}).json()
        facts = client.get("/api/model").json()["facts"]
    assert reported["map"] is None
    assert reported["blank"] == "the model has no attention"
    assert facts["parameters"] > 0
