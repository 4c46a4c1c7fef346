"""Contenders take turns; one that is lost does not stop the others."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import turns as turns_module  # noqa: E402
from measurement import called, measurement  # noqa: E402
from turns import Turns, quartiles, ratios, table, turns  # noqa: E402


def contender(code: str) -> list[str]:
    """A process that runs this code with `turns` at hand."""
    start = f"import sys; sys.path.append({str(BENCHMARKS)!r})\n"
    return [sys.executable, "-c", start + code]


def steady(figure: float) -> list[str]:
    return contender(f"from turns import serve\nserve(lambda block: {figure} + block)")


def test_every_contender_answers_every_block_but_the_first_which_does_not_count() -> None:
    played = turns({"one": steady(10), "two": steady(20)}, blocks=3)
    assert played.figures == {"one": [11, 12, 13], "two": [21, 22, 23]}
    assert played.lost == {}


def test_contenders_take_turns_block_by_block(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "from turns import serve\n"
        "def block(number):\n"
        "    with open({log!r}, 'a') as file: file.write('{name}' + str(number) + ' ')\n"
        "    return 1.0\n"
        "serve(block)"
    )
    commands = {n: contender(code.format(log=str(log), name=n)) for n in ("a", "b")}
    turns(commands, blocks=2)
    assert log.read_text().split() == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_what_a_contender_prints_is_not_taken_for_an_answer() -> None:
    chatty = contender(
        "from turns import serve\n"
        "def block(number):\n"
        "    print('step', number)\n"
        "    return 5.0\n"
        "serve(block)"
    )
    assert turns({"chatty": chatty}, blocks=2).figures == {"chatty": [5.0, 5.0]}


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError('no such thing')",
        "from turns import serve\n"
        "def block(number):\n"
        "    if number == 2: raise RuntimeError('no such thing')\n"
        "    return 1.0\n"
        "serve(block)",
    ],
    ids=["before the first block", "in the midst"],
)
def test_a_contender_that_fails_is_lost_with_its_reason_and_the_others_go_on(code: str) -> None:
    played = turns({"bad": contender(code), "good": steady(0)}, blocks=3)
    assert played.figures == {"good": [1, 2, 3]}
    assert played.lost == {"bad": "RuntimeError: no such thing"}


def test_a_contender_that_ends_without_a_word_is_lost_with_its_exit_code() -> None:
    assert "exit code 7" in turns({"mute": contender("sys.exit(7)")}, blocks=1).lost["mute"]


def test_a_contender_that_is_killed_is_lost_by_that_and_not_by_what_it_said_last() -> None:
    code = "import os\nprint('all is well', file=sys.stderr, flush=True)\nos.kill(os.getpid(), 9)"
    assert turns({"dead": contender(code)}, blocks=1).lost == {"dead": "killed by signal 9"}


def test_contenders_see_the_variables_they_are_given() -> None:
    code = "import os\nfrom turns import serve\nserve(lambda block: float(os.environ['SPEED']))"
    assert turns({"one": contender(code)}, 1, {"SPEED": "9"}).figures == {"one": [9.0]}


PACED = """
from turns import Pace
pace = Pace(seconds={seconds})
seen = []
for batch in pace.through({batches}, lambda batch: batch):
    seen.append(batch)
    {then}
"""


def test_a_loop_of_its_own_stands_still_until_it_is_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    then = f"open({str(log)!r}, 'a').write('.')"
    code = PACED.format(seconds=0, batches="iter(lambda: 7, None)", then=then)
    played = turns({"loop": contender(code)}, blocks=3)
    assert len(played.figures["loop"]) == 3
    assert all(figure > 0 for figure in played.figures["loop"])
    assert log.read_text() == "...."  # blocks of one update each: three, and the unmeasured one


def test_a_loop_without_more_batches_is_lost() -> None:
    code = PACED.format(seconds=0, batches="[7, 7]", then="pass")
    played = turns({"loop": contender(code)}, blocks=3)
    assert played.figures == {}
    assert "exit code 0" in played.lost["loop"]


def test_a_loop_ends_with_its_input() -> None:
    code = PACED.format(seconds=0, batches="iter(lambda: 7, None)", then="pass")
    done = subprocess.run(
        contender(code), input="0\n1\n", capture_output=True, encoding="utf-8", check=True
    )
    assert len(done.stdout.splitlines()) == 3  # ready, and two figures


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=20))
def test_quartiles_lie_among_the_figures_in_order(values: list[float]) -> None:
    low, middle, high = quartiles(values)
    assert min(values) <= low <= middle <= high <= max(values)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=20), st.floats(0.1, 10))
def test_a_machine_that_slows_down_for_a_while_leaves_the_ratios_alone(
    values: list[float], factor: float
) -> None:
    slower = [value * factor for value in values]
    assert ratios(slower, values) == pytest.approx([factor] * len(values))


def test_a_table_has_a_line_for_each_contender_even_if_there_is_none() -> None:
    figures = {"a": [2.0, 4.0], "b": [1.0, 2.0]}
    assert len(table(figures, "tokens/s", "a").splitlines()) == 4
    assert table(figures, "tokens/s", "a").endswith("| 2.00 |")
    assert len(table({}, "tokens/s", "a").splitlines()) == 2


def test_a_table_without_the_first_has_no_ratios() -> None:
    *_, a, b = table({"a": [2.0, 4.0], "b": [1.0, 2.0]}, "tokens/s", "lost").splitlines()
    assert a.endswith("| – |")
    assert b.endswith("| – |")


def test_a_measurement_tells_of_those_who_were_lost_and_of_those_who_never_began() -> None:
    played = Turns({"a": [10.0, 20.0, 30.0], "b": [5.0, 10.0, 10.0]}, {"c": "it broke"})
    found = measurement(
        "training", "RNN", "tokens/s", 1, played, first="a", absent={"d": "does not install"},
        versions={"b": "1.2"}, command=["python", "x.py"],
    )  # fmt: skip
    a, b, d, c = found["contenders"]
    assert (a["median"], a["ratio"]) == (20, 1)
    assert (b["ratio"], b["version"], b["blocks"]) == (2, "1.2", [5, 10, 10])
    assert (c, d) == (
        {"name": "c", "lost": "it broke"},
        {"name": "d", "lost": "does not install"},
    )
    assert found["command"] == "python x.py"


@pytest.mark.parametrize("lost", [True, False], ids=["lost", "never began"])
def test_where_the_first_has_no_figures_it_stays_the_first_and_there_are_no_ratios(
    lost: bool,
) -> None:
    gone = {"a": "it broke"}
    played = Turns({"b": [5.0, 10.0], "c": [1.0, 2.0]}, gone if lost else {})
    absent = None if lost else gone
    found = measurement("training", "RNN", "tokens/s", 1, played, first="a", absent=absent)
    a, *others = found["contenders"]
    assert a == {"name": "a", "lost": "it broke"}
    assert [(one["name"], one["blocks"]) for one in others] == [("b", [5, 10]), ("c", [1, 2])]
    assert all("ratio" not in one and "ratio_quartiles" not in one for one in others)


def test_turns_need_nothing_but_the_standard_library() -> None:
    code = "import turns\nassert not {'torch', 'numpy', 'attlas'} & set(sys.modules)"
    subprocess.run(contender(code), check=True)
    assert turns_module.__file__ == str(BENCHMARKS / "turns.py")


def test_a_command_is_reported_without_where_things_lay() -> None:
    argv = [
        "/home/me/benchmarks/time_to_bleu.py", "--data", "../../data/multi30k/train.en.gz",
        "runs/a", "--courses", "tiny:15", "--trained", "long=/home/me/runs/long",
        "--contenders", "with space",
        "--set", "training.learning_rate=1e-3", "--json", "/tmp/found.json", "--points", "3",
    ]  # fmt: skip
    assert called(argv) == [
        "python", "benchmarks/time_to_bleu.py", "--data", "multi30k/train.en.gz", "runs/a",
        "--courses", "tiny:15", "--trained", "long=runs/long", "--contenders", "with space",
        "--set", "training.learning_rate=1e-3", "--points", "3",
    ]  # fmt: skip
    reported = measurement("s", "n", "u", 1, Turns(), first="a", command=called(argv))["command"]
    assert "--contenders 'with space' --set training.learning_rate=1e-3" in reported
