"""The explorer around a trace of whatever model."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

import attlas
from attlas.errors import AttlasError
from attlas.explorer import app
from attlas.explorer.maps import MapRoutes
from attlas.explorer.tiles import unpack
from attlas.patterns import everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace


def seen() -> Trace:
    """Of two texts, by a layer of PyTorch's own."""
    torch.manual_seed(0)
    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2
    ).eval()
    with attlas.observe(encoder) as trace:
        encoder(torch.randn(2, 5, 8))
    words = [["the", "cat", "sat", "down", "."], ["a", "dog", "ran", "off", "!"]]
    trace.label(source=words, target=words)
    return trace


def client(trace: Trace, name: str | None = None) -> TestClient:
    return TestClient(app(trace, name=name), base_url="http://localhost")


def test_a_trace_says_its_name_and_how_its_texts_begin() -> None:
    with client(seen(), "cat.safetensors") as opened:
        reported = opened.get("/api/model").json()
    assert reported == {
        "facts": {"name": "cat.safetensors"},
        "texts": ["the cat sat down .", "a dog ran off !"],
        "notes": False,
        "parquet": find_spec("pyarrow") is not None,
    }


@pytest.mark.parametrize("row", [0, 1])
def test_each_text_comes_with_every_layer_and_the_weights_of_it(row: int, tmp_path: Path) -> None:
    trace = seen()
    trace.save(tmp_path / "t.safetensors")
    with client(Trace.load(tmp_path / "t.safetensors")) as opened:
        reported = opened.get(f"/api/texts/{row}").json()
        assert (reported["text"], reported["remarks"], reported["blank"]) == (None, [], "")
        assert [layer["name"] for layer in reported["layers"]] == list(trace)
        for index, name in enumerate(trace):
            shape = {"within": True, "heads": 2, "queries": 5, "keys": 5}
            named = {"name": name, "title": f"layer {index} · self", "sheet": "self"}
            assert reported["layers"][index] == {**named, **shape}
            tile = unpack(opened.get(f"/api/maps/{reported['map']}/{index}").content)
            torch.testing.assert_close(tile, trace[name].weights()[row], atol=1e-5, rtol=0)
            named = opened.get(f"/api/maps/{reported['map']}/{index}/tokens?rows=1:3").json()
            assert named["rows"] == list(trace.source[row][1:3])


def test_texts_without_names_are_reported_by_their_number_alone() -> None:
    trace = Trace()
    trace.record(
        "a",
        FactoredAttentionMap(torch.randn(3, 1, 4, 2), torch.randn(3, 1, 4, 2), 1.0, everywhere, 0),
    )
    with client(trace) as opened:
        assert opened.get("/api/model").json()["texts"] == ["", "", ""]
        reported = opened.get("/api/texts/2").json()
        assert opened.get(f"/api/maps/{reported['map']}/0/tokens").json() == {
            "rows": [],
            "keys": [],
        }


def test_a_long_text_is_reported_by_its_beginning() -> None:
    trace = Trace()
    trace.record(
        "a",
        FactoredAttentionMap(
            torch.randn(1, 1, 90, 2), torch.randn(1, 1, 90, 2), 1.0, everywhere, 0
        ),
    )
    trace.label(source=[["▁word"] * 90])
    with client(trace) as opened:
        (text,) = opened.get("/api/model").json()["texts"]
    assert text.startswith("word word")
    assert text.endswith("…")
    assert len(text) <= 60


@pytest.mark.parametrize("row", ["2", "-1", "x", "9" * 5_000])
def test_a_text_that_is_not_there_is_reported(row: str) -> None:
    with client(seen()) as opened:
        answer = opened.get(f"/api/texts/{row}")
    assert answer.status_code == 404
    assert set(answer.json()) == {"expected", "got", "hint"}


def test_a_trace_translates_nothing() -> None:
    with client(seen()) as opened:
        assert opened.post("/api/translate", json={"text": "a"}).status_code == 404


def test_an_empty_trace_is_refused() -> None:
    with pytest.raises(AttlasError, match="a trace with attention maps"):
        app(Trace())


def test_a_window_of_a_hundred_thousand_tokens_is_exact() -> None:
    length = 100_000
    generator = torch.Generator().manual_seed(5)
    query, keys = torch.randn(2, 1, 2, length, 8, generator=generator)
    trace = Trace()
    trace.record("a", FactoredAttentionMap(query, keys, 8**-0.5, everywhere, 0))
    with client(trace) as opened:
        reported = opened.get("/api/texts/0").json()
        requested = "heads=1:2&rows=70000:70004&keys=99000:99008&shape=2,4"
        tile = unpack(opened.get(f"/api/maps/{reported['map']}/0?{requested}").content)
    scores = query[0, 1, 70_000:70_004].double() @ keys[0, 1].double().T / 8**0.5
    window = scores.softmax(-1)[:, 99_000:99_008].reshape(2, 2, 4, 2).amax((1, 3))
    torch.testing.assert_close(tile[0].double(), window, rtol=1e-3, atol=1e-9)


def test_a_pass_that_nobody_waits_for_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    length = 40_000
    query, keys = torch.randn(2, 1, 1, length, 16)
    trace = Trace()
    trace.record("a", FactoredAttentionMap(query, keys, 0.25, everywhere, 0))
    application = app(trace)
    monkeypatch.setattr("attlas.explorer.cancellation._POLL_SECONDS", 0.02)
    with TestClient(application, base_url="http://localhost") as opened:
        reported = opened.get("/api/texts/0").json()
    answers: list[Any] = []
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        answers.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/api/maps/{reported['map']}/0",
        "query_string": b"shape=8,8",
        "headers": [(b"host", b"localhost")],
        "http_version": "1.1",
        "scheme": "http",
    }
    asyncio.run(application(scope, receive, send))
    assert answers[0]["status"] == 204  # and not the 200 of a whole tile


def test_tiles_wait_for_their_turn_because_each_needs_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    working, together = list[int](), list[int]()

    def slowly(weights: torch.Tensor, bits: int, **how: object) -> bytes:
        working.append(bits)
        together.append(len(working))
        time.sleep(0.05)
        working.pop()
        return b""

    monkeypatch.setattr("attlas.explorer.maps._AT_ONCE", 2)
    monkeypatch.setattr("attlas.explorer.maps.pack", slowly)
    with client(seen()) as opened, ThreadPoolExecutor(6) as pool:
        address = f"/api/maps/{opened.get('/api/texts/0').json()['map']}/0"
        answers = list(pool.map(opened.get, [address] * 6))
    assert [answer.status_code for answer in answers] == [200] * 6
    assert max(together) <= 2


def test_maps_that_are_empty_have_no_name() -> None:
    assert MapRoutes().map_message(None) == {"map": None, "layers": []}


def test_rows_of_layers_with_other_numbers_of_rows_are_not_shown_as_one_text() -> None:
    """As of a beam search, in which a decoder has several rows of each text."""
    torch.manual_seed(0)
    weights = {"encoder": torch.rand(2, 1, 3, 3), "decoder": torch.rand(6, 1, 4, 3)}
    trace = Trace()
    for layer, values in weights.items():
        trace.record(layer, DenseAttentionMap(values))
    trace.label([list("abc"), list("xyz")])
    with TestClient(app(trace), base_url="http://127.0.0.1") as opened:
        texts = opened.get("/api/model").json()["texts"]
        assert texts[:2] == ["row 0 of 2: a b c", "row 1 of 2: x y z"]
        assert texts[2:] == [f"row {row} of 6" for row in range(6)]
        for number in range(8):
            layer, row = ("encoder", number) if number < 2 else ("decoder", number - 2)
            reported = opened.get(f"/api/texts/{number}").json()
            assert [one["name"] for one in reported["layers"]] == [layer]
            tile = unpack(opened.get(f"/api/maps/{reported['map']}/0").content)
            torch.testing.assert_close(tile, weights[layer][row], atol=1e-4, rtol=0)
        assert opened.get("/api/texts/8").status_code == 404
