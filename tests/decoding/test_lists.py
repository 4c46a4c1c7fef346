"""Lists of the best: the first does not depend on their length, and all texts are different."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import Subwords, Vocabularies, Words, train_subwords
from attlas.decoding import DecodingConfig, Hypothesis, SearchInput, decode, decode_all
from attlas.decoding.scoring import Finished
from attlas.decoding.surface import Surface
from attlas.inference import Translator
from attlas.models import RecurrentConfig, build
from support.table_model import VOCABULARY, TableModel, sources

LIMITS = {"max_len_a": 0.0, "max_len_b": 8}


class Spelt(Words):
    """The table's three words, two of which write the same letter."""

    def __init__(self) -> None:
        super().__init__(["x", "y"])

    def decode(self, ids: Sequence[int]) -> str:
        return "".join("?aa"[(1, 4, 5).index(id_)] for id_ in ids)


@pytest.mark.parametrize("spelt", [False, True])
@given(
    seed=st.integers(0, 2**32),
    num_beams=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.5]),
    beta=st.sampled_from([0.0, 0.4]),
    exhaustive=st.booleans(),
    least=st.integers(0, 3),
    no_repeat=st.sampled_from([0, 2]),
    prefix=st.lists(st.sampled_from([1, 4, 5]), max_size=2),
    sharpness=st.sampled_from([0.5, 1.0, 4.0]),
)
def test_the_first_of_a_list_is_what_is_found_alone(
    spelt: bool,
    seed: int,
    num_beams: int,
    alpha: float,
    beta: float,
    exhaustive: bool,
    least: int,
    no_repeat: int,
    prefix: list[int],
    sharpness: float,
) -> None:
    model = TableModel(seed, sharpness=sharpness)
    batches = [
        SearchInput(*sources(*lengths, seed=seed), [prefix] * len(lengths))
        for lengths in ((3, 6, 1), (2, 4))
    ]
    surface = Surface(Spelt()) if spelt else None

    def found(n_best: int) -> list[list[Hypothesis]]:
        config = DecodingConfig(
            num_beams=num_beams,
            n_best=n_best,
            length_penalty=alpha,
            coverage_penalty=beta,
            exhaustive=exhaustive,
            min_length=least,
            no_repeat_ngram=no_repeat,
            **LIMITS,  # type: ignore[arg-type]
        )
        of_batches = decode_all(model, batches, config, surface=surface)
        return [lists for of_batch in of_batches for lists in of_batch]

    alone = found(1)
    for n_best in {num_beams, 2} & set(range(2, num_beams + 1)):
        for (best,), listed in zip(alone, found(n_best), strict=True):
            assert listed[0] == best
            assert len(listed) <= n_best
            order = [(not one.finished, -one.score) for one in listed]
            assert order == sorted(order)


SPACES = [b"", b"", b"", b"", b" a", b"b", b" ab", b"a", b" ", b"\n", b"\xc3", b"\xa4", b"\xc3\xa4"]


class Written(Subwords):
    """Subwords of which these are the spellings."""

    def __init__(self) -> None:
        self._bytes = SPACES


@given(
    tokens=st.lists(st.integers(4, len(SPACES) - 1), max_size=6),
    others=st.lists(st.integers(4, len(SPACES) - 1), max_size=6),
)
def test_hashes_are_equal_where_the_bytes_of_the_texts_are(
    tokens: list[int], others: list[int]
) -> None:
    hashes = Surface(Written()).hashes
    assert hashes is not None

    def hashed(ids: list[int]) -> int:
        key = torch.zeros(1, dtype=torch.long)
        for place, id_ in enumerate(ids):
            key = hashes.grown(key, torch.tensor([id_]), begins=place == 0)
        return int(key)

    def spelt(ids: list[int]) -> bytes:
        return b"".join(SPACES[id_] for id_ in ids).removeprefix(b" ").replace(b"\n", b" ")

    assert (hashed(tokens) == hashed(others)) == (spelt(tokens) == spelt(others))


@given(
    rounds=st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 0)), min_size=3, max_size=3),
        max_size=5,
    )
)
def test_finished_ones_are_the_best_of_each_text(rounds: list[list[tuple[int, int]]]) -> None:
    found = Finished.none(1, 4, torch.zeros(1), keyed=True)
    best: dict[int, int] = {}
    for length, newcomers in enumerate(rounds, 1):
        keys = torch.tensor([[key for key, _ in newcomers]])
        scores = torch.tensor([[float(score) for _, score in newcomers]])
        tokens = keys.unsqueeze(-1).expand(-1, -1, length)
        found = found.joined(tokens, scores, scores, keys)
        for key, score in newcomers:
            best[key] = max(score, best.get(key, score))
        expected = sorted(best.values(), reverse=True)[:4]
        (listed,) = found.lists()
        assert [one.score for one in listed] == expected
        assert len({one.tokens[0] for one in listed}) == len(listed)
        assert all(best[one.tokens[0]] == one.score for one in listed)


@given(seed=st.integers(0, 2**32), n_best=st.integers(2, 5))
def test_draws_of_a_list_are_different_texts_and_the_best_tokens_stand_for_each(
    seed: int, n_best: int
) -> None:
    model, surface = TableModel(seed, sharpness=2.0), Surface(Spelt())
    source, token_mask = sources(3, 5, seed=seed)
    config = DecodingConfig(method="sample", n_best=n_best, **LIMITS)  # type: ignore[arg-type]
    repeated = decode(model, source, token_mask, config)
    for draws, different in zip(
        repeated, decode(model, source, token_mask, config, surface=surface), strict=True
    ):
        texts = [surface.text(one.tokens) for one in different]
        assert len(set(texts)) == len(texts) <= n_best
        score_of = dict(zip(texts, ((one.finished, one.score) for one in different), strict=True))
        first = {surface.text(one.tokens) for one in draws}
        if len(first) < n_best:  # what is drawn further comes beside what was drawn
            assert len(texts) >= len(first)
        for one in draws:
            text = surface.text(one.tokens)
            assert text not in score_of or score_of[text] >= (one.finished, one.score)
        (alone,) = decode(model, source[:1], token_mask[:1], config, surface=surface)
    assert alone == decode(model, source, token_mask, config, surface=surface)[0]


def test_a_model_that_can_say_one_thing_is_drawn_from_a_bounded_number_of_times() -> None:
    model = TableModel(0)
    model.table[:] = float("-inf")
    model.table[:, 3] = 0.0
    calls = []
    real_step = model.step
    model.step = lambda tokens, state: (calls.append(len(tokens)), real_step(tokens, state))[1]
    source, token_mask = sources(3)
    config = DecodingConfig(method="sample", n_best=5)
    ((only,),) = decode(model, source, token_mask, config, surface=Surface(Spelt()))
    assert only.tokens == ()
    assert sum(calls) == 20


TEXTS = ["the cat sat on the mat", "a dog", "on the mat a cat", "unheard of", "cat"]
SUBWORDS = train_subwords(TEXTS, "unigram", 300)


@pytest.mark.parametrize("method", ["beam", "sample"])
@pytest.mark.parametrize("seed", [0, 2])
def test_a_translators_list_has_no_text_twice_and_is_full(method: str, seed: int) -> None:
    torch.manual_seed(seed)
    sizes = RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=4, dropout=0.0)
    model = build(sizes, len(SUBWORDS), len(SUBWORDS))
    with torch.no_grad():  # two letters, and what both of them spell
        model.output.bias[:] -= 50.0
        for id_, piece in enumerate(SUBWORDS.pieces(range(len(SUBWORDS)))):
            if id_ == 3 or piece in {"a", "t", "at"}:
                model.output.bias[id_] += 50.0 - 1.5 * (1 if id_ == 3 else len(piece))
    num_beams = {"num_beams": 12} if method == "beam" else {}
    config = DecodingConfig(method=method, n_best=12, **num_beams, **LIMITS)  # type: ignore[arg-type]
    vocabularies = Vocabularies(SUBWORDS, SUBWORDS)
    repeated = False
    for one in Translator.of(model, vocabularies, config).stream(TEXTS):
        texts = [one.text, *(other.text for other in one.alternatives)]
        assert len(set(texts)) == len(texts) == 12
    source = SearchInput.of([SUBWORDS.encode(text) for text in TEXTS], torch.device("cpu"))
    for listed in decode(model, source.source, source.token_mask, config):
        texts = [SUBWORDS.decode(one.tokens) for one in listed]
        repeated = repeated or len(set(texts)) < len(texts)
    assert repeated  # or the test would ask nothing


def test_the_table_has_the_words_that_are_spelt() -> None:
    assert len(Spelt()) == VOCABULARY
