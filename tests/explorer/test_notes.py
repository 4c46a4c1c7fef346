"""Notes of a reader, in a file beside what is shown."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from starlette.testclient import TestClient

import attlas
from attlas.errors import AttlasError
from attlas.explorer import app
from attlas.explorer.notes import (
    MOST_LINK,
    MOST_NOTES,
    MOST_TEXT,
    NotesFile,
    notes_path,
    read_notes,
)
from support.command_line import called

BASE = "http://127.0.0.1:8642"


@pytest.fixture
def trace() -> attlas.Trace:
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    source = torch.randn(1, 3, 8)
    with attlas.observe(attention) as found:
        attention(source, source, source)
    return found


def test_notes_come_back_in_their_order_and_one_can_be_removed(tmp_path: Path) -> None:
    file = NotesFile(tmp_path / "notes.json")
    assert file.read() == ()
    first, second = file.add(" “it” → cat", "#v=1"), file.add("دوم", "#v=1&l=2")
    assert [note.text for note in second] == [first[0].text, "دوم"]
    assert read_notes(tmp_path / "notes.json") == second
    assert file.remove(first[0].id) == second[1:]
    with pytest.raises(KeyError):
        file.remove(first[0].id)
    assert NotesFile(tmp_path / "notes.json").read() == second[1:]


def test_notes_that_are_added_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    file = NotesFile(tmp_path / "notes.json")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: file.add(f"note {number}", "#v=1"), range(40)))
    assert {note.text for note in file.read()} == {f"note {number}" for number in range(40)}


@pytest.mark.parametrize(
    ("text", "link", "reported"),
    [
        ("", "#v=1", "a text of 1 to 2,000 characters"),
        ("  ", "#v=1", "a text of 1 to 2,000 characters"),
        ("x" * (MOST_TEXT + 1), "#v=1", "got 2,001 characters"),
        ("x", "", "a link of 1 to 8,000 characters"),
        ("x", "#" * (MOST_LINK + 1), "got 8,001 characters"),
        ("x", "javascript:alert(1)", "a link that begins with #"),
        ("x", "https://example.org/", "a link that begins with #"),
    ],
)
def test_other_notes_are_refused(tmp_path: Path, text: str, link: str, reported: str) -> None:
    with pytest.raises(AttlasError, match=reported):
        NotesFile(tmp_path / "notes.json").add(text, link)
    assert not (tmp_path / "notes.json").exists()


def test_there_are_not_too_many(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    notes = [{"id": str(number), "text": "x", "link": "#"} for number in range(MOST_NOTES)]
    path.write_text(json.dumps({"notes": notes}), encoding="utf-8")
    with pytest.raises(AttlasError, match="at most 500 notes"):
        NotesFile(path).add("x", "#v=1")
    assert len(read_notes(path)) == MOST_NOTES


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"notes": 3}', '{"notes": [3]}', '{"notes": [{"id": "a"}]}',
                '{"notes": [{"id": 1, "text": "", "link": ""}]}']
)  # fmt: skip
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.json"
    path.write_text(content, encoding="utf-8")
    for work in (lambda: read_notes(path), lambda: NotesFile(path).add("x", "#v=1")):
        with pytest.raises(AttlasError, match=r"notes of the explorer in .*notes\.json"):
            work()
    assert path.read_text(encoding="utf-8") == content


def test_the_server_keeps_notes_and_says_so(trace: attlas.Trace, tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    with TestClient(app(trace, notes=path), base_url=BASE) as client:
        assert client.get("/api/model").json()["notes"] is True
        assert client.get("/api/notes").json() == {"notes": []}
        added = client.post("/api/notes", json={"text": "a note", "link": "#v=1"}).json()["notes"]
        assert client.get("/api/notes").json()["notes"] == added
        assert client.post("/api/notes", json={"text": "x"}).status_code == 400
        assert client.post("/api/notes", json={"text": 3, "link": "#"}).status_code == 400
        assert client.delete("/api/notes/nothing").status_code == 404
        assert client.delete(f"/api/notes/{added[0]['id']}").json() == {"notes": []}
        elsewhere = {"Origin": "http://example.org"}
        refused = client.delete("/api/notes/x", headers=elsewhere)
        assert refused.status_code == 403
    with TestClient(app(trace), base_url=BASE) as client:
        assert client.get("/api/model").json()["notes"] is False
        assert client.get("/api/notes").status_code == 404


def test_an_exported_file_has_the_notes(trace: attlas.Trace, tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    trace.save(path)
    NotesFile(notes_path(path)).add("an <i>odd</i> head </script>", "#v=1")
    assert (tmp_path / "t.safetensors.notes.json").is_file()
    code, _, _ = called("look", path, "--export", tmp_path / "t.html")
    assert code == 0
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    data = re.search(r'<script[^>]*id="attlas-data"[^>]*>(.*?)</script>', page, re.S)
    assert data is not None
    (note,) = json.loads(data[1])["notes"]
    assert (note["text"], note["link"]) == ("an <i>odd</i> head </script>", "#v=1")


def test_notes_of_a_run_are_in_its_folder(tmp_path: Path) -> None:
    assert notes_path(tmp_path) == tmp_path / "explorer-notes.json"
