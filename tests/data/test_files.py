import gzip
import io
import sys

import pytest

from attlas.config import Config
from attlas.data import DataConfig, FilesData, FilterConfig, Pair, load_splits, read_pairs
from attlas.errors import AttlasError


class Recipe(Config):
    data: DataConfig


def put(path, text):
    path.write_bytes(text.encode())
    return path


def test_line_n_of_one_file_is_paired_with_line_n_of_the_other(tmp_path):
    source, target = put(tmp_path / "a", "one\ntwo\n"), put(tmp_path / "b", "eins\nzwei")
    corpus = read_pairs([source, target])
    assert corpus.pairs == (Pair("one", "eins"), Pair("two", "zwei"))
    assert corpus.lines == (1, 2)


def test_unequal_counts_are_an_error_that_names_both(tmp_path):
    source, target = put(tmp_path / "x.en", "a\nb\nc\n"), put(tmp_path / "x.de", "a\nb\n")
    with pytest.raises(AttlasError, match=r"3 in .*x\.en and 2 in .*x\.de"):
        read_pairs([source, target])


def test_a_skipped_pair_takes_both_sides_with_it_and_is_counted_by_reason(tmp_path):
    source = put(tmp_path / "a", "one\n\nthree\nfour\n \n")
    target = put(tmp_path / "b", "eins\nzwei\n\t\nvier\nfünf\n")
    corpus = read_pairs([source, target])
    assert corpus.pairs == (Pair("one", "eins"), Pair("four", "vier"))
    assert corpus.lines == (1, 4)
    assert corpus.report.skipped == 3
    assert "2 of 5 pairs kept" in str(corpus.report)
    assert "2 with an empty source (lines 2, 5)" in str(corpus.report)
    assert "1 with an empty target (line 3)" in str(corpus.report)


def test_an_empty_side_is_an_error_where_the_settings_say_so(tmp_path):
    path = put(tmp_path / "a.tsv", "a\tb\n\tc\n")
    with pytest.raises(AttlasError, match=r"a\.tsv; got line 2 with an empty source"):
        read_pairs([path], filters=FilterConfig(empty="error"))


def test_long_and_badly_proportioned_pairs_are_counted_filters(tmp_path):
    path = put(tmp_path / "a.tsv", "a" * 9 + "\tb\naaa\tbbb\n" + "a" * 11 + "\t" + "b" * 11 + "\n")
    corpus = read_pairs([path], filters=FilterConfig(max_length=10, max_ratio=3))
    assert corpus.pairs == (Pair("aaa", "bbb"),)
    assert "1 with one side more than 3 times the other (line 1)" in str(corpus.report)
    assert "1 with more than 10 characters (line 3)" in str(corpus.report)
    with pytest.raises(AttlasError, match="line 1 with one side more than 3 times"):
        read_pairs([path], filters=FilterConfig(max_ratio=3, unfit="error"))


def test_a_report_names_the_first_lines_and_counts_the_rest(tmp_path):
    path = put(tmp_path / "a.tsv", "a\tb\n" + "\tb\n" * 7)
    report = str(read_pairs([path]).report)
    assert "7 with an empty source (lines 2, 3, 4, 5, 6, …)" in report


def test_carriage_returns_are_reported(tmp_path):
    corpus = read_pairs([put(tmp_path / "a.tsv", "a\tb\r\nc\td\r\n")])
    assert corpus.pairs == (Pair("a", "b"), Pair("c", "d"))
    assert "2 carriage returns" in str(corpus.report)


def test_three_files_are_no_parallel_text(tmp_path):
    with pytest.raises(AttlasError, match="name one file or two"):
        read_pairs([tmp_path / "a", tmp_path / "b", tmp_path / "c"])


def test_a_line_with_another_number_of_columns_is_named(tmp_path):
    path = put(tmp_path / "a.tsv", "a\tb\nc\n")
    with pytest.raises(AttlasError, match=r"2 columns in every line of .*; got 1 column in line 2"):
        read_pairs([path])
    path = put(tmp_path / "b.tsv", "a\tb\nc\td\te\n")
    with pytest.raises(AttlasError, match=r"got 3 columns in line 2"):
        read_pairs([path])


def test_a_file_without_tabs_is_no_tsv(tmp_path):
    with pytest.raises(AttlasError, match=r"a column 2 in .*; got 1 column in line 1"):
        read_pairs([put(tmp_path / "a.tsv", "a b\n")])


def test_columns_are_chosen_by_number_or_by_the_names_of_a_header(tmp_path):
    path = put(tmp_path / "a.tsv", "id\ten\tde\n7\tone\teins\n8\t\tzwei\n")
    swapped = read_pairs([path], ("de", "en"))
    assert swapped.pairs == (Pair("eins", "one"),)
    assert swapped.lines == (2,)  # as an editor counts them
    assert "(line 3)" in str(swapped.report)
    assert read_pairs([path], (3, 2)).pairs[1] == Pair("eins", "one")
    with pytest.raises(AttlasError, match="a column named 'fr'"):
        read_pairs([path], ("en", "fr"))


def test_the_standard_input_is_tsv_or_one_side(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\n")))
    assert read_pairs(["-"]).pairs == (Pair("a", "b"),)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"a\nc\n"))))
    assert read_pairs(["-", put(tmp_path / "b", "b\nd\n")]).pairs == (("a", "b"), ("c", "d"))


def test_the_checksum_tells_corpora_apart(tmp_path):
    one, same = put(tmp_path / "1", "a\tb\n"), put(tmp_path / "2", "a\tb\n\t\n")
    other = put(tmp_path / "3", "b\ta\n")
    assert read_pairs([one]).checksum == read_pairs([same]).checksum
    assert read_pairs([one]).checksum != read_pairs([other]).checksum


def test_paths_of_a_recipe_are_relative_to_its_folder(tmp_path):
    put(tmp_path / "a.tsv", "a\tb\n")
    recipe = Recipe.read({"data": {"kind": "files", "train": "a.tsv", "valid": "a.tsv"}}, "recipe")
    splits = load_splits(recipe.data.resolved(tmp_path))
    assert len(splits.train) == len(splits.valid) == 1
    assert len(splits.test) == 0
    kept = FilesData(train=(str(tmp_path / "a.tsv"),), valid=("-",)).resolved(tmp_path / "other")
    assert kept.train == (str(tmp_path / "a.tsv"),)
    assert kept.valid == ("-",)


def test_bounds_hold_for_training_alone_so_that_a_test_set_stays_whole(tmp_path):
    put(tmp_path / "a.tsv", "a\tb\nlong line\tlong line\n")
    table = {"kind": "files", "train": "a.tsv", "valid": "a.tsv", "test": "a.tsv"}
    data = FilesData.read({**table, "filters": {"max_length": 3}}, "recipe").resolved(tmp_path)
    splits = load_splits(data)
    assert [len(c) for c in (splits.train, splits.valid, splits.test)] == [1, 2, 2]
    assert "1 with more than 3 characters" in str(splits)


def test_training_data_without_a_pair_is_an_error(tmp_path):
    put(tmp_path / "a.tsv", "\t\n")
    data = FilesData(train=("a.tsv",), valid=("a.tsv",)).resolved(tmp_path)
    with pytest.raises(AttlasError, match=r"at least one sentence pair in .*a\.tsv"):
        load_splits(data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"train": []}, "one TSV file"),
        ({"train": ""}, "one TSV file"),
        ({"train": ["a", "b", "c"]}, "got \\['a', 'b', 'c'\\]"),
        ({"train": ["-", "-"]}, "the standard input for one side"),
        ({"train": "-", "valid": "-"}, "can be read once"),
        ({"columns": [0, 1]}, "counted from 1"),
        ({"columns": [2, 2]}, "two different columns"),
        ({"filters": {"max_lenght": 3}}, "did you mean `max_length`"),
        ({"kind": "file"}, "kind"),
    ],
)
def test_wrong_settings_are_explained(change, said):
    table = {"kind": "files", "train": "a.tsv", "valid": "b.tsv", **change}
    with pytest.raises(AttlasError, match=said):
        Recipe.read({"data": table}, "recipe.toml")


@pytest.mark.parametrize("other", ["de", "fr", "cs"])
def test_multi30k_is_read_whole(shared_data, other):
    def paths(split):
        return tuple(str(shared_data / "multi30k" / f"{split}.{s}.gz") for s in ("en", other))

    data = FilesData(train=paths("train"), valid=paths("val"), test=paths("test_2016_flickr"))
    splits = load_splits(data)
    sizes = [len(corpus) for corpus in (splits.train, splits.valid, splits.test)]
    assert sizes == [29_000, 1_014, 1_000]
    assert splits.train.report.skipped == 0


@pytest.mark.parametrize(("name", "size"), [("de", 169_813), ("fr", 142_787), ("ja", 62_487)])
def test_tatoeba_is_read_whole(shared_data, name, size):
    assert len(read_pairs([shared_data / "tatoeba" / f"en-{name}.tsv.gz"])) == size


def test_tanaka_is_read_whole(shared_data):
    for split, size in (("train", 50_000), ("dev", 500)):
        folder = shared_data / "tanaka-en-ja"
        assert len(read_pairs([folder / f"{split}.en.gz", folder / f"{split}.ja.gz"])) == size


def test_newstest_is_read_by_the_names_of_its_columns(shared_data):
    for name in ("short_5-10", "medium_20-30"):
        corpus = read_pairs([shared_data / "sentence-lengths" / f"{name}.tsv"], ("de", "en"))
        assert len(corpus) == 300
        assert corpus.lines[0] == 2


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_missing_file_is_told_with_where_it_comes_from(tmp_path, split):
    there = {name: (str(put(tmp_path / name, "a\tb\n")),) for name in ("train", "valid", "test")}
    there[split] = (str(tmp_path / "lost.tsv"),)
    said = rf"no file at .*lost\.tsv; get it from the attic, or .* --set data\.{split}=…$"
    with pytest.raises(AttlasError, match=said):
        FilesData(**there, origin="the attic").load()
    with pytest.raises(AttlasError, match=r"no file at .*lost\.tsv; check the path$"):
        FilesData(**there).load()


def test_another_mistake_in_a_file_is_told_as_ever(tmp_path):
    damaged = str(put(tmp_path / "a", "one column\n"))
    with pytest.raises(AttlasError, match=r"set data\.columns"):
        FilesData(train=(damaged,), valid=(damaged,), origin="the attic").load()


@pytest.mark.parametrize("name", ["multi30k", "tiny", "long", "small", "base", "imdb"])
def test_a_shipped_recipe_says_where_its_missing_files_come_from(name, tmp_path, monkeypatch):
    from attlas.training import read_recipe

    monkeypatch.chdir(tmp_path)
    data = read_recipe(name).data
    with pytest.raises(AttlasError) as caught:
        data.load()
    assert "https://" in data.origin
    assert f"get it from {data.origin}, or name another with --set data.train=" in str(caught.value)
