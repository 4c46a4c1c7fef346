"""A part of sentence pairs held back; of labelled texts: test_labelled_data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import Corpus, LabelledCorpus, LabelledTexts, Pair, corpus_of, labelled_corpus_of
from attlas.data.base import note_overlap, split_validation
from attlas.data.corpus import Labelled
from attlas.errors import AttlasError

PAIRS = st.lists(
    st.tuples(st.sampled_from([f"source {n}" for n in range(12)]), st.sampled_from("abc")),
    min_size=2,
    max_size=40,
)


def corpus(pairs: list[tuple[str, str]]) -> Corpus:
    return corpus_of([Pair(*pair) for pair in pairs], "some")


def texts(pairs: list[tuple[str, str]]) -> LabelledCorpus:
    entries = tuple(Labelled(*pair) for pair in pairs)
    return labelled_corpus_of(LabelledTexts("some", entries, tuple(range(1, len(entries) + 1))))


@given(pairs=PAIRS, share=st.floats(0.05, 0.95), seed=st.integers(0, 9))
def test_no_source_is_on_both_sides_and_no_pair_is_lost(
    pairs: list[tuple[str, str]], share: float, seed: int
) -> None:
    try:
        rest, part = split_validation(corpus(pairs), share, seed)
    except AttlasError:
        return  # too few different sources to part
    assert not set(rest.sources) & set(part.sources)
    assert sorted(rest.lines + part.lines) == list(range(1, len(pairs) + 1))
    assert all(side.pairs[n] == pairs[line - 1] for side in (rest, part)
               for n, line in enumerate(side.lines))  # fmt: skip
    assert 0 < len(part) <= max(1, round(share * len(pairs)))
    assert rest.pairs


@given(pairs=PAIRS, size=st.integers(1, 5), seed=st.integers(0, 9))
def test_pairs_are_parted_as_labelled_texts_are(
    pairs: list[tuple[str, str]], size: int, seed: int
) -> None:
    alike = [(source, "one label") for source, _ in pairs]
    try:
        ours = split_validation(corpus(pairs), size, seed)
    except AttlasError:
        with pytest.raises(AttlasError):
            split_validation(texts(alike), size, seed)
        return
    theirs = split_validation(texts(alike), size, seed)
    assert [side.lines for side in ours] == [side.places for side in theirs]


@given(pairs=PAIRS, size=st.integers(1, 5), seed=st.integers(0, 9))
def test_of_every_label_a_text_is_left_to_learn_it_from(
    pairs: list[tuple[str, str]], size: int, seed: int
) -> None:
    try:
        rest, part = split_validation(texts(pairs), size, seed)
    except AttlasError:
        return  # too few different texts to part
    assert set(part.labels) <= set(rest.labels)
    assert sorted(rest.places + part.places) == list(range(1, len(pairs) + 1))


def test_a_label_with_a_single_text_is_trained_on_whatever_the_seed() -> None:
    rare = texts([*((f"text {n}", "often") for n in range(9)), ("text 9", "once")])
    parted = [split_validation(rare, 5, seed) for seed in range(20)]
    assert all(rest.labels.count("once") == 1 and len(part) == 5 for rest, part in parted)
    with pytest.raises(AttlasError, match="got 3 texts, all of them needed to train on"):
        split_validation(texts([("a", "x"), ("b", "y"), ("c", "z")]), 1, 1)


@given(order=st.permutations(range(20)), seed=st.integers(0, 9))
def test_which_pairs_are_held_back_does_not_depend_on_their_order(
    order: list[int], seed: int
) -> None:
    pairs = [(f"source {n}", f"target {n}") for n in range(20)]
    _, part = split_validation(corpus(pairs), 5, seed)
    _, other = split_validation(corpus([pairs[place] for place in order]), 5, seed)
    assert set(part.pairs) == set(other.pairs)


@pytest.mark.parametrize("seed", range(5))
def test_sources_that_differ_in_white_space_alone_are_on_one_side(seed: int) -> None:
    pairs = [("a  cat", "x"), ("a cat ", "y"), (" a\tcat", "z"), ("a dog", "v"), ("a bird", "w")]
    rest, part = split_validation(corpus(pairs), 3, seed)
    cats = {"a  cat", "a cat ", " a\tcat"}
    assert sum(bool(cats & set(side.sources)) for side in (rest, part)) == 1
    assert "2 repetitions of a source (all copies are in one part)" in str(rest.report)
    assert "1 source with several translations" in str(rest.report)


@pytest.mark.parametrize(
    ("pairs", "size", "said"),
    [
        ([("a", "b"), ("c", "d")], 2, "fewer than the 2 pairs of some to hold back; .* lower it"),
        (
            [("a", "b")] * 3,
            1,
            "different sources in some, .* got 1 source, all of them needed to train on",
        ),
    ],
)
def test_what_cannot_be_parted_is_an_error(
    pairs: list[tuple[str, str]], size: int, said: str
) -> None:
    with pytest.raises(AttlasError, match=said):
        split_validation(corpus(pairs), size, 1)


def test_what_is_held_back_is_no_part_of_what_is_trained_on() -> None:
    whole = corpus([(f"source {n % 7}", str(n)) for n in range(20)])
    rest, part = split_validation(whole, 0.3, 1)
    assert note_overlap(rest, part) is part
    reported = note_overlap(whole, part).report.remarks
    assert reported == (f"{len(part)} sources of it in the training data as well",)
