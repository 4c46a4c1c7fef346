"""`attlas classify`, and what the other commands say of a classifier."""

import gzip
import json
import os
import signal
from pathlib import Path
from subprocess import PIPE

import pytest
import torch

from attlas import TextClassifier
from attlas.recording import Trace
from support.command_line import called
from support.labelled_runs import reviews, write_lines
from support.warm_processes import WarmProcess

LINES = ["the film was great", "", "  <br /> ", "awful", "a \u2028 dull \x85 plot", "very quite"]


def classify(*arguments: object, text: str | bytes | None = None) -> tuple[int, str, str]:
    return called("classify", *arguments, text=text)


@pytest.mark.parametrize("ending", ["\n", ""])
@pytest.mark.parametrize("window", [1, 2, 100])
def test_as_many_lines_come_out_as_went_in(labelling: Path, window: int, ending: str) -> None:
    text = "\n".join([*LINES, "last"]) + ending
    code, out, reported = classify(labelling, "--window", window, text=text)
    assert code == 0
    assert out.endswith("\n")
    assert out.count("\n") == len(LINES) + 1
    assert reported.count("there is no word in it") == 2
    assert "line 2: there is no word in it" in reported


def test_what_many_lines_of_a_file_have_in_common_is_reported_once_with_their_number(
    labelling: Path, tmp_path: Path
) -> None:
    path = tmp_path / "texts"
    path.write_text("a great film\n\nquagga\n" * 20, encoding="utf-8")
    code, out, reported = classify(labelling, "--input", path, "--window", 3)
    assert (code, out.count("\n")) == (0, 60)
    assert reported.splitlines() == [
        "attlas: 20 lines (2, 5, 8, 11, …): there is no word in them",
        "attlas: 20 lines (3, 6, 9, 12, …): none of their words is in the vocabulary, so "
        "their labels say nothing about them",
    ]
    _, _, reported = classify(labelling, *[""] * 5)
    assert reported == "attlas: 5 texts (1, 2, 3, 4, …): there is no word in them\n"
    assert "text 1: there is no word in it" in classify(labelling, "")[2]


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


def test_json_says_what_was_not_read_and_what_was_not_known(
    labelling: Path, short_sighted: Path
) -> None:
    def facts(run: Path, *texts: str) -> list[tuple[int, bool]]:
        lines = classify(run, "--json", text="".join(f"{text}\n" for text in texts))[1]
        found = [json.loads(line) for line in lines.splitlines()]
        return [(one["unread"], one["known"]) for one in found]

    assert facts(labelling, "a great film", "zebra", "") == [(0, True), (0, False), (0, False)]
    assert facts(short_sighted, "film " * 23, "film " * 30) == [(0, True), (7, True)]


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
    code, out, reported = classify(labelling, text=b"great\n\xff\n")
    assert code == 2
    assert out.count("\n") == 1
    assert "UTF-8 text" in reported


@pytest.mark.parametrize("ending", ["png", "svg", "safetensors"])
def test_the_attention_of_a_text_is_kept(labelling: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"map.{ending}"
    code, out, reported = classify(labelling, "a great film", "--attention", path)
    assert (code, reported) == (0, "")
    assert out == classify(labelling, "a great film")[1]
    assert path.stat().st_size > 500
    if ending == "safetensors":
        assert Trace.load(path).source == (("a", "great", "film", "</s>"),)
        assert "pooling.attention" in called("inspect", path)[1]
        assert called("figure", path, "-o", tmp_path / "again.png")[0] == 0
    else:
        again = classify(labelling, "--attention", path, text="a great film\n")
        assert again[:2] == (0, out)


@pytest.mark.parametrize("named", [True, False])
def test_the_attention_of_many_texts_is_kept_in_a_folder(
    labelling: Path, tmp_path: Path, named: bool
) -> None:
    texts = ["a great film", "a film", "a great great film"]
    given = {"text": None} if named else {"text": "\n".join(texts)}
    arguments = [*(texts if named else []), "--attention", tmp_path / "looks", "--window", 2]
    code, out, reported = classify(labelling, *arguments, **given)
    assert (code, reported) == (0, "")
    assert out == classify(labelling, *texts)[1]
    assert len(list((tmp_path / "looks").iterdir())) == 3
    for number, text in enumerate(texts, 1):
        trace = Trace.load(tmp_path / "looks" / f"{number}.safetensors")
        assert trace.source == ((*text.split(), "</s>"),)
    code, _, reported = classify(labelling, *arguments, **given)
    assert code == 2
    assert "a new folder for a trace of each text; got" in reported


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        (["a", "b", "--attention", "m", "--layer", "e"], None, "got m: a trace holds every layer"),
        (["a", "b", "--attention", "nowhere/m"], None, "no folder nowhere"),
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
    code, out, reported = classify(labelling, *arguments, text=text)
    assert (code, out) == (2, "")
    assert said in reported
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_file_is_not_taken_for_a_text(labelling: Path, tmp_path: Path) -> None:
    path = tmp_path / "reviews.txt"
    path.write_text("great\n")
    code, _, reported = classify(labelling, path)
    assert code == 2
    assert f"read it: --input {path}" in reported


def test_a_file_is_not_read_and_written_at_once(labelling: Path, tmp_path: Path) -> None:
    path = tmp_path / "reviews.txt"
    path.write_text("great\n")
    assert classify(labelling, "-i", path, "-o", path)[0] == 2
    assert path.read_text() == "great\n"


def test_a_run_that_translates_is_an_error(run: Path) -> None:
    code, _, reported = classify(run, "a text")
    assert code == 2
    assert "a run that holds a classifier" in reported
    assert "attlas translate" in reported


def test_the_attention_of_a_classifier_is_drawn(labelling: Path, tmp_path: Path) -> None:
    path, saved = tmp_path / "map.svg", tmp_path / "trace.safetensors"
    code, out, reported = called("figure", labelling, "a text", "-o", path, "--save-trace", saved)
    assert (code, out) == (0, f"{path}\n")
    assert reported.startswith("a text → ")
    trace = Trace.load(saved)
    expected = TextClassifier(labelling)("a text").trace
    assert list(trace) == list(expected)
    for layer in trace:
        torch.testing.assert_close(trace[layer].weights(), expected[layer].weights())
    code, _, reported = called("figure", labelling, "a text", "-o", path, "--num-beams", "3")
    assert code == 2
    assert "--num-beams" in reported


def test_what_only_a_translation_has_is_an_error_that_names_the_way(
    labelling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, reported = called("translate", labelling, text="a text\n")
    assert code == 2
    assert reported.startswith("attlas: expected a run that translates")
    assert f"got a classifier at {labelling}" in reported
    assert "attlas classify" in reported


@pytest.fixture(scope="module")
def short_sighted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with 24 learned positions."""
    from attlas.training import Recipe, train
    from support.labelled_runs import tables

    folder = tmp_path_factory.mktemp("learned")
    requested = tables(write_lines(folder / "reviews.jsonl", reviews(60)))
    requested["model"] |= {"positions": "learned", "max_positions": 24}
    return train(Recipe.read(requested, "the test"), folder / "run").path


def test_a_text_beyond_learned_positions_is_cut_reported_and_stops_no_other(
    short_sighted: Path, tmp_path: Path
) -> None:
    words = ["great", "film", *["the"] * 21]  # and the end: 24
    texts = [" ".join(words), " ".join([*words, "awful", "dull"]), "a film"]
    code, out, reported = classify(short_sighted, text="".join(f"{text}\n" for text in texts))
    first, cut, _ = out.splitlines()
    assert (code, cut) == (0, first)
    assert reported == (
        "attlas: line 2: longer than the model can read: 2 tokens of it had no part in its label\n"
    )
    trace = tmp_path / "cut.safetensors"
    assert classify(short_sighted, texts[1], "--attention", trace)[0] == 0
    assert Trace.load(trace).source == ((*words, "</s>"),)
    entries = [{"text": text, "label": "pos"} for text in texts]
    lines = write_lines(tmp_path / "test.jsonl", entries)
    reported = called("evaluate", short_sighted, "--source", lines)[2]
    assert "1 of 3 texts: longer than the model can read: not read whole" in reported


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.TSV.gz", "t.txt", "t.txt.gz"])
def test_a_table_that_is_read_line_by_line_is_reported_so(
    labelling: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text("a film\n", encoding="utf-8")
    code, out, reported = classify(labelling, "-i", path)
    assert (code, out.count("\n")) == (0, 1)
    assert ("attlas evaluate --source" in reported) == (".txt" not in name)


def test_the_name_of_a_folder_is_not_taken_for_a_text(
    labelling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "film").mkdir()
    code, out, reported = classify(labelling, "film")
    assert (code, out) == (2, "")
    assert (
        "got the name of a folder, 'film'; to classify that very word, write: echo film" in reported
    )
    assert classify(labelling, "")[0] == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of POSIX")
def test_ctrl_c_ends_it_with_130_and_whole_lines(labelling: Path) -> None:
    streams = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
    with WarmProcess("classify", labelling, **streams) as process:
        process.stdin.write("a great film\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, error = process.stdout.read(), process.stderr.read()
    assert process.returncode == 130
    assert answer.endswith("\n")
    assert (rest, error) == ("", "attlas: interrupted\n")


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
    from support.labelled_runs import tables

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
    code, out, reported = called(
        "classify", labelling, "-i", text, option, tmp_path / "." / text.name
    )
    assert (code, out) == (2, "")
    assert "expected different files to read and to write" in reported
    assert text.read_text(encoding="utf-8") == "a film\n"


def test_labels_and_attention_are_different_files(labelling: Path, tmp_path: Path) -> None:
    both = ("-o", tmp_path / "m.svg", "--attention", tmp_path / "m.svg")
    code, _, reported = called("classify", labelling, "a film", *both)
    assert code == 2
    assert f"got {tmp_path / 'm.svg'} twice" in reported
