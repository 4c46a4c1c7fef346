"""Who writes the same lines as who."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from agreement import agreeing, complete  # noqa: E402
from search_speed import written  # noqa: E402


def test_each_contender_is_reported_how_many_of_its_lines_are_ours() -> None:
    lines = {"peer": ["a", "x", "c", "y"], "ours": ["a", "b", "c", "d"], "other": ["-"] * 4}
    assert agreeing(lines, "ours") == {"agreeing": {"peer": 0.5, "ours": 1.0, "other": 0.0}}


def test_where_ours_is_lost_nobody_is_compared_with_another() -> None:
    assert agreeing({"peer": ["a"], "other": ["a"]}, "ours") == {}


@given(st.integers(1, 5), st.integers(1, 5))
def test_lines_too_few_or_too_many_are_no_agreement(count: int, more: int) -> None:
    ours, longer = ["a"] * count, ["a"] * (count + more)
    for one, other in ((ours, longer), (longer, ours)):
        with pytest.raises(ValueError, match="argument 2"):
            agreeing({"ours": one, "peer": other}, "ours")


def test_a_contender_that_leaves_out_a_line_leaves_with_the_reason() -> None:
    complete(["a", "b"], ["x", "y"])
    with pytest.raises(SystemExit, match="each of 2 lines; got 1"):
        complete(["a", "b"], ["x"])


def test_a_contender_of_a_search_that_wrote_nothing_has_no_lines(tmp_path: Path) -> None:
    answers = {name: tmp_path / f"{name}.json" for name in ("attlas", "Peer")}
    answers["Peer"].write_text(json.dumps(["ein Hund"]), encoding="utf-8")
    assert written(answers) == {"Peer": ["ein Hund"]}
    assert agreeing(written(answers), "attlas") == {}


def test_a_contender_of_a_search_keeps_what_it_wrote_first(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import options\n"
        "run = Path(sys.argv[2])\n"
        "for sign in 'ab': options.answer(run, 'Peer', ['-'] * 70, [sign] * 70)\n"
        "options.answer(run, 'Peer', ['-'] * 70, ['c'])"
    )
    command = [sys.executable, "-c", code, str(BENCHMARKS / "contenders"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert "each of 70 lines; got 1" in done.stderr
    assert written({"Peer": tmp_path / "Peer.json"}) == {"Peer": ["a"] * 70}


def test_every_contender_of_a_search_translates_the_same_512_lines(tmp_path: Path) -> None:
    lines = [f"{number}\u2028 " for number in range(600)]
    (tmp_path / "source.txt").write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; import options\n"
        "print(json.dumps(options.text(Path(sys.argv[2]))))"
    )
    command = [sys.executable, "-c", code, str(BENCHMARKS / "contenders"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert json.loads(done.stdout) == lines[:512]
