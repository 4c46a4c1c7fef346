"""The maps of an experiment: kept as traces, written as pages."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import attlas
from attlas.errors import DataError, UnsupportedError
from attlas.lab import (
    AtLeast,
    AttentionExample,
    Claim,
    Context,
    Experiment,
    Measurement,
    Scale,
    Source,
)
from attlas.lab.data import data_folder
from attlas.lab.examples import LARGEST, examples_of, key_kept, write_page
from attlas.lab.ledger import SCALES, all_experiments, entry_of, judged
from attlas.lab.report import write_live_maps, write_pages
from attlas.lab.results import SHIPPED, key_of_examples, read
from attlas.lab.runner import run

DOCS = Path(__file__).resolve().parents[2] / "docs" / "lab"
MADE: list[Path] = []


def measure(context: Context) -> Iterator[Measurement]:
    yield Measurement("score", float(context.seed))


def observed(seed: int, tokens: int) -> attlas.Trace:
    torch.manual_seed(seed)
    model, states = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, tokens, 8)
    with torch.no_grad(), attlas.observe(model) as trace:
        model(states, states, states)
    trace.label([[f"<i>{n}" for n in range(tokens)]], [[f"<i>{n}" for n in range(tokens)]])
    return trace


def examples(context: Context) -> Iterator[AttentionExample]:
    MADE.append(context.folder)
    trace = observed(context.seed, context.settings["tokens"])
    yield AttentionExample("small", "A map & its <heads>.", trace, next(iter(trace)), head=1)


def other_examples(context: Context) -> Iterator[AttentionExample]:
    trace = observed(context.seed + 1, 3)
    yield AttentionExample("other", "Another.", trace, next(iter(trace)))


EXPERIMENT = Experiment(
    name="shown",
    title="Shown",
    method="A map is shown.",
    measure=measure,
    settings={"quick": {"tokens": 4}, "full": {"tokens": 5}},
    seeds={"quick": 2, "full": 2},
    claims=(Claim("It is 1.", Source("A text", "1", read=True), AtLeast("score", 1.0), "Less."),),
    examples=examples,
)


@pytest.fixture(autouse=True)
def _none_made() -> None:
    MADE.clear()


def test_examples_are_made_once_with_the_folder_of_the_first_seed(tmp_path: Path) -> None:
    list(run(EXPERIMENT, "quick", tmp_path))
    assert [folder.name.startswith("seed-1-") for folder in MADE] == [True]
    (kept,) = examples_of("shown", "quick", [tmp_path])
    assert (kept.name, kept.caption, kept.head) == ("small", "A map & its <heads>.", 1)
    opened, made = kept.open(), observed(1, 4)
    assert opened.trace[opened.layer].weights().equal(made[kept.layer].weights())
    list(run(EXPERIMENT, "quick", tmp_path))
    assert len(MADE) == 1
    assert examples_of("shown", "full", [tmp_path]) == []


def test_another_function_makes_them_anew_and_measures_nothing(tmp_path: Path) -> None:
    first = list(run(EXPERIMENT, "quick", tmp_path))
    changed = replace(EXPERIMENT, examples=other_examples)
    again = list(run(changed, "quick", tmp_path))
    assert [result.key for result in again] == [result.key for result in first]
    assert [one.name for one in examples_of("shown", "quick", [tmp_path])] == ["other"]
    assert key_kept("shown", "quick", tmp_path) == key_of_examples(changed, "quick")


def test_pages_frame_the_maps(tmp_path: Path) -> None:
    results = list(run(EXPERIMENT, "quick", tmp_path / "lab"))
    kept = tuple(examples_of("shown", "quick", [tmp_path / "lab"]))
    entry = replace(judged(EXPERIMENT, "quick", results), examples=kept)
    write_pages([entry], tmp_path / "html", ".html")
    text = (tmp_path / "html" / "shown.html").read_text(encoding="utf-8")
    assert '<iframe src="shown-small.html" title="A map &amp; its &lt;heads&gt;."' in text
    assert "&lt;heads&gt;" in text
    assert "<heads>" not in text
    assert "small" in (tmp_path / "html" / "shown-small.html").read_text(encoding="utf-8")
    write_pages([entry], tmp_path / "markdown", ".md")
    assert (tmp_path / "markdown" / "shown-small.png").read_bytes()[1:4] == b"PNG"
    assert not (tmp_path / "markdown" / "shown-small.html").exists()
    assert [path.name for path in write_live_maps([entry], tmp_path / "site")] == [
        "shown-small.html"
    ]


def test_pages_in_html_need_no_font_for_their_maps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UnsupportedError("a font", "none", "install one")

    results = list(run(EXPERIMENT, "quick", tmp_path / "lab"))
    kept = tuple(examples_of("shown", "quick", [tmp_path / "lab"]))
    entry = replace(judged(EXPERIMENT, "quick", results), examples=kept)
    monkeypatch.setattr("attlas.lab.report.write_picture", refuse)
    pages = tmp_path / "html"
    write_pages([entry], pages, ".html")
    page = (pages / "shown.html").read_text(encoding="utf-8")
    linked = re.findall(r'(?:src|href)="([^"#:]+)"', page)
    assert "shown-small.html" in linked
    assert all((pages / name).is_file() for name in linked)
    with pytest.raises(UnsupportedError):
        write_pages([entry], tmp_path / "markdown", ".md")


def test_a_damaged_list_is_named(tmp_path: Path) -> None:
    list(run(EXPERIMENT, "quick", tmp_path))
    path = tmp_path / "shown" / "quick" / "examples" / "examples.json"
    path.write_text(json.dumps({"key": "", "examples": [{"name": "small"}]}))
    with pytest.raises(DataError, match="delete the file and run the experiment again"):
        examples_of("shown", "quick", [tmp_path])
    path.write_text("{")
    list(run(EXPERIMENT, "quick", tmp_path))
    assert [one.name for one in examples_of("shown", "quick", [tmp_path])] == ["small"]


def test_a_page_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attlas.lab.examples.LARGEST", 1_000)
    example = next(examples(Context({"tokens": 4}, 1, tmp_path, print)))
    with pytest.raises(DataError, match="take a shorter text"):
        write_page(example, tmp_path / "a.html")


WITH_EXAMPLES = [
    (one, scale)
    for one in all_experiments()
    for scale in SCALES
    if examples_of(one.name, scale, [SHIPPED])
]


def test_some_experiments_have_maps() -> None:
    assert len(WITH_EXAMPLES) >= 4


@pytest.mark.parametrize(
    ("experiment", "scale"),
    [(one, scale) for one, scale in WITH_EXAMPLES if all(map(data_folder, one.needs))],
    ids=lambda one: one.name if isinstance(one, Experiment) else one,
)
def test_what_is_shipped_was_made_by_the_code_that_is_there(
    experiment: Experiment, scale: Scale
) -> None:
    versions = read(SHIPPED / experiment.name / scale / "seed-1.json").facts
    if versions["torch"] == torch.__version__:
        assert key_kept(experiment.name, scale, SHIPPED) == key_of_examples(experiment, scale)


def test_the_pages_of_all_maps_are_small_and_the_documents_have_their_pictures(
    tmp_path: Path,
) -> None:
    entries = [entry_of(experiment) for experiment in all_experiments()]
    sizes = [path.stat().st_size for path in write_live_maps(entries, tmp_path)]
    assert max(sizes) <= LARGEST
    assert sum(sizes) <= 10 * LARGEST
    for path in tmp_path.iterdir():
        assert (DOCS / f"{path.stem}.png").is_file()
        framing = [one for one in DOCS.glob("*.md") if f'src="{path.name}"' in one.read_text()]
        assert len(framing) == 1, path.name
