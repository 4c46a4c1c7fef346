"""A set in several files: lists of them, and patterns of their names."""

from pathlib import Path
from typing import Any

import pytest

from attlas.config import write_toml
from attlas.data import FilesData, Pair, read_pairs
from attlas.data.parallel_files import expanded, file_pairs
from attlas.errors import AttlasError
from attlas.training import read_recipe

OTHERS: dict[str, Any] = {
    "model": {"kind": "transformer"},
    "training": {"max_steps": 1, "validation": {"every": 1}},
}


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def train(folder: Path, paths: Any, **settings: Any) -> FilesData:
    table = {"kind": "files", "train": paths, "held_back": 1, **settings}
    return FilesData.read(table, "recipe").resolved(folder)


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for number in (1, 2, 10):
        put(tmp_path / f"part-{number}.tsv", f"a{number}\tb{number}\nc{number}\td{number}\n")
        put(tmp_path / f"{number}.en", f"a{number}\nc{number}\n")
        put(tmp_path / f"{number}.de", f"b{number}\nd{number}\n")
    return tmp_path


IN_ORDER_OF_NAMES = tuple(
    Pair(f"{source}{number}", f"{target}{number}")
    for number in (1, 10, 2)
    for source, target in ("ab", "cd")
)


@pytest.mark.parametrize(
    "paths",
    [
        "part-*.tsv",
        ["part-*.tsv"],
        ["part-1.tsv", "part-10.tsv", "part-2.tsv"],
        [["part-1.tsv"], "part-10.tsv", ["part-2.tsv"]],
        ["*.en", "*.de"],
        [["1.en", "1.de"], ["10.en", "10.de"], ["2.en", "2.de"]],
        [["1.en", "1.de"], "part-10.tsv", ["[2].en", "[2].de"]],
    ],
)
def test_the_pairs_come_file_after_file(parts: Path, paths: Any) -> None:
    data = train(parts, paths)
    corpus = read_pairs(data.train)
    assert corpus.pairs == IN_ORDER_OF_NAMES
    assert corpus.lines == (1, 2, 3, 4, 5, 6)


def test_a_run_holds_the_names_that_a_pattern_matched(parts: Path) -> None:
    data = train(parts, ["*.en", "*.de"])
    names = [[str(parts / f"{number}.{side}") for side in ("en", "de")] for number in (1, 10, 2)]
    assert [list(pair) for pair in data.train] == names
    recipe = put(parts / "r.toml", write_toml({**OTHERS, "data": data.model_dump(mode="json")}))
    assert read_recipe(recipe).data == data
    before = data.fingerprint()
    assert before is not None
    assert len(before["files"]) == 6
    put(parts / "3.en", "e\n")
    put(parts / "3.de", "f\n")
    assert data.fingerprint() == before
    assert len(train(parts, ["*.en", "*.de"]).train) == 4


def test_a_pattern_on_the_command_line_is_of_the_folder_at_work(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"kind": "files", "train": "../part-1.tsv", "valid": "../part-2.tsv"}
    recipe = put(parts / "recipes" / "r.toml", write_toml({**OTHERS, "data": data}))
    monkeypatch.chdir(parts)
    read = read_recipe(recipe, ["data.train=part-*.tsv"]).data
    assert isinstance(read, FilesData)
    assert len(read.train) == 3
    assert len(read.load().train) == 6


def test_a_fault_is_named_with_its_file_and_its_line_there(parts: Path) -> None:
    put(parts / "part-2.tsv", "a\tb\n\td\nlong line\tline\n")
    report = read_pairs(train(parts, "part-*.tsv").train).report
    assert str(report.left_out[0]) == f"1 with an empty source ({parts / 'part-2.tsv'}:2)"
    strict = {"empty": "error"}
    with pytest.raises(AttlasError, match=r"pairs in .*part-2.tsv; got line 2 with an empty"):
        train(parts, "part-*.tsv", filters=strict).load()
    # Bounds are looked at later, when the part held back is taken off.
    bound = {"max_length": 5, "unfit": "error"}
    with pytest.raises(AttlasError, match=r"in .*part-2.tsv; got line 3 with more than 5"):
        train(parts, "part-*.tsv", filters=bound, seed=3).load()


def test_each_table_has_its_own_header(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "en,de\none,eins\n")
    put(tmp_path / "b.csv", "id,de,en\n7,zwei,two\n")
    put(tmp_path / "c.csv", "x,y\nthree,drei\n")
    corpus = read_pairs([tmp_path / "a.csv", tmp_path / "b.csv"], ("en", "de"))
    assert corpus.pairs == (Pair("one", "eins"), Pair("two", "zwei"))
    with pytest.raises(AttlasError, match=r"a column named 'en' in line 1 of .*c\.csv"):
        read_pairs([tmp_path / "a.csv", tmp_path / "c.csv"], ("en", "de"))


def test_files_of_one_pair_are_as_long_as_each_other(parts: Path) -> None:
    put(parts / "2.de", "b2\n")
    with pytest.raises(AttlasError, match=r"2 in .*2\.en and 1 in .*2\.de"):
        read_pairs(train(parts, ["*.en", "*.de"]).train)


def test_a_source_and_its_target_have_the_same_name_but_for_what_is_fixed(parts: Path) -> None:
    put(parts / "3.en", "e\n")
    put(parts / "4.de", "f\n")
    data = train(parts, ["*.en", "*.de"])
    with pytest.raises(AttlasError, match=r"one of .*\*\.de; got 4 files and 4; .*'3', '4'"):
        data.load()


def test_a_pattern_without_a_match_is_named_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "my [1] *"
    folder.mkdir()
    data = train(folder, "part-*.tsv", origin="the shelf")
    with pytest.raises(AttlasError) as raised:
        data.load()
    assert raised.value.expected == f"a file whose name matches {folder / 'part-*.tsv'}"
    assert raised.value.hint.startswith("get it from the shelf")


def test_a_folder_with_brackets_is_no_pattern(tmp_path: Path) -> None:
    put(tmp_path / "my1" / "a.tsv", "wrong\twrong\n")
    put(tmp_path / "my[1]" / "part-1.tsv", "a\tb\n")
    with pytest.raises(AttlasError, match=r"got no file at .*my\[1\]/a\.tsv"):
        train(tmp_path / "my[1]", "a.tsv").load()
    for name in ("part-1.tsv", "part-*.tsv", "part-[1-9].tsv"):
        assert len(read_pairs(train(tmp_path / "my[1]", name).train)) == 1


def test_a_file_that_is_there_is_no_pattern(tmp_path: Path) -> None:
    put(tmp_path / "a[1].tsv", "a\tb\n")
    put(tmp_path / "a1.tsv", "wrong\twrong\n")
    assert read_pairs(train(tmp_path, "a[1].tsv").train).pairs == (Pair("a", "b"),)


def test_patterns_go_into_folders(tmp_path: Path) -> None:
    for folder in ("x", "x/y", "z"):
        put(tmp_path / folder / "a.tsv", f"{folder}\tb\n")
    assert len(read_pairs(train(tmp_path, "**/*.tsv").train)) == 3


def test_wrong_lists_of_files_are_refused(tmp_path: Path) -> None:
    wrong: list[Any] = [["a", "b", "c"], [["a", "b", "c"]], [[]], [], [["a", ""]]]
    for paths in wrong:
        with pytest.raises(AttlasError, match=r"name one file or two, or a list of such"):
            train(tmp_path, paths)


def test_what_is_one_set_stays_as_it_is_written(tmp_path: Path) -> None:
    put(tmp_path / "a.en", "a\n")
    put(tmp_path / "a.de", "b\n")
    assert train(tmp_path, ["a.en", "a.de"]).train == tuple(
        str(tmp_path / name) for name in ("a.en", "a.de")
    )
    assert expanded(("a.en", "a.de")) == (("a.en", "a.de"),)
    assert file_pairs(["a.csv.gz", "b.TSV"]) == (("a.csv.gz",), ("b.TSV",))
