"""`attlas evaluate` of a classifier."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from attlas.inference import TextClassifier
from attlas.jobs.evaluation import _matrix
from attlas.runs import Run
from attlas.training.setup import code_version
from support.command_line import called
from support.labelled_runs import reviews, write_lines


def evaluated(labelling: Path, *arguments: object) -> dict[str, Any]:
    code, out, reported = called("evaluate", labelling, "--json", *arguments)
    assert code == 0, reported
    report: dict[str, Any] = json.loads(out)
    return report


def test_the_accuracy_is_that_of_the_labels_and_comes_with_what_it_depends_on(
    labelling: Path, tmp_path: Path
) -> None:
    entries = reviews(50, seed=8)
    lines = write_lines(tmp_path / "test.jsonl", entries)
    report = evaluated(labelling, "--source", lines, "--output", tmp_path / "labels")
    kept = [line.split("\t")[0] for line in (tmp_path / "labels").read_text().splitlines()]
    right = sum(own == entry["label"] for own, entry in zip(kept, entries, strict=True))
    assert report["right"] == right
    assert report["accuracy"] == right / 50
    assert sum(sum(row.values()) for row in report["confusion"].values()) == 50
    assert report["confusion"]["pos"]["neg"] == sum(
        own == "neg" and entry["label"] == "pos" for own, entry in zip(kept, entries, strict=True)
    )
    assert report["interval"]["low"] < right / 50 < report["interval"]["high"] or right == 50
    assert report["data"]["texts"] == 50
    expected = [entry["label"] for entry in entries]
    for label in ("neg", "pos"):
        both = sum(own == other == label for own, other in zip(kept, expected, strict=True))
        one = report["labels"][label]
        assert one["f1"] == pytest.approx(2 * both / (kept.count(label) + expected.count(label)))
        assert one["recall"] == pytest.approx(both / expected.count(label))
        assert one["precision"] == pytest.approx(both / kept.count(label))
        assert (one["texts"], one["given"]) == (expected.count(label), kept.count(label))
    mean = (report["labels"]["neg"]["f1"] + report["labels"]["pos"]["f1"]) / 2
    assert report["macro_f1"]["value"] == pytest.approx(mean)
    assert report["macro_f1"]["signature"] == "average:macro|labels:2|of:2|zero_division:0"
    assert report["checkpoint"] == Run(labelling).store.named("best")
    assert report["seed"] == 3
    assert report["evaluated"] == code_version()
    assert all(one["label"] != one["given"] for one in report["wrong"])


@pytest.mark.parametrize(
    "names", [("neg", "positive"), ("好评", "差评很差很差很差很差"), ("é", "e\u0301")]
)
def test_the_columns_of_the_table_stand_one_below_the_other(names: tuple[str, str]) -> None:
    first, second = names
    head, *rows = _matrix({first: {first: 1234, second: 5}, second: {first: 0, second: 7}})
    assert len({cell_len(row) for row in (head, *rows)}) == 1
    assert [row.startswith(name) for row, name in zip(rows, names, strict=True)] == [True, True]
    for name, cells in zip(names, (("1,234", "0"), ("5", "7")), strict=True):
        end = cell_len(head[: head.index(f"  {name}  ") + len(f"  {name}")])
        for row, cell in zip(rows, cells, strict=True):
            assert cell_len(row[: row.index(f" {cell}  ") + len(f" {cell}")]) == end


def test_the_held_back_part_is_the_validation_set(labelling: Path) -> None:
    report = evaluated(labelling, "--valid")
    assert report["data"]["sha256"] == Run(labelling).provenance()["data"]["valid"]["sha256"]
    assert report["data"]["texts"] == 30


def test_the_report_for_a_reader_says_the_same(labelling: Path) -> None:
    report = evaluated(labelling, "--valid")
    _, out, reported = called("evaluate", labelling, "--valid", "--examples", 2)
    assert f"accuracy: {report['accuracy']:.2%} of 30 texts; 95% interval" in out
    assert "right \\ given" in out
    assert f"macro-F1: {report['macro_f1']['value']:.2%} (average:macro|" in out
    assert re.search(r"^label +precision +recall +F1 +texts$", out, re.MULTILINE)
    assert str(report["data"]["sha256"]) in out
    assert out.count(" taken for ") == min(2, 30 - report["right"])
    assert "held back (seed 1): 30 of 200 texts kept" in reported


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a run whose recipe has none (data.test); give one with --source TEXTS"),
        (
            ["--valid", "--num-beams", "3"],
            "options that a classifier has a use for; got --num-beams",
        ),
        (["--valid", "--bleu-tokenizer", "char"], "got --bleu-tokenizer"),
        (["--valid", "--reference", "x"], "got --reference"),
        (["--valid", "--set", "data.text=review"], "--set for the fields of --source"),
        (["--source", "x", "--set", "decoding.num_beams=1"], "got decoding.num_beams"),
        (["--source", "x", "--set", "data.train=y"], "got data.train"),
        (["--source", "x", "--set", "data.text=1"], "`text` in --set: a text in quotes; got 1"),
        (["--source", ".", "--set", "data.text=a"], "it for the folder ."),
        (["--valid", "--source", "x"], "--source or --valid; got both"),
        (["--source", "nowhere.jsonl"], "no file at nowhere.jsonl"),
    ],
)
def test_an_evaluation_that_makes_no_sense_is_an_error(
    labelling: Path, arguments: list[str], said: str
) -> None:
    code, out, reported = called("evaluate", labelling, *arguments)
    assert (code, out) == (2, "")
    assert said in reported


def folder_of_labels(folder: Path, count: int, seed: int) -> Path:
    """One folder for each label, one file for each text, as the Large Movie Review Dataset is."""
    for number, entry in enumerate(reviews(count, seed)):
        (folder / entry["label"]).mkdir(parents=True, exist_ok=True)
        (folder / entry["label"] / f"{number}_7.txt").write_text(entry["text"], encoding="utf-8")
    return folder


def test_a_folder_as_it_is_distributed_is_tested_with_its_test_texts_alone(
    labelling: Path, tmp_path: Path
) -> None:
    for split, count in (("train", 9), ("test", 20)):
        folder_of_labels(tmp_path / "aclImdb" / split, count, seed=count)
    (tmp_path / "aclImdb" / "train" / "unsup").mkdir()
    (tmp_path / "aclImdb" / "README").write_text("of the data set", encoding="utf-8")
    whole = evaluated(labelling, "--source", tmp_path / "aclImdb")
    assert whole["data"]["texts"] == 20
    assert whole["data"]["name"] == str(tmp_path / "aclImdb" / "test")
    assert whole == evaluated(labelling, "--source", tmp_path / "aclImdb" / "test")
    assert evaluated(labelling, "--source", tmp_path / "aclImdb" / "train")["data"]["texts"] == 9


def test_the_fields_of_a_test_file_may_have_other_names_than_those_of_the_training(
    labelling: Path, tmp_path: Path
) -> None:
    entries = reviews(12, seed=4)
    plain = write_lines(tmp_path / "plain.jsonl", entries)
    table = tmp_path / "table.csv"
    rows = [f'{entry["label"]},"{entry["text"]}"\n' for entry in entries]
    table.write_text("".join(["sentiment,review\n", *rows]), encoding="utf-8")
    code, _, reported = called("evaluate", labelling, "--source", table)
    assert code == 2
    assert "one field 'text' in the header" in reported
    named = ("--set", "data.text=review", "--set", "data.label=sentiment")
    reports = [
        evaluated(labelling, "--source", table, *named),
        evaluated(labelling, "--source", plain),
    ]
    assert reports[0]["data"].pop("name") == str(table)
    assert reports[1]["data"].pop("name") == str(plain)
    for report in reports:
        for wrong in report["wrong"]:
            wrong.pop("place")
    assert reports[0] == reports[1]


def test_a_test_set_without_one_of_the_labels_is_reported_so(
    labelling: Path, tmp_path: Path
) -> None:
    entries = [entry for entry in reviews(20, seed=4) if entry["label"] == "pos"]
    lines = write_lines(tmp_path / "test.jsonl", entries)
    assert "has the label neg" in called("evaluate", labelling, "--source", lines)[2]
    lines = write_lines(tmp_path / "test.jsonl", reviews(20, seed=4))
    assert "has the label" not in called("evaluate", labelling, "--source", lines)[2]


def test_a_text_of_which_the_vocabulary_has_nothing_is_reported_so(
    labelling: Path, tmp_path: Path
) -> None:
    code, out, reported = called("classify", labelling, text="a zebra\nzebra quagga\n\n")
    assert (code, out.count("\n")) == (0, 3)
    assert reported.splitlines() == [
        "attlas: line 2: none of its words is in the vocabulary, so its label says nothing about "
        "it",
        "attlas: line 3: there is no word in it",
    ]
    entries = [{"text": text, "label": "pos"} for text in ("a zebra", "zebra", "quagga")]
    lines = write_lines(tmp_path / "test.jsonl", entries)
    reported = called("evaluate", labelling, "--source", lines)[2]
    assert "2 of 3 texts: none of their words is in the vocabulary" in reported


def test_a_label_that_the_classifier_does_not_know_is_an_error(
    labelling: Path, tmp_path: Path
) -> None:
    lines = write_lines(tmp_path / "test.jsonl", [{"text": "a film", "label": "so-so"}])
    code, _, reported = called("evaluate", labelling, "--source", lines)
    assert code == 2
    assert "got 'so-so' in line 1" in reported


def test_changed_data_is_reported(labelling: Path, tmp_path: Path) -> None:
    import shutil

    moved = shutil.copytree(labelling, tmp_path / "run")
    other = write_lines(tmp_path / "other.jsonl", reviews(100, seed=9))
    config = (moved / "config.toml").read_text()
    original = labelling.parent / "reviews.jsonl"
    (moved / "config.toml").write_text(config.replace(str(original), str(other)))
    _, _, reported = called("evaluate", moved, "--valid")
    assert "this data has changed since the run was trained" in reported


def test_labelled_texts_are_not_written_over_by_their_evaluation(
    labelling: Path, tmp_path: Path
) -> None:
    lines = write_lines(tmp_path / "test.jsonl", reviews(3))
    own = labelling.parent / "reviews.jsonl"
    before = lines.read_bytes(), own.read_bytes()
    for arguments in (("--source", lines, "-o", lines), ("--valid", "-o", own)):
        code, _, reported = called("evaluate", labelling, *arguments)
        assert code == 2
        assert "expected different files to read and to write" in reported
    assert (lines.read_bytes(), own.read_bytes()) == before


def test_a_single_text_is_one_text(labelling: Path, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "test.jsonl", reviews(1))
    _, out, _ = called("evaluate", labelling, "--source", lines)
    assert " of 1 text; " in out
    assert ", 1 text, sha256" in out


def test_where_every_text_gets_one_label_a_warning_says_so(
    labelling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = write_lines(tmp_path / "test.jsonl", reviews(50, seed=8))
    stream = TextClassifier.stream

    def one_label(self: TextClassifier, *arguments: Any, **options: Any) -> Iterator[Any]:
        for classification in stream(self, *arguments, **options):
            yield replace(classification, label="pos")

    monkeypatch.setattr(TextClassifier, "stream", one_label)
    code, _, error = called("evaluate", labelling, "--source", lines)
    assert code == 0
    assert "WARNING: all 50 texts get the label 'pos'" in error
