"""`attlas train --pairs` and `--labels`: a recipe that the size of the data makes."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attlas.data import read_pairs
from attlas.jobs.own_data import default_folder, recipe_for, size_of_pairs
from attlas.runs import CONFIG, Run
from attlas.training import read_recipe
from support.command_line import called

TINY = [
    word
    for setting in (
        "model.embed_dim=8",
        "training.max_steps=2",
        "training.threads=1",
        "training.validation.translate=false",
        "training.validation.criterion=loss",
    )
    for word in ("--set", setting)
]
LINES = [f"Word {n} stands here.\tWort {n % 23} steht hier." for n in range(60)]


def written(path: Path, lines: list[str], header: str = "") -> Path:
    path.write_text("".join(f"{line}\n" for line in [header, *lines] if line), encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(tmp_path / "my.tsv", LINES)


def test_a_table_becomes_a_run_and_a_recipe_that_gives_the_same_run(
    table: Path, tmp_path: Path
) -> None:
    code, out, reported = called("train", "--pairs", "my.tsv", *TINY)
    assert code == 0, reported
    assert out == "runs/my is ready; try: attlas look runs/my\n"
    assert "60 pairs are too few to learn to translate" in reported
    assert reported.index("too few") < reported.index("update 2")
    assert "model.ffn_dim" in reported
    recipe = tmp_path / "runs" / "my.toml"
    assert called("train", recipe, "--out", "again")[0] == 0
    assert Path("again", CONFIG).read_bytes() == Path("runs/my", CONFIG).read_bytes()
    last = Run("again").checkpoints()[-1]
    ours, theirs = (Run(folder).store.read(last).model for folder in ("runs/my", "again"))
    assert ours.keys() == theirs.keys()
    assert all(ours[key].equal(theirs[key]) for key in ours)


def test_each_line_of_the_recipe_says_why(table: Path) -> None:
    own = recipe_for("--pairs", [str(table)])
    flat = {choice.setting: choice.why for choice in own.choices}
    lines = own.text.splitlines()
    for setting, why in flat.items():
        key = setting.rpartition(".")[2]
        places = [place for place, line in enumerate(lines) if line.startswith(f"{key} = ")]
        beside = [lines[place] + (lines[place - 1] if place else "") for place in places]
        assert any(why in text for text in beside), setting
    tomllib.loads(own.text)


def test_the_written_recipe_is_the_one_that_is_trained(table: Path, tmp_path: Path) -> None:
    own = recipe_for("--pairs", [str(table)], ["model.kind=recurrent"])
    path = tmp_path / "own.toml"
    path.write_text(own.text, encoding="utf-8")
    assert read_recipe(path) == own.recipe
    assert own.recipe.model.kind == "recurrent"


def test_no_source_is_on_both_sides(tmp_path: Path) -> None:
    lines = [f"Sentence {n % 40}.\tSatz {n}." for n in range(200)]
    own = recipe_for("--pairs", [str(written(tmp_path / "a.tsv", lines))])
    splits = own.recipe.data.load()
    assert not {*splits.train.sources} & {*splits.valid.sources}
    assert len(splits.train) + len(splits.valid) == 200
    assert len(splits.valid) == 20


def test_the_same_command_goes_on_with_the_run(table: Path) -> None:
    assert called("train", "--pairs", "my.tsv", *TINY)[0] == 0
    more = [word.replace("max_steps=2", "max_steps=4") for word in TINY]
    code, _, reported = called("train", "--pairs", "my.tsv", *more)
    assert code == 0, reported
    assert "continuing after update 2" in reported
    assert Run("runs/my").checkpoints()[-1] == "00000004"


def test_two_files_are_two_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "my.en", [line.split("\t")[0] for line in LINES])
    written(tmp_path / "my.de", [line.split("\t")[1] for line in LINES])
    code, _, reported = called("train", "--pairs", "my.en", "my.de", *TINY, "--out", "r")
    assert code == 0, reported
    assert read_recipe(Path("r.toml")).data.load().train.pairs[0].target.startswith("Wort")
    code, _, reported = called("train", *TINY, "--pairs=my.en", "my.de", "--out", "other")
    assert code == 0, reported
    code, _, reported = called("train", "--pairs", "my.en", "my.de", "my.en", *TINY)
    assert code == 2
    assert "got 3: my.en my.de my.en; for several pairs of files name their patterns" in reported


def test_several_files_are_one_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    half = len(LINES) // 2
    for number, lines in enumerate((LINES[:half], LINES[half:]), 1):
        written(tmp_path / f"part-{number}.tsv", lines)
        for side, language in enumerate(("en", "de")):
            written(tmp_path / f"{number}.{language}", [line.split("\t")[side] for line in lines])
    expected = {tuple(line.split("\t")) for line in LINES}
    for out, files in {
        "runs/part": ("part-1.tsv", "part-2.tsv"),
        "pattern": ("part-*.tsv", "--out", "pattern"),
        "sides": ("*.en", "*.de", "--out", "sides"),
    }.items():
        code, _, reported = called("train", "--pairs", *files, *TINY)
        assert code == 0, reported
        splits: Any = read_recipe(Path(f"{out}.toml")).data.load()
        assert {*splits.train.pairs, *splits.valid.pairs} == expected
    # The same command goes on with the run; with a file more it is other data.
    code, _, reported = called("train", "--pairs", "part-*.tsv", "--out", "pattern", *TINY)
    assert code == 0, reported
    written(tmp_path / "part-3.tsv", LINES[:3])
    code, _, reported = called("train", "--pairs", "part-*.tsv", "--out", "pattern", *TINY)
    assert code == 2
    assert "the data with which pattern began" in reported
    code, _, reported = called("train", "--pairs", "none-*.tsv", *TINY)
    assert code == 2
    assert "a file whose name matches" in reported


def test_labels_become_a_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{n},{('good', 'bad')[n % 2]} film {n},{('pos', 'neg')[n % 2]}" for n in range(60)]
    written(tmp_path / "films.csv", rows, "id,review,sentiment")
    code, out, reported = called("train", "--labels", "films.csv", *TINY[:6])
    assert code == 0, reported
    assert out == "runs/films is ready; try: attlas classify runs/films\n"
    assert Run("runs/films").classifies
    data = read_recipe(Path("runs/films.toml")).data
    assert data.kind == "labelled"
    assert (data.text, data.label) == ("review", "sentiment")


@pytest.mark.parametrize(
    ("name", "lines", "columns"),
    [
        ("a.tsv", ["en\tde", *LINES], ("en", "de")),
        ("a.tsv", ["English\tGerman", *LINES], ("English", "German")),
        ("a.tsv", LINES, (1, 2)),
        ("a.tsv", ["it is late\tes ist spät", *LINES], (1, 2)),
        ("a.tsv", [f"{line}\tCC-BY 2.0" for line in LINES], (1, 2)),
        ("a.tsv", [f"7{n}\t{a}\t8{n}\t{b}" for n, a, b in
                   ((n, *line.split("\t")) for n, line in enumerate(LINES))], (2, 4)),
        ("a.csv", ["id,source,target", *(f"1,{line}".replace("\t", ",") for line in LINES)],
         ("source", "target")),
        ("a.csv", ["en;de", *(line.replace("\t", ";") for line in LINES)], ("en", "de")),
        ("a.csv", [f'"{a}","{b}"' for a, b in (line.split("\t") for line in LINES)], (1, 2)),
    ],
)  # fmt: skip
def test_the_columns_are_found_and_reported(
    tmp_path: Path, name: str, lines: list[str], columns: tuple[object, ...]
) -> None:
    own = recipe_for("--pairs", [str(written(tmp_path / name, lines))])
    data = own.recipe.data
    assert data.kind == "files"
    assert data.columns == columns
    assert "data.columns" in own.table()
    splits = data.load()
    everything = [*splits.train.pairs, *splits.valid.pairs]
    rows = len(lines) - isinstance(columns[0], str)
    assert len(everything) == rows
    assert ("Word 7 stands here.", "Wort 7 steht hier.") in everything


@pytest.mark.parametrize(
    ("make", "arguments", "expected"),
    [
        (lambda path: None, ["--pairs", "my.tsv"], "no file at "),
        (lambda path: written(path / "my.tsv", ["one"] * 60), ["--pairs", "my.tsv"],
         "got one column: 'one' in line 1; put a tab between the two"),
        (lambda path: written(path / "my.tsv", []), ["--pairs", "my.tsv"], "an empty file"),
        (lambda path: written(path / "my.tsv", ["\t "] * 60), ["--pairs", "my.tsv"],
         "0 of 60 pairs kept"),
        (lambda path: written(path / "my.tsv", LINES[:10]), ["--pairs", "my.tsv"],
         "expected at least 50 pairs to train on; got 10 pairs"),
        (lambda path: (written(path / "a", ["x"] * 60), written(path / "b", ["x"] * 61)),
         ["--pairs", "a", "b"], "60 in "),
        (lambda path: written(path / "my.tsv", LINES),
         ["--pairs", "my.tsv", "--set", 'data.columns=["english", "german"]'],
         "a column named 'english' in line 1"),
        (lambda path: (path / "my.tsv").write_bytes(bytes(range(256)) * 50),
         ["--pairs", "my.tsv"], "UTF-8 text in "),
        (lambda path: written(path / "my.tsv", LINES), ["tiny", "--pairs", "my.tsv"],
         "expected --pairs, --labels, or a recipe; got --pairs and the recipe tiny"),
        (lambda path: written(path / "my.tsv", LINES), ["--pairs", "my.tsv", "tiny"],
         "got the recipe tiny"),
        (lambda path: written(path / "my.tsv", LINES), ["--pairs", "my.tsv", "--labels", "my.tsv"],
         "got --pairs and --labels"),
        (lambda path: None, ["--pairs", "-"], "a file for --pairs, which is read twice"),
        (lambda path: None, ["--pairs", "."], "the folder ."),
        (lambda path: written(path / "my.tsv", [*LINES, "a\tb\tc"]), ["--pairs", "my.tsv"],
         "3 columns in line 61"),
        (lambda path: written(path / "my.tsv", LINES),
         ["--pairs", "my.tsv", "--set", "training.learning_rat=1"], "learning_rate"),
        (lambda path: written(path / "my.csv", [f"good film {n},pos" for n in range(60)]),
         ["--labels", "my.csv"], "such as text and label"),
        (lambda path: written(path / "my.csv", [f"film {n},pos" for n in range(60)], "text,label"),
         ["--labels", "my.csv"], "the label 'pos' alone"),
    ],
)  # fmt: skip
def test_a_mistake_gets_one_sentence_and_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], object],
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    code, out, reported = called("train", *arguments)
    assert (code, out) == (2, "")
    assert expected in reported
    assert reported.startswith("attlas: expected ")
    assert reported.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_with_other_data_and_an_edited_recipe_are_left_alone(
    table: Path, tmp_path: Path
) -> None:
    assert called("train", "--pairs", "my.tsv", *TINY)[0] == 0
    other = written(tmp_path / "other.tsv", LINES[:55])
    code, _, reported = called("train", "--pairs", other, "--out", "runs/my", *TINY)
    assert code == 2
    assert "the data with which runs/my began" in reported
    Path("runs/new.toml").write_text("# mine\n", encoding="utf-8")
    code, _, reported = called("train", "--pairs", other, "--out", "runs/new", *TINY)
    assert code == 2
    assert "got another file there; train that one (attlas train runs/new.toml)" in reported
    assert Path("runs/new.toml").read_text(encoding="utf-8") == "# mine\n"


@pytest.mark.parametrize(
    ("name", "folder"),
    [("my.tsv", "my"), ("data/my.csv.gz", "my"), ("my.en", "my"), ("aclImdb/", "aclImdb")],
)
def test_a_run_is_called_after_its_data(name: str, folder: str) -> None:
    assert default_folder([name]) == Path("runs") / folder


@pytest.mark.parametrize(
    ("names", "folder"),
    [
        (("part-1.tsv", "part-2.tsv.gz"), "part"),
        (("data/part-*.tsv",), "part"),
        (("corpus/*.tsv",), "corpus"),
        (("corpus/a.tsv", "other/b.tsv"), "corpus"),
        (("europarl-v7.en", "europarl-v7.de"), "europarl-v7"),
    ],
)
def test_a_run_of_several_files_is_called_after_what_is_common(
    names: tuple[str, ...], folder: str
) -> None:
    assert default_folder(names) == Path("runs") / folder


def test_json_lines_and_folders_have_labels_too(tmp_path: Path) -> None:
    entries = [json.dumps({"body": f"film {n}", "stars": n % 3}) for n in range(60)]
    own = recipe_for("--labels", [str(written(tmp_path / "a.jsonl", entries))])
    assert own.recipe.data.kind == "labelled"
    assert own.recipe.data.label == "stars"
    for n in range(40):
        path = tmp_path / "films" / ("pos", "neg")[n % 2] / f"{n}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"film {n}", encoding="utf-8")
    own = recipe_for("--labels", [str(tmp_path / "films")])
    assert len(own.recipe.data.load().train) == 36


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("training.max_steps=abc", "training.max_steps"),
        ("data.held_back=abc", "data.held_back"),
        ("model.embed_dim=x", "model.embed_dim"),
        ("training.max_epochs=many", "training.max_epochs"),
        ("training.max_steps=[3]", "training.max_steps"),
        ("batching.max_tokens=much", "batching.max_tokens"),
        ("vocabulary.size=big", "vocabulary.size"),
    ],
)
def test_a_word_for_a_number_that_rules_go_by_is_the_callers_mistake(
    table: Path, setting: str, named: str
) -> None:
    code, _, error = called("train", "--pairs", table, "--set", setting)
    assert code == 2, error
    assert f"`{named}` in --set" in error or f"expected {named} in --set" in error


def test_settings_stay_in_their_columns_of_a_terminal(table: Path) -> None:
    own = recipe_for("--pairs", [str(table)])
    lines = own.table(width=80).splitlines()
    path_lines = [line for line in lines if str(table) in line]
    assert len(path_lines) == 1
    assert max(len(line) for line in lines if line not in path_lines) <= 80
    column = lines[0].index("why")
    for line in lines:
        if line not in path_lines:
            assert line[column - 2 : column].strip() == ""
    said = " ".join(line[column:].strip() for line in lines if line not in path_lines)
    whole = " ".join(said.split())
    assert all(choice.why in whole for choice in own.choices)


def test_a_name_with_spaces_is_quoted_where_it_may_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "Sätze für mich.tsv", LINES)
    code, out, reported = called("train", "--pairs", "Sätze für mich.tsv", *TINY)
    assert code == 0, reported
    assert out.endswith("try: attlas look 'runs/Sätze für mich'\n")
    recipe = (tmp_path / "runs" / "Sätze für mich.toml").read_text(encoding="utf-8")
    assert recipe.startswith("# Made by: attlas train --pairs 'Sätze für mich.tsv'\n")


@pytest.mark.parametrize(
    ("target", "tokenizer"),
    [
        ("猫が好きです。", "char"),
        ("我喜欢猫。", "zh"),
        ("ฉันชอบแมว", "char"),
        ("Ich mag Katzen.", "13a"),
    ],
)
def test_the_tokenizer_of_bleu_is_that_of_a_target_without_spaces(
    tmp_path: Path, target: str, tokenizer: str
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"I like cats.\t{target}\n" * 60, encoding="utf-8")
    assert size_of_pairs(read_pairs([path])).bleu_tokenizer == tokenizer


def test_labels_are_no_translations(tmp_path: Path) -> None:
    table = tmp_path / "reviews.tsv"
    lines = [f"film {n} was fine\t{'good' if n % 3 else 'bad'}\n" for n in range(60)]
    table.write_text("".join(lines), encoding="utf-8")
    code, _, error = called("train", "--pairs", table, "--out", tmp_path / "run")
    assert code == 2
    assert "2 different words in the second column of 60 lines: 'bad', 'good'" in error
    assert error.rstrip().endswith(f"attlas train --labels {table}")
    assert not (tmp_path / "run").exists()
