"""`attlas compare`: several runs on one test set."""

import json
import math
import shutil
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.jobs.comparison import label_comparison, mcnemar, translation_scores
from attlas.runs import Run
from support.command_line import called

REFERENCES = [f"der Hund {n % 9} läuft über die Straße {n % 7} ." for n in range(60)]
WORSE = [text.replace("Hund", "Kater") if n % 3 else text for n, text in enumerate(REFERENCES)]
BETTER = [text.replace("Hund", "Kater") if n % 9 == 0 else text for n, text in enumerate(WORSE)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("files")
    lines = [f"{n % 7} {n % 5} {n % 3}" for n in range(12)]
    source, target = folder / "source", folder / "target"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    target.write_text("".join(f"{line[::-1]}\n" for line in lines), encoding="utf-8")
    return ["--source", source, "--reference", target]


def test_scores_are_those_of_sacrebleu_and_the_interval_holds_the_middle_of_resamples() -> None:
    from sacrebleu.metrics.bleu import BLEU

    (first, second), signatures = translation_scores([WORSE, BETTER], [REFERENCES], "13a", 300)
    for own, texts in ((first, WORSE), (second, BETTER)):
        assert own["BLEU"]["value"] == BLEU().corpus_score(texts, [REFERENCES]).score
        rng, draws = np.random.default_rng(1), []
        for _ in range(300):
            rows = rng.integers(0, len(texts), len(texts))
            drawn = [texts[row] for row in rows], [[REFERENCES[row] for row in rows]]
            draws.append(BLEU().corpus_score(*drawn).score)
        low, high = np.quantile(draws, [0.025, 0.975])
        width = high - low
        assert own["BLEU"]["low"] == pytest.approx(low, abs=0.3 * width)
        assert own["BLEU"]["high"] == pytest.approx(high, abs=0.3 * width)
    assert first["BLEU"]["p"] is None
    assert 0 < second["BLEU"]["p"] < 1
    assert "bs:300|seed:12345" in signatures["BLEU"]


def test_equal_translations_differ_by_chance_alone() -> None:
    (_, second), _ = translation_scores([WORSE, WORSE], [REFERENCES], "13a", 100)
    assert second["BLEU"]["p"] == 1.0
    assert second["chrF2"]["p"] == 1.0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12))
def test_mcnemars_test_counts_all_ways_that_coins_can_fall(both: list[tuple[bool, bool]]) -> None:
    differing = [a for a, b in both if a != b]
    found = abs(2 * sum(differing) - len(differing))
    falls = list(product((0, 1), repeat=len(differing)))
    as_far = sum(abs(2 * sum(fall) - len(differing)) >= found for fall in falls)
    first, second = [a for a, _ in both], [b for _, b in both]
    assert mcnemar(first, second) == pytest.approx(as_far / len(falls), rel=1e-12)


def test_mcnemars_test_is_right_for_many_texts() -> None:
    only_first, only_second = 2_700, 2_500
    first = [True] * only_first + [False] * only_second
    total = only_first + only_second
    ways = sum(math.comb(total, k) for k in range(total + 1) if abs(2 * k - total) >= 200)
    expected = float(Fraction(ways, 2**total))
    assert mcnemar(first, [not one for one in first]) == pytest.approx(expected, rel=1e-12)


def test_classifiers_are_compared_by_accuracy_and_macro_f1() -> None:
    wanted = np.array(["a", "b", "c", "a"] * 10)
    systems = [["a", "b", "a", "a"] * 10, ["a", "b", "c", "b"] * 9 + ["a", "b", "c", "a"]]
    found, _ = label_comparison(list(wanted), systems, ["a", "b", "c"])
    for own, given_labels in zip(found, map(np.array, systems), strict=True):
        assert own["accuracy"]["value"] == pytest.approx(100 * np.mean(wanted == given_labels))
        scores = []
        for label in "abc":
            right = np.sum((wanted == label) & (given_labels == label))
            scores.append(2 * right / (np.sum(wanted == label) + np.sum(given_labels == label)))
        assert own["macro-F1"]["value"] == pytest.approx(100 * np.mean(scores))


def test_two_runs_are_compared_in_a_table_in_json_and_in_a_figure(
    run: Path, tmp_path: Path, files: list[object]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    code, out, reported = called("compare", run, other, *files)
    assert code == 0, reported
    head, first, second = out.splitlines()[:3]
    assert head.split()[:3] == ["run", "BLEU", "chrF2"]
    assert first.startswith(str(run))
    assert second.startswith(str(other))
    assert "p = 1.000" in second
    figure = tmp_path / "maps.png"
    code, out, reported = called(
        "compare", run, other, *files, "--json", "--text", "1 2 3", "--output", figure
    )
    assert code == 0, reported
    report = json.loads(out)
    parameters = sum(p.numel() for p in Run(run).model("best").parameters())
    assert [one["parameters"] for one in report["runs"]] == [parameters] * 2
    assert report["data"]["sentences"] == 12
    assert set(report["translations"]) == {str(run), str(other)}
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_maps_side_by_side_need_no_test_set(run: Path, tmp_path: Path) -> None:
    others = [tmp_path / "a", tmp_path / "b"]
    for number, other in enumerate(others):
        shutil.copytree(run, other)
        config = other / "config.toml"
        config.write_text(config.read_text().replace("test = 30", f"test = {20 + number}"))
    figure = tmp_path / "maps.png"
    arguments = ["compare", *others, "--text", "1 2 3", "--output", figure]
    code, out, reported = called(*arguments)
    assert code == 0
    assert [line.split(": ")[0] for line in out.splitlines()] == list(map(str, others))
    assert "\nattlas: no scores: expected the same test set in all runs; got " in reported
    assert figure.read_bytes().startswith(b"\x89PNG")
    report = json.loads(called(*arguments, "--json")[1])
    assert set(report["translations"]) == {*map(str, others)}
    assert [(one["run"], one["scores"]) for one in report["runs"]] == [
        (str(other), None) for other in others
    ]
    code, _, reported = called(*arguments, "--reference", tmp_path / "none")
    assert code == 2
    for other, tokenizer in zip(others, ("13a", "char"), strict=True):
        config = other / "config.toml"
        config.write_text(config.read_text().replace('"13a"', f'"{tokenizer}"'))
    assert "one tokenizer of BLEU for all runs" in called("compare", *others)[2]
    assert called(*arguments)[0] == 0
    assert called(*arguments, "--bleu-tokenizer", "13a")[0] == 2  # who asks for scores


def test_the_score_is_the_one_of_evaluate(run: Path, tmp_path: Path, files: list[object]) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    evaluated = json.loads(called("evaluate", run, *files, "--json")[1])
    compared = json.loads(called("compare", run, other, *files, "--json")[1])
    scores = compared["runs"][0]["scores"]
    assert scores["BLEU"]["value"] == evaluated["scores"]["BLEU"]["value"]
    assert scores["chrF2"]["value"] == evaluated["scores"]["chrF2"]["value"]
    assert compared["data"]["sha256"] == evaluated["data"]["sha256"]


def test_classifiers_are_compared_on_their_own_data(labelling: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(labelling, other)
    code, out, reported = called("compare", labelling, other, "--valid", "--json")
    assert code == 0, reported
    report = json.loads(out)
    evaluated = json.loads(called("evaluate", labelling, "--valid", "--json")[1])
    for one in report["runs"]:
        assert one["scores"]["accuracy"]["value"] == pytest.approx(100 * evaluated["accuracy"])
    assert report["runs"][1]["scores"]["accuracy"]["p"] == 1.0


def test_mistakes_get_one_sentence(
    run: Path, blind_run: Path, labelling: Path, tmp_path: Path, files: list[object]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    config = other / "config.toml"
    cases: list[tuple[list[object], str]] = [
        ([run], "expected two runs or more to compare; got 1 run"),
        ([run, run], "twice; leave one out"),
        ([run, labelling], "expected runs that all translate, or all classify"),
        ([run, tmp_path / "none"], "no folder at"),
        ([run, other, *files, "--text", "1 2"], "--text and --output together"),
        ([run, other, *files, "--text", "1", "--output", "x.gif"], ".png"),
        ([run, blind_run, *files, "--text", "1", "-o", tmp_path / "x.png"], "has no attention"),
    ]
    for arguments, expected in cases:
        code, out, reported = called("compare", *arguments)
        assert (code, out) == (2, ""), reported
        assert expected in reported
        assert reported.count("\n") == 1 or "translating" in reported
    config.write_text(config.read_text().replace("test = 30", "test = 20"), encoding="utf-8")
    code, _, reported = called("compare", run, other)
    assert code == 2
    assert "expected the same test set in all runs; got sha256 " in reported
