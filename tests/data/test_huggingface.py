import csv
import json
import sys

import pytest

from attlas.config import read_toml, write_toml
from attlas.data import FilterConfig, HuggingFaceData, load_splits
from attlas.errors import AttlasError

ROWS = {
    "train": [("one", "eins"), ("two", "zwei"), ("", "leer"), ("a\nb", "c")],
    "validation": [("three", "drei")],
    "test": [("four", "vier"), ("five", "fünf\u2028")],
}


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


@pytest.fixture
def nested(tmp_path):
    folder = tmp_path / "nested"
    folder.mkdir()
    for split, rows in ROWS.items():
        lines = [json.dumps({"translation": {"en": en, "de": de}}) for en, de in rows]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def checked(splits):
    assert splits.train.pairs == (("one", "eins"), ("two", "zwei"))
    assert splits.valid.pairs == (("three", "drei"),)
    assert splits.test.pairs[1] == ("five", "fünf\u2028")
    assert "2 of 4 pairs kept" in str(splits.train.report)
    assert "1 with an empty source (line 3)" in str(splits.train.report)
    assert "1 with a line break inside (line 4)" in str(splits.train.report)


def test_a_local_folder_of_json_lines_with_nested_translations(nested):
    checked(load_splits(HuggingFaceData(name=str(nested))))


@pytest.fixture
def on_the_hub(monkeypatch):
    """A dataset of that library's own; what was asked of the library."""
    import datasets

    rows = {
        "train": [("one", "eins"), ("a very long one", "b"), ("x", "long")],
        "validation": [("three", "drei"), ("y", "long")],
        "test": [("fourteen", "vierzehn")],
    }
    requested = []

    def loaded(name, config):
        requested.append((name, config))
        return {
            split: [{"translation": {"en": en, "de": de}} for en, de in pairs]
            for split, pairs in rows.items()
        }

    monkeypatch.setattr(datasets, "load_dataset", loaded)
    return requested


@pytest.mark.parametrize("config", ["de-en", None])
def test_a_configuration_is_asked_for_once_by_its_name(on_the_hub, config):
    data = HuggingFaceData(name="wmt16", config=config)
    assert load_splits(data).train.pairs == (
        ("one", "eins"), ("a very long one", "b"), ("x", "long"),
    )  # fmt: skip
    assert on_the_hub == [("wmt16", config)]
    assert data.corpus("valid").pairs == (("three", "drei"), ("y", "long"))
    assert on_the_hub == [("wmt16", config)] * 2


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [
        ({"max_length": 4}, (("one", "eins"), ("x", "long"))),
        ({"max_ratio": 2.0}, (("one", "eins"),)),
    ],
)
@pytest.mark.usefixtures("on_the_hub")
def test_the_bounds_of_a_filter_hold_for_training_alone(bounds, kept):
    data = HuggingFaceData(name="wmt16", filters=FilterConfig(**bounds))
    splits = load_splits(data)
    assert splits.train.pairs == data.corpus("train").pairs == kept
    assert splits.valid.pairs == (("three", "drei"), ("y", "long"))
    assert splits.test.pairs == (("fourteen", "vierzehn"),)


def test_a_filter_that_is_to_stop_at_a_fault_names_its_row(nested):
    data = HuggingFaceData(name=str(nested), filters=FilterConfig(empty="error"))
    with pytest.raises(AttlasError, match="line 3 with an empty source"):
        load_splits(data)


def test_a_relative_folder_is_found_beside_the_recipe(nested):
    checked(load_splits(HuggingFaceData(name="nested").resolved(nested.parent)))
    assert HuggingFaceData(name="wmt16").resolved(nested.parent).name == "wmt16"


def test_flat_columns_of_parquet_files_and_of_a_saved_dataset(tmp_path):
    import datasets

    dataset = datasets.DatasetDict(
        {
            split: datasets.Dataset.from_list([{"english": en, "german": de} for en, de in rows])
            for split, rows in ROWS.items()
        }
    )
    columns = {"source": "english", "target": "german"}
    dataset.save_to_disk(tmp_path / "saved")
    checked(load_splits(HuggingFaceData(name=str(tmp_path / "saved"), **columns)))
    for split, rows in dataset.items():
        rows.to_parquet(tmp_path / "parquet" / f"{split}.parquet")
    checked(load_splits(HuggingFaceData(name=str(tmp_path / "parquet"), **columns)))


def test_a_column_with_a_dot_in_its_name_is_meant_before_one_inside_of_another(tmp_path):
    for split, rows in ROWS.items():
        lines = [json.dumps({"text.en": en, "text": {"en": "x", "de": de}}) for en, de in rows]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    checked(load_splits(HuggingFaceData(name=str(tmp_path), source="text.en", target="text.de")))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "translation.fr"}, "a column 'translation.fr' .* got \\['en', 'de'\\]"),
        ({"source": "text"}, "a column 'text'"),
        ({"source": "translation"}, "text in column 'translation' .* got dict in row 1"),
        ({"valid": "dev"}, "a split 'dev' .* \\['test', 'train', 'validation'\\]"),
    ],
)
def test_wrong_names_are_explained(nested, change, said):
    with pytest.raises(AttlasError, match=said):
        load_splits(HuggingFaceData(name=str(nested), **change))


def test_a_dataset_without_a_test_set_stays_without_one_in_a_file_of_settings(nested):
    (nested / "test.jsonl").unlink()
    data = HuggingFaceData(name=str(nested), test="")
    (nested.parent / "config.toml").write_text(write_toml(data.model_dump(mode="json")))
    again = HuggingFaceData.read(read_toml(nested.parent / "config.toml"), "config.toml")
    assert again == data
    assert load_splits(again).test.pairs == ()
    with pytest.raises(AttlasError, match=r"a split 'test' .* or data\.test = .. where"):
        load_splits(HuggingFaceData(name=str(nested)))


def test_a_folder_without_data_is_an_error_of_the_caller(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(AttlasError, match="a dataset of Hugging Face at"):
        load_splits(HuggingFaceData(name=str(tmp_path / "empty")))


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch, nested):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(AttlasError, match=r"pip install 'attlas\[datasets\]'"):
        load_splits(HuggingFaceData(name=str(nested)))


WORDS = [
    "null", "NA", "n/a", "N/A", "nan", "NaN", "None", "#N/A", "<NA>", "-", "007", "1e5", "1_000",
    "True", "false", "2020-01-01", "2020-01-01T00:00:00Z", "0x1F", "-0.0", "inf", "1,5", '"so"',
]  # fmt: skip


def written(folder, kind, columns, rows):
    """The same rows as each kind of file has them."""
    for split in ("train", "validation", "test"):
        path = folder / f"{split}.{kind}"
        if kind in ("csv", "tsv"):
            with path.open("w", newline="", encoding="utf-8") as file:
                quoting = csv.QUOTE_MINIMAL if kind == "csv" else csv.QUOTE_NONE
                delimiter = "," if kind == "csv" else "\t"
                writer = csv.writer(file, delimiter=delimiter, quoting=quoting, quotechar='"')
                if kind == "tsv":
                    file.write("".join("\t".join(row) + "\n" for row in [columns, *rows]))
                else:
                    writer.writerows([columns, *rows])
        else:
            table = [dict(zip(columns, row, strict=True)) for row in rows]
            text = json.dumps(table, indent=1)
            if kind == "jsonl":
                text = "".join(json.dumps(row) + "\n" for row in table)
            path.write_text(text, encoding="utf-8")
    return HuggingFaceData(name=str(folder), source=columns[0], target=columns[1])


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json"])
def test_words_are_text_whatever_other_readers_take_them_for(tmp_path, kind):
    rows = [(word, word[::-1]) for word in WORDS]
    splits = load_splits(written(tmp_path, kind, ("en", "de"), rows))
    assert splits.train.pairs == splits.test.pairs == tuple(rows)
    assert splits.train.report.skipped == 0


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json"])
@pytest.mark.parametrize("word", ["null", "007", "1e5", "True", "2020-01-01"])
def test_a_column_of_nothing_but_such_words_is_text(tmp_path, kind, word):
    data = written(tmp_path, kind, ("en", "de"), [(word, word)] * 3)
    assert data.corpus("train").pairs == ((word, word),) * 3


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_value_that_is_missing_is_no_text_and_a_number_is_an_error(tmp_path, kind):
    import datasets

    folder = tmp_path / "rows"  # apart from the cache
    folder.mkdir()
    for split in ("train", "validation"):
        rows = datasets.Dataset.from_dict(
            {"en": ["a", None, "c"], "de": ["x", "y", "z"], "n": [1, 2, 3]}
        )
        path = str(folder / f"{split}.{kind}")
        rows.to_parquet(path) if kind == "parquet" else rows.to_json(path)
    data = HuggingFaceData(name=str(folder), source="en", target="de")
    assert "left out 1 with an empty source (line 2)" in str(data.corpus("train").report)
    strict = data.model_copy(update={"filters": FilterConfig(empty="error")})
    with pytest.raises(AttlasError, match="line 2 with an empty source"):
        strict.corpus("train")
    with pytest.raises(AttlasError, match=r"text in column 'n' .* got int in row 1"):
        data.model_copy(update={"target": "n"}).corpus("train")


def test_a_row_of_a_csv_that_is_too_short_is_an_error_with_its_line(tmp_path):
    for split in ("train", "validation"):
        (tmp_path / f"{split}.csv").write_text('en,de\n"two\nlines",b\nc\n')
    data = HuggingFaceData(name=str(tmp_path), source="en", target="de")
    with pytest.raises(AttlasError, match=r"2 fields in every row .* 1 field in the row of line 4"):
        data.corpus("train")


def test_quotes_of_a_tsv_are_taken_off_where_the_settings_say_so(tmp_path):
    (tmp_path / "train.tsv").write_text('en\tde\n"a ""b"""\t"c\td"\n')
    data = HuggingFaceData(name=str(tmp_path), source="en", target="de", quoting="csv")
    assert data.corpus("train").pairs == (('a "b"', "c\td"),)


def test_quotes_of_a_tsv_that_stay_are_reported(tmp_path):
    (tmp_path / "train.tsv").write_text('en\tde\n"a"\tb\n')
    train = HuggingFaceData(name=str(tmp_path), source="en", target="de").corpus("train")
    assert train.pairs == (('"a"', "b"),)
    assert "WARNING: 1 field in quotation marks" in str(train.report)


def test_json_that_is_neither_a_list_nor_lines_is_left_to_the_library(tmp_path):
    card = "---\nconfigs:\n- config_name: default\n  field: data\n  data_files: train.json\n---\n"
    (tmp_path / "README.md").write_text(card)
    (tmp_path / "train.json").write_text(json.dumps({"data": [{"en": "a", "de": "b"}]}, indent=1))
    data = HuggingFaceData(name=str(tmp_path), source="en", target="de")
    assert data.corpus("train").pairs == (("a", "b"),)


def test_a_card_that_wants_a_csv_read_in_another_way_is_refused_by_name(tmp_path):
    card = "---\nconfigs:\n- config_name: default\n  skiprows: 1\n  data_files: train.csv\n---\n"
    (tmp_path / "README.md").write_text(card)
    (tmp_path / "train.csv").write_text("a line\nen,de\na,b\n")
    data = HuggingFaceData(name=str(tmp_path), source="en", target="de")
    with pytest.raises(AttlasError, match="got a card that sets skiprows"):
        data.corpus("train")


def test_a_card_may_name_columns_and_separator_of_a_csv(tmp_path):
    card = (
        "---\nconfigs:\n- config_name: default\n  sep: '|'\n  column_names: [en, de]\n"
        "  data_files: train.csv\n---\n"
    )
    (tmp_path / "README.md").write_text(card)
    (tmp_path / "train.csv").write_text("a|b\nnull|NA\n")
    data = HuggingFaceData(name=str(tmp_path), source="en", target="de")
    assert data.corpus("train").pairs == (("a", "b"), ("null", "NA"))
