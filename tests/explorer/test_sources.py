"""Several sources behind one page, each opened when it is needed."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.errors import AttlasError
from attlas.explorer.site import site
from attlas.explorer.sources import ExplorerSource, Opening, apis_of
from attlas.recording import DenseAttentionMap, Trace
from support.backwards import Backwards


def trace(word: str) -> Trace:
    found = Trace()
    found.record("a", DenseAttentionMap(torch.full((1, 1, 2, 2), 0.5)))
    found.label([[word, "b"]])
    return found


def opened(
    *sources: tuple[str, Callable[[], Any]], reported: list[AttlasError] | None = None
) -> TestClient:
    failed = None if reported is None else lambda error, _: reported.append(error)
    apis, _ = apis_of([ExplorerSource(name, opens) for name, opens in sources], failed)
    return TestClient(site(apis), base_url="http://localhost")


def test_each_source_answers_at_its_own_address_and_the_first_one_at_the_usual_too() -> None:
    with opened(
        ("one", lambda: trace("x")), ("two", lambda: trace("y")), ("three", Backwards)
    ) as client:
        models = [client.get(f"/api{at}/model").json() for at in ("", "/sources/0", "/sources/1")]
        assert [model["facts"]["name"] for model in models] == ["one", "one", "two"]
        assert [model["texts"] for model in models] == [["x b"], ["x b"], ["y b"]]
        assert all(model["sources"] == ["one", "two", "three"] for model in models)
        requested = {"text": "red house"}
        assert client.post("/api/sources/2/translate", json=requested).status_code == 200
        assert client.post("/api/translate", json=requested).status_code == 404
        # The maps of one are none of another.
        name = client.get("/api/texts/0").json()["map"]
        assert client.get(f"/api/maps/{name}/0").status_code == 200
        assert client.get(f"/api/sources/1/maps/{name}/0").json()["expected"] == (
            "a map that is still kept"
        )


@pytest.mark.parametrize("number", ["3", "-1", "x", "00", ""])
def test_a_source_that_is_not_there_is_reported(number: str) -> None:
    with opened(("one", lambda: trace("x"))) as client:
        answer = client.get(f"/api/sources/{number}/model")
    assert (answer.status_code, set(answer.json())) == (404, {"expected", "got", "hint"})


def test_one_source_alone_is_not_named_as_one_of_several() -> None:
    with opened(("one", lambda: trace("x"))) as client:
        assert "sources" not in client.get("/api/model").json()


def test_each_source_is_opened_once_and_when_it_is_asked_for() -> None:
    begun: list[str] = []

    def opens(name: str) -> Callable[[], Trace]:
        def work() -> Trace:
            begun.append(name)
            return trace(name)

        return work

    with opened(("x", opens("x")), ("y", opens("y"))) as client:
        assert client.get("/").status_code == 200
        assert begun == []
        for _ in range(2):
            client.get("/api/model")
        assert begun == ["x"]
        client.get("/api/sources/1/model")
        assert begun == ["x", "y"]


def test_what_cannot_be_opened_is_reported_to_each_who_asks_and_once_beside_it() -> None:
    reported: list[AttlasError] = []

    def fail() -> Any:
        raise AttlasError("a run", "none", "train one")

    with opened(("x", fail), ("y", lambda: trace("y")), reported=reported) as client:
        for _ in range(2):
            answer = client.get("/api/model")
            assert (answer.status_code, answer.json()["hint"]) == (400, "train one")
        assert client.get("/api/sources/1/model").status_code == 200
    assert len(reported) == 1


def test_a_fault_of_ours_is_reported_as_one() -> None:
    def fail() -> Any:
        raise RuntimeError("a bug")

    with opened(("x", fail)) as client:
        answer = client.get("/api/model")
    assert (answer.status_code, "RuntimeError" in answer.json()["got"]) == (500, True)


def test_the_log_of_a_fault_of_ours_does_not_grow_with_each_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> Any:
        raise RuntimeError("a bug")

    lengths = []
    with opened(("x", fail)) as client:
        for _ in range(3):
            caplog.clear()
            assert client.get("/api/model").status_code == 500
            lengths.append(len(caplog.text.splitlines()))
    assert lengths[0] > 0
    assert len(set(lengths)) == 1


def test_a_library_that_ends_the_program_ends_no_server() -> None:
    def fail() -> Any:
        raise SystemExit(3)

    with opened(("x", fail), ("y", lambda: trace("y"))) as client:
        answer = client.get("/api/model")
        assert (answer.status_code, "RuntimeError" in answer.json()["got"]) == (500, True)
        assert client.get("/api/sources/1/model").status_code == 200


def test_it_is_opened_soon_also_if_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attlas.explorer.sources._SOON", 0.01)
    begun = threading.Event()

    def make() -> Any:
        begun.set()

    Opening(make).begin_soon()
    assert begun.wait(10)
