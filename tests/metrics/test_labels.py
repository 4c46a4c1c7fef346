"""Precision, recall and F1 of each label, and their mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.metrics import label_scores, macro_f1, macro_f1_signature

LABELS = ("a", "b", "c", "d")


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), max_size=30))
def test_each_label_is_counted_over_all_texts(pairs: list[tuple[str, str]]) -> None:
    expected, found = [own for own, _ in pairs], [other for _, other in pairs]
    scores = label_scores(expected, found, LABELS)
    means = []
    for label in LABELS:
        true = sum(pair == (label, label) for pair in pairs)
        false = sum(other == label != own for own, other in pairs)
        missed = sum(own == label != other for own, other in pairs)
        precision = true / (true + false) if true + false else 0.0
        recall = true / (true + missed) if true + missed else 0.0
        one = scores[label]
        assert (one.precision, one.recall) == (precision, recall)
        if true + false + missed:  # as scikit-learn has it: labels that nobody names do not count
            both = precision + recall
            means.append(2 * precision * recall / both if both else 0.0)
            assert one.f1 == pytest.approx(means[-1])
    assert macro_f1(scores) == pytest.approx(sum(means) / len(means) if means else 0.0)


def test_the_worked_example_of_scikit_learn() -> None:
    """The user guide has: f1_score([0, 1, 2, 0, 1, 2], [0, 2, 1, 0, 0, 1], average="macro")."""
    scores = label_scores([*"012012"], [*"021001"], "012")
    assert macro_f1(scores) == pytest.approx(0.26666, abs=1e-5)
    assert macro_f1_signature(scores) == "average:macro|labels:3|of:3|zero_division:0"


def test_a_label_that_nobody_names_is_said_not_to_count() -> None:
    scores = label_scores([*"aab"], [*"aaa"], LABELS)
    assert macro_f1(scores) == pytest.approx((0.8 + 0.0) / 2)
    assert macro_f1_signature(scores) == "average:macro|labels:2|of:4|zero_division:0"


def test_unequal_counts_are_an_error() -> None:
    with pytest.raises(AttlasError, match="one predicted label for each expected one"):
        label_scores(["a"], [], "a")


def test_a_label_is_not_taken_for_the_list_of_its_letters() -> None:
    with pytest.raises(AttlasError, match="lists of labels"):
        label_scores("abba", ["a", "b", "b", "a"], LABELS)
    with pytest.raises(AttlasError, match="lists of labels"):
        label_scores(["a", "b", "b", "a"], "abba", LABELS)
