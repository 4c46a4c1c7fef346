"""Sampling: from the right distribution, and the same draws in any company."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.data.vocabulary import END
from attlas.decoding import DecodingConfig, decode
from attlas.decoding import sampling as module
from attlas.decoding.sampling import Distribution
from support.table_model import WORDS, TableModel, log_probability, sources


def test_tokens_are_drawn_as_often_as_the_model_says() -> None:
    model = TableModel(3)
    source, token_mask = sources(4)
    draws = 4000
    config = DecodingConfig(method="sample", n_best=draws, temperature=0.7)
    logits, _ = model.step(torch.tensor([2]), model.encode(source, token_mask))
    allowed = [*WORDS, END]
    expected = (logits[0, allowed] / 0.7).softmax(0)
    (drawn,) = decode(model, source, token_mask, config)
    first = [one.tokens[0] if one.tokens else END for one in drawn]
    for token, probability in zip(allowed, expected.tolist(), strict=True):
        # Five standard deviations of a binomial share.
        slack = 5 * (probability * (1 - probability) / draws) ** 0.5
        assert first.count(token) / draws == pytest.approx(probability, abs=slack)


def test_what_is_drawn_carries_the_models_own_probability() -> None:
    model = TableModel(1)
    source, token_mask = sources(4)
    config = DecodingConfig(method="sample", n_best=20, temperature=1.7, length_penalty=0.0)
    (drawn,) = decode(model, source, token_mask, config)
    for one in drawn:
        own, _ = log_probability(model, source[0], one.tokens, one.finished)
        assert one.log_probability == one.score == pytest.approx(own, abs=1e-9)
    assert len({one.tokens for one in drawn}) > 5


@given(seed=st.integers(0, 2**32), number=st.integers(1, 4))
def test_a_sentence_gets_the_same_draws_alone_in_any_batch_and_each_time(
    seed: int, number: int
) -> None:
    model = TableModel(seed)
    source, token_mask = sources(4, 9, 2, 7, seed=seed)
    config = DecodingConfig(method="sample", n_best=number, seed=seed)
    together = decode(model, source, token_mask, config)
    assert together == decode(model, source, token_mask, config)
    order = torch.tensor([2, 0, 3, 1])
    assert decode(model, source[order], token_mask[order], config) == [together[i] for i in order]
    for row, drawn in enumerate(together):
        own = source[row][token_mask[row]].unsqueeze(0)
        assert decode(model, own, torch.ones_like(own, dtype=torch.bool), config) == [drawn]


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-42, 5e-324])
def test_the_colder_the_surer(temperature: float) -> None:
    log_p = torch.log_softmax(torch.tensor([[1.0, 2.0, 3.0]]), dim=-1)
    log_p[0, 0] = float("-inf")
    assert Distribution(temperature, 0, 1.0).of(log_p).tolist() == [[0.0, 0.0, 1.0]]


@pytest.mark.parametrize("temperature", [1e30, 1e39, 1.7e308])
def test_the_hottest_draws_all_alike(temperature: float) -> None:
    log_p = torch.log_softmax(torch.tensor([[1.0, 2.0, 3.0]]), dim=-1)
    log_p[0, 0] = float("-inf")
    assert Distribution(temperature, 0, 1.0).of(log_p).tolist() == [[0.0, 0.5, 0.5]]


@given(
    top_k=st.integers(1, 9), top_p=st.sampled_from([0.1, 0.5, 0.9, 0.999]), seed=st.integers(0, 99)
)
def test_of_the_top_k_the_nucleus_is_that_of_their_own_distribution(
    top_k: int, top_p: float, seed: int
) -> None:
    torch.manual_seed(seed)
    scores = torch.randint(0, 4, (3, 8)).double()  # with ties
    of_k = Distribution(1.0, top_k, 1.0).of(scores.log_softmax(-1))
    found = Distribution(1.0, top_k, top_p).of(scores.log_softmax(-1))
    for kept, row in zip(found, of_k, strict=True):
        least = kept[kept > 0].numel() and row[kept > 0].min()
        assert torch.equal(kept > 0, row >= least)
        assert row[row >= least].sum() >= top_p - 1e-9
        assert row[row > least].sum() < top_p


@pytest.mark.parametrize("together", [1, 3, 7])
def test_of_many_draws_some_are_followed_at_a_time_and_come_out_alike(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TableModel(6)
    source, token_mask = sources(4, 9)
    config = DecodingConfig(method="sample", n_best=10, seed=3)
    whole = decode(model, source, token_mask, config)
    monkeypatch.setattr(module, "_HYPOTHESES", together)
    assert decode(model, source, token_mask, config) == whole


def test_another_seed_draws_another_sentence() -> None:
    source, token_mask = sources(9)
    found = {
        decode(TableModel(), source, token_mask, DecodingConfig(method="sample", seed=seed))[0][
            0
        ].tokens
        for seed in range(20)
    }
    assert len(found) > 5


def test_two_sentences_do_not_share_their_randomness() -> None:
    model = TableModel()
    model.table[:] = model.table[0]  # the same distribution everywhere
    source, token_mask = sources(*[5] * 20)
    found = decode(model, source, token_mask, DecodingConfig(method="sample"))
    assert len({one.tokens for (one,) in found}) > 5


def test_keeping_the_most_probable_token_alone_is_greedy_search() -> None:
    model = TableModel(5)
    source, token_mask = sources(4, 9, 2)
    greedy = decode(model, source, token_mask, DecodingConfig(method="greedy"))
    assert decode(model, source, token_mask, DecodingConfig(method="sample", top_k=1)) == greedy
    assert decode(model, source, token_mask, DecodingConfig(method="sample", top_p=1e-9)) == greedy


def test_the_distribution_keeps_the_top_k_and_of_these_the_nucleus() -> None:
    probabilities = torch.tensor([[0.4, 0.1, 0.3, 0.2]])
    kept = Distribution(temperature=1.0, top_k=3, top_p=1.0).of(probabilities.log())
    torch.testing.assert_close(kept, torch.tensor([[0.4, 0.0, 0.3, 0.2]]) / 0.9)
    kept = Distribution(temperature=1.0, top_k=0, top_p=0.65).of(probabilities.log())
    torch.testing.assert_close(kept, torch.tensor([[0.4, 0.0, 0.3, 0.0]]) / 0.7)
    kept = Distribution(temperature=1.0, top_k=3, top_p=0.7).of(probabilities.log())
    torch.testing.assert_close(kept, torch.tensor([[0.4, 0.0, 0.3, 0.0]]) / 0.7)


def test_temperature_sharpens_and_flattens() -> None:
    probabilities = torch.tensor([[0.6, 0.4]])
    cold = Distribution(temperature=0.5, top_k=0, top_p=1.0).of(probabilities.log())
    torch.testing.assert_close(cold, torch.tensor([[0.36, 0.16]]) / 0.52)


def test_what_may_not_come_has_no_probability() -> None:
    nothing = Distribution(temperature=1.0, top_k=2, top_p=0.5).of(torch.full((1, 4), -torch.inf))
    assert nothing.tolist() == [[0.0] * 4]
