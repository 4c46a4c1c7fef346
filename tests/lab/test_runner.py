"""Running an experiment: measured once, continued after an interruption, judged from its files."""

import importlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attlas.errors import DataError
from attlas.lab import AtLeast, Claim, Context, Experiment, Measurement, Plot, Source
from attlas.lab.data import checksum_of
from attlas.lab.ledger import entry_of, judged
from attlas.lab.report import (
    as_html,
    as_markdown,
    experiment_page,
    overview,
    what_would_change,
    write_pages,
)
from attlas.lab.results import key_of, read, results_of, source_of, with_new_key, write_result
from attlas.lab.runner import run
from attlas.lab.verdict import Judgement

CALLS: list[int] = []


INTERRUPTED: list[int] = []


def measure(context: Context) -> Iterator[Measurement]:
    if context.seed in INTERRUPTED:
        raise KeyboardInterrupt
    CALLS.append(context.seed)
    for size in context.settings["sizes"]:
        yield Measurement("score", size + context.seed / 100, {"size": size})


EXPERIMENT = Experiment(
    name="sizes",
    title="Sizes <b>& more",
    method="Sizes are added.",
    measure=measure,
    settings={"quick": {"sizes": (1, 2)}, "full": {"sizes": (1, 2, 4)}},
    seeds={"quick": 2, "full": 3},
    claims=(
        Claim(
            "Size 2 is above 1.5 | <i>",
            Source("A text", "1", read=True),
            AtLeast("score", 1.5, {"size": 2}),
            "Less.",
        ),
        Claim(
            "Size 4 is above 5.",
            Source("A text", "2", read=False),
            AtLeast("score", 5.0, {"size": 4}),
            "More.",
            judged_at=("full",),
        ),
    ),
    plots=(Plot("score", "size"),),
)


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


def test_a_finished_seed_is_not_measured_again(tmp_path: Path) -> None:
    first = list(run(EXPERIMENT, "quick", tmp_path))
    assert CALLS == [1, 2]
    second = list(run(EXPERIMENT, "quick", tmp_path))
    assert CALLS == [1, 2]
    assert [r.measurements for r in first] == [r.measurements for r in second]


def test_changed_settings_are_measured_again(tmp_path: Path) -> None:
    list(run(EXPERIMENT, "quick", tmp_path))
    changed = replace(EXPERIMENT, settings={**EXPERIMENT.settings, "quick": {"sizes": (1, 3)}})
    results = list(run(changed, "quick", tmp_path))
    assert CALLS == [1, 2, 1, 2]
    assert results[0].measurements[1].condition == {"size": 3}


def test_after_an_interruption_the_seeds_that_are_missing_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.INTERRUPTED", [2])
    with pytest.raises(KeyboardInterrupt):
        list(run(EXPERIMENT, "quick", tmp_path))
    monkeypatch.undo()
    assert [r.seed for r in results_of("sizes", "quick", [tmp_path])] == [1]
    list(run(EXPERIMENT, "quick", tmp_path))
    assert CALLS == [1, 2]


MODULE = """
'A docstring.'
import math
from x import *
SIZE = 3
OTHER = 4
SIZES = [1]
SIZES.append(2)
if SIZE:
    def other(x): return x
@cached(5)
def helper(x): return other(math.sqrt(x)) + SIZE
def measure(context):
    OTHER = 1
    yield helper(OTHER) * SIZES[0]
CLAIMS = ("a claim", measure)
"""


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("SIZE = 3", "SIZE = 5", True),
        ("math.sqrt", "math.log", True),
        ("import math", "import cmath as math", True),
        ("helper(OTHER)", "helper(OTHER + 1)", True),
        ("import math", "import math, cmath", False),
        ("cached(5)", "cached(6)", True),
        ("@cached(5)\n", "", True),
        ("append(2)", "append(3)", True),
        ("other(x): return x", "other(x): return 2 * x", True),
        ("from x import *", "from y import *", True),
        ("A docstring", "Another docstring", False),
        ("OTHER = 4", "OTHER = 5", False),  # the function has a name of its own
        ("a claim", "another claim", False),
        ("SIZE = 3", "SIZE = 3  # a remark", False),
    ],
)
def test_a_measurement_is_known_by_the_code_that_measures(
    before: str, after: str, differs: bool
) -> None:
    first = source_of(MODULE, "measure")
    assert (source_of(MODULE.replace(before, after), "measure") != first) is differs


INNER = """
from attlas.lab import Measurement

def made():
    def inner(context):
        yield Measurement("score", 1.0)
    return inner

measure = made()
"""


def test_of_a_function_within_another_one_all_of_the_module_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = set()
    for number, source in enumerate((INNER, INNER.replace("1.0", "2.0"))):
        (tmp_path / f"inner_{number}.py").write_text(source, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        module = importlib.import_module(f"inner_{number}")
        keys.add(key_of(replace(EXPERIMENT, measure=module.measure), "quick", 1))
    assert len(keys) == 2


def test_what_measures_is_a_function(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a function that measures; got a partial"):
        list(run(replace(EXPERIMENT, measure=partial(measure)), "quick", tmp_path))


def test_what_was_typed_at_a_prompt_is_known_by_its_code() -> None:
    keys = set()
    for number in ("1.0", "2.0", "1.0"):
        typed: dict[str, Any] = {"__name__": "typed"}
        exec(f"def measure(context):\n    yield {number}\n", typed)  # as a prompt does
        keys.add(key_of(replace(EXPERIMENT, measure=typed["measure"]), "quick", 1))
    assert len(keys) == 2


def test_two_numbers_of_one_condition_are_refused(tmp_path: Path) -> None:
    def twice(context: Context) -> Iterator[Measurement]:
        yield Measurement("score", 1.0)
        yield Measurement("score", 2.0)

    twice.__module__ = __name__
    with pytest.raises(DataError, match="one number for each metric"):
        list(run(replace(EXPERIMENT, measure=twice), "quick", tmp_path))


def test_data_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTLAS_LAB_DATA", raising=False)
    with pytest.raises(DataError, match="imdb"):
        list(run(replace(EXPERIMENT, needs=("imdb",)), "quick", tmp_path))


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    list(run(EXPERIMENT, "quick", tmp_path))
    file = tmp_path / "sizes" / "quick" / "seed-1.json"
    file.write_text("{")
    with pytest.raises(DataError, match="seed-1"):
        read(file)


def test_a_claim_is_judged_at_its_scales_only(tmp_path: Path) -> None:
    quick = judged(EXPERIMENT, "quick", list(run(EXPERIMENT, "quick", tmp_path)))
    assert [j.outcome for _, j in quick.verdicts] == ["holds", "not judged"]
    full = judged(EXPERIMENT, "full", list(run(EXPERIMENT, "full", tmp_path)))
    assert [j.outcome for _, j in full.verdicts] == ["holds", "does not hold"]
    assert entry_of(EXPERIMENT, tmp_path).scale == "full"


def test_pages_hold_the_numbers_of_the_files(tmp_path: Path) -> None:
    list(run(EXPERIMENT, "quick", tmp_path))
    entry = entry_of(EXPERIMENT, tmp_path)
    files = sorted((tmp_path / "sizes" / "quick").glob("*.json"))
    values = [
        row["value"]
        for file in files
        for row in json.loads(file.read_text())["measurements"]
        if row["condition"] == {"size": 2}
    ]
    mean = sum(values) / len(values)
    page = as_markdown(experiment_page(entry))
    assert f"{mean:.4g} (" in page
    assert f"{mean:.4g} (" in as_markdown(overview([entry]))


def test_a_page_says_what_its_results_were_called_when_they_were_measured(tmp_path: Path) -> None:
    entry = judged(EXPERIMENT, "full", list(run(EXPERIMENT, "full", tmp_path)))
    assert "under the name" not in as_markdown(experiment_page(entry))
    facts = {"command": "attlas lab run sizes --quick", "commit": "0123456789abcdef+"}
    renamed = tuple(
        replace(one, facts={**one.facts, **facts}) if one.seed == 2 else one
        for one in entry.results
    )
    page = as_markdown(experiment_page(replace(entry, results=renamed)))
    assert (
        "Measured under the name quick, at the commits below, with the sizes listed above" in page
    )
    assert ", 01234567+, torch" in page


def test_a_seed_is_measured_again_when_its_data_has_other_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTLAS_LAB_DATA", str(tmp_path))
    (tmp_path / "imdb" / "test").mkdir(parents=True)
    review = tmp_path / "imdb" / "test" / "1.txt"
    review.write_text("good", encoding="utf-8", newline="\n")
    one = replace(EXPERIMENT, needs=("imdb",))
    first, _ = run(one, "quick", tmp_path)
    assert first.facts["data"] == {"imdb": checksum_of("imdb")}
    CALLS.clear()
    assert len(list(run(one, "quick", tmp_path))) == 2
    assert CALLS == []
    review.write_text("dull", encoding="utf-8", newline="\n")
    assert checksum_of("imdb") != first.facts["data"]["imdb"]
    results = list(run(one, "quick", tmp_path))
    assert CALLS == [1, 2]
    page = as_markdown(experiment_page(judged(one, "quick", results)))
    assert f"| {checksum_of('imdb')} |" in page


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum here")
def test_a_checksum_is_that_of_the_command_that_the_page_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTLAS_LAB_DATA", str(tmp_path))
    for name in ("a", "B", "c.txt", "c/d", "é"):
        path = tmp_path / "ud" / f"{name}.file"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    command = "find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum"
    output = subprocess.run(
        command, shell=True, cwd=tmp_path / "ud", capture_output=True, text=True, check=True
    )
    assert output.stdout.split()[0] == checksum_of("ud")


def test_pages_are_text_and_no_markup(tmp_path: Path) -> None:
    list(run(EXPERIMENT, "quick", tmp_path))
    entry = entry_of(EXPERIMENT, tmp_path)
    page = as_html(experiment_page(entry), "sizes")
    assert "<b>" not in page
    assert "&lt;b&gt;&amp; more" in page
    assert r"1.5 \| " in as_markdown(overview([entry]))
    written = write_pages([entry], tmp_path / "pages", ".html")
    assert all(path.is_file() for path in written)
    assert (tmp_path / "pages" / "sizes-1.svg").read_text().startswith("<?xml")


def test_a_key_that_was_written_anew_is_told_of_on_the_page(tmp_path: Path) -> None:
    for result in run(EXPERIMENT, "quick", tmp_path):
        once = with_new_key(result, "old", "1234abcd+", "a name was changed")
        write_result(with_new_key(once, result.key, "5678", "it was changed back"), tmp_path)
    again = list(run(EXPERIMENT, "quick", tmp_path))
    assert CALLS == [1, 2]
    text = as_markdown(experiment_page(judged(EXPERIMENT, "quick", again)))
    assert "At 1234abcd+: a name was changed. At 5678: it was changed back." in text


def test_small_sizes_stand_in_the_table(tmp_path: Path) -> None:
    results = list(run(EXPERIMENT, "full", tmp_path))
    entry = judged(EXPERIMENT, "full", results)
    assert "| full, 3 |" in as_markdown(overview([entry]))
    facts = {"command": "attlas lab run sizes --quick"}
    small = [replace(one, facts={**one.facts, **facts}) for one in results]
    text = as_markdown(overview([judged(EXPERIMENT, "full", small)]))
    assert "| small sizes, 3 |" in text
    assert "is said of 1 of 1 experiments" in text


def test_what_was_found_does_not_change_our_mind() -> None:
    claim = EXPERIMENT.claims[0]
    holds = Judgement("holds", 1.0, 0.9, 1.1, "")
    assert what_would_change(claim, holds) == f"What would change our mind: {claim.change}"
    against = what_would_change(claim, replace(holds, outcome="does not hold"))
    assert against.startswith(f"What speaks against the claim: {claim.change} What would change")
    depends = what_would_change(claim, replace(holds, outcome="depends"))
    assert "every part of the rule holds, or none" in depends


def test_numbers_that_no_seed_changes_have_no_interval_on_the_page(tmp_path: Path) -> None:
    def fixed(context: Context) -> Iterator[Measurement]:
        yield Measurement("bytes", 4096.0)

    claim = Claim("It is 4,096.", Source("A", "1", read=True), AtLeast("bytes", 4096.0), "Less.")
    one = replace(EXPERIMENT, measure=fixed, claims=(claim,), deterministic=("bytes",))
    text = as_markdown(experiment_page(judged(one, "quick", list(run(one, "quick", tmp_path)))))
    assert "| bytes ≥ 4096 | 4,096 (deterministic) | holds |" in text
    assert "| bytes |  | 4,096 (deterministic) |" in text
