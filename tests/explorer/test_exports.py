"""Files that the server writes for a reader to keep."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.explorer import app
from attlas.explorer.maps import TextMaps
from attlas.explorer.notes import NotesFile
from attlas.explorer.one_file import FileContent, content_of, page_with
from attlas.patterns import everywhere
from attlas.recording import FactoredAttentionMap, Trace
from attlas.recording.maps.reductions import PassCancelledError
from support.small_translators import small_translator


def made(texts: int = 1, size: int = 5) -> Trace:
    generator = torch.Generator().manual_seed(3)
    trace = Trace()
    for layer in range(2):
        query, keys = 2 * torch.randn(2, texts, 3, size, 8, generator=generator)
        trace.record(f"encoder.{layer}", FactoredAttentionMap(query, keys, 8**-0.5, everywhere, 0))
    words = [[f"word{text}.{place}" for place in range(size)] for text in range(texts)]
    trace.label(words, words)
    return trace


def client(shown: Any, **kwargs: Any) -> TestClient:
    return TestClient(app(shown, **kwargs), base_url="http://localhost")


def test_the_file_of_a_trace_of_one_text_is_that_of_the_command(tmp_path: Path) -> None:
    trace, notes = made(), NotesFile(tmp_path / "notes.json")
    written = notes.add("a note", "#v=1&l=1")
    with client(trace, name="one", notes=tmp_path / "notes.json") as asked:
        name = asked.get("/api/texts/0").json()["map"]
        answer = asked.get(f"/api/maps/{name}/file")
        assert asked.get(f"/api/maps/{name}/file?exact=1").status_code == 400
    assert answer.headers["content-disposition"] == 'attachment; filename="attlas.html"'
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.text == page_with(content_of(trace, None, "one", "display").with_notes(written))


def test_of_several_texts_the_file_holds_the_one_on_screen() -> None:
    trace = made(texts=3)
    with client(trace, name="three") as asked:
        name = asked.get("/api/texts/1").json()["map"]
        page = asked.get(f"/api/maps/{name}/file").text
    assert "word1.0" in page
    assert "word0.0" not in page
    assert "word2.0" not in page


def test_the_file_of_a_translation_is_that_of_the_command() -> None:
    translator = small_translator(max_len_a=0, max_len_b=6, min_length=6)
    with client(translator) as asked:
        said = asked.post("/api/translate", json={"text": "the cat sat"}).json()
        page = asked.get(f"/api/maps/{said['map']}/file").text
    assert said["remarks"]
    assert page == page_with(content_of(translator, "the cat sat", "", "display"))


def test_a_file_that_nobody_waits_for_is_given_up() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(PassCancelledError):
        FileContent.of_maps(TextMaps.of(made()), {"name": None}, "display", stop)
