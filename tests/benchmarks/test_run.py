"""What is measured, and where that is written."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import checkout  # noqa: E402
import run  # noqa: E402
from readme import BEGIN, END  # noqa: E402

FIGURES: list[dict[str, Any]] = [{"contenders": [{"name": "a", "median": 1.0}]}]


def test_what_takes_hours_is_measured_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_measured", lambda reported: (None, []))
    assert "quality" not in dict(run.run(tmp_path, tmp_path, quick=False))
    assert list(dict(run.run(tmp_path, tmp_path, False, ["quality"]))) == ["quality"]
    assert "quality" in dict(run.run(tmp_path, tmp_path, quick=True))


def test_every_suite_is_on_a_page() -> None:
    shown = [suite for suites in run.PAGES.values() for suite in suites]
    assert sorted(shown) == sorted(run.suites(Path("multi30k"), Path("runs"), quick=True))


@pytest.mark.parametrize("quick", [True, False])
def test_every_suite_has_a_script(quick: bool) -> None:
    for script, *_ in run.suites(Path("multi30k"), Path("runs"), quick).values():
        assert (ROOT / "benchmarks" / script).is_file()


@pytest.mark.parametrize("quick", [True, False])
def test_a_suite_needs_the_files_that_its_script_is_reported_of(
    tmp_path: Path, quick: bool
) -> None:
    for name, (_, *reported) in run.suites(tmp_path, tmp_path / "runs" / "a", quick).items():
        if str(tmp_path) not in reported:  # who gets the whole folder reads what it likes
            files = [Path(word).name for word in reported if Path(word).parent == tmp_path]
            assert files == list(run.NEEDED[name])


def script(path: Path, measurements: object, then: str = "") -> list[str]:
    """A suite that writes these and then does something."""
    path.write_text(
        "import os, signal, sys\n"
        f"open(sys.argv[-1], 'w').write({json.dumps(measurements)!r})\n{then}",
        encoding="utf-8",
    )
    return [str(path)]


def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> None:
    """A command line, and a place of its own for what comes out; no page is written."""
    for name in run.NEEDED["quality"]:
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "argv", ["run.py", "--data", str(tmp_path), *words])
    monkeypatch.setattr(run, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "QUICK", tmp_path / "quick.json")
    monkeypatch.setattr(run, "write_tables", lambda: None)


@pytest.mark.parametrize(
    ("suite", "name"), [(suite, name) for suite, files in run.NEEDED.items() for name in files]
)
def test_data_without_a_file_that_is_read_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    suite: str, name: str,
) -> None:  # fmt: skip
    given(monkeypatch, tmp_path, "--run", str(tmp_path), "--suites", suite)
    (tmp_path / "config.toml").touch()
    (tmp_path / name).unlink()
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 2
    assert f"got {tmp_path} without {name};" in capsys.readouterr().err


@pytest.mark.parametrize("suite", [*run.NEEDED, None])
def test_files_that_are_not_read_need_not_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: str | None
) -> None:
    given(monkeypatch, tmp_path, "--run", str(tmp_path), *(["--suites", suite] if suite else []))
    needed = run.NEEDED[suite] if suite else run.TRAIN  # of all, but what is left out
    if suite == "decoding":
        (tmp_path / "config.toml").touch()
    for name in set(run.NEEDED["quality"]) - set(needed):
        (tmp_path / name).unlink()
    monkeypatch.setattr(run, "run", lambda *given: iter(()))
    run.main()


def test_a_suite_that_fails_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("raise SystemExit(3)")
    scripts = {"bad": [str(bad)], "good": script(tmp_path / "good.py", FIGURES)}
    monkeypatch.setattr(run, "suites", lambda *given: scripts)
    found = dict(run.run(tmp_path, tmp_path, quick=True))
    assert (found["bad"]["failed"], found["bad"]["measurements"]) == ("exit code 3", [])
    assert (found["good"]["failed"], found["good"]["measurements"]) == (None, FIGURES)
    assert found["good"]["machine"]["processor"]
    assert found["good"]["machine"]["packages"]["torch"]
    json.dumps(found)


def test_what_a_suite_measured_before_it_failed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = script(tmp_path / "half.py", FIGURES, "sys.exit(3)")
    monkeypatch.setattr(run, "suites", lambda *given: {"half": half})
    ((_, found),) = run.run(tmp_path, tmp_path, quick=True)
    assert (found["failed"], found["measurements"]) == ("exit code 3", FIGURES)


def test_a_suite_in_which_everybody_is_lost_has_failed_and_leaves_what_there_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, tmp_path, "--suites", "layers")
    one = {"name": "T", "threads": 1, "command": "measure T"}
    lost = [{"name": name, "lost": "no memory"} for name in "ab"]
    layers = script(tmp_path / "one.py", [one | {"contenders": lost}])
    monkeypatch.setattr(run, "suites", lambda *given: {"layers": layers})
    old = {
        "date": "2001-02-03", "machine": {"commit": "abc1234"}, "failed": None,
        "measurements": [one | {"contenders": [{"name": "a", "median": 1.0}]}],
    }  # fmt: skip
    run.RESULTS.write_text(json.dumps({"layers": old}), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"layers \(no contender came through\)"):
        run.main()
    assert json.loads(run.RESULTS.read_text(encoding="utf-8")) == {"layers": old}


def test_a_contender_that_is_lost_is_reported_in_the_end_and_the_whole_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, tmp_path, "--suites", "layers")
    lost = {"name": "Peer", "lost": "no wheel"}
    both = [{"contenders": [*FIGURES[0]["contenders"], lost]}] * 2
    layers = script(tmp_path / "one.py", both)
    monkeypatch.setattr(run, "suites", lambda *given: {"layers": layers})
    with pytest.raises(SystemExit, match=r"failed: layers, Peer: no wheel$"):
        run.main()
    found = json.loads(run.RESULTS.read_text(encoding="utf-8"))["layers"]
    assert (found["failed"], found["measurements"]) == (None, both)


INTERRUPT = "os.kill(os.getppid(), signal.SIGINT)"


def test_what_was_measured_before_ctrl_c_is_kept_and_nothing_more_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, tmp_path)
    scripts = {
        "training": script(tmp_path / "one.py", FIGURES, INTERRUPT),
        "layers": script(tmp_path / "two.py", FIGURES),
    }
    monkeypatch.setattr(run, "suites", lambda *given: scripts)
    with pytest.raises(SystemExit, match=r"training \(interrupted\)"):
        run.main()
    found = json.loads(run.RESULTS.read_text(encoding="utf-8"))
    assert list(found) == ["training"]
    assert found["training"]["measurements"] == FIGURES


def test_ctrl_c_before_anything_was_measured_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, tmp_path)
    one = tmp_path / "one.py"
    one.write_text(f"import os, signal\n{INTERRUPT}", encoding="utf-8")
    monkeypatch.setattr(run, "suites", lambda *given: {"training": [str(one)]})
    with pytest.raises(SystemExit, match="interrupted"):
        run.main()
    assert not run.RESULTS.exists()


@pytest.mark.parametrize("words", [[], ["--suites", "layers"]], ids=["all", "some"])
@pytest.mark.parametrize("quick", [True, False])
def test_suites_that_are_measured_anew_leave_the_others_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], quick: bool
) -> None:
    given(monkeypatch, tmp_path, *words, *(["--quick"] if quick else []))
    layers = script(tmp_path / "one.py", FIGURES)
    monkeypatch.setattr(run, "suites", lambda *given: {"layers": layers})
    target = run.QUICK if quick else run.RESULTS
    target.write_text(json.dumps({"quality": "old", "layers": "old"}), encoding="utf-8")
    run.main()
    kept = json.loads(target.read_text(encoding="utf-8"))
    assert kept["quality"] == "old"
    assert kept["layers"]["measurements"] == FIGURES
    assert [path.name for path in tmp_path.glob("*.begun")] == []


def test_a_suite_that_is_done_is_written_before_the_next_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def suites(*given: object) -> Iterator[tuple[str, dict[str, Any]]]:
        for name in ("one", "two"):
            yield name, {"seconds": 1, "failed": None, "measurements": []}
            seen.append(json.loads(run.RESULTS.read_text(encoding="utf-8")))
        raise KeyboardInterrupt

    seen: list[dict[str, Any]] = []
    given(monkeypatch, tmp_path)
    monkeypatch.setattr(run, "run", suites)
    with pytest.raises(SystemExit, match="interrupted"):
        run.main()
    assert [list(results) for results in seen] == [["one"], ["one", "two"]]
    assert "one 1 s, two 1 s" in capsys.readouterr().out


def test_where_a_suite_failed_so_does_the_whole_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, tmp_path)
    bad = tmp_path / "bad.py"
    bad.write_text("raise SystemExit(3)")
    scripts = {"bad": [str(bad)], "good": script(tmp_path / "good.py", FIGURES)}
    monkeypatch.setattr(run, "suites", lambda *given: scripts)
    with pytest.raises(SystemExit, match=r"failed: bad \(exit code 3\)$"):
        run.main()
    assert "good" in json.loads(run.RESULTS.read_text(encoding="utf-8"))


def test_decoding_without_a_trained_run_is_left_out_and_where_it_is_asked_for_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "suites", lambda *given: {"decoding": ["never.py"]})
    nothere = tmp_path / "nothere"
    assert list(run.run(tmp_path, nothere, quick=True)) == []
    assert str(nothere) in capsys.readouterr().err
    given(monkeypatch, tmp_path, "--run", str(nothere), "--suites", "layers", "decoding")
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 2
    assert str(nothere) in capsys.readouterr().err


def test_a_curve_measured_alone_is_put_beside_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def curve(name: str, command: str) -> dict[str, Any]:
        return {
            "suite": "quality", "name": "`tiny`, 20 min", "unit": "BLEU", "threads": 1,
            "moments": [600.0, 1200.0], "command": command,
            "contenders": [{"name": name, "points": [{"seconds": 600.0, "bleu": 1.0}]}],
        }  # fmt: skip

    requested: list[list[str]] = []

    def measured(reported: list[str]) -> tuple[None, list[dict[str, Any]]]:
        requested.append(reported)
        return None, [curve("Peer", "anew")]

    more = ["--courses", "tiny:20", "--contenders", "Peer"]
    write_tables = run.write_tables
    given(monkeypatch, tmp_path, "--suites", "quality", "--", *more)
    monkeypatch.setattr(run, "write_tables", write_tables)
    monkeypatch.setattr(run, "PAGES", {tmp_path / "page": ("quality",)})
    monkeypatch.setattr(run, "_measured", measured)
    (tmp_path / "page").write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    machine = {
        "processor": "Abacus", "cores": 2, "packages": {"torch": "9.9"}, "commit": "abc1234",
    }  # fmt: skip
    old = {
        "date": "2001-02-03", "machine": machine, "failed": None,
        "measurements": [curve("attlas", "before")],
    }  # fmt: skip
    kept = {"training": "kept", "quality": old}
    run.RESULTS.write_text(json.dumps(kept), encoding="utf-8")
    run.main()
    found = json.loads(run.RESULTS.read_text(encoding="utf-8"))
    assert requested[0][-len(more) :] == more
    assert found["training"] == "kept"
    (one,) = found["quality"]["measurements"]
    assert [c["name"] for c in one["contenders"]] == ["attlas", "Peer"]
    assert one["contenders"][0]["conditions"]["machine"] == machine
    page = (tmp_path / "page").read_text(encoding="utf-8")
    assert "attlas in `tiny`, 20 min: commit abc1234, 2001-02-03" in page


@pytest.mark.parametrize("suites", [[], ["--suites", "layers", "observe"]])
def test_options_of_a_script_are_for_one_suite_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    suites: list[str],
) -> None:  # fmt: skip
    given(monkeypatch, tmp_path, *suites, "--", "--courses", "long:120")
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 2
    assert "expected one suite for --courses long:120" in capsys.readouterr().err


def test_a_script_is_a_topic_of_at_most_600_lines() -> None:
    files = [
        *(ROOT / "benchmarks").glob("*.py"),
        *(ROOT / "benchmarks" / "contenders").glob("*.py"),
    ]
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > 600} == {}
