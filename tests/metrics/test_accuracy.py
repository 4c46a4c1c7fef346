import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.metrics import sequence_accuracy, token_accuracy

ROWS = st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=6)


def test_missing_and_surplus_tokens_are_wrong_ones():
    assert token_accuracy([[5, 6], [7]], [[5, 9], [7]]) == pytest.approx(2 / 3)
    assert token_accuracy([[5]], [[5, 6]]) == pytest.approx(1 / 2)
    assert token_accuracy([[5, 6, 7, 8]], [[5]]) == pytest.approx(1 / 4)
    assert token_accuracy([[]], [[]]) == 1.0


def test_an_unknown_token_is_never_right():
    assert token_accuracy([[5, 1]], [[5, 1]], unknown=1) == pytest.approx(1 / 2)
    assert sequence_accuracy([[5, 1], [5]], [[5, 1], [5]], unknown=1) == pytest.approx(1 / 2)


def test_a_sequence_is_right_as_a_whole_or_not_at_all():
    assert sequence_accuracy([[5, 6], (7,), []], [[5, 6], [7], [8]]) == pytest.approx(2 / 3)


@given(ROWS)
def test_a_sequence_agrees_with_itself(rows):
    assert token_accuracy(rows, rows) == 1.0
    assert sequence_accuracy(rows, rows) == 1.0


@given(ROWS, st.data())
def test_all_tokens_are_right_where_and_only_where_all_sequences_are(rows, data):
    others = data.draw(st.lists(st.sampled_from(rows), min_size=len(rows), max_size=len(rows)))
    assert (token_accuracy(others, rows) == 1.0) == (sequence_accuracy(others, rows) == 1.0)


@pytest.mark.parametrize("accuracy", [token_accuracy, sequence_accuracy])
def test_unequal_counts_are_an_error(accuracy):
    with pytest.raises(AttlasError, match="2 predicted and 1 expected"):
        accuracy([[1], [2]], [[1]])
    with pytest.raises(AttlasError, match="at least one sequence"):
        accuracy([], [])
