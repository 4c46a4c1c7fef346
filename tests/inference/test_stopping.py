"""Where the beam search of attlas would have stopped."""

import random
from dataclasses import replace
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from attlas.decoding import Hypothesis
from attlas.decoding.scoring import ranked
from attlas.inference.ctranslate2 import best_in_time, found_in_time, length_penalty

Found = list[tuple[Hypothesis, list[float]]]


ALPHAS = st.sampled_from([0.0, 0.6, 1.0, 2.0])
TERMS = st.lists(st.lists(st.floats(-4.0, -0.01), min_size=1, max_size=8), min_size=1, max_size=6)


def made(terms: list[list[float]], alpha: float) -> Found:
    """Finished hypotheses, and the sums of their log-probabilities."""
    hypotheses: Found = []
    for number, of_one in enumerate(terms):
        sums = list(accumulate(of_one))
        score = sums[-1] / length_penalty(len(of_one), alpha)
        tokens = (4 + number,) * (len(of_one) - 1)
        hypotheses.append((Hypothesis(tokens, score, sums[-1], True), sums))
    return hypotheses


def in_time(hypotheses: Found, alpha: float, n_best: int = 1) -> list[Hypothesis]:
    ours, sums = [h for h, _ in hypotheses], [s for _, s in hypotheses]
    texts = [str(one.tokens) for one in ours]
    return found_in_time(ours, sums, texts, n_best, alpha)


def best(hypotheses: list[Hypothesis]) -> float:
    return max(one.score for one in hypotheses)


@given(terms=TERMS)
def test_without_a_length_penalty_stopping_loses_nothing(terms: list[list[float]]) -> None:
    hypotheses = made(terms, 0.0)
    assert best(in_time(hypotheses, 0.0)) == best([h for h, _ in hypotheses])


@given(terms=TERMS, alpha=ALPHAS, n_best=st.integers(1, 3))
def test_there_are_always_enough_and_the_shortest_are_among_them(
    terms: list[list[float]], alpha: float, n_best: int
) -> None:
    hypotheses = made(terms, alpha)
    kept = in_time(hypotheses, alpha, n_best)
    assert len(kept) >= min(n_best, len(hypotheses))
    longest = max(len(one.tokens) for one in kept)
    assert all((h in kept) == (len(h.tokens) <= longest) for h, _ in hypotheses)


@given(terms=TERMS, alpha=ALPHAS, n_best=st.integers(1, 3))
def test_lower_sums_find_nothing_that_the_true_ones_do_not(
    terms: list[list[float]], alpha: float, n_best: int
) -> None:
    hypotheses = made(terms, alpha)
    lower = [(h, [sums[-1]] * len(sums)) for h, sums in hypotheses]
    kept = in_time(hypotheses, alpha, n_best)
    assert all(one in kept for one in in_time(lower, alpha, n_best))


@given(terms=TERMS, alpha=ALPHAS, cut=st.integers(0, 6), seed=st.integers(0, 99))
def test_the_best_in_time_is_the_best_of_what_is_found_in_time(
    terms: list[list[float]], alpha: float, cut: int, seed: int
) -> None:
    found = made(terms, alpha)
    if cut < len(found):  # one of the longest was cut off at the greatest length
        longest = max(range(len(found)), key=lambda index: len(found[index][1]))
        found[longest] = replace(found[longest][0], finished=False), found[longest][1]
    random.Random(seed).shuffle(found)
    hypotheses, sums = [h for h, _ in found], [s for _, s in found]
    assert best_in_time(hypotheses, sums, alpha) == ranked(in_time(found, alpha))[0]


def test_a_later_hypothesis_is_not_found_once_no_alive_one_can_come_in_by_ending_next() -> None:
    # After one token A has ended; B's two tokens, ended next, could score −3 / (9 / 6) at best.
    first = Hypothesis((4,), -1.0 / length_penalty(2, 1.0), -1.0, True)
    later = Hypothesis((5,) * 30, -3.1 / length_penalty(31, 1.0), -3.1, True)
    sums = [-2.9, *[-3.0] * 29, -3.1]
    assert later.score > first.score
    assert in_time([(first, [-0.5, -1.0]), (later, sums)], 1.0) == [first]


def test_a_hypothesis_that_was_cut_off_is_there_where_the_search_did_not_stop_before() -> None:
    cut = Hypothesis((5, 6), -0.4, -0.4, False)
    ended = Hypothesis((4,), -9.0, -9.0, True)
    assert in_time([(cut, [-0.2, -0.4]), (ended, [-8.0, -9.0])], 0.0) == [cut, ended]
    ended = Hypothesis((4,), -0.3, -0.3, True)
    assert in_time([(cut, [-0.2, -0.4]), (ended, [-0.1, -0.3])], 0.0) == [ended]
