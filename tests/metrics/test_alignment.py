import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.metrics import alignment_error

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8)


def test_the_error_rate_is_that_worked_by_hand() -> None:
    guessed = [{(0, 0), (1, 1), (2, 3)}, {(0, 1)}]
    sure = [{(0, 0), (1, 1)}, {(0, 0)}]
    possible = [{(0, 0), (1, 1), (2, 2)}, {(0, 0), (0, 1)}]
    score = alignment_error(guessed, sure, possible)
    # |A| = 4, |S| = 3, |A ∩ S| = 2, |A ∩ P| = 3
    assert score.error == 1 - 5 / 7
    assert (score.precision, score.recall, score.links) == (3 / 4, 2 / 3, 4)
    assert str(score) == "28.6% (75.0%/66.7%/4)"


@given(st.lists(st.tuples(LINKS, LINKS, LINKS), min_size=1, max_size=4))
def test_an_error_rate_is_a_share_and_what_is_between_sure_and_possible_has_none(sentences) -> None:
    guessed, sure, possible = ([*part] for part in zip(*sentences, strict=True))
    sure[0] = sure[0] | {(0, 0)}
    score = alignment_error(guessed, sure, possible)
    assert 0 <= score.error <= 1
    assert 0 <= score.recall <= 1
    assert (score.precision is None) == (not any(guessed))
    between = [s | (p & g) for g, s, p in zip(guessed, sure, possible, strict=True)]
    perfect = alignment_error(between, sure, possible)
    assert (perfect.error, perfect.precision, perfect.recall) == (0, 1, 1)
    if score.precision is not None:
        # With nothing merely possible, AER is 1 − F₁ of precision and recall.
        plain = alignment_error(guessed, sure)
        hits = sum(len(g & s) for g, s in zip(guessed, sure, strict=True))
        both = sum(map(len, guessed)) + sum(map(len, sure))
        assert plain.error == pytest.approx(1 - 2 * hits / both)


def test_a_sure_link_is_possible_whether_it_is_named_or_not() -> None:
    named = alignment_error([{(0, 0)}], [{(0, 0)}], [{(0, 0), (1, 1)}])
    assert alignment_error([{(0, 0)}], [{(0, 0)}], [{(1, 1)}]) == named


def test_nothing_guessed_has_no_precision_and_misses_all() -> None:
    score = alignment_error([frozenset()], [{(0, 0)}])
    assert (score.error, score.precision, score.recall, score.links) == (1.0, None, 0.0, 0)
    assert str(score) == "100.0% (–/0.0%/0)"


def test_what_cannot_be_scored_says_why() -> None:
    with pytest.raises(AttlasError, match="links of the same sentences; got 2 guessed, 1 sure"):
        alignment_error([set(), set()], [{(0, 0)}])
    with pytest.raises(AttlasError, match="at least one sure link; got none in 1 sentences"):
        alignment_error([{(0, 0)}], [frozenset()], [{(0, 0)}])
