"""A part of a suite that is measured anew is put beside the rest."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from suite import keep, lost, merged, plain  # noqa: E402


def curve(name: str, *bleus: float) -> dict[str, Any]:
    points = [{"seconds": 60.0 * n, "bleu": bleu} for n, bleu in enumerate(bleus, start=1)]
    return {"name": name, "points": points}


def measurement(name: str, *contenders: dict[str, Any], threads: int = 2) -> dict[str, Any]:
    """Of curves."""
    return turned(name, *contenders, threads=threads) | {"moments": [60.0, 120.0]}


def turned(name: str, *contenders: dict[str, Any], threads: int = 2) -> dict[str, Any]:
    """Of contenders that took turns."""
    return {
        "name": name, "threads": threads, "command": f"measure {name}",
        "contenders": list(contenders),
    }  # fmt: skip


def suite(date: str, commit: str, *measurements: dict[str, Any]) -> dict[str, Any]:
    machine = {"system": "Abacus OS", "cores": 2, "packages": {"a": "1", "b": "2"}}
    return {
        "date": date, "machine": machine | {"commit": commit}, "failed": None,
        "measurements": list(measurements),
    }  # fmt: skip


def reported(found: dict[str, Any]) -> dict[tuple[str, int, str], dict[str, Any]]:
    return {
        (one["name"], one["threads"], c["name"]): c
        for one in found["measurements"]
        for c in one["contenders"]
    }


def test_a_contender_measured_alone_joins_the_others_and_each_says_when_it_was() -> None:
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0, 2.0)))
    new = suite("2001-02-04", "bbbbbbb", measurement("long", curve("theirs", 3.0)))
    before = copy.deepcopy(old)
    found = merged(old, new)
    contenders = reported(found)
    assert (found["date"], found["machine"]["commit"]) == ("2001-02-04", "bbbbbbb")
    assert contenders["long", 2, "ours"]["points"] == curve("ours", 1.0, 2.0)["points"]
    assert contenders["long", 2, "ours"]["conditions"]["date"] == "2001-02-03"
    assert contenders["long", 2, "ours"]["conditions"]["machine"]["commit"] == "aaaaaaa"
    assert contenders["long", 2, "ours"]["command"] == "measure long"
    assert "conditions" not in contenders["long", 2, "theirs"]
    assert old == before  # a value

    third = merged(found, suite("2001-02-05", "ccccccc", measurement("long", curve("third", 4.0))))
    dates = {
        name: c.get("conditions", third)["date"] for (_, _, name), c in reported(third).items()
    }
    assert dates == {"ours": "2001-02-03", "theirs": "2001-02-04", "third": "2001-02-05"}


def test_a_contender_measured_again_takes_the_place_of_what_there_was_of_it() -> None:
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0), curve("p", 9.0)))
    new = suite("2001-02-04", "bbbbbbb", measurement("long", curve("ours", 5.0)))
    found = reported(merged(old, new))
    assert found["long", 2, "ours"] == curve("ours", 5.0)
    assert found["long", 2, "p"]["points"] == curve("p", 9.0)["points"]
    assert [name for _, _, name in found] == ["ours", "p"]


@pytest.mark.parametrize(("name", "threads"), [("tiny", 2), ("long", 1)])
def test_another_recipe_or_other_threads_are_another_measurement(name: str, threads: int) -> None:
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0)))
    one = measurement(name, curve("ours", 2.0), threads=threads)
    found = reported(merged(old, suite("2001-02-03", "aaaaaaa", one)))
    assert set(found) == {("long", 2, "ours"), (name, threads, "ours")}


def test_what_was_measured_under_the_same_conditions_does_not_repeat_them() -> None:
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0)))
    new = suite("2001-02-03", "aaaaaaa", measurement("long", curve("theirs", 2.0)))
    assert all("conditions" not in one for one in reported(merged(old, new)).values())


def test_a_run_that_knows_less_of_where_it_was_agrees_with_who_knows_more() -> None:
    machine = {"system": "Abacus OS", "packages": {"a": "1"}, "commit": "aaaaaaa"}
    own = {"conditions": {"date": "2001-02-03", "machine": machine}}
    found = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0) | own))
    assert "conditions" not in reported(plain(found))["long", 2, "ours"]
    for other in (
        suite("2001-02-04", "aaaaaaa", *found["measurements"]),
        suite("2001-02-03", "aaaaaaa+", *found["measurements"]),
    ):
        assert reported(plain(other))["long", 2, "ours"]["conditions"] == own["conditions"]


def test_a_measuring_that_failed_leaves_what_there_was() -> None:
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0)))
    failed = suite("2001-02-04", "bbbbbbb") | {"failed": "exit code 1"}
    assert merged(old, failed) == old


def test_a_measuring_that_failed_half_way_says_so_beside_what_there_was() -> None:
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0)))
    half = suite("2001-02-04", "bbbbbbb", measurement("tiny", curve("ours", 2.0)))
    found = merged(old, half | {"failed": "exit code 1"})
    assert found["failed"] == "exit code 1"
    assert set(reported(found)) == {("long", 2, "ours"), ("tiny", 2, "ours")}


def test_a_contender_that_is_lost_keeps_the_curve_that_it_had() -> None:
    lost = {"name": "ours", "lost": "no memory"}
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0)))
    new = suite("2001-02-04", "bbbbbbb", measurement("long", lost, curve("p", 2.0)))
    found = reported(merged(old, new))
    assert found["long", 2, "ours"]["points"] == curve("ours", 1.0)["points"]
    assert found["long", 2, "p"]["points"] == curve("p", 2.0)["points"]
    never = suite("2001-02-03", "aaaaaaa", measurement("long", lost | {"lost": "no wheel"}))
    assert reported(merged(never, new))["long", 2, "ours"] == lost
    assert reported(merged(new, old))["long", 2, "ours"]["points"] == curve("ours", 1.0)["points"]


def test_where_every_curve_is_lost_the_old_suite_stays_as_it_was() -> None:
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0), curve("p", 2.0)))
    gone = measurement("long", {"name": "p", "lost": "no memory"})
    assert merged(old, suite("2001-02-04", "bbbbbbb", gone)) == old


def test_contenders_that_took_turns_are_replaced_together_because_ratios_are_of_these_turns() -> (
    None
):
    ours, peer = {"name": "ours", "median": 100.0, "ratio": 1.0}, {"name": "p", "median": 50.0}
    old = suite("2001-02-03", "aaaaaaa", turned("T", ours, peer | {"ratio": 2.0}))
    anew = [ours | {"median": 400.0}, {"name": "q", "lost": "no wheel"}]
    for new in (anew, [{"name": "ours", "lost": "it broke"}, peer]):
        half = suite("2001-02-04", "bbbbbbb", turned("T", *new)) | {"failed": "exit code 1"}
        (found,) = merged(old, half)["measurements"]
        assert found["contenders"] == new


def test_a_measurement_in_which_all_were_lost_leaves_the_one_before() -> None:
    gone = [{"name": name, "lost": "no memory"} for name in ("ours", "p")]
    old = suite("2001-02-03", "aaaaaaa", turned("T", {"name": "ours", "median": 1.0}))
    new = suite("2001-02-04", "bbbbbbb", turned("T", *gone)) | {"failed": "nobody"}
    assert merged(old, new) == old
    more = merged(old, {**new, "measurements": [*new["measurements"], turned("U", *gone)]})
    assert reported(more)["T", 2, "ours"]["median"] == 1.0
    assert reported(more)["U", 2, "p"] == gone[1]  # nobody knew of it before
    never = suite("2001-02-03", "aaaaaaa", turned("T", gone[0] | {"lost": "no wheel"}))
    assert reported(merged(never, new))["T", 2, "ours"] == gone[0]


def test_who_was_lost_is_reported_with_the_reason_once() -> None:
    gone = {"name": "p", "lost": "no wheel"}
    both = [turned("T", curve("ours"), gone), turned("U", gone, {"name": "q", "lost": "it broke"})]
    assert lost(both) == ["p: no wheel", "q: it broke"]


@pytest.mark.parametrize("part", [True, False])
@pytest.mark.parametrize("failed", [None, "exit code 1"])
def test_a_suite_takes_the_place_of_the_old_one_unless_it_is_a_part_or_failed(
    tmp_path: Path, part: bool, failed: str | None
) -> None:
    target = tmp_path / "results.json"
    old = suite("2001-02-03", "aaaaaaa", measurement("long", curve("ours", 1.0)))
    new = suite("2001-02-04", "bbbbbbb", measurement("tiny", curve("ours", 2.0)))
    keep(target, "quality", old, part=part)
    keep(target, "quality", new | {"failed": failed}, part=part)
    keep(target, "layers", old, part=False)
    found = json.loads(target.read_text(encoding="utf-8"))
    names = {name for name, _, _ in reported(found["quality"])}
    assert names == ({"tiny", "long"} if part or failed else {"tiny"})
    assert found["layers"] == old
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
