"""`attlas look`: what is shown, and to whom."""

from pathlib import Path
from typing import Any

import pytest

from attlas.inference import Translator
from attlas.recording import Trace
from attlas.runs import Run
from support.command_line import called

URL = "http://127.0.0.1:8642/"
Served = list[tuple[Any, dict[str, Any]]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """What would have been served, and how."""
    found: Served = []

    def serve(shown: object, **how: Any) -> None:
        how.pop("ready")(URL)
        found.append((shown, how))

    monkeypatch.setattr("attlas.explorer.serve", serve)
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
    told = f"{URL} shows {subject}; Ctrl-C ends it\n"
    assert called("look", subject, *options) == (0, told, "")
    ((shown, how),) = served
    assert isinstance(shown, Translator if kind == "run" else Trace)
    usual = {"name": subject.name, "host": "127.0.0.1", "port": 8642, "open_browser": True}
    assert how == usual | changed


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
    wanted = Translator(run).config.model_copy(update=changed)
    assert shown.config.model_dump(include=used) == wanted.model_dump(include=used)


def test_a_run_is_looked_at_by_the_checkpoint_and_on_the_device_that_are_asked_for(
    run: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    real = Run.model

    def model(self: Run, which: str, device: str) -> Any:
        asked.append((which, device))
        return real(self, which)

    monkeypatch.setattr(Run, "model", model)
    for options in ((), ("--checkpoint", "last", "--device", "auto"), ("--checkpoint", 3)):
        assert called("look", run, *options)[0] == 0
    assert asked == [("best", "cpu"), ("last", "auto"), ("00000003", "cpu")]
    assert [shown.facts["checkpoint"] for shown, _ in served] == ["best", "last", "00000003"]


@pytest.mark.parametrize("command", ["look", "figure", "inspect"])
def test_a_trace_that_is_missing_is_no_run(command: str, tmp_path: Path) -> None:
    more = ("-o", tmp_path / "map.svg") if command == "figure" else ()
    code, _, told = called(command, tmp_path / "cat.safetensors", *more)
    assert (code, "expected a trace file; got no file at" in told) == (2, True)
