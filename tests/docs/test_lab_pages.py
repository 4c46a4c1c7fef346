"""The pages of the lab are computed from the results that come with attlas: no number is typed."""

import re
from pathlib import Path

import pytest

from attlas.lab.ledger import Entry, all_experiments, entry_of
from attlas.lab.report import as_markdown, experiment_page, overview
from support.pages import ROOT

PAGES = ROOT / "docs" / "lab"
COURSE = sorted((ROOT / "docs" / "course").glob("*.md"))
ENTRIES = [entry_of(experiment) for experiment in all_experiments()]
ADVICE = "run: attlas lab report --markdown docs/lab"


def test_the_verdict_table_is_that_of_the_results() -> None:
    written = (PAGES / "index.md").read_text(encoding="utf-8")
    assert written == as_markdown(overview(ENTRIES)), ADVICE


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.experiment.name)
def test_the_page_of_an_experiment_is_that_of_its_results(entry: Entry) -> None:
    written = (PAGES / f"{entry.experiment.name}.md").read_text(encoding="utf-8")
    assert written == as_markdown(experiment_page(entry)), ADVICE


def test_no_page_is_left_of_an_experiment_that_is_gone() -> None:
    names = {entry.experiment.name for entry in ENTRIES} | {"index"}
    assert {path.stem for path in PAGES.glob("*.md")} == names


def test_all_pictures_together_are_small() -> None:
    assert sum(path.stat().st_size for path in Path(PAGES).glob("*")) < 10_000_000


def claims_of(page: Path) -> list[tuple[str, str, str]]:
    """Claim, verdict and experiment of each row of a page whose last cell leads to the lab."""
    rows = re.findall(
        r"^\| (.*) \| (.*) \| \[(.*)\]\(\.\./lab/\3\.md\) \|$", page.read_text("utf-8"), re.M
    )
    return [(claim, verdict, name) for claim, verdict, name in rows]


@pytest.mark.parametrize("page", COURSE, ids=lambda page: page.stem)
def test_the_course_has_the_verdicts_of_the_ledger(page: Path) -> None:
    ledger = {
        (claim.text.removesuffix("."), judgement.outcome, entry.experiment.name)
        for entry in ENTRIES
        for claim, judgement in entry.verdicts
    }
    assert set(claims_of(page)) <= ledger


def test_each_chapter_has_a_table_of_verdicts() -> None:
    found = {page.stem: len(claims_of(page)) for page in COURSE if page.stem != "index"}
    assert len(found) == 4
    assert min(found.values()) >= 10
    for page in COURSE:  # no row of the table escapes the pattern
        table = re.findall(r"^\|.*\(\.\./lab/.*\|$", page.read_text("utf-8"), re.M)
        assert len(table) == len(claims_of(page)), page.stem
