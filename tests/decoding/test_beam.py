"""Beam search against brute force over every sentence of a three-word language."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.data.vocabulary import BEGIN, END
from attlas.decoding import DecodingConfig, Hypothesis, decode
from attlas.errors import AttlasError
from support.table_model import TableModel, TableState, all_sentences, log_probability, sources


def limits(longest: int) -> dict[str, float]:
    """At most `longest` tokens, however long the source."""
    return {"max_len_a": 0.0, "max_len_b": longest}


def best_by_brute_force(
    model: TableModel, source: torch.Tensor, config: DecodingConfig, longest: int
) -> list[tuple[float, float, tuple[int, ...]]]:
    """(score, log-probability, tokens) of every allowed sentence, best first; eq. 14 by hand."""
    scored = []
    for sentence in all_sentences(longest, config.min_length):
        log_p, coverage = log_probability(model, source, sentence, ended=True)
        score = log_p / (
            (5 + len(sentence) + 1) ** config.length_penalty / 6**config.length_penalty
        )
        if config.coverage_penalty:
            assert coverage is not None
            looked = [math.log(min(float(mass), 1.0)) for mass in coverage]
            score += config.coverage_penalty * sum(looked)
        scored.append((score, log_p, sentence))
    return sorted(scored, key=lambda one: -one[0])


@given(
    seed=st.integers(0, 2**32),
    longest=st.integers(1, 4),
    shortest=st.integers(0, 4),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.5]),
    beta=st.sampled_from([0.0, 0.0, 0.4]),
    n_best=st.integers(1, 12),
    sharpness=st.sampled_from([0.5, 1.0, 4.0]),
)
def test_a_wide_beam_finds_exactly_what_brute_force_finds(
    seed: int,
    longest: int,
    shortest: int,
    alpha: float,
    beta: float,
    n_best: int,
    sharpness: float,
) -> None:
    model = TableModel(seed, sharpness=sharpness)
    source, token_mask = sources(5, 2, 3, seed=seed)
    config = DecodingConfig(
        num_beams=4 * 3**longest,  # of all continuations: by three tokens and END
        n_best=n_best,
        length_penalty=alpha,
        coverage_penalty=beta,
        min_length=min(shortest, longest),
        exhaustive=True,
        **limits(longest),
    )
    for row, found in enumerate(decode(model, source, token_mask, config)):
        own = source[row][token_mask[row]]
        expected = best_by_brute_force(model, own, config, longest)[:n_best]
        complete = [one for one in found if one.finished]
        assert len(complete) == min(n_best, len(expected))
        assert [one.tokens for one in complete] == [sentence for _, _, sentence in expected]
        for one, (score, log_p, _) in zip(complete, expected, strict=True):
            assert one.score == pytest.approx(score, abs=1e-9)
            assert one.log_probability == pytest.approx(log_p, abs=1e-9)


@given(seed=st.integers(0, 2**32), num_beams=st.integers(1, 6), alpha=st.sampled_from([0.0, 1.0]))
def test_a_narrow_beam_reports_the_true_probability_and_score_of_what_it_finds(
    seed: int, num_beams: int, alpha: float
) -> None:
    model = TableModel(seed)
    source, token_mask = sources(3, 6, seed=seed)
    config = DecodingConfig(
        num_beams=num_beams, n_best=num_beams, length_penalty=alpha, **limits(7)
    )
    for row, found in enumerate(decode(model, source, token_mask, config)):
        assert 1 <= len(found) <= num_beams
        assert len({(one.tokens, one.finished) for one in found}) == len(found)
        for one in found:
            own = source[row][token_mask[row]]
            log_p, _ = log_probability(model, own, one.tokens, one.finished)
            factors = len(one.tokens) + one.finished
            assert one.log_probability == pytest.approx(log_p, abs=1e-9)
            assert one.score == pytest.approx(log_p / ((5 + factors) / 6) ** alpha, abs=1e-9)
        order = [(not one.finished, -one.score) for one in found]
        assert order == sorted(order)


@given(seed=st.integers(0, 2**32), longest=st.integers(1, 9))
def test_a_beam_of_one_without_penalties_is_greedy_search(seed: int, longest: int) -> None:
    model = TableModel(seed)
    source, token_mask = sources(2, 5, 5, 9, seed=seed)
    num_beams = DecodingConfig(num_beams=1, length_penalty=0.0, **limits(longest))
    greedy = DecodingConfig(method="greedy", length_penalty=0.0, **limits(longest))
    assert decode(model, source, token_mask, num_beams) == decode(model, source, token_mask, greedy)


class Counted(TableModel):
    """A table that counts its steps."""

    steps = 0

    def step(self, tokens: torch.Tensor, state: TableState) -> tuple[torch.Tensor, TableState]:
        self.steps += 1
        return super().step(tokens, state)


def both_stops(seed: int, **settings: object) -> list[tuple[list[list[Hypothesis]], int]]:
    """What is found by the usual stop and by the exhaustive one, and in how many steps."""
    source, token_mask = sources(3, 6, 1, seed=seed)
    found = []
    for exhaustive in (False, True):
        model = Counted(seed)
        config = DecodingConfig(exhaustive=exhaustive, **settings)  # type: ignore[arg-type]
        found.append((decode(model, source, token_mask, config), model.steps))
    return found


@given(
    seed=st.integers(0, 2**32),
    num_beams=st.integers(1, 6),
    alpha=st.sampled_from([0.6, 1.0, 2.5]),
    beta=st.sampled_from([0.0, 0.4]),
)
def test_the_usual_stop_finds_one_where_the_exhaustive_one_does_in_no_more_steps(
    seed: int, num_beams: int, alpha: float, beta: float
) -> None:
    penalties = {"length_penalty": alpha, "coverage_penalty": beta}
    (usual, few), (exhaustive, many) = both_stops(
        seed, num_beams=num_beams, **penalties, **limits(9)
    )
    assert few <= many
    for (some,), (best,) in zip(usual, exhaustive, strict=True):
        assert some.finished == best.finished
        assert (not some.finished, -some.score) >= (not best.finished, -best.score)


@given(seed=st.integers(0, 2**32), num_beams=st.integers(1, 6), beta=st.sampled_from([0.0, 0.4]))
def test_without_a_length_penalty_both_stops_are_the_same(
    seed: int, num_beams: int, beta: float
) -> None:
    usual, exhaustive = both_stops(
        seed,
        num_beams=num_beams,
        n_best=num_beams,
        length_penalty=0.0,
        coverage_penalty=beta,
        **limits(9),
    )
    assert usual == exhaustive


def chain(*probabilities: tuple[float, float]) -> Counted:
    """P(END), P(token 4) after 0, 1, … tokens for the source (3,); the last ones again after."""
    model = Counted(looks=False)
    state = model.encode(torch.tensor([[3]]))
    model.table[:] = float("-inf")
    last = BEGIN
    for end, word in (*probabilities, *[probabilities[-1]] * 20):
        _, state = model.step(torch.tensor([last]), state)
        model.table[state.cell, END] = math.log(end)
        model.table[state.cell, 4] = math.log(word)
        last = 4
    model.steps = 0
    return model


def test_the_usual_stop_comes_when_ending_next_could_not_win_and_the_exhaustive_one_later() -> None:
    # log ½ / (6/6) = −0.69 for the empty sentence. One token and END, were END certain, would have
    # log ⅖ / (7/6) = −0.79: the usual stop. Sure to go on for ten tokens: log ⅖ / (16/6) = −0.34.
    model = chain((0.5, 0.4), *[(1e-9, 1.0)] * 9, (1.0, 1e-9))
    source, token_mask = torch.tensor([[3]]), torch.ones(1, 1, dtype=torch.bool)
    config = DecodingConfig(num_beams=2, length_penalty=1.0, **limits(12))
    ((best,),) = decode(model, source, token_mask, config)
    assert (best.tokens, model.steps) == ((), 1)
    assert best.score == pytest.approx(math.log(0.5 / 0.9))
    exhaustive = config.model_copy(update={"exhaustive": True})
    ((best,),) = decode(model, source, token_mask, exhaustive)
    assert best.tokens == (4,) * 10
    assert best.score == pytest.approx(math.log(0.4 / 0.9) / (16 / 6), rel=1e-6)


def test_the_usual_stop_does_not_come_while_ending_next_could_still_win() -> None:
    # 0.52 and 0.48: log 0.52 / (6/6) = −0.66 is more than log 0.48 / (6/6) = −0.72, but less than
    # log 0.48 / (7/6) = −0.62, which is what the one token and END come to.
    model = chain((0.5, 0.47), (1.0, 1e-9))
    source, token_mask = torch.tensor([[3]]), torch.ones(1, 1, dtype=torch.bool)
    config = DecodingConfig(num_beams=2, length_penalty=1.0, **limits(12))
    ((best,),) = decode(model, source, token_mask, config)
    assert best.tokens == (4,)
    assert best.score == pytest.approx(math.log(0.47 / 0.97) / (7 / 6), rel=1e-6)


def test_a_sentence_that_does_not_end_is_returned_as_unfinished() -> None:
    model = TableModel(0)
    model.table[:, 3] = -50.0
    source, token_mask = sources(4, 2)
    for table in ({"num_beams": 2}, {"method": "greedy"}, {"method": "sample"}):
        found = decode(
            model, source, token_mask, DecodingConfig.read({**table, **limits(6)}, "a test")
        )
        for (one,) in found:
            assert not one.finished
            assert len(one.tokens) == 6


def test_finished_hypotheses_come_before_cut_off_ones_whatever_their_scores() -> None:
    model = TableModel(0)
    model.table[:, 3] = -4.0
    source, token_mask = sources(4, 2)
    config = DecodingConfig(num_beams=3, n_best=3, **limits(3))
    for found in decode(model, source, token_mask, config):
        assert [one.finished for one in found] == sorted(
            (one.finished for one in found), reverse=True
        )
        assert len(found) == 3


def test_the_longest_target_depends_on_the_real_length_of_its_own_source() -> None:
    model = TableModel(0)
    model.table[:, 3] = -50.0
    source, token_mask = sources(8, 2, 5)
    config = DecodingConfig(num_beams=2, max_len_a=1.5, max_len_b=1)
    lengths = [len(best.tokens) for (best,) in decode(model, source, token_mask, config)]
    assert lengths == [13, 4, 8]


def test_a_coverage_penalty_needs_a_model_that_looks() -> None:
    source, token_mask = sources(4, 2)
    with pytest.raises(AttlasError, match=r"model without attention; set coverage_penalty = 0"):
        decode(TableModel(looks=False), source, token_mask, DecodingConfig(coverage_penalty=0.2))


def test_logits_that_are_no_numbers_are_an_error_and_not_a_translation() -> None:
    model = TableModel(0)
    model.table[:, 5] = float("nan")
    source, token_mask = sources(4, 2)
    for method in ("beam", "greedy", "sample"):
        with pytest.raises(AttlasError, match="expected logits that are numbers; got NaN"):
            decode(model, source, token_mask, DecodingConfig(method=method))


def test_impossible_continuations_leave_the_sentence_cut_off_instead_of_lost() -> None:
    model = TableModel(0)
    model.table[:] = float("-inf")
    model.table[:, 0] = 0.0  # padding alone is possible, and may not come
    source, token_mask = sources(4, 2)
    for method in ("beam", "greedy", "sample"):
        found = decode(model, source, token_mask, DecodingConfig(method=method))
        assert [(one.tokens, one.finished) for (one,) in found] == [((), False)] * 2
