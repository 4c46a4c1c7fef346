"""The page of a watch file: what it shows, of a file that grows, is damaged or is gone."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from attlas.errors import DataError
from attlas.explorer.history import check_watch_file, history_site
from attlas.monitoring import HeadStatistics
from attlas.monitoring.alarms import Alarm
from attlas.monitoring.statistics import FIGURES

HOSTILE = '<script>alert(1)</script>"&'


def reading(step: int, layer: str = "encoder.0", *, alarm: bool = False) -> str:
    """A line of a watch file: two heads."""
    heads = [
        HeadStatistics(layer, head, 12, max_logit=step + head / 8, entropy=0.5) for head in range(2)
    ]
    begun = Alarm(step, "logit_growth", layer, 1, "max_logit", 132.5, 100.0)
    record = {
        "step": step,
        "alarms": [begun.record()] if alarm else [],
        "heads": [asdict(head) for head in heads],
    }
    return json.dumps(record) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "watch.jsonl"
    path.write_text(reading(1) + reading(50, alarm=True), encoding="utf-8", newline="\n")
    return path


def asked(file: Path, address: str = "/") -> Any:
    return TestClient(history_site(file), base_url="http://localhost").get(address)


def test_the_page_has_the_picture_the_alarms_and_the_last_reading(file: Path) -> None:
    page = asked(file).text
    assert "2 readings, the last at step 50." in page
    assert 'src="heads.svg?statistic=max_logit&amp;step=50"' in page
    assert '<th scope="row">encoder.0 · 1</th><td>12</td><td class="chosen">50.12</td>' in page
    assert '<th scope="row">logit_growth</th><td>encoder.0 · 1</td><td>132.5</td>' in page
    assert "Lower the learning rate" in page
    assert "The first alarm: step 50, layer &#x27;encoder.0&#x27;, head 1: the largest" in page
    assert "1 alarm so far: logit_growth 1." in page
    assert "<b>max_logit</b>: the largest input of the softmax" in page
    picture = asked(file, "/heads.svg?statistic=entropy&step=50")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert ">entropy<" in picture.text


def test_a_statistic_and_a_layer_are_chosen_by_the_address(file: Path) -> None:
    page = asked(file, "/?statistic=entropy&layer=encoder.0").text
    assert (
        '<a href="?statistic=entropy&amp;layer=encoder.0" aria-current="true">entropy</a>' in page
    )
    assert asked(file, "/?statistic=entropy&layer=other").status_code == 200
    assert "No reading has entropy of layers that begin with other" in (
        asked(file, "/?statistic=entropy&layer=other").text
    )
    wrong = asked(file, "/?statistic=loss")
    assert wrong.status_code == 400
    assert "max_logit" in wrong.json()["expected"]


def test_a_file_that_grows_is_read_anew(file: Path) -> None:
    client = TestClient(history_site(file), base_url="http://localhost")
    assert client.get("/api/step").json() == {"readings": 2, "step": 50}
    with file.open("a", encoding="utf-8", newline="\n") as more:
        more.write(reading(100) + reading(150)[:40])  # the last is being written
    assert client.get("/api/step").json() == {"readings": 3, "step": 100}
    assert "the last at step 100" in client.get("/").text


def test_names_of_layers_are_text(file: Path) -> None:
    file.write_text(reading(1, HOSTILE, alarm=True), encoding="utf-8", newline="\n")
    page = asked(file, f"/?layer={HOSTILE}").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "script-src 'self'" in asked(file).headers["content-security-policy"]


def test_an_empty_file_has_no_reading_so_far(file: Path) -> None:
    file.write_bytes(b"")
    check_watch_file(file)
    assert "There is no reading so far." in asked(file).text
    assert asked(file, "/heads.svg").status_code == 404
    assert asked(file, "/api/step").json() == {"readings": 0, "step": 0}


def test_a_file_that_is_gone_or_damaged_is_said_on_the_page(file: Path) -> None:
    client = TestClient(history_site(file), base_url="http://localhost")
    file.write_bytes(b"{}\n" + file.read_bytes())
    page = client.get("/")
    assert page.status_code == 200
    assert "line 1" in page.text
    assert client.get("/api/step").status_code == 400
    file.unlink()
    assert "a watch file that is there" in client.get("/").text


def test_what_is_no_watch_file_is_refused_before_a_server_listens(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a watch file that is there"):
        check_watch_file(tmp_path / "watch.jsonl")
    other = tmp_path / "metrics.jsonl"
    other.write_text('{"loss": 1.0}\n', encoding="utf-8", newline="\n")
    with pytest.raises(DataError, match=r"readings of attlas\.watch"):
        check_watch_file(other)


def test_only_its_own_page_may_ask(file: Path) -> None:
    client = TestClient(history_site(file), base_url="http://evil.example")
    assert client.get("/").status_code == 403
    guarded = TestClient(history_site(file, token="secret"), base_url="http://localhost")
    assert guarded.get("/").status_code == 401
    assert guarded.get("/?token=secret").status_code == 200


@pytest.mark.parametrize("name", ["history.css", "history.js"])
def test_its_files_are_shipped(file: Path, name: str) -> None:
    assert asked(file, f"/files/{name}").status_code == 200


def test_every_statistic_says_what_it_is(file: Path) -> None:
    for name in FIGURES:
        page = asked(file, f"/?statistic={name}")
        assert page.status_code == 200
        assert f"<b>{name}</b>: " in page.text


@pytest.mark.parametrize("alarms", ['["x"]', "[{}]", '[{"kind": "a", "layer": 3, "head": 0}]'])
def test_alarms_that_are_none_are_said_on_the_page(file: Path, alarms: str) -> None:
    file.write_text(reading(1).replace('"alarms": []', f'"alarms": {alarms}'), encoding="utf-8")
    page = asked(file)
    assert page.status_code == 200
    assert 'role="alert"' in page.text
    assert asked(file, "/heads.svg").status_code == 400


def test_another_file_in_its_place_is_read_from_its_beginning(file: Path) -> None:
    client = TestClient(history_site(file), base_url="http://localhost")
    assert client.get("/api/step").json() == {"readings": 2, "step": 50}
    other = file.with_name("other")
    other.write_text(reading(7) + reading(9) + reading(11), encoding="utf-8", newline="\n")
    other.replace(file)
    assert client.get("/api/step").json() == {"readings": 3, "step": 11}
    file.write_text(reading(3), encoding="utf-8", newline="\n")
    assert client.get("/api/step").json() == {"readings": 1, "step": 3}
    with file.open("a", encoding="utf-8", newline="\n") as more:
        more.write(reading(2))  # a training that went on from an earlier checkpoint
    assert client.get("/api/step").json() == {"readings": 1, "step": 2}
