"""The image of a trace, as the server, a file and a notebook give it to the page."""

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

from attlas.explorer import app
from attlas.explorer.notebook import TraceAnswers
from attlas.recording import DenseAttentionMap, Trace

BASE = "http://127.0.0.1:8642"


def pixels(number: int) -> np.ndarray:
    generator = np.random.default_rng(number)
    return generator.integers(0, 256, (6, 8, 3), dtype=np.uint8)


def made(*, images: bool = True) -> Trace:
    """Two layers that look at one image of each row, one at another image, and one at none."""
    trace = Trace()
    for name, keys in (("a", 7), ("b", 7), ("c", 3), ("d", 4)):
        weights = torch.full((2, 1, keys, keys), 1 / keys)
        trace.record(name, DenseAttentionMap(weights, query_offset=None))
        trace.set_kind(name, cross_attention=False)
    if images:
        trace.label_image([pixels(0), pixels(1)], (2, 3), first=1)
        trace.label_image([pixels(2), pixels(3)], (2, 2), layers="d")
    return trace


def read(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png), formats=["PNG"]))


@pytest.fixture
def client() -> TestClient:
    return TestClient(app(made()), base_url=BASE, raise_server_exceptions=False)


def test_a_layer_says_which_keys_are_patches_and_its_image_is_sent(client: TestClient) -> None:
    for row in range(2):
        answer = client.get(f"/api/texts/{row}").json()
        assert [layer.get("image") for layer in answer["layers"]] == [
            {"grid": [2, 3], "first": 1, "of": 0},
            {"grid": [2, 3], "first": 1, "of": 0},
            None,
            {"grid": [2, 2], "first": 0, "of": 3},
        ]
        for layer, image in ((0, row), (1, row), (3, 2 + row)):
            sent = client.get(f"/api/maps/{answer['map']}/{layer}/image")
            assert (sent.status_code, sent.headers["content-type"]) == (200, "image/png")
            assert sent.headers["cache-control"] == "no-store"
            np.testing.assert_array_equal(read(sent.content), pixels(image))
        named = client.get(f"/api/maps/{answer['map']}/0/tokens?rows=0:1&keys=0:2").json()
        assert named == {"rows": ["0"], "keys": ["0", "patch 0,0"]}


def test_where_there_is_no_image_the_answer_is_404_with_a_sentence(client: TestClient) -> None:
    name = client.get("/api/texts/0").json()["map"]
    for asked, where in ((client, 2), (TestClient(app(made(images=False)), base_url=BASE), 0)):
        if where == 0:
            answer = asked.get("/api/texts/0").json()
            assert not any("image" in layer for layer in answer["layers"])
            name = answer["map"]
        sent = asked.get(f"/api/maps/{name}/{where}/image")
        assert sent.status_code == 404
        assert sent.json() == {
            "expected": "a layer whose keys are patches of an image",
            "got": f"layer {'c' if where else 'a'}, without one",
            "hint": "label the trace: trace.label_image(images, grid)",
        }


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("0/image?side=3", 400),
        ("9/image", 400),
        ("x/image", 404),
        ("0/images", 404),
    ],
)
def test_a_wrong_question_is_answered_in_json(client: TestClient, path: str, status: int) -> None:
    name = client.get("/api/texts/0").json()["map"]
    sent = client.get(f"/api/maps/{name}/{path}")
    assert sent.status_code == status
    assert set(sent.json()) == {"expected", "got", "hint"}
    assert client.get("/api/maps/none/0/image").status_code == 404


def test_the_policy_of_the_page_allows_no_more_for_it(client: TestClient) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "img-src 'self' data:;" in policy


def test_a_notebook_is_sent_the_same_image() -> None:
    answers = TraceAnswers(made())
    said, content = answers.answer({"ask": "text", "row": 1})
    assert said["layers"][0]["image"] == {"grid": (2, 3), "first": 1, "of": 0}
    said, content = answers.answer({"ask": "image", "map": "1", "layer": 0})
    assert (said, content is None) == ({}, False)
    np.testing.assert_array_equal(read(content or b""), pixels(1))
    for wrong in ({"layer": 2}, {"layer": 9}, {"layer": 0, "query": {"rows": "0:1"}}):
        said, content = answers.answer({"ask": "image", "map": "1", **wrong})
        assert set(said["error"]) == {"expected", "got", "hint"}
        assert content is None


def content_of(path: Path) -> dict[str, Any]:
    page = path.read_text(encoding="utf-8")
    match = re.search(r'id="attlas-data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    found: dict[str, Any] = json.loads(match[1])
    return found


@pytest.mark.parametrize("precision", ["display", "overview"])
def test_a_file_holds_each_image_once(tmp_path: Path, precision: Any) -> None:
    made().to_html(tmp_path / "x.html", precision=precision)
    for row, answer in enumerate(content_of(tmp_path / "x.html")["answers"]):
        assert set(answer["images"]) == {"0", "3"}
        for layer, image in (("0", row), ("3", 2 + row)):
            sent = base64.b64decode(answer["images"][layer])
            np.testing.assert_array_equal(read(sent), pixels(image))
    made(images=False).to_html(tmp_path / "x.html", precision=precision)
    assert not any("images" in answer for answer in content_of(tmp_path / "x.html")["answers"])
