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
    asked = []

    def loaded(name, config):
        asked.append((name, config))
        return {
            split: [{"translation": {"en": en, "de": de}} for en, de in pairs]
            for split, pairs in rows.items()
        }

    monkeypatch.setattr(datasets, "load_dataset", loaded)
    return asked


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
