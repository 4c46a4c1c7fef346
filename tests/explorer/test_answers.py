"""Answers about a trace that are kept on disk."""

import asyncio
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

import attlas
from attlas.explorer.answers import FOLDER, Answer, AnswerFolder, RememberedAnswers
from attlas.explorer.site import site
from attlas.explorer.sources import ExplorerSource, apis_of

SUM = "5" * 64
SAID = Answer("application/json", b'{"a": 1}\n\n')


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of caches."""
    monkeypatch.setattr("attlas.explorer.answers.user_caches", lambda: tmp_path / "caches")
    return tmp_path / "caches" / "attlas" / "explorer"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    source = torch.randn(2, 5, 8)
    with attlas.observe(attention) as found:
        attention(source, source, source)
    (tmp_path / "traces").mkdir()
    found.save(tmp_path / "traces" / "a.safetensors")
    return tmp_path / "traces" / "a.safetensors"


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*")) if folder.is_dir() else []


def test_an_answer_is_kept_beside_its_trace_for_those_who_may_read_the_trace(
    trace: Path, caches: Path
) -> None:
    trace.chmod(0o640)
    kept = AnswerFolder.of_trace(trace, SUM)
    assert kept.read("/model?") is None
    assert kept.write("/model?", SAID)
    assert AnswerFolder.of_trace(trace, SUM).read("/model?") == SAID
    (file,) = files(trace.parent / FOLDER)
    assert (stat.S_IMODE(file.stat().st_mode), files(caches)) == (0o640, [])


def test_git_passes_over_the_folder(trace: Path) -> None:
    folder = AnswerFolder.of_trace(trace, "a" * 64)
    folder.write("/x", Answer("text/plain", b"1"))
    folder.write("/y", Answer("text/plain", b"2"))
    assert (trace.parent / FOLDER / ".gitignore").read_text() == "*\n"


def test_another_question_or_another_trace_has_no_answer(trace: Path) -> None:
    kept = AnswerFolder.of_trace(trace, SUM)
    kept.write("/model?", SAID)
    assert kept.read("/model?a=1") is None
    assert AnswerFolder.of_trace(trace, "6" * 64).read("/model?") is None


@pytest.mark.parametrize(
    "damaged",
    [
        lambda content: content[:-1],
        lambda content: content[:-4] + b"2" + content[-3:],
        lambda content: b"",
        lambda content: b"ATLB" + content[4:],
        lambda content: b"\x00" * 100,
        lambda content: content.replace(b"question", b"whatever"),
        lambda content: content.replace(b"model?", b"texts?"),
        lambda content: b"ATLA[1]\n" + content,
    ],
)
def test_what_is_damaged_or_foreign_counts_as_absent_and_is_written_anew(
    trace: Path, damaged: Any
) -> None:
    kept = AnswerFolder.of_trace(trace, SUM)
    kept.write("/model?", SAID)
    (file,) = files(trace.parent / FOLDER)
    file.write_bytes(damaged(file.read_bytes()))
    assert kept.read("/model?") is None
    assert kept.write("/model?", SAID)
    assert kept.read("/model?") == SAID


def test_where_the_folder_of_the_trace_takes_nothing_the_users_caches_do(
    trace: Path, caches: Path
) -> None:
    (trace.parent / FOLDER).write_text("a file", encoding="utf-8", newline="")
    kept = AnswerFolder.of_trace(trace, SUM)
    assert kept.write("/model?", SAID)
    assert (kept.read("/model?"), len(files(caches))) == (SAID, 1)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner there")
def test_a_folder_that_somebody_else_put_there_is_not_used(
    trace: Path, caches: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (trace.parent / FOLDER).symlink_to(tmp_path / "elsewhere")
    kept = AnswerFolder.of_trace(trace, SUM)
    assert kept.write("/model?", SAID)
    assert (len(files(caches)), files(tmp_path / "elsewhere")) == (1, [])
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert kept.read("/model?") is None
    assert not kept.write("/model?", SAID)


def test_those_that_were_not_used_for_the_longest_time_make_room(trace: Path) -> None:
    kept = AnswerFolder([trace.parent / FOLDER], SUM, most_bytes=4_000)
    body = Answer("text/plain", b"x" * 700)
    for number in range(3):
        kept.write(str(number), body)
        os.utime(max(files(trace.parent / FOLDER), key=os.path.getctime), (number, number))
    (trace.parent / FOLDER / "notes.txt").write_text("not ours", encoding="utf-8", newline="")
    assert kept.read("0") == body  # which is used now
    for number in range(3, 6):
        kept.write(str(number), body)
    assert [kept.read(str(number)) is not None for number in range(6)] == [True, False, False] + [
        True
    ] * 3
    assert sum(file.stat().st_size for file in files(trace.parent / FOLDER)) < 4_100
    assert not kept.write("7", Answer("text/plain", b"x" * 5_000))


def test_two_servers_may_write_at_once(trace: Path) -> None:
    bodies = [Answer("text/plain", bytes([number]) * 100_000) for number in range(8)]
    kept = [AnswerFolder.of_trace(trace, SUM) for _ in bodies]

    def work(number: int) -> bool:
        for _ in range(20):
            assert kept[number].write("/model?", bodies[number])
            assert kept[number].read("/model?") in bodies
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert len(files(trace.parent / FOLDER)) == 1


# Through the server.


def opened(trace: Path, opens: Any, *, name: str = "a") -> TestClient:
    source = ExplorerSource(name, opens, None, SUM, AnswerFolder.of_trace(trace, SUM))
    return TestClient(site(apis_of([source])[0]), base_url="http://localhost")


@pytest.fixture
def requested(trace: Path) -> dict[str, bytes]:
    """What a page asked for, and how it was answered."""
    with opened(trace, lambda: attlas.Trace.load(trace)) as client:
        found = {path: client.get(path).content for path in ("/api/model", "/api/texts/1")}
        name = client.get("/api/texts/1").json()["map"]
        for path in ("overview", "statistics", "0", "0/tokens", "0?heads=1:2&shape=2,3"):
            found[f"/api/maps/{name}/{path}"] = client.get(f"/api/maps/{name}/{path}").content
    return found


def never() -> Any:
    raise AssertionError("the trace was opened")


def test_what_was_answered_once_is_answered_again_without_the_trace(
    trace: Path, requested: dict[str, bytes]
) -> None:
    with opened(trace, never) as client:
        for path, body in requested.items():
            answer = client.get(path)
            assert (answer.status_code, answer.content) == (200, body), path
            assert answer.headers["Cache-Control"] == "no-store"


def test_an_id_of_an_earlier_server_still_names_the_same_maps(
    trace: Path, requested: dict[str, bytes]
) -> None:
    (name,) = {path.split("/")[3] for path in requested if path.startswith("/api/maps")}
    with opened(trace, lambda: attlas.Trace.load(trace)) as client:
        fresh = client.get(f"/api/maps/{name}/0?shape=4,4")
        assert fresh.status_code == 200
        for wrong in (f"{name}0", name.replace("5", "6"), name[:-1] + "2", name[:-1] + "-1"):
            assert client.get(f"/api/maps/{wrong}/0").status_code == 404


def test_a_page_of_another_name_is_not_reported_this_one(
    trace: Path, requested: dict[str, bytes]
) -> None:
    with opened(trace, lambda: attlas.Trace.load(trace), name="b") as client:
        assert client.get("/api/model").json()["facts"] == {"name": "b"}


def test_nothing_is_shown_of_a_trace_that_turns_out_to_be_damaged(
    trace: Path, requested: dict[str, bytes]
) -> None:
    content = bytearray(trace.read_bytes())
    content[-1] ^= 1
    trace.write_bytes(content)
    reported: list[attlas.AttlasError] = []
    source = ExplorerSource(
        "a",
        lambda: attlas.Trace.load(trace),
        checksum=SUM,
        answers=AnswerFolder.of_trace(trace, SUM),
    )
    apis, _ = apis_of([source], lambda error, _: reported.append(error))
    with TestClient(site(apis), base_url="http://localhost") as client:
        assert client.get("/api/model").status_code == 200  # before it is opened
        answer = client.get("/api/texts/0")
        assert (answer.status_code, "which is damaged" in answer.json()["got"]) == (400, True)
        assert client.get("/api/model").status_code == 400
    assert len(reported) == 1


def test_later_quick_answers_and_errors_are_not_kept(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attlas.explorer.answers._FIRST", 3)
    monkeypatch.setattr("attlas.explorer.answers._LONG", 100)
    with opened(trace, lambda: attlas.Trace.load(trace)) as client:
        for path in ("texts/9", "nothing", "texts/0", "model"):
            client.get(f"/api/{path}")
        name = client.get("/api/texts/1").json()["map"]
        client.get(f"/api/maps/{name}/0")
    # Of "nothing" no page asks: it is not counted.
    assert len(files(trace.parent / FOLDER)) == 2


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/maps/a.0/0", 1),
        ("/maps/a.0/0/progress", 0),
        ("/maps/a.0/0/glance", 0),
        ("/maps/a.0/0/alignment", 0),
        ("/notes", 0),
    ],
)
def test_what_depends_on_more_than_the_trace_is_not_kept(trace: Path, path: str, kept: int) -> None:
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})

    async def send(message: Any) -> None:
        pass

    folder = AnswerFolder.of_trace(trace, SUM)
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b""}
    asyncio.run(RememberedAnswers(inner, folder, "", lambda: False)(scope, send, send))
    assert len(files(trace.parent / FOLDER)) == kept


def test_an_answer_that_breaks_off_is_not_kept(trace: Path) -> None:
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})

    kept = AnswerFolder.of_trace(trace, SUM)
    remembered = RememberedAnswers(inner, kept, "", lambda: False)
    scope = {"type": "http", "method": "GET", "path": "/model", "query_string": b""}

    async def send(message: Any) -> None:
        pass

    asyncio.run(remembered(scope, send, send))
    assert files(trace.parent / FOLDER) == []
