"""What may come next: prefixes, lengths, repeated n-grams, and settings that make no sense."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.data.vocabulary import BEGIN, END, PAD
from attlas.decoding import DecodingConfig, decode
from attlas.decoding.scoring import Constraints, Penalties
from attlas.errors import AttlasError
from support.table_model import WORDS, TableModel, all_sentences, log_probability, sources

METHODS = st.sampled_from(["beam", "greedy", "sample"])
PREFIXES = st.lists(st.lists(st.sampled_from(WORDS), max_size=4), min_size=3, max_size=3)


def constraints(rows: int, **changed: object) -> Constraints:
    settings = {
        "prefix": torch.zeros(rows, 0, dtype=torch.long),
        "max_length": torch.full((rows,), 9),
        "min_length": 0,
        "no_repeat_ngram": 0,
    }
    return Constraints(**(settings | changed))  # type: ignore[arg-type]


def repeats(tokens: tuple[int, ...], n: int) -> bool:
    grams = [tokens[i : i + n] for i in range(len(tokens) - n + 1)]
    return len(set(grams)) < len(grams)


@given(seed=st.integers(0, 2**32), method=METHODS, prefixes=PREFIXES)
def test_every_hypothesis_begins_with_the_prefix_of_its_own_row(
    seed: int, method: str, prefixes: list[list[int]]
) -> None:
    source, token_mask = sources(3, 6, 1, seed=seed)
    config = DecodingConfig(method=method, n_best=1 if method == "greedy" else 3)
    found = decode(TableModel(seed), source, token_mask, config, prefixes)
    for prefix, hypotheses in zip(prefixes, found, strict=True):
        for one in hypotheses:
            assert list(one.tokens[: len(prefix)]) == prefix


@given(seed=st.integers(0, 2**32), prefix=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
def test_a_forced_beam_finds_the_best_of_the_sentences_that_begin_so(
    seed: int, prefix: list[int]
) -> None:
    model = TableModel(seed)
    source, token_mask = sources(4, seed=seed)
    config = DecodingConfig(num_beams=90, length_penalty=1.0, max_len_a=0.0, max_len_b=4)
    ((best,),) = decode(model, source, token_mask, config, [prefix])
    scores = {
        tokens: log_probability(model, source[0], tokens, True)[0] / ((6 + len(tokens)) / 6)
        for tokens in all_sentences(4)
        if list(tokens[: len(prefix)]) == prefix
    }
    assert best.tokens == max(scores, key=scores.__getitem__)
    assert best.score == pytest.approx(max(scores.values()), abs=1e-9)


@given(
    seed=st.integers(0, 2**32),
    method=METHODS,
    n=st.integers(1, 3),
    shortest=st.integers(0, 12),
)
def test_blocked_ngrams_never_repeat_and_never_leave_a_sentence_without_a_hypothesis(
    seed: int, method: str, n: int, shortest: int
) -> None:
    source, token_mask = sources(3, 6, 1, seed=seed)
    config = DecodingConfig(method=method, no_repeat_ngram=n, min_length=shortest)
    for hypotheses in decode(TableModel(seed), source, token_mask, config):
        assert hypotheses
        for one in hypotheses:
            assert len(one.tokens) >= shortest
            # A shortest length that the blocked words cannot fill lifts the block.
            if not shortest:
                assert not repeats(one.tokens, n)


def test_a_block_leaves_the_end_open_and_is_lifted_where_the_end_is_forbidden_too() -> None:
    said = torch.tensor([WORDS, WORDS])
    free = torch.zeros(2, 6)
    allowed = constraints(2, no_repeat_ngram=1).apply(free, said)
    assert torch.isfinite(allowed).nonzero().tolist() == [[0, END], [1, END]]
    lifted = constraints(2, no_repeat_ngram=1, min_length=4).apply(free, said)
    assert torch.isfinite(lifted).nonzero()[:, 1].tolist() == [*WORDS, *WORDS]


def test_only_what_would_complete_a_repeated_ngram_is_blocked() -> None:
    said = torch.tensor([[4, 5, 1, 4, 5], [4, 4, 4, 5, 1]])
    allowed = constraints(2, no_repeat_ngram=3).apply(torch.zeros(2, 6), said)
    assert (~torch.isfinite(allowed)).nonzero().tolist() == [
        [0, PAD], [0, 1], [0, BEGIN], [1, PAD], [1, BEGIN],
    ]  # fmt: skip


def test_a_prefix_may_break_every_other_rule() -> None:
    source, token_mask = sources(3, 3)
    config = DecodingConfig(no_repeat_ngram=1, length_penalty=0.0)
    found = decode(TableModel(0), source, token_mask, config, [[4, 4, 4], []])
    assert found[0][0].tokens[:3] == (4, 4, 4)


@given(seed=st.integers(0, 2**32), method=METHODS, shortest=st.integers(0, 20))
def test_nothing_ends_before_the_shortest_length_or_goes_on_after_the_longest(
    seed: int, method: str, shortest: int
) -> None:
    source, token_mask = sources(3, 6, 1, seed=seed)
    config = DecodingConfig(method=method, min_length=shortest, max_len_a=0.5, max_len_b=20)
    for size, hypotheses in zip(
        (3, 6, 1), decode(TableModel(seed), source, token_mask, config), strict=True
    ):
        for one in hypotheses:
            assert shortest <= len(one.tokens) <= size // 2 + 20
            assert not {PAD, BEGIN, END}.intersection(one.tokens)


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        ([[4]], r"expected one prefix for each of 2 rows; got 1 prefixes; pass \[\] for a row"),
        ([[4, END], []], "expected a prefix of tokens for row 0; got one with the special id 3"),
        ([[], [4] * 30], "expected a prefix of at most 23 tokens for row 1; got 30 tokens"),
        ([[], [4, -1]], "expected a prefix of tokens for row 1; got one with the id -1"),
        (
            [[6], []],
            "expected a prefix of ids below 6, the size of the target vocab.* the id 6; make",
        ),
        ([[4], [4, 5, 400]], "expected a prefix of ids below 6, .*; got the id 400"),
    ],
)
def test_a_prefix_that_does_not_fit_is_an_error(prefixes: list[list[int]], message: str) -> None:
    source, token_mask = sources(1, 1)
    for method in ("beam", "greedy", "sample"):
        with pytest.raises(AttlasError, match=message):
            decode(TableModel(), source, token_mask, DecodingConfig(method=method), prefixes)


def test_a_row_without_a_token_is_an_error() -> None:
    source, token_mask = sources(2, 2)
    token_mask[1] = False
    with pytest.raises(AttlasError, match=r"at least one token in each row .* none in row 1"):
        decode(TableModel(), source, token_mask, DecodingConfig())


def test_a_model_in_training_mode_is_an_error() -> None:
    source, token_mask = sources(2)
    with pytest.raises(AttlasError, match=r"call model\.eval"):
        decode(TableModel().train(), source, token_mask, DecodingConfig())


def test_no_rows_have_no_hypotheses() -> None:
    source = torch.zeros(0, 3, dtype=torch.long)
    assert decode(TableModel(), source, source.bool(), DecodingConfig()) == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"num_beams": 0},
            "`num_beams` in run.toml: a number greater than or equal to 1; got 0",
        ),
        ({"n_best": 7}, "n_best of at most 5 with method = 'beam' .*; got 7; lower n_best"),
        ({"method": "greedy", "n_best": 2}, "n_best of at most 1 with method = 'greedy'"),
        ({"method": "random"}, "`method` in run.toml"),
        ({"temperature": 0.5}, "expected method = 'sample' for temperature .*; got 'beam'"),
        (
            {"method": "greedy", "exhaustive": True},
            "expected method = 'beam' for exhaustive .*; got 'greedy'; set method = 'beam', or "
            "leave",
        ),
        (
            {"method": "greedy", "num_beams": 9},
            "expected method = 'beam' for num_beams .*; got 'greedy'",
        ),
        (
            {"method": "sample", "num_beams": 2},
            "expected method = 'beam' for num_beams .*; got 'sample'",
        ),
        ({"seed": 7}, "expected method = 'sample' for seed .*; got 'beam'; set method = 'sample'"),
        ({"method": "sample", "temperature": 0}, "`temperature` in run.toml"),
        ({"method": "sample", "top_p": 1.5}, "`top_p` in run.toml"),
        ({"length_penalty": -1.0}, "`length_penalty` in run.toml"),
        ({"length_penalty": float("nan")}, "`length_penalty` in run.toml"),
        ({"length_penalty": 11.0}, "`length_penalty` in run.toml"),
        ({"max_len_a": 1e30}, "`max_len_a` .* less than or equal to 1000"),
        ({"max_len_b": 10**20}, "`max_len_b` .* less than or equal to 1000000"),
        ({"num_beams": 10**20}, "`num_beams` in run.toml"),
        ({"num_beams": 10**20, "n_best": 10**20}, "`num_beams` in run.toml"),
        ({"min_length": 99}, "min_length of at most 23, .*; got 99; raise max_len_b"),
        ({"num_beems": 3}, "did you mean `num_beams`"),
    ],
)
def test_settings_that_make_no_sense_are_errors(table: dict[str, object], message: str) -> None:
    with pytest.raises(AttlasError, match=message):
        DecodingConfig.read(table, "run.toml")


@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
def test_settings_that_were_written_down_whole_can_be_read_again(method: str) -> None:
    config = DecodingConfig(method=method)
    assert DecodingConfig.read(config.model_dump(mode="json"), "run.toml") == config


@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
def test_the_greatest_numbers_that_are_allowed_overflow_nowhere(method: str) -> None:
    greatest = {"max_len_a": 1000.0, "max_len_b": 10**6, "length_penalty": 10.0}
    config = DecodingConfig.read({"method": method, **greatest}, "run.toml")
    model = TableModel(0)
    model.table[:, END] = 50.0
    source, token_mask = sources(4, 2)
    found = decode(model, source, token_mask, config)
    assert [(best.tokens, best.finished) for (best,) in found] == [((), True)] * 2
    penalties = Penalties(config.length_penalty, 0.0)
    score = penalties.score(torch.tensor([-9.0]), config.max_length(10**4), None, token_mask[:1])
    assert score.isfinite().all()
    covering = Penalties(0.0, DecodingConfig(coverage_penalty=1e6).coverage_penalty)
    assert (
        covering.score(torch.tensor([-9.0]), 1, torch.zeros(1, 4), token_mask[:1]).isfinite().all()
    )
    with pytest.raises(AttlasError, match="coverage_penalty"):
        DecodingConfig.read({"coverage_penalty": 1e308}, "run.toml")


@given(seed=st.integers(0, 2**32), method=METHODS, prefix=st.sampled_from([[], [1], [4, 1]]))
def test_a_forbidden_unknown_token_is_written_in_a_prefix_alone(
    seed: int, method: str, prefix: list[int]
) -> None:
    source, token_mask = sources(3, 6, 1, seed=seed)
    limits = {"max_len_a": 0.0, "max_len_b": 6}
    n_best = 1 if method == "greedy" else 3
    config = DecodingConfig(method=method, n_best=n_best, unknown="forbid", **limits)
    model = TableModel(seed)
    model.table[:, 1] += 2.0  # which it would write often
    for row, hypotheses in enumerate(decode(model, source, token_mask, config, [prefix] * 3)):
        for one in hypotheses:
            assert 1 not in one.tokens[len(prefix) :]
            own = source[row][token_mask[row]]
            expected, _ = log_probability(model, own, one.tokens, one.finished)
            assert one.log_probability == pytest.approx(expected, abs=1e-9)  # the model's own
