"""What is measured, where that is written, and what is said of the state of the source."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import run  # noqa: E402
from readme import BEGIN, END  # noqa: E402


def test_what_takes_hours_is_measured_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_measured", lambda told: (None, []))
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


def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> None:
    """A command line, and a place of its own for what comes out; no page is written."""
    for name in run.FILES:
        (tmp_path / name).touch()
    monkeypatch.setattr(sys, "argv", ["run.py", "--data", str(tmp_path), *words])
    monkeypatch.setattr(run, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "QUICK", tmp_path / "quick.json")
    monkeypatch.setattr(run, "write_tables", lambda: None)


@pytest.mark.parametrize("name", run.FILES)
def test_data_without_one_of_its_files_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    given(monkeypatch, tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 2
    assert f"got {tmp_path} without {name};" in capsys.readouterr().err


def test_a_suite_that_fails_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("import sys; open(sys.argv[-1], 'w').write('[{\"contenders\": []}]')")
    bad.write_text("raise SystemExit(3)")
    scripts = {"bad": [str(bad)], "good": [str(good)]}
    monkeypatch.setattr(run, "suites", lambda *given: scripts)
    found = dict(run.run(tmp_path, tmp_path, quick=True))
    assert (found["bad"]["failed"], found["bad"]["measurements"]) == ("exit code 3", [])
    assert (found["good"]["failed"], found["good"]["measurements"]) == (None, [{"contenders": []}])
    assert found["good"]["machine"]["processor"]
    assert found["good"]["machine"]["packages"]["torch"]
    json.dumps(found)


def test_what_a_suite_measured_before_it_failed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "half.py"
    script.write_text(
        "import sys; open(sys.argv[-1], 'w').write('[{\"contenders\": []}]'); sys.exit(3)"
    )
    monkeypatch.setattr(run, "suites", lambda *given: {"half": [str(script)]})
    ((_, found),) = run.run(tmp_path, tmp_path, quick=True)
    assert (found["failed"], found["measurements"]) == ("exit code 3", [{"contenders": []}])


@pytest.mark.parametrize("words", [[], ["--suites", "layers"]], ids=["all", "some"])
@pytest.mark.parametrize("quick", [True, False])
def test_suites_that_are_measured_anew_leave_the_others_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], quick: bool
) -> None:
    given(monkeypatch, tmp_path, *words, *(["--quick"] if quick else []))
    script = tmp_path / "one.py"
    script.write_text("import sys; open(sys.argv[-1], 'w').write('[]')")
    monkeypatch.setattr(run, "suites", lambda *given: {"layers": [str(script)]})
    target = run.QUICK if quick else run.RESULTS
    target.write_text(json.dumps({"quality": "old", "layers": "old"}), encoding="utf-8")
    run.main()
    kept = json.loads(target.read_text(encoding="utf-8"))
    assert kept["quality"] == "old"
    assert kept["layers"]["measurements"] == []
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
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("import sys; open(sys.argv[-1], 'w').write('[]')")
    bad.write_text("raise SystemExit(3)")
    scripts = {"bad": [str(bad)], "good": [str(good)]}
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

    asked: list[list[str]] = []

    def measured(told: list[str]) -> tuple[None, list[dict[str, Any]]]:
        asked.append(told)
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
    assert asked[0][-len(more) :] == more
    assert found["training"] == "kept"
    (one,) = found["quality"]["measurements"]
    assert [c["name"] for c in one["contenders"]] == ["attlas", "Peer"]
    assert one["contenders"][0]["conditions"]["machine"] == machine
    page = (tmp_path / "page").read_text(encoding="utf-8")
    assert "attlas in `tiny`, 20 min: commit abc1234, 2001-02-03" in page


@pytest.mark.parametrize("suites", [[], ["--suites", "layers"]])
def test_options_of_curves_are_for_curves_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    suites: list[str],
) -> None:  # fmt: skip
    given(monkeypatch, tmp_path, *suites, "--", "--courses", "long:120")
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 2
    assert "measure quality alone" in capsys.readouterr().err


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit."""

    def git(*words: str) -> None:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    for name in ("src/a.py", "benchmarks/run.py", "benchmarks/results.json", "docs/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "one")
    monkeypatch.setattr(run, "HERE", tmp_path / "benchmarks")
    return tmp_path


def test_a_source_that_is_that_of_a_commit_needs_no_warning(checkout: Path) -> None:
    for name in ("benchmarks/results.json", "docs/page.md"):  # no figure depends on them
        (checkout / name).write_text("2\n", encoding="utf-8")
    assert run.warning() == ""
    assert not str(run.machine()["commit"]).endswith("+")


@pytest.mark.parametrize("name", ["src/a.py", "src/new.py", "benchmarks/run.py"])
def test_a_changed_source_is_told_loudly_and_by_name(checkout: Path, name: str) -> None:
    (checkout / name).write_text("2\n", encoding="utf-8")
    commit = str(run.machine()["commit"])
    assert commit.endswith("+")
    assert commit in run.warning()
    assert name in run.warning()
    assert run.warning().startswith("!" * 80)


def test_a_source_that_is_no_checkout_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "HERE", tmp_path / "benchmarks")
    assert "no checkout" in run.warning()
    assert run.machine()["commit"] is None


def test_no_file_holds_two_nouns() -> None:
    files = [
        *(ROOT / "benchmarks").glob("*.py"),
        *(ROOT / "benchmarks" / "contenders").glob("*.py"),
    ]
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > 300} == {}
