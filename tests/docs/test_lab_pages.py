"""The pages of the lab are computed from the results that come with attlas: no number is typed."""

from pathlib import Path

import pytest

from attlas.lab.ledger import Entry, all_experiments, entry_of
from attlas.lab.report import as_markdown, experiment_page, overview
from support.pages import ROOT

PAGES = ROOT / "docs" / "lab"
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
