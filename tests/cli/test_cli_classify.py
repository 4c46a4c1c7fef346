"""`attlas classify`, and what the other commands say of a classifier."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from attlas import TextClassifier
from attlas.cli.application import app
from attlas.recording import Trace
from attlas.runs import Run
from attlas.training.provenance import this_attlas
from labelled_runs import reviews, trained, write_lines

LINES = ["the film was great", "", "  <br /> ", "awful", "a \u2028 dull \x85 plot", "very quite"]


@pytest.fixture(scope="module")
def labelling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("classifier"), updates=60)


def called(*arguments: object, text: str | bytes | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)], input=text)
    return result.exit_code, result.stdout_bytes.decode(), result.stderr


def classify(*arguments: object, text: str | bytes | None = None) -> tuple[int, str, str]:
    return called("classify", *arguments, text=text)


@pytest.mark.parametrize("ending", ["\n", ""])
@pytest.mark.parametrize("window", [1, 2, 100])
def test_as_many_lines_come_out_as_went_in(labelling: Path, window: int, ending: str) -> None:
    text = "\n".join([*LINES, "last"]) + ending
    code, out, told = classify(labelling, "--window", window, text=text)
    assert code == 0
    assert out.endswith("\n")
    assert out.count("\n") == len(LINES) + 1
    assert told.count("there is no word in it") == 2
    assert "line 2: there is no word in it" in told


def test_a_line_is_a_label_a_tab_and_its_probability(labelling: Path) -> None:
    _, out, _ = classify(labelling, text="\n".join(LINES))
    classifier = TextClassifier(labelling)
    for line, text in zip(out.split("\n")[:-1], LINES, strict=True):
        label, probability = line.split("\t")
        found = classifier(text)
        assert label == found.label
        assert float(probability) == pytest.approx(found.probability, abs=1e-4)


def test_json_has_every_label(labelling: Path) -> None:
    _, out, _ = classify(labelling, "--json", text="\n".join(LINES))
    for line in out.split("\n")[:-1]:
        facts = json.loads(line)
        assert facts["probability"] == facts["probabilities"][facts["label"]]
        assert sum(facts["probabilities"].values()) == pytest.approx(1.0)


def test_texts_may_be_named_or_come_from_a_file(labelling: Path, tmp_path: Path) -> None:
    named = classify(labelling, *LINES[3:])
    assert named[0] == 0
    (tmp_path / "in.gz").write_bytes(gzip.compress("\n".join(LINES[3:]).encode()))
    code, out, _ = classify(labelling, "-i", tmp_path / "in.gz", "-o", tmp_path / "out")
    assert (code, out) == (0, "")
    assert (tmp_path / "out").read_text(encoding="utf-8") == named[1]


def test_nothing_in_nothing_out(labelling: Path) -> None:
    assert classify(labelling, text="") == (0, "", "")


def test_the_lines_before_one_that_cannot_be_read_are_classified(labelling: Path) -> None:
    code, out, told = classify(labelling, text=b"great\n\xff\n")
    assert code == 2
    assert out.count("\n") == 1
    assert "UTF-8 text" in told


@pytest.mark.parametrize("ending", ["png", "svg", "safetensors"])
def test_the_attention_of_a_text_is_kept(labelling: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"map.{ending}"
    code, out, told = classify(labelling, "a great film", "--attention", path)
    assert (code, told) == (0, "")
    assert out == classify(labelling, "a great film")[1]
    assert path.stat().st_size > 500
    if ending == "safetensors":
        assert Trace.load(path).source == (("a", "great", "film", "</s>"),)
        assert "pooling.attention" in called("inspect", path)[1]
        assert called("figure", path, "-o", tmp_path / "again.png")[0] == 0
    else:
        again = classify(labelling, "--attention", path, text="a great film\n")
        assert again[:2] == (0, out)


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        (["a", "b", "--attention", "m.png"], None, "a single text for --attention; got several"),
        (["--attention", "m.png"], "a\nb\n", "a single text for --attention; got several"),
        (["--attention", "m.png"], "", "a single text for --attention; got none"),
        (
            ["a", "--attention", "m.txt"],
            None,
            "ends in .png, .svg, .pdf or .safetensors; got m.txt",
        ),
        (["a", "--attention", "nowhere/m.png"], None, "no folder nowhere"),
        (["a", "--layer", "encoder"], None, "--layer with --attention"),
        (
            ["a", "--attention", "m.png", "--layer", "decoder"],
            None,
            "the beginning of a map's name",
        ),
        (["a", "--input", "b"], None, "TEXT, or --input, not both"),
        (["a", "--checkpoint", "99"], None, "a checkpoint '99'"),
    ],
)
def test_what_makes_no_sense_is_an_error(
    labelling: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    text: str | None,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, told = classify(labelling, *arguments, text=text)
    assert (code, out) == (2, "")
    assert said in told
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_file_is_not_taken_for_a_text(labelling: Path, tmp_path: Path) -> None:
    path = tmp_path / "reviews.txt"
    path.write_text("great\n")
    code, _, told = classify(labelling, path)
    assert code == 2
    assert f"read it: --input {path}" in told


def test_a_file_is_not_read_and_written_at_once(labelling: Path, tmp_path: Path) -> None:
    path = tmp_path / "reviews.txt"
    path.write_text("great\n")
    assert classify(labelling, "-i", path, "-o", path)[0] == 2
    assert path.read_text() == "great\n"


def test_a_run_that_translates_is_an_error(run: Path) -> None:
    code, _, told = classify(run, "a text")
    assert code == 2
    assert "a run that holds a classifier" in told
    assert "attlas translate" in told


@pytest.mark.parametrize(
    "arguments", [["translate"], ["figure", "a text"], ["look", "--no-browser"]]
)
def test_what_only_a_translation_has_is_an_error_that_names_the_way(
    labelling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *others = arguments
    code, _, told = called(name, labelling, *others, text="a text\n")
    assert code == 2
    assert f"a run that translates; got a classifier at {labelling}" in told
    assert "attlas classify" in told


def evaluated(labelling: Path, *arguments: object) -> dict[str, Any]:
    code, out, told = called("evaluate", labelling, "--json", *arguments)
    assert code == 0, told
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
    assert report["checkpoint"] == Run(labelling).shelf.named("best")
    assert report["seed"] == 3
    assert report["evaluated"] == this_attlas()
    assert all(one["label"] != one["given"] for one in report["wrong"])


def test_the_held_back_part_is_the_validation_set(labelling: Path) -> None:
    report = evaluated(labelling, "--valid")
    assert report["data"]["sha256"] == Run(labelling).provenance()["data"]["valid"]["sha256"]
    assert report["data"]["texts"] == 30


def test_the_report_for_a_reader_says_the_same(labelling: Path) -> None:
    report = evaluated(labelling, "--valid")
    _, out, told = called("evaluate", labelling, "--valid", "--examples", 2)
    assert f"accuracy: {report['accuracy']:.2%} of 30 texts; 95% interval" in out
    assert "right \\ given" in out
    assert str(report["data"]["sha256"]) in out
    assert out.count(" taken for ") == min(2, 30 - report["right"])
    assert "held back (seed 1): 30 of 200 texts kept" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "labelled texts to test"),
        (["--valid", "--beam", "3"], "options that a classifier has a use for; got --beam"),
        (["--valid", "--bleu-tokenizer", "char"], "got --bleu-tokenizer"),
        (["--valid", "--reference", "x"], "got --reference"),
        (["--valid", "--set", "data.text=review"], "--set for the fields of --source"),
        (["--source", "x", "--set", "decoding.beam=1"], "got decoding.beam"),
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
    code, out, told = called("evaluate", labelling, *arguments)
    assert (code, out) == (2, "")
    assert said in told


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
    code, _, told = called("evaluate", labelling, "--source", table)
    assert code == 2
    assert "one field 'text' in the header" in told
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


def test_a_test_set_without_one_of_the_labels_is_told_so(labelling: Path, tmp_path: Path) -> None:
    entries = [entry for entry in reviews(20, seed=4) if entry["label"] == "pos"]
    lines = write_lines(tmp_path / "test.jsonl", entries)
    assert "has the label neg" in called("evaluate", labelling, "--source", lines)[2]
    lines = write_lines(tmp_path / "test.jsonl", reviews(20, seed=4))
    assert "has the label" not in called("evaluate", labelling, "--source", lines)[2]


def test_a_text_of_which_the_vocabulary_has_nothing_is_told_so(
    labelling: Path, tmp_path: Path
) -> None:
    code, out, told = classify(labelling, text="a zebra\nzebra quagga\n\n")
    assert (code, out.count("\n")) == (0, 3)
    assert told.splitlines() == [
        "attlas: line 2: none of its words is in the vocabulary, so that its label tells nothing "
        "of it",
        "attlas: line 3: there is no word in it",
    ]
    entries = [{"text": text, "label": "pos"} for text in ("a zebra", "zebra", "quagga")]
    lines = write_lines(tmp_path / "test.jsonl", entries)
    told = called("evaluate", labelling, "--source", lines)[2]
    assert "2 of 3 texts: none of their words is in the vocabulary" in told


@pytest.fixture(scope="module")
def short_sighted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with 24 learned positions."""
    from attlas.training import Recipe, train
    from labelled_runs import tables

    folder = tmp_path_factory.mktemp("learned")
    asked = tables(write_lines(folder / "reviews.jsonl", reviews(60)))
    asked["model"] |= {"positions": "learned", "longest": 24}
    return train(Recipe.read(asked, "the test"), folder / "run").path


def test_a_text_beyond_learned_positions_is_cut_told_and_stops_no_other(
    short_sighted: Path, tmp_path: Path
) -> None:
    words = ["great", "film", *["the"] * 21]  # and the end: 24
    texts = [" ".join(words), " ".join([*words, "awful", "dull"]), "a film"]
    code, out, told = classify(short_sighted, text="".join(f"{text}\n" for text in texts))
    first, cut, _ = out.splitlines()
    assert (code, cut) == (0, first)
    assert told == (
        "attlas: line 2: longer than the model can read: 2 tokens of it had no part in its label\n"
    )
    trace = tmp_path / "cut.safetensors"
    assert classify(short_sighted, texts[1], "--attention", trace)[0] == 0
    assert Trace.load(trace).source == ((*words, "</s>"),)
    entries = [{"text": text, "label": "pos"} for text in texts]
    lines = write_lines(tmp_path / "test.jsonl", entries)
    told = called("evaluate", short_sighted, "--source", lines)[2]
    assert "1 of 3 texts: longer than the model can read: not read whole" in told


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.TSV.gz", "t.txt", "t.txt.gz"])
def test_a_table_that_is_read_line_by_line_is_told_so(
    labelling: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text("a film\n", encoding="utf-8")
    code, out, told = classify(labelling, "-i", path)
    assert (code, out.count("\n")) == (0, 1)
    assert ("attlas evaluate --source" in told) == (".txt" not in name)


def test_the_name_of_a_folder_is_not_taken_for_a_text(
    labelling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "film").mkdir()
    code, out, told = classify(labelling, "film")
    assert (code, out) == (2, "")
    assert "got the name of a folder, 'film'; to classify that very word, write: echo film" in told
    assert classify(labelling, "")[0] == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the signals of POSIX")
def test_ctrl_c_ends_it_with_130_and_whole_lines(labelling: Path) -> None:
    command = [sys.executable, "-m", "attlas", "classify", str(labelling)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"a great film\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=300)
    assert process.returncode == 130
    assert answer.endswith(b"\n")
    assert (rest, error) == (b"", b"attlas: interrupted\n")


def test_a_label_that_the_classifier_does_not_know_is_an_error(
    labelling: Path, tmp_path: Path
) -> None:
    lines = write_lines(tmp_path / "test.jsonl", [{"text": "a film", "label": "so-so"}])
    code, _, told = called("evaluate", labelling, "--source", lines)
    assert code == 2
    assert "got 'so-so' in line 1" in told


def test_changed_data_is_told(labelling: Path, tmp_path: Path) -> None:
    import shutil

    moved = shutil.copytree(labelling, tmp_path / "run")
    other = write_lines(tmp_path / "other.jsonl", reviews(100, seed=9))
    config = (moved / "config.toml").read_text()
    original = labelling.parent / "reviews.jsonl"
    (moved / "config.toml").write_text(config.replace(str(original), str(other)))
    _, _, told = called("evaluate", moved, "--valid")
    assert "this data has changed since the run was trained" in told


def test_a_classifiers_run_is_inspected(labelling: Path) -> None:
    code, out, _ = called("inspect", labelling)
    assert code == 0
    assert "labels  neg, pos" in out
    assert "pooling" in out
    assert "right" in out
    assert "exactly" not in out


def test_the_shipped_recipe_is_shown_without_what_has_no_effect() -> None:
    code, out, _ = called("inspect", "imdb")
    assert code == 0
    assert "[decoding]" not in out
    assert 'kind = "labelled"' in out


def test_a_training_ends_with_what_to_do_next(tmp_path: Path) -> None:
    from attlas.config import write_toml
    from labelled_runs import tables

    lines = write_lines(tmp_path / "reviews.jsonl", reviews(60))
    (tmp_path / "my.toml").write_text(write_toml(tables(lines)))
    code, out, _ = called("train", tmp_path / "my.toml", "--out", tmp_path / "run")
    assert code == 0
    assert out.endswith(f"try: attlas classify {tmp_path / 'run'}\n")


@pytest.mark.parametrize("option", ["-o", "--attention"])
def test_what_is_classified_is_not_written_over(
    labelling: Path, tmp_path: Path, option: str
) -> None:
    text = tmp_path / "text.svg"
    text.write_text("a film\n", encoding="utf-8")
    code, out, told = called("classify", labelling, "-i", text, option, tmp_path / "." / text.name)
    assert (code, out) == (2, "")
    assert "wanted different files to read and to write" in told
    assert text.read_text(encoding="utf-8") == "a film\n"


def test_labels_and_attention_are_different_files(labelling: Path, tmp_path: Path) -> None:
    both = ("-o", tmp_path / "m.svg", "--attention", tmp_path / "m.svg")
    code, _, told = called("classify", labelling, "a film", *both)
    assert code == 2
    assert f"got {tmp_path / 'm.svg'} twice" in told


def test_labelled_texts_are_not_written_over_by_their_evaluation(
    labelling: Path, tmp_path: Path
) -> None:
    lines = write_lines(tmp_path / "test.jsonl", reviews(3))
    own = labelling.parent / "reviews.jsonl"
    before = lines.read_bytes(), own.read_bytes()
    for arguments in (("--source", lines, "-o", lines), ("--valid", "-o", own)):
        code, _, told = called("evaluate", labelling, *arguments)
        assert code == 2
        assert "wanted different files to read and to write" in told
    assert (lines.read_bytes(), own.read_bytes()) == before


def test_a_single_text_is_one_text(labelling: Path, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "test.jsonl", reviews(1))
    _, out, _ = called("evaluate", labelling, "--source", lines)
    assert " of 1 text; " in out
    assert ", 1 text, sha256" in out
