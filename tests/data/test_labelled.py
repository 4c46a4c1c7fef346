import csv
import gzip
import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import Labelled, LabelledData, read_labelled, read_labelled_texts, read_pairs
from attlas.errors import AttlasError


def test_each_line_is_a_text_and_its_label(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress('{"text": "schön\\u2028!", "label": "pos"}\n'.encode()))
    assert read_labelled(path) == (Labelled("schön\u2028!", "pos"),)


def test_the_fields_have_the_names_that_are_asked_for_and_labels_become_text(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"review": "a", "stars": 4}\n{"review": "b", "stars": true}\n')
    assert read_labelled(path, "review", "stars") == (("a", "4"), ("b", "true"))


def test_a_number_is_one_label_however_it_is_written(tmp_path):
    path = tmp_path / "a.jsonl"
    numbers = ("1", "1.0", "1e0", "-0.0", "0", "100000000000000000001")
    path.write_text("".join(f'{{"text": "a", "label": {number}}}\n' for number in numbers))
    labels = [entry.label for entry in read_labelled(path)]
    assert labels == ["1", "1", "1", "0", "0", "100000000000000000001"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "a JSON object in line 2 of"),
        ("", "a JSON object in line 2 of"),
        ("[1]", "got a list; correct that line: write one object a line, with no list around them"),
        ("[", "got Expecting value at character 2; correct that line: write one object a line"),
        ('"a"', "got a text; "),
        ("text,label", "the name of a table ends in .csv or .tsv"),
        ('{"text": "a"}', "a field 'label' in line 2 of .* got the fields \\['text'\\]; {MEND}"),
        ('{"text": 3, "label": "a"}', "text in field 'text' of line 2 of .* got 3; {MEND}"),
        ('{"text": null, "label": "a"}', "text in field 'text' of line 2 of .* got null; {MEND}"),
        ('{"text": ["a"], "label": "a"}', "text in field 'text' of .* got a list; {MEND}"),
        ('{"text": "a", "label": null}', "text or a whole number in field 'label' .* got null"),
        ('{"text": "a", "label": 0.5}', "field 'label' of line 2 .* got 0.5; {MEND}"),
        ('{"text": "a", "label": NaN}', "field 'label' of line 2 .* got NaN; {MEND}"),
        ('{"text": "a", "label": {"a": 1}}', "field 'label' of line 2 .* got an object; {MEND}"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, said):
    path = tmp_path / "a.jsonl"
    whole = '{"text": "a", "label": "b"}'
    path.write_text(f"{whole}\n{line}\n{whole}\n")
    said = said.replace(
        "{MEND}", r"correct that line, or name the field \(data.text, data.label\)$"
    )
    with pytest.raises(AttlasError, match=said):
        read_labelled(path)


def test_imdb_is_read_whole(shared_data):
    reviews = read_labelled(shared_data / "imdb" / "train.jsonl.gz")
    assert Counter(review.label for review in reviews) == {"pos": 12_500, "neg": 12_500}


def packed(content, name):
    return gzip.compress(content) if name.lower().endswith(".gz") else content


@pytest.mark.parametrize("name", ["a.csv", "a.CSV", "a.csv.gz", "A.CSV.GZ"])
def test_a_table_has_a_header_and_its_quoted_fields_hold_anything(tmp_path, name):
    written = io.StringIO()
    rows = [
        ["id", "sentiment", "review"],
        ["1", "pos", 'two\nlines, "quoted"\t'],
        ["2", "neg", ""],
        ["3", "pos", "plain"],
    ]
    csv.writer(written).writerows(rows)
    content = written.getvalue().encode()
    (tmp_path / name).write_bytes(packed(content, name))
    found = read_labelled_texts(tmp_path / name, "review", "sentiment")
    assert found.entries == tuple(Labelled(row[2], row[1]) for row in rows[1:])
    assert found.places == (2, 4, 5)


@given(
    rows=st.lists(
        st.tuples(
            st.text(alphabet=st.characters(blacklist_characters="\r", codec="utf-8")),
            st.sampled_from(["pos", "neg"]),
        ),
        max_size=5,
    )
)
def test_what_a_table_writer_writes_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tables") / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("text", "label"), *rows])
    assert read_labelled(path) == tuple(rows)


@pytest.mark.parametrize("name", ["a.tsv", "a.TSV", "a.tsv.gz", "A.TSV.GZ"])
def test_a_quotation_mark_of_a_tsv_is_part_of_the_text(tmp_path, name):
    rows = [
        ("label", "text"),
        ("neg", '"bad film'),
        ("neg", "a dull one"),
        ("pos", 'so good"'),
        ("pos", '"Great" film'),
        ("pos", 'a "great" film, "great"'),
        ("pos", '"'),
    ]
    content = "".join("\t".join(row) + "\n" for row in rows).encode()
    (tmp_path / name).write_bytes(packed(content, name))
    found = read_labelled_texts(tmp_path / name)
    assert found.entries == tuple(Labelled(text, label) for label, text in rows[1:])
    assert found.places == (2, 3, 4, 5, 6, 7)
    assert found.remarks == ()


def test_texts_of_a_tsv_that_are_in_quotation_marks_are_reported(tmp_path):
    (tmp_path / "a.tsv").write_text('text\tlabel\n"a ""fine"" film"\tpos\nplain\tneg\n')
    found = read_labelled_texts(tmp_path / "a.tsv")
    assert found.entries[0].text == '"a ""fine"" film"'
    (reported,) = found.remarks
    assert "1 field in quotation marks, which are part of the text in a TSV" in reported
    assert 'data.quoting = "csv" takes them off' in reported


@pytest.mark.parametrize(("quoting", "text"), [("csv", 'a "fine" film'), ("none", None)])
def test_the_quotes_of_a_tsv_are_taken_off_where_the_settings_say_so(tmp_path, quoting, text):
    written = '"a ""fine"" film"'
    (tmp_path / "a.tsv").write_text(f"text\tlabel\n{written}\tpos\nplain\tneg\n")
    found = read_labelled_texts(tmp_path / "a.tsv", quoting=quoting)
    assert found.entries == ((text or written, "pos"), ("plain", "neg"))
    assert found.remarks == ()


def test_a_quoted_header_of_a_tsv_is_reported_of(tmp_path):
    (tmp_path / "a.tsv").write_text('"text"\t"label"\n"a"\t"b"\n')
    with pytest.raises(AttlasError, match=r'take the quotes off \(data\.quoting = "csv"\)'):
        read_labelled(tmp_path / "a.tsv")
    assert read_labelled_texts(tmp_path / "a.tsv", quoting="csv").entries == (("a", "b"),)


def test_a_table_of_another_separator_is_read_where_it_is_named(tmp_path):
    (tmp_path / "a.csv").write_text('text;label\n"so; so";3,5\n')
    assert read_labelled_texts(tmp_path / "a.csv", separator=";").entries == (("so; so", "3,5"),)
    (tmp_path / "a.txt").write_text("text|label\na|b\n")
    assert read_labelled_texts(tmp_path / "a.txt", separator="|").entries == (("a", "b"),)
    with pytest.raises(AttlasError, match="one character"):
        read_labelled_texts(tmp_path / "a.csv", separator="||")


LIKE_OTHER_TYPES = [
    "null", "NA", "n/a", "nan", "NaN", "None", "N/A", "", "007", "1e5", "True", "2020-01-01",
    "0x1F", "1,000", "-0.0", "inf", "#N/A", "<NA>",
]  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_the_words_of_a_table_are_text_whatever_they_look_like(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="," if suffix == ".csv" else "\t")
        writer.writerows([("text", "label"), *((word, word) for word in LIKE_OTHER_TYPES)])
    assert read_labelled(path) == tuple((word, word) for word in LIKE_OTHER_TYPES)


UNLABELLED = {
    "a.jsonl": '{"text": "a", "label": "x"}\n{"text": "b", "label": null}\n{"text": "c"}\n'
    '{"text": "d", "label": NaN}\n{"text": "e", "label": " "}\n{"text": "f", "label": "y"}\n',
    "a.csv": "text,label\na,x\nb,\nc,  \nd,\ne,\u200b\nf,y\n",
    "a.tsv": "text\tlabel\na\tx\nb\t\nc\t \nd\t\ne\t\u00a0\nf\ty\n",
}


@pytest.mark.parametrize("name", UNLABELLED)
def test_texts_without_a_label_are_left_out_and_counted_where_the_settings_say_so(tmp_path, name):
    path = str(tmp_path / name)
    (tmp_path / name).write_text(UNLABELLED[name], encoding="utf-8")
    data = LabelledData(train=path, valid=path, unlabelled="skip")
    train = data.corpus("train")
    assert (train.texts, train.labels) == (("a", "f"), ("x", "y"))
    assert "2 of 6 texts kept; left out 4 with no label (lines " in str(train.report)


@pytest.mark.parametrize("name", UNLABELLED)
def test_a_text_without_a_label_is_named_with_the_setting_that_leaves_it_out(tmp_path, name):
    path = str(tmp_path / name)
    (tmp_path / name).write_text(UNLABELLED[name], encoding="utf-8")
    line = 2 if name == "a.jsonl" else 3
    with pytest.raises(AttlasError, match=rf"line {line} of .*; .*data\.unlabelled = \"skip\""):
        LabelledData(train=path, valid=path).corpus("train")


def test_a_name_that_no_line_has_is_wrong_and_not_missing(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "stars": 1}\n')
    with pytest.raises(AttlasError, match=r"a field 'label' in .*; got no line that has it"):
        read_labelled_texts(path, unlabelled="skip")


FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\t"))


@given(rows=st.lists(st.tuples(FIELD, FIELD)))
def test_a_tsv_of_texts_is_divided_as_a_tsv_of_pairs_is(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tables") / "a.tsv"
    lines = "".join("\t".join(row) + "\n" for row in [("text", "label"), *rows])
    path.write_bytes(lines.encode())
    assert read_labelled(path) == tuple(rows)
    kept = tuple(row for row in rows if row[0].strip() and row[1].strip())
    assert read_pairs([path], ("text", "label")).pairs == kept


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text\tlabel\na\tb\tc\n", "2 fields in every row .* got 3 fields in the row of line 2"),
        ("text\tlabel\na\tb\nc\n", "got 1 field in the row of line 3; .* a CSV may, in quotes"),
        ("text\tlabel\na\tb\n\nc\td\n", "got 1 field in the row of line 3"),
        ('text\tlabel\n"a\nb"\tpos\n', "got 1 field in the row of line 2; .* or a line break"),
        ('"text"\t"label"\n', "one field 'text' in the header .* got the fields"),
        ("text,label\n", "separate the fields by tabs"),
        ("", "one field 'text'"),
    ],
)
def test_a_wrong_tsv_is_an_error_with_its_line(tmp_path, content, said):
    (tmp_path / "a.tsv").write_text(content)
    with pytest.raises(AttlasError, match=said):
        read_labelled(tmp_path / "a.tsv")


def test_a_field_may_be_longer_than_the_reader_of_tables_allows_by_itself(tmp_path):
    before = csv.field_size_limit()
    (tmp_path / "a.csv").write_text(f"text,label\n{'x' * (before + 1)},pos\n")
    assert len(read_labelled(tmp_path / "a.csv")[0].text) == before + 1
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("text,label\na,b,c\n", "2 fields in every row .* got 3 fields in the row of line 2"),
        ("text,label\na\n", "got 1 field in the row of line 2"),
        ("text,label\na,b\n\nc,d\n", "got 0 fields in the row of line 3"),
        ("review,label\na,b\n", "one field 'text' .* got the fields .* name the right field"),
        ("text;label\na;b\n", "got the fields \\['text;label'\\]; separate the fields by commas"),
        ("text,text,label\n", "one field 'text'"),
        ("", "one field 'text'"),
        ('text,label\na,b\n"c,d\n', "a whole row in line 3 .* got unexpected end"),
        ('text,label\n"a"b,c\n', "a whole row in line 2"),
    ],
)
def test_a_wrong_table_is_an_error_with_its_line(tmp_path, content, said):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(AttlasError, match=said):
        read_labelled(tmp_path / "a.csv")


def reviews_folder(folder, **texts):
    for label, some in texts.items():
        (folder / label).mkdir(parents=True)
        for number, text in enumerate(some):
            (folder / label / f"{number}_7.txt").write_text(text, encoding="utf-8")
    return folder


def test_a_folder_has_a_folder_for_each_label(tmp_path):
    reviews_folder(tmp_path, pos=["good\n", "fine"], neg=["bad"], unsup=["what", "who"])
    (tmp_path / "urls_pos.txt").write_text("http://example.org")
    found = read_labelled_texts(tmp_path)
    assert found.entries == (("bad", "neg"), ("good\n", "pos"), ("fine", "pos"))
    assert found.places == ("neg/0_7.txt", "pos/0_7.txt", "pos/1_7.txt")
    assert found.remarks == ("2 texts in unsup, without a label, left out",)


def test_other_files_among_the_texts_are_left_out_with_a_remark(tmp_path):
    reviews_folder(tmp_path, pos=["good"], neg=["bad"])
    (tmp_path / "pos" / "listing").write_text("0_7.txt")
    (tmp_path / "pos" / "._0_7.txt").write_bytes(b"\x00\xff")  # as macOS leaves them
    found = read_labelled_texts(tmp_path)
    assert len(found.entries) == 2
    reported = "2 files in pos left out, hidden or with a name that does not end in .txt"
    assert found.remarks == (reported,)


@pytest.mark.parametrize("texts", [{}, {"unsup": ["what"]}, {"pos": []}])
def test_a_folder_without_labelled_texts_is_an_error(tmp_path, texts):
    with pytest.raises(AttlasError, match="one folder for each label in"):
        read_labelled_texts(reviews_folder(tmp_path, **texts))


def test_a_text_of_a_folder_that_is_not_utf8_is_named(tmp_path):
    reviews_folder(tmp_path, pos=["good"])
    (tmp_path / "pos" / "0_7.txt").write_bytes(b"caf\xe9")
    with pytest.raises(AttlasError, match=r"UTF-8 text in .*0_7\.txt; got byte 0xe9 at byte 4"):
        read_labelled_texts(tmp_path)


def test_a_field_that_stands_twice_is_reported(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "text": "b", "label": 1}\n')
    with pytest.raises(AttlasError, match=r'line 1 of .*; got the field "text" more than once'):
        read_labelled(path)


def test_hidden_folders_are_no_labels(tmp_path):
    for folder in ("good", "bad", ".ipynb_checkpoints"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.txt").write_text("so so")
    assert {entry.label for entry in read_labelled(tmp_path)} == {"good", "bad"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "text,label\na,1\nb,2\n\n  \n"),
        ("a.tsv", "text\tlabel\na\t1\nb\t2\n\n"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": 2}\n\n'),
    ],
)
def test_blank_lines_at_the_end_of_a_table_are_none_of_its_rows(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_labelled(tmp_path / name) == (Labelled("a", "1"), Labelled("b", "2"))
