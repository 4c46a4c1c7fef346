"""Labels, as people are told of them."""

import pytest

from attlas.data import (
    Labelled,
    LabelledTexts,
    LabelledVocabularies,
    Labels,
    describe_labels,
    labelled_corpus_of,
)
from attlas.errors import AttlasError


def corpus(*labels):
    entries = tuple(Labelled(f"text {n}", label) for n, label in enumerate(labels))
    return labelled_corpus_of(LabelledTexts("some", entries, tuple(range(1, len(labels) + 1))))


def test_labels_are_reported_with_their_number_the_commonest_first():
    reported = describe_labels(corpus(*["neg"] * 1_500, "so-so", *["pos"] * 1_500))
    assert reported == "labels: neg (1,500), pos (1,500), so-so (1)"


def test_of_many_labels_the_first_are_reported_and_how_many_there_are():
    many = [f"id {n:04}" for n in range(2_000)]
    reported = describe_labels(corpus(*many, many[-1]))
    assert reported.startswith("labels: id 1999 (2), id 0000 (1), ")
    assert reported.endswith(", … (2,000 in all)")
    assert len(reported) < 300


def test_a_label_that_nobody_learned_is_an_error_of_a_length_that_can_be_read():
    many = Labels.of(f"id {n:04}" for n in range(2_000))
    with pytest.raises(AttlasError, match=r"id 0000, .*… \(2,000 in all\) .*data\.label") as caught:
        many.ids(corpus("id 0007", "other" * 1_000))
    assert "in line 2" in str(caught.value)
    assert len(str(caught.value)) < 500
    with pytest.raises(AttlasError, match="one of the labels neg, pos of the training data"):
        Labels(("neg", "pos")).ids(corpus("other"))
    assert len(str(Labels(("a" * 5_000, "b")))) < 100


NESTED = pytest.param("[" * 99_999 + "]" * 99_999, id="nested")


@pytest.mark.parametrize("content", ["", '["a', "[1]", "{}", NESTED])
def test_a_file_that_holds_no_list_of_labels_is_to_be_restored(tmp_path, content):
    (tmp_path / "labels.json").write_text(content)
    with pytest.raises(
        AttlasError, match=r"a list of labels at .*labels\.json; .*restore that file"
    ):
        LabelledVocabularies.load(tmp_path)
