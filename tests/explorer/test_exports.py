"""Files that the server writes for a reader to keep."""

import io
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.explorer import app, backends, exports
from attlas.explorer.maps import TextMaps
from attlas.explorer.notes import NotesFile
from attlas.explorer.one_file import FileContent, content_of, page_with
from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
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


def test_the_file_opens_as_the_link_says() -> None:
    link = "#text=a%20cat&v=1&row=2&l=1&h=2&tab=compare&b=1"
    with client(made(), name="one") as asked:
        address = f"/api/maps/{asked.get('/api/texts/0').json()['map']}/file"
        page = asked.get(address, params={"link": link}).text
        assert asked.get(address, params={"link": ""}).text == asked.get(address).text
        for wrong in ("l=1", "#" + "x" * 8_000):
            assert asked.get(address, params={"link": wrong}).status_code == 400
    data = page.partition('id="attlas-data">')[2].partition("</script>")[0]
    assert json.loads(data)["link"] == "#&v=1&&l=1&h=2&tab=compare&"


def test_the_file_of_a_model_says_which_views_it_has_not() -> None:
    with client(small_translator(max_len_a=0, max_len_b=6, min_length=6)) as asked:
        said = asked.post("/api/translate", json={"text": "the cat sat"}).json()
        page = asked.get(f"/api/maps/{said['map']}/file").text
    assert "Mechanism, Doubt and Beams, are not in this file" in page
    assert "Mechanism, Doubt and Beams" not in " ".join(said["remarks"])


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


def parquet(content: bytes) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Columns and facts, as pyarrow reads them."""
    read = pytest.importorskip("pyarrow.parquet").read_table(io.BytesIO(content))
    return read.to_pydict(), json.loads(read.schema.metadata[b"attlas"])


@pytest.mark.parametrize("head", [1, None])
def test_parquet_has_the_weights_of_a_part_that_a_query_may_see(
    head: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "_AT_ONCE", 8)  # so that there are several blocks
    generator = torch.Generator().manual_seed(1)
    query, keys = 2 * torch.randn(2, 1, 3, 6, 8, generator=generator)
    trace = Trace()
    trace.record("decoder.0", FactoredAttentionMap(query, keys, 8**-0.5, causal, 0))
    words = ["a", '"b"', "<c>", "\u2028", "e", "f"]
    trace.label_layer("decoder.0", [words], [words])
    weights = trace["decoder.0"].weights()[0]
    expected = weights.mean(0) if head is None else weights[head]
    with client(trace, name="small") as asked:
        name = asked.get("/api/texts/0").json()["map"]
        part = "rows=1:5&keys=0:4" + ("" if head is None else f"&head={head}")
        answer = asked.get(f"/api/maps/{name}/0/parquet?{part}")
        assert asked.get("/api/model").json()["parquet"] is True
    columns, facts = parquet(answer.content)
    cells = [(row, key) for row in range(1, 5) for key in range(min(row + 1, 4))]
    assert list(zip(columns["row"], columns["key"], strict=True)) == cells
    assert columns["row_token"] == [words[row] for row, _ in cells]
    assert columns["key_token"] == [words[key] for _, key in cells]
    assert columns["weight"] == pytest.approx([float(expected[cell]) for cell in cells], abs=1e-6)
    assert facts["layer"] == "decoder.0"
    assert facts["head"] == ("mean of all" if head is None else head)
    assert facts["model"] == "small"


def test_tokens_without_names_are_none_in_parquet() -> None:
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(torch.eye(2).expand(1, 1, 2, 2)))
    with client(trace) as asked:
        name = asked.get("/api/texts/0").json()["map"]
        columns, _ = parquet(asked.get(f"/api/maps/{name}/0/parquet?head=0").content)
    assert columns["row_token"] == [None] * 4
    assert columns["weight"] == [1.0, 0.0, 0.0, 1.0]


def test_without_pyarrow_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    with client(made()) as asked:
        assert asked.get("/api/model").json()["parquet"] is False
        name = asked.get("/api/texts/0").json()["map"]
        answer = asked.get(f"/api/maps/{name}/0/parquet?head=0")
    assert answer.status_code == 400
    assert "pip install 'attlas[parquet]'" in answer.json()["hint"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("head=3", "head as a number from 0 to 2"),
        ("rows=2:9", "rows as start:stop within 0:5"),
        ("bits=8", "one of head, rows, keys"),
        ("rows=0:5", "a part of at most 4 weights"),
    ],
)
def test_a_wrong_part_is_refused(query: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "_MOST_WEIGHTS", 4)
    with client(made()) as asked:
        name = asked.get("/api/texts/0").json()["map"]
        answer = asked.get(f"/api/maps/{name}/0/parquet?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["expected"]


def test_a_file_that_nobody_waits_for_is_given_up() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(PassCancelledError):
        FileContent.of_maps(TextMaps.of(made()), {"name": None}, "display", stop)
    with pytest.raises(PassCancelledError):
        exports.ExportedPart(TextMaps.of(made()).layers[0], 0, (0, 5), (0, 5)).parquet({}, stop)
