"""The README's table of benchmarks is made from results."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import run  # noqa: E402
from readme import BEGIN, END, tables, with_table  # noqa: E402

SUITES = ("training",)


def contender(name: str, median: float, ratio: float, version: str | None = None) -> dict[str, Any]:
    return {"name": name, "median": median, "ratio": ratio, "version": version}


@pytest.fixture
def results() -> dict[str, Any]:
    def one(name: str, threads: int, *contenders: dict[str, Any]) -> dict[str, Any]:
        return {
            "suite": "training", "name": name, "unit": "tokens/s", "threads": threads,
            "contenders": list(contenders),
        }  # fmt: skip

    return {
        "training": {
            "date": "2001-02-03",
            "machine": {
                "processor": "Abacus", "cores": 2, "packages": {"torch": "9.9"},
                "commit": "abc1234",
            },
            "failed": None,
            "measurements": [
                one(
                    "RNN", 1, contender("attlas", 3000, 1), contender("Peer", 1200, 2.5, "1.0"),
                    {"name": "Other", "lost": "does not install: no wheel"},
                ),
                one("RNN", 2, contender("attlas", 4000, 1), contender("Peer", 2000, 2, "1.0")),
            ],
        }
    }  # fmt: skip


def rows(text: str) -> dict[str, list[str]]:
    """The cells of a table's lines, by the first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in split}


def test_a_table_shows_every_contender_of_every_measurement(results: dict[str, Any]) -> None:
    found = rows(tables(results, SUITES))
    assert found["training, tokens/s"] == ["RNN, 1 thread", "RNN, 2 threads"]
    assert found["attlas"] == ["3,000", "4,000"]
    assert found["Peer (1.0)"] == ["1,200 (2.50 ×)", "2,000 (2.00 ×)"]


def test_a_peer_that_does_not_install_is_in_the_table_and_told_why(results: dict[str, Any]) -> None:
    text = tables(results, SUITES)
    assert rows(text)["Other"] == ["does not run", "–"]
    assert "Other: does not install: no wheel" in text


def test_a_suite_that_failed_is_told(results: dict[str, Any]) -> None:
    results["training"]["failed"] = "exit code 1"
    assert "training failed: exit code 1" in tables(results, SUITES)


def test_a_table_says_where_and_when(results: dict[str, Any]) -> None:
    for fact in ("Abacus", "2 cores", "torch 9.9", "commit abc1234", "2001-02-03"):
        assert fact in tables(results, SUITES)


def test_a_table_says_that_the_source_was_not_that_of_a_commit(results: dict[str, Any]) -> None:
    results["training"]["machine"]["commit"] = "abc1234+"
    assert "commit abc1234+ (changed since), 2001-02-03" in tables(results, SUITES)
    results["training"]["machine"]["commit"] = None
    assert "no commit, 2001-02-03" in tables(results, SUITES)


def test_suites_of_different_days_each_say_when_and_the_machine_once(
    results: dict[str, Any],
) -> None:
    results["layers"] = {**results["training"], "date": "2001-02-04"}
    text = tables(results, ("training", "layers"))
    assert text.endswith(
        "Abacus, 2 cores; torch 9.9; training: commit abc1234, 2001-02-03; "
        "layers: commit abc1234, 2001-02-04."
    )
    results["layers"]["date"] = "2001-02-03"
    assert tables(results, ("training", "layers")).endswith(
        "Abacus, 2 cores; torch 9.9; commit abc1234, 2001-02-03."
    )


def test_a_contender_of_another_day_and_machine_says_so(results: dict[str, Any]) -> None:
    other = {"system": "Other OS", "packages": {"torch": "8.8"}, "commit": "fff0000"}
    own = {"date": "2001-01-01", "machine": other}
    results["training"]["measurements"][1]["contenders"][1]["conditions"] = own
    text = tables(results, SUITES)
    assert "Abacus, 2 cores; torch 9.9; training: commit abc1234, 2001-02-03." in text
    assert text.endswith("Other OS; torch 8.8; Peer in RNN: commit fff0000, 2001-01-01.")


def test_a_table_says_which_batches_each_took(results: dict[str, Any]) -> None:
    for one, taken in zip(results["training"]["measurements"], ("8 rows", "9 rows"), strict=True):
        one["contenders"][1]["taken"] = taken
    assert "from left to right. Peer: 8 rows; 9 rows." in tables(results, SUITES)


def test_the_table_replaces_what_is_between_the_markers_and_nothing_else(
    results: dict[str, Any],
) -> None:
    once = with_table(f"before\n{BEGIN}\nold\n{END}\nafter\n", results, SUITES)
    assert once.startswith(f"before\n{BEGIN}\n| training")
    assert once.endswith(f"\n{END}\nafter\n")
    assert "old" not in once
    assert with_table(once, results, SUITES) == once


def test_a_readme_without_markers_is_left_alone(results: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="benchmarks"):
        with_table("no markers", results, SUITES)


def test_many_measurements_go_down_instead_of_across(results: dict[str, Any]) -> None:
    results["training"]["measurements"] *= 5
    found = tables(results, SUITES).splitlines()
    assert found[0] == "| training | first | others |"
    wanted = "| RNN, 2 threads, tokens/s | attlas: 4,000 | Peer: 2,000 (2.00 ×) |"
    assert found.count(wanted) == 5


def curves(*contenders: dict[str, Any]) -> dict[str, Any]:
    return {
        "suite": "training", "name": "`tiny`, 20 min", "unit": "BLEU", "threads": 1,
        "moments": [600.0, 1200.0], "contenders": list(contenders),
    }  # fmt: skip


def test_a_curve_shows_how_good_each_was_by_then_and_in_the_end(results: dict[str, Any]) -> None:
    points = [{"seconds": s, "bleu": b} for s, b in ((300, 3.14), (590, 5.0), (900, 30.0))]
    results["training"]["measurements"] = [
        curves(
            {"name": "attlas", "points": points, "paper_bleu": 31.25},
            {"name": "Peer", "version": "1.0", "points": [{"seconds": 1201, "bleu": 7.0}]},
            {"name": "Slow", "points": [{"seconds": 1500, "bleu": 8.0}]},
            {"name": "Other", "lost": "no wheel"},
        )
    ]
    text = tables(results, SUITES)
    found = rows(text)
    heads = ["10 min", "20 min", "in the end", "papers' measure"]
    assert found["`tiny`, 20 min, BLEU, 1 thread"] == heads
    assert found["attlas"] == ["5.0", "30.0", "30.0 after 15 min", "31.2"]
    assert found["Peer (1.0)"] == ["–", "7.0", "7.0 after 20 min", "–"]
    assert found["Slow"] == ["–", "–", "8.0 after 25 min, late", "–"]
    assert "Other: no wheel" in text
    assert "13a" in text


def test_curves_without_the_papers_measure_have_no_column_of_it(results: dict[str, Any]) -> None:
    one = curves({"name": "attlas", "points": [{"seconds": 600, "bleu": 1.0}]})
    results["training"]["measurements"] = [one]
    assert rows(tables(results, SUITES))["attlas"] == ["1.0", "1.0", "1.0 after 10 min"]


def test_what_takes_hours_is_measured_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_measured", lambda told: (None, []))
    assert "quality" not in run.run(tmp_path, tmp_path, quick=False)
    assert list(run.run(tmp_path, tmp_path, False, ["quality"])) == ["quality"]
    assert "quality" in run.run(tmp_path, tmp_path, quick=True)


def test_suites_that_a_page_does_not_ask_for_are_not_on_it(results: dict[str, Any]) -> None:
    assert "RNN" not in tables(results, ("layers",))


@pytest.mark.parametrize("page", run.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_pages_show_the_results_that_are_kept(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    if run.RESULTS.is_file():
        results = json.loads(run.RESULTS.read_text(encoding="utf-8"))
        assert with_table(text, results, run.PAGES[page]) == text


def test_every_suite_is_on_a_page() -> None:
    shown = [suite for suites in run.PAGES.values() for suite in suites]
    assert sorted(shown) == sorted(run.suites(Path("multi30k"), Path("runs"), quick=True))


@pytest.mark.parametrize("quick", [True, False])
def test_every_suite_has_a_script(quick: bool) -> None:
    for script, *_ in run.suites(Path("multi30k"), Path("runs"), quick).values():
        assert (ROOT / "benchmarks" / script).is_file()


def test_a_run_without_data_says_what_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "--data", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 2
    assert "train.en.gz" in capsys.readouterr().err


def test_a_suite_that_fails_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("import sys; open(sys.argv[-1], 'w').write('[{\"contenders\": []}]')")
    bad.write_text("raise SystemExit(3)")
    scripts = {"bad": [str(bad)], "good": [str(good)]}
    monkeypatch.setattr(run, "suites", lambda *given: scripts)
    found = run.run(tmp_path, tmp_path, quick=True)
    assert (found["bad"]["failed"], found["bad"]["measurements"]) == ("exit code 3", [])
    assert (found["good"]["failed"], found["good"]["measurements"]) == (None, [{"contenders": []}])
    assert found["good"]["machine"]["processor"]
    assert found["good"]["machine"]["packages"]["torch"]
    json.dumps(found)


def test_suites_that_are_measured_anew_leave_the_others_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.en.gz").touch()
    script = tmp_path / "one.py"
    script.write_text("import sys; open(sys.argv[-1], 'w').write('[]')")
    scripts = {name: [str(script)] for name in ("training", "layers")}
    monkeypatch.setattr(run, "suites", lambda *given: scripts)
    monkeypatch.setattr(run, "QUICK", tmp_path / "quick.json")
    monkeypatch.setattr(run, "HERE", tmp_path / "benchmarks")
    run.QUICK.write_text(json.dumps({"training": "old", "layers": "old"}), encoding="utf-8")
    given = ["run.py", "--data", str(tmp_path), "--quick", "--suites", "layers"]
    monkeypatch.setattr(sys, "argv", given)
    run.main()
    kept = json.loads(run.QUICK.read_text(encoding="utf-8"))
    assert kept["training"] == "old"
    assert kept["layers"]["measurements"] == []


def test_decoding_without_a_trained_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "suites", lambda *given: {"decoding": ["never.py"]})
    nothere = tmp_path / "nothere"
    found = run.run(tmp_path, nothere, quick=True)
    assert str(nothere) in found["decoding"]["failed"]
    assert found["decoding"]["measurements"] == []


def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> None:
    """A command line, and a place of its own for what comes out."""
    (tmp_path / "train.en.gz").touch()
    monkeypatch.setattr(sys, "argv", ["run.py", "--data", str(tmp_path), *words])
    monkeypatch.setattr(run, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")


def test_a_curve_measured_alone_is_put_beside_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: dict[str, Any]
) -> None:
    point = {"seconds": 600.0, "bleu": 1.0}
    theirs, ours = ({"name": n, "points": [point]} for n in ("Peer", "attlas"))
    asked: list[list[str]] = []

    def measured(told: list[str]) -> tuple[None, list[dict[str, Any]]]:
        asked.append(told)
        return None, [curves(theirs) | {"command": "anew"}]

    more = ["--courses", "tiny:20", "--contenders", "Peer"]
    given(monkeypatch, tmp_path, "--suites", "quality", "--", *more)
    monkeypatch.setattr(run, "PAGES", {tmp_path / "page": ("quality",)})
    monkeypatch.setattr(run, "_measured", measured)
    (tmp_path / "page").write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    old = results["training"] | {"measurements": [curves(ours) | {"command": "before"}]}
    kept = {"training": "kept", "quality": old}
    run.RESULTS.write_text(json.dumps(kept), encoding="utf-8")
    run.main()
    found = json.loads(run.RESULTS.read_text(encoding="utf-8"))
    assert asked[0][-len(more) :] == more
    assert found["training"] == "kept"
    (one,) = found["quality"]["measurements"]
    assert [c["name"] for c in one["contenders"]] == ["attlas", "Peer"]
    assert one["contenders"][0]["conditions"]["machine"] == old["machine"]
    page = (tmp_path / "page").read_text(encoding="utf-8")
    assert "attlas in `tiny`, 20 min: commit abc1234, 2001-02-03" in page


@pytest.mark.parametrize("suites", [[], ["--suites", "decoding"]])
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
