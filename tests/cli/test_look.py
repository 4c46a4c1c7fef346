"""`attlas look`: what is shown, and to whom."""

from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from starlette.testclient import TestClient

from attlas.explorer.notes import notes_path
from attlas.explorer.sources import ExplorerSource
from attlas.inference import Translator
from attlas.inference.huggingface import HuggingFaceModel
from attlas.recording import Trace
from attlas.runs import Run
from support.command_line import called
from support.small_models import saved

URL = "http://127.0.0.1:8642/"
Served = list[tuple[Any, dict[str, Any]]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """What would have been served, and how."""
    found: Served = []

    def apis_of(sources: list[ExplorerSource], **_: object) -> tuple[list[Any], Any]:
        reported = [
            (one.open(), {"name": one.name, "notes": one.notes, "gold": one.gold})
            for one in sources
        ]
        return reported, lambda: None

    def serve(apis: Served, **how: Any) -> None:
        how.pop("ready")(URL)
        found.extend((shown, reported | how) for shown, reported in apis)

    monkeypatch.setattr("attlas.explorer.sources.apis_of", apis_of)
    monkeypatch.setattr("attlas.explorer.server.serve_apis", serve)
    monkeypatch.setattr("attlas.explorer.server.check_can_listen", lambda host, port: None)
    return found


@pytest.mark.parametrize("options", [("--no-browser", "--browser"), ("--browser", "--browser")])
def test_an_option_and_its_opposite_are_not_given_together(
    served: Served, two_texts: Path, options: tuple[str, ...]
) -> None:
    code, out, error = called("look", two_texts, *options)
    assert (code, out, served) == (2, "", [])
    assert error == (
        "attlas: expected --browser or --no-browser once; got it 2 times; leave the others out\n"
    )


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ((), {}),
        (("--host", "0.0.0.0", "--port", 0), {"host": "0.0.0.0", "port": 0}),
        (("--no-browser",), {"open_browser": False}),
        (("--browser",), {}),
    ],
)
@pytest.mark.parametrize("kind", ["run", "two_texts"])
def test_it_is_served_to_whom_and_where_the_options_say(
    request: pytest.FixtureRequest,
    served: Served,
    kind: str,
    options: tuple[object, ...],
    changed: dict[str, object],
) -> None:
    subject: Path = request.getfixturevalue(kind)
    reported = f"{URL} shows {subject}; Ctrl-C ends it\n"
    assert called("look", subject, *options) == (0, reported, "")
    ((shown, how),) = served
    assert isinstance(shown, Translator if kind == "run" else Trace)
    usual: dict[str, Any] = {
        "name": subject.name,
        "host": "127.0.0.1",
        "port": 8642,
        "open_browser": True,
        "fragment": "",
    }
    usual |= {"notes": notes_path(subject), "gold": None}
    assert how == usual | changed


def test_gold_links_belong_to_a_trace_that_is_served(
    served: Served, run: Path, two_texts: Path, tmp_path: Path
) -> None:
    gold = tmp_path / "links.txt"
    gold.write_text("0-0 1p1\n\n")
    assert called("look", two_texts, "--gold", gold)[0] == 0
    ((_, how),) = served
    assert [links.sure for links in how["gold"]] == [{(0, 0)}, set()]
    more: tuple[tuple[object, ...], ...]
    more = ((run,), (two_texts, "--export", tmp_path / "t.html"), (two_texts, run))
    for options in more:
        code, _, said = called("look", *options, "--gold", gold)
        assert (code, "got --gold; leave that out" in said) == (2, True)
    gold.write_text("0:0\n")
    code, _, said = called("look", two_texts, "--gold", gold)
    assert (code, f"got '0:0' in {gold}, line 1" in said) == (2, True)
    gold.write_text("1-1\n\n")
    assert called("look", two_texts, "--gold", gold, "--gold-first", 1)[0] == 0
    assert [links.sure for links in served[-1][1]["gold"]] == [{(0, 0)}, set()]
    for wrong in ("", "0-0\n", "0-0\n\n\n"):
        gold.write_text(wrong)
        code, _, said = called("look", two_texts, "--gold", gold)
        assert (code, "as many sentences as the trace has texts, 2; got" in said) == (2, True)
    code, _, said = called("look", two_texts, "--gold-first", 1)
    assert (code, "add --gold" in said) == (2, True)


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        (("--num-beams", 3), {"num_beams": 3}),
        (("--set", "decoding.method=greedy"), {"method": "greedy"}),
        (
            ("--num-beams", 4, "--set", "decoding.length_penalty=0.5"),
            {"num_beams": 4, "length_penalty": 0.5},
        ),
    ],
)
def test_a_run_is_searched_as_the_options_say(
    run: Path, served: Served, options: tuple[object, ...], changed: dict[str, object]
) -> None:
    assert called("look", run, *options)[0] == 0
    ((shown, _),) = served
    used = {"method", "max_len_b", "max_len_a", *changed}
    expected = Translator(run).config.model_copy(update=changed)
    assert shown.config.model_dump(include=used) == expected.model_dump(include=used)


def test_a_run_is_looked_at_by_the_checkpoint_and_on_the_device_that_are_asked_for(
    run: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[tuple[str, str]] = []
    real = Run.model

    def model(self: Run, which: str, device: str) -> Any:
        requested.append((which, device))
        return real(self, which)

    monkeypatch.setattr(Run, "model", model)
    for options in ((), ("--checkpoint", "last", "--device", "auto"), ("--checkpoint", 3)):
        assert called("look", run, *options)[0] == 0
    assert requested == [("best", "cpu"), ("last", "auto"), ("00000003", "cpu")]
    assert [shown.facts["checkpoint"] for shown, _ in served] == ["best", "last", "00000003"]


@pytest.mark.parametrize("command", ["look", "figure", "inspect"])
def test_a_trace_that_is_missing_is_no_run(command: str, tmp_path: Path) -> None:
    more = ("-o", tmp_path / "map.svg") if command == "figure" else ()
    code, _, reported = called(command, tmp_path / "cat.safetensors", *more)
    assert (code, "expected a trace file; got no file at" in reported) == (2, True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of Hugging Face."""
    pytest.importorskip("transformers")
    return saved(tmp_path_factory.mktemp("models") / "gpt2", "gpt2")


def test_a_model_of_hugging_face_is_served(served: Served, folder: Path) -> None:
    reported = f"{URL} shows {folder}; Ctrl-C ends it\n"
    assert called("look", folder, "--max-new-tokens", 3) == (0, reported, "")
    ((shown, how),) = served
    assert isinstance(shown, HuggingFaceModel)
    assert (how["name"], len(shown("the cat").tokens) <= 3) == ("gpt2", True)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--num-beams", 3), "--num-beams"),
        (("--checkpoint", "last"), "--checkpoint"),
        (("--set", "decoding.method=greedy"), "--set"),
    ],
)
def test_options_of_a_run_are_refused_beside_a_model(
    served: Served, folder: Path, options: tuple[object, ...], named: str
) -> None:
    code, _, error = called("look", folder, *options)
    assert (code, served) == (2, [])
    assert f"got {named}; leave that out" in error


@pytest.mark.parametrize("kind", ["run", "two_texts"])
def test_options_of_a_model_are_refused_beside_a_run_and_a_trace(
    request: pytest.FixtureRequest, served: Served, kind: str
) -> None:
    code, _, error = called("look", request.getfixturevalue(kind), "--max-new-tokens", 3)
    assert (code, served, "--max-new-tokens" in error) == (2, [], True)


def test_a_name_that_is_on_no_disk_is_not_fetched_without_being_asked_for(
    served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    requested: list[bool] = []

    def snapshot_download(name: str, *, local_files_only: bool = False, **_: object) -> str:
        requested.append(local_files_only)
        raise OSError("no such model")

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    monkeypatch.chdir(tmp_path)
    code, _, error = called("look", "somebody/model")
    assert (code, requested, served) == (2, [True], [])
    assert "got nothing at somebody/model; check the path" in error
    assert "--download" in error
    code, _, error = called("look", "somebody/model", "--download")
    assert (code, requested) == (2, [True, True, False])
    assert "somebody/model on the Hugging Face Hub" in error


def test_a_model_of_the_cache_is_served_by_its_name(
    served: Served, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "snapshot_download", lambda *_, **__: str(folder))
    monkeypatch.chdir(tmp_path)
    assert called("look", "somebody/model")[0] == 0
    assert isinstance(served[0][0], HuggingFaceModel)


@pytest.mark.parametrize("beside", [(), ("notes.txt",)])
def test_a_folder_that_is_neither_run_nor_model_says_what_it_lacks(
    served: Served, tmp_path: Path, beside: tuple[str, ...]
) -> None:
    for name in beside:
        (tmp_path / name).touch()
    code, _, error = called("look", tmp_path)
    assert (code, served) == (2, [])
    assert "config.toml" in error
    assert "config.json" in error


def test_an_export_of_a_trace_is_a_page_that_holds_it(two_texts: Path, tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    assert called("look", two_texts, "--export", page) == (0, f"{page}\n", "")
    assert page.read_bytes().startswith(b"<!doctype html>")


def test_the_page_begins_with_a_text_that_is_given(
    served: Served, folder: Path, run: Path, two_texts: Path
) -> None:
    for subject in (folder, run):
        assert called("look", subject, "--text", "a cat & so")[0] == 0
        assert served.pop()[1]["fragment"] == "text=a%20cat%20%26%20so"
    code, _, error = called("look", run, two_texts, "--text", "a cat")
    assert (code, served) == (2, [])
    assert "got --text; leave that out: its text is in the file" in error


def test_a_tokenizer_may_be_in_another_folder(
    served: Served, folder: Path, two_texts: Path, tmp_path: Path
) -> None:
    alone, apart = tmp_path / "model", tmp_path / "tokenizer"
    for copied in (alone, apart):
        copytree(folder, copied)
    for file in alone.glob("*token*"):
        file.unlink()
    (apart / "config.json").unlink()
    code, _, error = called("look", alone)
    assert (code, served) == (2, [])
    assert "or name the folder that has it: attlas look MODEL --tokenizer FOLDER" in error
    assert called("look", alone, "--tokenizer", apart)[0] == 0
    ((shown, _),) = served
    whole = HuggingFaceModel(folder)
    assert shown("the cat").source_tokens == whole("the cat").source_tokens
    for wrong, said in ((tmp_path / "none", "got no folder there"), (tmp_path, "got none")):
        code, _, error = called("look", alone, "--tokenizer", wrong)
        assert (code, said in error) == (2, True)
    code, _, error = called("look", two_texts, "--tokenizer", apart)
    assert (code, "got --tokenizer; leave that out" in error) == (2, True)


def test_weights_of_a_model_are_no_trace(served: Served, folder: Path) -> None:
    code, _, error = called("look", folder / "model.safetensors")
    assert (code, served) == (2, [])
    assert "name the folder in which its config.json is" in error


def test_an_export_of_a_model_wants_a_text(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    code, _, error = called("look", folder, "--export", page)
    assert (code, page.exists()) == (2, False)
    assert "expected a text to read; got none; add --text" in error
    assert called("look", folder, "--text", "the cat", "--export", page)[0] == 0
    assert b'"texts":["the cat"]' in page.read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--export", "x.txt"), "a file name that ends in .html"),
        (("--text", "the cat"), "--text"),
        (("--exact",), "--exact"),
        (("--export", "nowhere/x.html"), "no folder nowhere"),
        (("--export", "x.html", "--text", "the cat"), "a trace without a text"),
    ],
)
def test_exports_that_cannot_be_are_refused_before_the_work(
    two_texts: Path,
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, error = called("look", two_texts, *options)
    assert (code, served, list(tmp_path.glob("*.html"))) == (2, [], [])
    assert said in error


@pytest.fixture
def watch_file(tmp_path: Path) -> Path:
    path = tmp_path / "watch.jsonl"
    path.write_text('{"step": 1, "alarms": [], "heads": []}\n', encoding="utf-8", newline="\n")
    return path


def test_a_watch_file_has_a_page_of_its_own(
    monkeypatch: pytest.MonkeyPatch, watch_file: Path
) -> None:
    made: list[Any] = []

    def serve(make: Any, **how: Any) -> None:
        how.pop("ready")(URL)
        made.append((make(["localhost"], None), how))

    monkeypatch.setattr("attlas.explorer.server.serve_site", serve)
    code, out, error = called("look", watch_file, "--port", 0, "--no-browser")
    assert (code, out, error) == (0, f"{URL} shows {watch_file}; Ctrl-C ends it\n", "")
    ((application, how),) = made
    assert how == {"host": "127.0.0.1", "port": 0, "open_browser": False}
    page = TestClient(application, base_url="http://localhost").get("/").text
    assert "1 reading, the last at step 1." in page


@pytest.mark.parametrize(
    "options",
    [
        ("--text", "the cat"),
        ("--export", "x.html"),
        ("--num-beams", 3),
        ("--set", "decoding.num_beams=3"),
        ("--image", "cat.jpg"),
        ("--device", "cuda"),
        ("--gold", "links.txt"),
    ],
)
def test_a_watch_file_has_no_use_for_what_a_model_reads(
    watch_file: Path, options: tuple[Any, ...]
) -> None:
    code, out, error = called("look", watch_file, *options)
    assert (code, out) == (2, "")
    assert str(options[0]) in error


def test_a_watch_file_is_shown_alone_and_must_be_there(watch_file: Path, two_texts: Path) -> None:
    code, _, error = called("look", watch_file, two_texts)
    assert code == 2
    assert "one watch file, alone" in error
    code, _, error = called("look", watch_file.with_name("nowhere.jsonl"))
    assert code == 2
    assert "a watch file that is there" in error
