"""Curves: which moments there are, and what there was by each of them."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))
sys.path.append(str(BENCHMARKS / "contenders"))

import course  # noqa: E402
from curve import LATE, by, chosen, evenly, late, of_training  # noqa: E402

Points = st.lists(st.floats(0, 1e4), min_size=1, max_size=30).map(
    lambda times: [{"seconds": seconds} for seconds in sorted(times)]
)
Moments = st.builds(evenly, st.floats(0.1, 200), st.integers(1, 20))


@given(st.floats(0.1, 200), st.integers(1, 20))
def test_moments_are_evenly_apart_and_the_last_is_the_end(minutes: float, many: int) -> None:
    moments = evenly(minutes, many)
    assert len(moments) == many
    assert moments[-1] == pytest.approx(60 * minutes)
    steps = [after - before for before, after in zip([0.0, *moments], moments, strict=False)]
    assert steps == pytest.approx([moments[0]] * many)


@given(Points, Moments)
def test_by_a_moment_there_is_the_newest_point_that_was_there_in_time(
    points: list[dict[str, Any]], moments: list[float]
) -> None:
    for moment in moments:
        in_time = [p for p in points if p["seconds"] <= moment + LATE * moments[0]]
        found = by(moment, points, moments[0])
        assert (found is None) == (not in_time)
        assert found is None or found["seconds"] == max(p["seconds"] for p in in_time)


@given(Points, Moments)
def test_points_that_no_moment_asks_for_are_left_out_and_the_rest_say_the_same(
    points: list[dict[str, Any]], moments: list[float]
) -> None:
    few = chosen(points, moments)
    assert few[-1] is points[-1]
    assert len(few) <= len(moments) + 1
    assert [by(m, few, moments[0]) for m in moments] == [by(m, points, moments[0]) for m in moments]
    assert late(few, moments) == late(points, moments)


def test_a_course_is_late_where_its_last_point_comes_after_the_end() -> None:
    moments = evenly(10, 5)
    assert not late([{"seconds": 500.0}], moments)
    assert not late([{"seconds": 601.0}], moments)  # an update is not over to the second
    assert late([{"seconds": 500.0}, {"seconds": 700.0}], moments)


def validated(seconds: float, update: int, best: bool, name: str | None = None) -> dict[str, Any]:
    return {
        "event": "validated", "seconds": seconds, "update": update, "best": best,
        "checkpoint": name or f"{update:08d}",
    }  # fmt: skip


def test_a_training_has_a_point_for_every_validation_that_found_better_and_its_end() -> None:
    events = [
        {"event": "started", "seconds": 0.0, "update": 0},
        validated(10.0, 100, True),
        {"event": "trained", "seconds": 15.0, "update": 150},
        validated(20.0, 200, False),
        validated(30.0, 300, True, "averaged"),
        {"event": "finished", "seconds": 31.0, "update": 300, "checkpoint": "averaged"},
    ]
    there = ["00000100", "00000200", "averaged"]
    found = [(p["seconds"], p["updates"], p["weights"]) for p in of_training(events, there)]
    assert found == [(10, 100, "00000100"), (30, 300, "averaged"), (31, 300, "averaged")]
    assert [p["weights"] for p in of_training(events, ["averaged"])] == ["averaged"] * 2
    assert [p["seconds"] for p in of_training(events[:-1], there)] == [10, 30]
    assert of_training([], there) == []


@pytest.fixture
def reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> course.Course:
    """A contender's course of three moments, on a clock that strikes a second at each look."""
    seconds = count()
    monkeypatch.setattr(course.time, "monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(sys, "argv", ["contender", str(tmp_path)])
    facts = {"corpus": "corpus", "recipe": {}, "moments": [4.0, 8.0, 12.0], "threads": 1}
    (tmp_path / "told.json").write_text(json.dumps(facts), encoding="utf-8")
    return course.Course()


def test_a_training_without_an_end_ends_with_the_last_moment_and_keeps_weights_at_each(
    reported: course.Course,
) -> None:
    kept: list[Path] = []
    with reported.training():
        reported.begin()
        for updates in count(1):
            reported.updated(updates, kept.append)
    assert [path.name for path in kept] == [point["weights"] for point in reported.points]
    for point, moment in zip(reported.points, reported.moments, strict=True):
        assert moment <= point["seconds"] <= moment + 1


def test_a_training_that_ends_before_the_last_moment_is_no_course(reported: course.Course) -> None:
    with pytest.raises(SystemExit, match="ended before"), reported.training():
        reported.updated(1, lambda path: None)


def test_a_training_that_nobody_waits_for_any_more_ends(
    reported: course.Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported.awaited()
    monkeypatch.setattr(course.os, "getppid", lambda: 1_000_000)
    with pytest.raises(SystemExit, match="nobody"):
        reported.updated(1, lambda path: None)


def test_weights_that_count_at_two_moments_translate_once(reported: course.Course) -> None:
    reported.points = [
        {"seconds": 1.0, "updates": 5, "weights": "a"},
        {"seconds": 2.0, "updates": 5, "weights": "a"},
        {"seconds": 3.0, "updates": 9, "weights": "b"},
    ]
    requested: list[str] = []

    def translate(weights: str) -> list[str]:
        requested.append(weights)
        return [f"by {weights}"]

    reported.translated(translate, numbers="bfloat16")
    found = json.loads((reported.folder / "course.json").read_text(encoding="utf-8"))
    assert requested == ["a", "b"]
    assert found == {
        "points": reported.points,
        "texts": {"a": ["by a"], "b": ["by b"]},
        "facts": {"numbers": "bfloat16"},
    }


def test_curves_need_nothing_but_the_standard_library() -> None:
    code = "import course, curve\nassert not {'torch', 'numpy', 'attlas'} & set(sys.modules)"
    start = f"import sys; sys.path += [{str(BENCHMARKS)!r}, {str(BENCHMARKS / 'contenders')!r}]\n"
    subprocess.run([sys.executable, "-c", start + code], check=True)


_STANDING = """
import os, signal, sys, threading, time
from course import Course
course = Course()
course.begin()
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTSTP)).start()
with course.training():
    while True:
        course.updated(1, lambda path: None)
        time.sleep(0.01)
"""


def test_the_time_in_which_a_course_stands_still_is_not_counted(tmp_path: Path) -> None:
    facts = {"corpus": "corpus", "recipe": {}, "moments": [1.0], "threads": 1}
    (tmp_path / "told.json").write_text(json.dumps(facts), encoding="utf-8")
    path = os.pathsep.join([str(Path(course.__file__).parent), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-c", _STANDING, str(tmp_path)], env={**os.environ, "PYTHONPATH": path}
    ) as training:
        _, status = os.waitpid(training.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        time.sleep(3)
        training.send_signal(signal.SIGCONT)
        assert training.wait() == 0
    (point,) = json.loads((tmp_path / "points.json").read_text(encoding="utf-8"))
    assert 1 <= point["seconds"] < 3
