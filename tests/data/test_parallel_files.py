import csv
import gzip
import io
import os
import sys

import pytest

from attlas.config import Config, read_toml, write_toml
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


def test_signs_of_a_damaged_file_are_part_of_the_text_and_counted(tmp_path):
    table = put(tmp_path / "a.tsv", "a\0b\tx\n\0\0\ty\nc\tca\ufffd\nd\tz\n")
    corpus = read_pairs([table])
    assert corpus.pairs[0] == Pair("a\0b", "x")
    assert len(corpus.pairs) == 4
    said = str(corpus.report)
    assert "WARNING: 2 texts with U+0000" in said
    assert "WARNING: 1 text with U+FFFD" in said
    plain = read_pairs([put(tmp_path / "b.tsv", "a\tx\n")])
    assert "WARNING" not in str(plain.report)


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


def test_all_lines_with_another_number_of_columns_are_counted(tmp_path):
    path = put(tmp_path / "a.tsv", "a\tb\nc\nd\te\tf\ng\th\n")
    reported = r"got 1 column in line 2; other numbers than 2 in 2 lines; correct these lines"
    with pytest.raises(AttlasError, match=reported):
        read_pairs([path])


def test_blank_lines_at_the_end_are_no_pairs(tmp_path):
    corpus = read_pairs([put(tmp_path / "a.tsv", "a\tb\nc\td\n\n \n")])
    assert corpus.pairs == (Pair("a", "b"), Pair("c", "d"))
    with pytest.raises(AttlasError, match="got 1 column in line 2"):
        read_pairs([put(tmp_path / "b.tsv", "a\tb\n\nc\td\n")])


WORDS = ["null", "NA", "n/a", "nan", "None", "007", "1e5", "True", "2020-01-01", "so, so", ' "x" ']
QUOTED = [*WORDS, 'He said "no".', "a\ttab", "semi;colon", "a\u2028b\x0bc\x85d"]


def as_table(rows, separator):
    written = io.StringIO()
    csv.writer(written, delimiter=separator).writerows(rows)
    return written.getvalue()


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("name", "separator", "said"),
    [
        ("a.csv", ",", {}),
        ("a.CSV", ";", {"separator": ";"}),
        ("a.tsv", "\t", {"quoting": "csv"}),
        ("a.txt", "|", {"quoting": "csv", "separator": "|"}),
    ],
)
def test_a_table_with_quotes_is_read_as_its_writer_meant_it(tmp_path, name, separator, said, mark):
    rows = [(word, str(n), word[::-1]) for n, word in enumerate(QUOTED)]
    path = put(tmp_path / name, mark + as_table([("de", "id", "en"), *rows], separator))
    corpus = read_pairs([path], ("en", "de"), **said)
    assert corpus.pairs == tuple((row[2], row[0]) for row in rows)
    assert corpus.lines == tuple(range(2, len(rows) + 2))
    assert read_pairs([path], (3, 1), **said).pairs[1:] == corpus.pairs
    assert "WARNING" not in str(corpus.report)


def test_a_row_of_a_csv_goes_over_lines_and_no_pair_has_a_line_break(tmp_path):
    path = put(tmp_path / "a.csv", 'en,de\none,eins\n"two\nlines",zwei\nthree,drei\n')
    corpus = read_pairs([path], ("en", "de"))
    assert corpus.pairs == (("one", "eins"), ("three", "drei"))
    assert corpus.lines == (2, 5)
    assert "1 with a line break inside (line 3)" in str(corpus.report)


def test_the_columns_of_a_csv_have_to_be_named_because_a_header_is_likely(tmp_path):
    path = put(tmp_path / "a.csv", "en,de\none,eins\n")
    with pytest.raises(AttlasError, match=r"its first row is \['en', 'de'\]; name two of them"):
        read_pairs([path])
    with pytest.raises(AttlasError, match=r"data\.columns: which columns of"):
        FilesData(train=(str(path),), valid=(str(path),)).load()
    named = FilesData(train=(str(path),), valid=(str(path),), columns=("en", "de"))
    assert named.load().train.pairs == (("one", "eins"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('en,de\n"one,eins\n', "a whole row in line 2 .* got unexpected end"),
        ("en,de\none\n", "2 columns in every line .* got 1 column in line 2; correct that line$"),
        (
            "en;de\none;eins\n",
            "a column named 'en' .* separate the columns by commas, or set",
        ),
    ],
)
def test_a_wrong_csv_of_pairs_is_an_error_with_its_line(tmp_path, text, said):
    with pytest.raises(AttlasError, match=said):
        read_pairs([put(tmp_path / "a.csv", text)], ("en", "de"))


def test_an_empty_line_of_a_table_is_called_so(tmp_path):
    path = put(tmp_path / "a.tsv", "a\tb\r\n \r\nc\td\r\n")
    with pytest.raises(AttlasError, match="got 1 column in line 2, which is empty; correct that"):
        read_pairs([path])


def test_quoted_fields_of_a_tsv_are_reported_until_somebody_says_how_they_are_meant(tmp_path):
    path = put(tmp_path / "a.tsv", '"a ""b"""\tc\n"Yes," he said. "No."\td\n')
    reported = str(read_pairs([path]).report)
    assert "WARNING: 1 field in quotation marks" in reported
    assert 'data.quoting = "csv" takes them off' in reported
    assert "WARNING" not in str(read_pairs([path], quoting="none").report)
    plain = put(tmp_path / "b.tsv", '"a ""b"""\t"c"\n')
    assert read_pairs([plain], quoting="csv").pairs == (('a "b"', "c"),)
    for settings, pairs in (({}, (('"a ""b"""', '"c"'),)), ({"quoting": "csv"}, (('a "b"', "c"),))):
        data = FilesData(train=(str(plain),), valid=(str(plain),), **settings)
        assert data.load().train.pairs == pairs


def test_a_quoted_field_that_holds_what_divides_a_tsv_is_reported_of_the_setting(tmp_path):
    path = put(tmp_path / "a.tsv", 'a\tb\n"c\nd"\te\n')
    with pytest.raises(AttlasError, match=r'got 1 column in line 2; .*set data\.quoting = "csv"'):
        read_pairs([path])
    path = put(tmp_path / "b.tsv", '"en"\t"de"\n"c"\t"e"\n')
    with pytest.raises(AttlasError, match=r'take the quotes off \(data\.quoting = "csv"\)'):
        read_pairs([path], ("en", "de"))


def test_settings_of_a_table_without_one_are_an_error():
    files = {"train": ("a", "b"), "valid": ("c", "d")}
    table = {"kind": "files", **files, "separator": ";", "quoting": "csv"}
    with pytest.raises(AttlasError, match=r"a table .* beside data\.separator and data\.quoting"):
        Recipe.read({"data": table}, "recipe.toml")
    with pytest.raises(AttlasError, match=r"data\.separator: one character"):
        Recipe.read({"data": {"kind": "files", **files, "separator": "tab"}}, "recipe.toml")


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
    path = put(tmp_path / "b.tsv", "en\tde\ten\none\teins\ttwo\n")
    with pytest.raises(AttlasError, match="expected one column named 'en' in line 1"):
        read_pairs([path], ("en", "de"))
    assert read_pairs([path], (3, 2)).pairs[-1] == Pair("two", "eins")


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


@pytest.fixture
def table(tmp_path):
    """Pairs of which some are long, some have a source again, one has no target."""
    pairs = [(f"a {n % 80}", f"b {n}" + " and so on" * (n % 10 == 0)) for n in range(100)]
    lines = "".join(f"{source}\t{target}\n" for source, target in [*pairs, ("alone", "")])
    return str(put(tmp_path / "a.tsv", lines))


@pytest.mark.parametrize("size", [20, 0.2])
def test_a_part_of_the_training_data_is_held_back_where_no_file_is_named(table, size):
    splits = FilesData(train=(table,), held_back=size).load()
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (80, 20, 0)
    assert not set(splits.train.sources) & set(splits.valid.sources)
    parts, whole = (splits.train, splits.valid), read_pairs([table])
    both = [entry for side in parts for entry in zip(side.lines, side.pairs, strict=True)]
    assert sorted(both) == list(zip(whole.lines, whole.pairs, strict=True))
    assert splits.valid.lines == tuple(sorted(splits.valid.lines))
    said = (
        f"{table} without the part held back: 80 of 101 pairs kept; left out 1 with an empty "
        "target (line 101); 20 pairs held back; 20 repetitions of a source (all copies are in "
        "one part); 20 sources with several translations"
    )
    assert str(splits.train.report) == said
    assert str(splits.valid.report) == f"{table}, held back (seed 1): 20 of 100 pairs kept"


def test_each_split_alone_is_the_one_among_all(table, tmp_path):
    test = str(put(tmp_path / "test.tsv", "x\ty\n"))
    data = FilesData(train=(table,), test=(test,), held_back=7, filters=FilterConfig(max_length=9))
    splits = data.load()
    for name in ("train", "valid", "test"):
        alone, among = data.corpus(name), getattr(splits, name)
        assert (alone.checksum, alone.name, alone.report) == (
            among.checksum, among.name, among.report,
        )  # fmt: skip


def test_what_is_held_back_stays_whole_whatever_the_bounds_of_training(table):
    free = FilesData(train=(table,), held_back=40).load()
    bound = FilesData(train=(table,), held_back=40, filters=FilterConfig(max_length=9)).load()
    assert bound.valid.checksum == free.valid.checksum
    assert max(len(pair.target) for pair in bound.valid.pairs) > 9
    assert bound.train.pairs == tuple(pair for pair in free.train.pairs if len(pair.target) <= 9)
    assert "with more than 9 characters" in str(bound.train.report)
    assert "40 pairs held back" in str(bound.train.report)
    strict = FilesData(
        train=(table,), held_back=40, filters=FilterConfig(max_length=9, unfit="error")
    )
    assert strict.corpus("valid").checksum == free.valid.checksum
    with pytest.raises(AttlasError, match="with more than 9 characters"):
        strict.load()


def test_bounds_that_leave_nothing_to_train_on_are_an_error_beside_a_held_back_part(table):
    data = FilesData(train=(table,), held_back=40, filters=FilterConfig(max_length=1))
    for read in (data.load, lambda: data.corpus("train")):
        with pytest.raises(AttlasError, match=r"at least one sentence pair in .*a\.tsv; got"):
            read()


def test_another_seed_holds_back_other_pairs(table):
    parts = {FilesData(train=(table,), held_back=20, seed=s).load().valid.pairs for s in range(4)}
    assert len(parts) == 4


def test_the_standard_input_is_read_once_and_parted(table, monkeypatch):
    content = read_pairs([table]).pairs
    lines = "".join(f"{source}\t{target}\n" for source, target in content).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    piped = FilesData(train=("-",), held_back=20)
    assert piped.passing
    splits = piped.load()
    filed = FilesData(train=(table,), held_back=20).load()
    assert (splits.train.pairs, splits.valid.pairs) == (filed.train.pairs, filed.valid.pairs)


def test_a_source_of_the_validation_set_that_is_trained_on_is_reported(tmp_path):
    train = str(put(tmp_path / "a.tsv", "a\tb\nc\td\n"))
    valid = str(put(tmp_path / "b.tsv", "a\tother\ne\tf\n"))
    again = "of it in the training data as well"
    some = FilesData(train=(train,), valid=(valid,)).load()
    assert f"2 of 2 pairs kept; 1 source {again}" in str(some.valid.report)
    same = FilesData(train=(train,), valid=(train,)).load()
    assert f"2 of 2 pairs kept; 2 sources {again}" in str(same.valid.report)
    apart = str(put(tmp_path / "c.tsv", "e\tf\n"))
    assert again not in str(FilesData(train=(train,), valid=(apart,)).load())


def test_an_empty_name_is_none(tmp_path):
    table = {"kind": "files", "train": "a.tsv", "valid": "", "test": "", "held_back": 3}
    data = Recipe.read({"data": table}, "recipe.toml").data.resolved(tmp_path)
    assert (data.valid, data.test) == (None, None)
    assert len(data.corpus("test")) == 0


def test_a_recipe_from_before_parts_were_held_back_means_what_it_did(tmp_path):
    table = {"kind": "files", "train": "a.tsv", "valid": "b.tsv"}
    data = FilesData.read(table, "an older recipe")
    assert (data.valid, data.held_back) == (("b.tsv",), 0)
    (tmp_path / "config.toml").write_text(write_toml(data.model_dump(mode="json")))
    assert FilesData.read(read_toml(tmp_path / "config.toml"), "config.toml") == data


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
        ({"filters": {"max_lenght": 3}}, "did you mean `.*max_length`"),
        ({"kind": "file"}, "kind"),
        ({"valid": ""}, "data.valid, .* or data.held_back, so many pairs .* got neither; set one"),
        ({"held_back": 3}, "data.valid, .* or data.held_back, .* got both"),
        ({"valid": "", "held_back": 1.0}, "a whole number of pairs, or a share between 0 and 1"),
        ({"valid": "", "held_back": -1}, "a whole number of pairs, or a share between 0 and 1"),
        ({"valid": "", "held_back": True}, "held_back"),
        ({"valid": "", "held_back": 3, "seed": -1}, "seed"),
        ({"test": ["a", ""]}, "one TSV file"),
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
def test_a_missing_file_is_reported_with_where_it_comes_from(tmp_path, split):
    there = {name: (str(put(tmp_path / name, "a\tb\n")),) for name in ("train", "valid", "test")}
    there[split] = (str(tmp_path / "lost.tsv"),)
    said = rf"no file at .*lost\.tsv; get it from the attic, or .* --set data\.{split}=…$"
    with pytest.raises(AttlasError, match=said):
        FilesData(**there, origin="the attic").load()
    with pytest.raises(AttlasError, match=r"no file at .*lost\.tsv; check the path$"):
        FilesData(**there).load()


def test_another_mistake_in_a_file_is_reported_as_ever(tmp_path):
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


@pytest.mark.parametrize("name", ["tiny", "imdb"])
def test_files_of_ones_own_have_not_the_origin_of_a_recipes(name):
    from attlas.training import read_recipe

    assert read_recipe(name, ["data.train=mine.tsv"]).data.origin == ""
    assert read_recipe(name, ["data.test=mine.tsv"]).data.origin.startswith("https://")
    own = read_recipe(name, ["data.train=mine.tsv", "data.origin=the attic"])
    assert own.data.origin == "the attic"


def test_two_tables_are_not_two_sides(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text("a\tb\nc\td\n")
    with pytest.raises(AttlasError, match=r"two tables, .*one and .*two.*names that end in .tsv"):
        read_pairs([tmp_path / "one", tmp_path / "two"])
    (tmp_path / "two").write_text("a\tb\nno tab\n")
    assert len(read_pairs([tmp_path / "one", tmp_path / "two"])) == 2


def test_a_folder_whose_name_is_no_utf_8_is_refused_where_data_is_looked_for_in_it(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    data = FilesData(train=("a.tsv",), valid=("b.tsv",))
    with pytest.raises(AttlasError, match=r"path that is UTF-8.*got .*caf\\udce9"):
        data.resolved(folder)
    assert data.resolved(tmp_path).train == (str(tmp_path / "a.tsv"),)
