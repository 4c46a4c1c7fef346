"""Labelled corpora, their held-back part, and their settings."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import (
    FilterReport,
    Labelled,
    LabelledCorpus,
    LabelledData,
    LabelledTexts,
    Labels,
    labelled_corpus_of,
)
from attlas.data.base import split_validation
from attlas.errors import AttlasError


def corpus(texts: list[str], labels: list[str] | None = None) -> LabelledCorpus:
    given_labels = tuple(labels or ["pos", "neg"] * len(texts))[: len(texts)]
    report = FilterReport("some", len(texts), len(texts), example="text")
    return LabelledCorpus(
        "some", tuple(texts), given_labels, tuple(range(1, len(texts) + 1)), report
    )


def lines(path: Path, *entries: tuple[str, object]) -> Path:
    path.write_text(
        "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in entries)
    )
    return path


TEXTS = st.lists(st.sampled_from([f"text {n}" for n in range(12)]), min_size=2, max_size=40)


@given(texts=TEXTS, share=st.floats(0.05, 0.95), seed=st.integers(0, 9))
def test_no_text_is_on_both_sides_and_none_is_lost(
    texts: list[str], share: float, seed: int
) -> None:
    try:
        rest, part = split_validation(corpus(texts), share, seed)
    except AttlasError:
        return  # too few different texts to part
    assert not set(rest.texts) & set(part.texts)
    assert sorted([*rest.places, *part.places]) == list(range(1, len(texts) + 1))
    assert sorted(rest.texts + part.texts) == sorted(texts)
    assert 0 < len(part) <= max(1, round(share * len(texts)))
    assert rest.texts


@given(count=st.integers(3, 40), data=st.data(), seed=st.integers(0, 9))
def test_of_different_texts_just_so_many_are_held_back(
    count: int, data: st.DataObject, seed: int
) -> None:
    size = data.draw(st.integers(1, count - 2))  # one of each label stays
    _, part = split_validation(corpus([f"text {n}" for n in range(count)]), size, seed)
    assert len(part) == size


@given(order=st.permutations(range(20)), seed=st.integers(0, 9))
def test_which_texts_are_held_back_does_not_depend_on_their_order(
    order: list[int], seed: int
) -> None:
    texts = [f"text {n}" for n in range(20)]
    _, part = split_validation(corpus(texts), 5, seed)
    _, other = split_validation(corpus([texts[place] for place in order]), 5, seed)
    assert set(part.texts) == set(other.texts)


def test_another_seed_holds_back_other_texts() -> None:
    texts = [f"text {n}" for n in range(100)]
    chosen = {split_validation(corpus(texts), 20, seed)[1].texts for seed in range(5)}
    assert len(chosen) == 5


def test_copies_are_reported() -> None:
    rest, part = split_validation(
        corpus(["a", "b", "a", "a", "c"], ["pos", "pos", "neg", "pos", "pos"]), 1, 1
    )
    assert (
        "2 repetitions of a text (all copies are in one part); 1 text with several labels"
        in str(rest.report)
    )
    assert "held back (seed 1): 1 of 5 texts kept" in str(part.report)


@pytest.mark.parametrize(
    ("texts", "size", "said"),
    [
        (["a", "b"], 2, "fewer than the 2 texts of some to hold back"),
        (["a", "a", "a"], 1, "different texts in some"),
    ],
)
def test_what_cannot_be_parted_is_an_error(texts: list[str], size: int, said: str) -> None:
    with pytest.raises(AttlasError, match=said):
        split_validation(corpus(texts), size, 1)


def test_a_text_becomes_one_line_and_an_empty_one_is_left_out_and_reported() -> None:
    entries = (Labelled("a<br />b\n c", " pos "), Labelled(" <br>\n", "neg"), Labelled("d", "neg"))
    found = labelled_corpus_of(LabelledTexts("there", entries, (1, 4, 7)))
    assert found.texts == ("a b c", "d")
    assert found.labels == ("pos", "neg")
    assert found.places == (1, 7)
    assert str(found.report) == "there: 2 of 3 texts kept; left out 1 with an empty text (line 4)"


def test_the_places_of_a_folder_are_named_as_they_are() -> None:
    found = labelled_corpus_of(LabelledTexts("there", (Labelled(" ", "pos"),), ("pos/1.txt",)))
    assert "1 with an empty text (pos/1.txt)" in str(found.report)


@pytest.mark.parametrize(
    ("entry", "said"),
    [(Labelled("a", "  "), "a label in line 3 of there"), (Labelled("\ud800", "a"), "surrogate")],
)
def test_what_no_corpus_can_hold_is_an_error_with_its_place(entry: Labelled, said: str) -> None:
    with pytest.raises(AttlasError, match=said):
        labelled_corpus_of(LabelledTexts("there", (entry,), (3,)))


def test_the_checksum_is_that_of_texts_and_labels() -> None:
    sums = {
        corpus(["a", "b"]).checksum,
        corpus(["a", "c"]).checksum,
        corpus(["a", "b"], ["pos", "pos"]).checksum,
        corpus(["b", "a"]).checksum,
    }
    assert len(sums) == 4
    assert corpus(["a", "b"]).checksum == corpus(["a", "b"]).checksum


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "data.valid, .* or data.held_back, .* got neither"),
        ({"valid": "v", "held_back": 3}, "got both"),
        ({"held_back": 0}, "got neither; .* held_back = 0 holds nothing back"),
        ({"held_back": 1.0}, "a whole number of texts, or a share"),
        ({"held_back": 0.0}, "a whole number of texts, or a share"),
        ({"held_back": -1}, "a whole number of texts, or a share"),
        ({"held_back": -0.1}, "a whole number of texts, or a share"),
        ({"held_back": "some"}, "data.held_back|held_back"),
        ({"held_back": True}, "held_back"),
        ({"held_back": 3, "texts": "x"}, "got `texts`; did you mean `text`"),
    ],
)
def test_settings_that_make_no_sense_are_errors(table: dict[str, object], said: str) -> None:
    with pytest.raises(AttlasError, match=said):
        LabelledData.read({"kind": "labelled", "train": "t", **table}, "the test")


def test_an_empty_name_is_none(tmp_path: Path) -> None:
    table = {"kind": "labelled", "train": "t", "valid": "", "test": "", "held_back": 3}
    data = LabelledData.read(table, "the test").resolved(tmp_path)
    assert (data.valid, data.test) == (None, None)
    assert data == LabelledData(train=str(tmp_path / "t"), held_back=3)
    with pytest.raises(AttlasError, match=r"`train` in the test: .* got ''"):
        LabelledData.read({**table, "train": ""}, "the test")


def test_relative_paths_are_those_of_the_recipe(tmp_path: Path) -> None:
    data = LabelledData(train="t.jsonl", valid="/there/v.csv").resolved(tmp_path)
    assert data == LabelledData(train=str(tmp_path / "t.jsonl"), valid="/there/v.csv")


def test_each_split_alone_is_the_one_among_all(tmp_path: Path) -> None:
    train = lines(tmp_path / "t.jsonl", *((f"text {n}", n % 2) for n in range(20)))
    test = lines(tmp_path / "test.jsonl", ("of a test", 1))
    data = LabelledData(train=str(train), held_back=0.25, test=str(test))
    splits = data.load()
    assert (len(splits.train), len(splits.valid), len(splits.test)) == (15, 5, 1)
    for name in ("train", "valid", "test"):
        assert data.corpus(name).checksum == getattr(splits, name).checksum


def test_a_text_of_the_validation_set_that_is_trained_on_is_reported(tmp_path: Path) -> None:
    train = lines(tmp_path / "t.jsonl", ("a", 0), ("b", 1))
    valid = lines(tmp_path / "v.jsonl", ("a", 0), ("c", 1))
    splits = LabelledData(train=str(train), valid=str(valid), held_back=0).load()
    assert "1 text of it in the training data as well" in str(splits.valid.report)
    assert len(splits.test) == 0


def test_the_folder_as_it_is_distributed_is_read(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for label in ("pos", "neg", *["unsup"] * (split == "train")):
            (tmp_path / "aclImdb" / split / label).mkdir(parents=True)
            for n in range(4):
                path = tmp_path / "aclImdb" / split / label / f"{n}_9.txt"
                path.write_text(f"{split} {label} {n}<br /><br />", encoding="utf-8")
    (tmp_path / "aclImdb" / "train" / "urls_pos.txt").write_text("http://example.org\n")
    data = LabelledData(train="aclImdb", held_back=2, test="aclImdb").resolved(tmp_path)
    splits = data.load()
    assert set(splits.test.texts) == {f"test {lb} {n}" for lb in ("pos", "neg") for n in range(4)}
    assert len(splits.train) == 6
    assert "unsup" not in set(splits.train.labels)
    assert data.corpus("train").checksum == splits.train.checksum
    whole = LabelledData(train=str(tmp_path / "aclImdb" / "train"), held_back=2)
    assert whole.corpus("train").texts == splits.train.texts
    assert "4 texts in unsup, without a label, left out" in str(splits.train.report)


def test_a_corpus_without_a_text_is_an_error(tmp_path: Path) -> None:
    train = lines(tmp_path / "t.jsonl", (" ", 0))
    with pytest.raises(AttlasError, match="at least one labelled text in"):
        LabelledData(train=str(train), held_back=1).load()


def test_imdb_is_parted_by_text(shared_data: Path) -> None:
    data = LabelledData(train=str(shared_data / "imdb" / "train.jsonl.gz"), held_back=2500)
    splits = data.load()
    assert (len(splits.train), len(splits.valid)) == (22_500, 2_500)
    assert not set(splits.train.texts) & set(splits.valid.texts)
    assert not any("<br" in text for text in splits.train.texts)
    assert "repetitions of a text" in str(splits.train.report)


@pytest.mark.parametrize("name", ["lost.jsonl", "lost.csv", "lost"])
def test_a_missing_file_is_reported_with_where_it_comes_from(tmp_path: Path, name: str) -> None:
    data = LabelledData(train=str(tmp_path / name), held_back=0.1, origin="the attic")
    said = rf"no file at .*{name}; get it from the attic, or name another with --set data\.train=…"
    for split in ("train", "valid"):  # which is a part of train
        with pytest.raises(AttlasError, match=said):
            data.corpus(split)


def alike_in(labels: list[str]) -> tuple[LabelledCorpus, str]:
    entries = tuple(Labelled(f"text {n}", label) for n, label in enumerate(labels))
    found = labelled_corpus_of(LabelledTexts("there", entries, tuple(range(len(entries)))))
    return found, str(found.report)


@pytest.mark.parametrize(
    "label", [" pos", "pos ", "\tpos\u00a0", "\ufeffpos", "\u200bpos", "\u3000pos\n", " \u200b pos"]
)
def test_what_cannot_be_seen_around_a_label_is_none_of_it(label: str) -> None:
    found, reported = alike_in(["pos", label])
    assert found.labels == ("pos", "pos")
    assert "WARNING" not in reported


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ("pos", "Pos", "'Pos' (1) and 'pos' (2)"),
        ("STRASSE", "straße", "'STRASSE' (2) and 'straße' (1)"),
        ("café", "cafe\u0301", r"'cafe\u0301' (1) and 'caf\xe9' (2)"),
        ("ABC", "ＡＢＣ", "'ABC' (2) and 'ＡＢＣ' (1)"),
        ("ガ", "ｶﾞ", "'ガ' (2) and 'ｶﾞ' (1)"),
    ],
)
def test_labels_that_differ_in_case_or_form_alone_stay_and_are_reported(
    one: str, other: str, shown: str
) -> None:
    found, reported = alike_in([one, other, one])
    assert found.labels == (one, other, one)
    assert f"WARNING: the labels {shown} differ in case or in Unicode form alone" in reported
    assert "WARNING" not in alike_in([one, "another", one])[1]


def test_a_label_that_is_unknown_for_its_case_alone_is_reported_the_known_one() -> None:
    with pytest.raises(AttlasError, match=r"got 'Pos' in line 2; did you mean 'pos'\?"):
        Labels(("neg", "pos")).ids(corpus(["a", "b"], ["neg", "Pos"]))
