"""What `attlas look` does before it listens, and what it leaves for later."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from attlas.data.vocabularies import vocabulary_names
from attlas.explorer import notes
from attlas.explorer.site import site
from attlas.explorer.sources import ExplorerSource, apis_of
from attlas.inference import Translator
from attlas.jobs import sources
from attlas.jobs.sources import LookOptions, sources_of
from attlas.recording import Trace, trace
from attlas.runs import NOTES, checkpoints, seal
from support.command_line import called
from support.warm_processes import WarmProcess

LISTENING = """
import json, sys
from attlas.explorer import server

def serve(apis, ready, **how):
    ready("http://127.0.0.1/")
    heavy = ("torch", "transformers", "matplotlib", "sentencepiece")
    print(json.dumps([name for name in heavy if name in sys.modules]))

server.serve_apis = serve
from attlas.cli.main import main
main()
"""


@pytest.mark.parametrize("kind", ["run", "two_texts"])
def test_neither_torch_nor_a_model_is_there_when_it_listens(
    request: pytest.FixtureRequest, kind: str
) -> None:
    subject = request.getfixturevalue(kind)
    done = subprocess.run(
        [sys.executable, "-c", LISTENING, "look", str(subject)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"


def test_names_that_stand_twice_are_the_same() -> None:
    assert (sources.TRACE_FORMAT, sources.TRACE_SUM) == (trace.TRACE_FORMAT, trace._SUM)
    assert sources.CONFIG == seal.CONFIG
    assert sources.CHECKPOINTS == checkpoints.CHECKPOINTS
    assert sources.POINTERS == (checkpoints.BEST, checkpoints.LAST)
    assert sources.CHECKPOINT_METADATA == checkpoints._METADATA
    assert notes.IN_RUN == NOTES


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> list[ExplorerSource]:
    """The sources that would have been served."""
    found: list[ExplorerSource] = []

    def noted(given: list[ExplorerSource], **_: object) -> tuple[list[Any], Any]:
        found.extend(given)
        return [], lambda: None

    monkeypatch.setattr("attlas.explorer.sources.apis_of", noted)
    monkeypatch.setattr("attlas.explorer.server.serve_apis", lambda *_, **__: None)
    return found


def test_a_trace_is_opened_later_and_its_answers_are_kept(
    opening: list[ExplorerSource], two_texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attlas.jobs.looking.opened", lambda *_: pytest.fail("opened"))
    assert called("look", two_texts)[0] == 0
    assert called("look", two_texts, "--no-cache")[0] == 0
    assert [one.answers is None for one in opening] == [False, True]
    assert opening[0].checksum == sources.trace_sum(two_texts)
    assert len(opening[0].checksum or "") == 64
    monkeypatch.undo()
    assert isinstance(opening[0].open(), Trace)


def test_a_run_is_opened_later_and_nothing_of_it_is_kept(
    opening: list[ExplorerSource], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("attlas.jobs.looking.opened", lambda *_: pytest.fail("opened"))
        assert called("look", run)[0] == 0
        assert called("look", run, "--checkpoint", "last")[0] == 0
    assert [(one.answers, one.checksum) for one in opening] == [(None, None)] * 2
    shown = opening[1].open()
    assert isinstance(shown, Translator)
    assert shown.facts["checkpoint"] == "last"


@pytest.mark.parametrize(
    "options", [("--num-beams", 2), ("--checkpoint", "best", "--set", "decoding.method=greedy")]
)
def test_what_options_say_is_checked_before_it_listens(
    opening: list[ExplorerSource], run: Path, options: tuple[object, ...]
) -> None:
    assert called("look", run, *options)[0] == 0
    code, _, error = called("look", run, "--set", "decoding.method=nothing")
    assert (code, "nothing" in error, len(opening)) == (2, True, 1)


def test_another_device_than_the_cpu_is_looked_for_before_it_listens(
    opening: list[ExplorerSource], run: Path
) -> None:
    code, _, _ = called("look", run, "--device", "cuda:99")
    assert (code, opening) == (2, [])


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-8],
        lambda content: content[:100],
        lambda content: content.replace(b"attlas trace 2", b"attlas trace 9"),
        lambda content: b"not a trace",
    ],
)
def test_a_trace_with_a_damaged_header_is_refused_before_it_listens(
    opening: list[ExplorerSource], two_texts: Path, tmp_path: Path, damage: Any
) -> None:
    path = tmp_path / "t.safetensors"
    path.write_bytes(damage(two_texts.read_bytes()))
    code, out, error = called("look", path)
    assert (code, out, opening) == (2, "", [])
    assert error.startswith("attlas: expected ")


@pytest.mark.parametrize("broken", ["vocabulary", "weights", "pointer"])
def test_a_run_whose_seal_or_header_is_broken_is_refused_before_it_listens(
    opening: list[ExplorerSource], run: Path, tmp_path: Path, broken: str
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    if broken == "vocabulary":
        path = next(copy / name for name in vocabulary_names() if (copy / name).is_file())
    else:
        best = (copy / "best").read_text(encoding="utf-8").split()[0]
        path = copy / "best" if broken == "pointer" else copy / "checkpoints" / best
    content = path.read_bytes()
    path.write_bytes(content[:-40] if broken == "weights" else b"9" + content)
    code, out, error = called("look", copy)
    assert (code, out, opening) == (2, "", [])
    assert error.startswith("attlas: expected ")


def test_what_is_found_out_later_is_a_sentence_in_the_page(two_texts: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    content = bytearray(two_texts.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    reported: list[Any] = []
    apis, _ = apis_of(
        sources_of([path], LookOptions(), cache=False), lambda error, _: reported.append(error)
    )
    with TestClient(site(apis), base_url="http://localhost") as client:
        assert client.get("/").status_code == 200
        answer = client.get("/api/model")
    assert answer.status_code == 400
    assert answer.json()["expected"] == "a whole trace file"
    assert [error.expected for error in reported] == ["a whole trace file"]


def damaged(two_texts: Path, folder: Path) -> Path:
    path = folder / "t.safetensors"
    content = bytearray(two_texts.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    return path


def test_where_no_page_asks_what_is_found_out_later_ends_the_command(
    two_texts: Path, tmp_path: Path
) -> None:
    arguments = ["look", damaged(two_texts, tmp_path), "--no-browser", "--port", "0"]
    with WarmProcess(*map(str, arguments), stdout=PIPE, stderr=PIPE) as process:
        out, said = process.communicate()
    assert process.returncode == 2
    assert out.endswith("shows " + str(tmp_path / "t.safetensors") + "; Ctrl-C ends it\n")
    assert said.startswith("attlas: expected a whole trace file; got ")
    assert said.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to one process there")
def test_a_page_that_asked_keeps_its_server_until_ctrl_c(two_texts: Path, tmp_path: Path) -> None:
    arguments = ["look", damaged(two_texts, tmp_path), "--no-browser", "--port", "0"]
    with WarmProcess(*map(str, arguments), stdout=PIPE, stderr=PIPE) as process:
        url = process.stdout.readline().split()[0]
        for _ in range(2):
            assert httpx.get(f"{url}api/model").status_code == 400
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert process.returncode == 2
    assert said.count("a whole trace file") == 1
