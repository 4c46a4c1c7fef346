"""An environment for each peer, made once."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import environments  # noqa: E402
from environments import Environment  # noqa: E402

PEER = "joeynmt"
MADE = Environment(sys.executable, None, {"joeynmt": "1.0"})
LOST = Environment(None, "does not install: timeout", {})


class Maker:
    """Instead of pip: what becomes of each try."""

    def __init__(self, *becomes: Environment) -> None:
        self.becomes = list(becomes)

    def __call__(self, *given: Any) -> Environment:
        return self.becomes.pop(0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of the environments; beside it the pins."""
    pins = tmp_path / "contenders" / f"{PEER}.txt"
    pins.parent.mkdir()
    pins.write_text("joeynmt==1.0\n", encoding="utf-8")
    peers = tmp_path / ".peers"
    peers.mkdir()
    monkeypatch.setattr(environments, "HERE", tmp_path)
    monkeypatch.setattr(environments, "ENVIRONMENTS", peers)
    environments.environment.cache_clear()
    yield peers
    environments.environment.cache_clear()


def requested() -> Environment:
    """As the next script asks, which knows nothing of the last."""
    environments.environment.cache_clear()
    return environments.environment(PEER)


def test_what_failed_is_tried_again_by_the_next_script_and_what_was_made_is_kept(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(environments, "_made", maker := Maker(LOST, MADE))
    assert requested() == LOST
    assert list(folder.iterdir()) == []
    assert requested() == MADE
    assert requested() == MADE
    assert maker.becomes == []


def test_what_failed_is_not_tried_again_for_every_table_of_a_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environments, "_made", Maker(LOST))
    assert requested() == LOST
    assert environments.environment(PEER) == LOST


def test_an_environment_by_other_pins_is_made_anew_and_where_that_fails_the_old_one_is_gone(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(environments, "_made", Maker(MADE, LOST, MADE))
    assert requested() == MADE
    pins = environments.HERE / "contenders" / f"{PEER}.txt"
    before = pins.read_text(encoding="utf-8")
    pins.write_text("joeynmt==2.0\n", encoding="utf-8")
    assert requested() == LOST
    pins.write_text(before, encoding="utf-8")
    assert list(folder.iterdir()) == []  # what there was has been overwritten
    assert requested() == MADE


@pytest.mark.parametrize("python", [None, "nowhere/bin/python"], ids=["a failure", "gone"])
def test_a_stamp_without_an_interpreter_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, folder: Path, python: str | None
) -> None:
    monkeypatch.setattr(environments, "_made", Maker(MADE, MADE))
    requested()
    stamp = folder / f"{PEER}.json"
    known = json.loads(stamp.read_text(encoding="utf-8"))
    stamp.write_text(json.dumps(known | {"python": python}), encoding="utf-8")
    assert requested() == MADE


@pytest.mark.parametrize(
    ("errors", "reported"),
    [
        ("error: no compiler\n\nnote: not pip's fault\nhint: see above\n", "error: no compiler"),
        ("Traceback:\nImportError: no such thing\n", "ImportError: no such thing"),
        ("Killed\n", "Killed"),
        ("\n", None),
    ],
)
def test_the_reason_is_the_last_line_that_speaks_of_an_error(
    errors: str, reported: str | None
) -> None:
    assert environments.reason(errors) == reported
