"""Which whitespace words a token belongs to, in every kind of vocabulary."""

from functools import cache

import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import Characters, Subwords, Words, train_subwords
from attlas.inference.alignment import attention_links, pharaoh, word_links, words_of_tokens

TEXTS = ["the cat sat on the mat", "a dog and a cat", "über allen Gipfeln ist Ruh"] * 5


@cache
def subwords() -> Subwords:
    return train_subwords(TEXTS, "bpe", 310)


@given(
    text=st.lists(
        st.one_of(
            st.sampled_from([" ", "  ", "\t", "the", "cat", "Gipfel", "ist", "mat", "the cat"]),
            st.text(min_size=1, max_size=3),
        ),
        max_size=12,
    ).map("".join)
)
def test_the_bytes_of_the_tokens_of_a_word_are_that_word(text: str) -> None:
    vocabulary = subwords()
    ids = vocabulary.encode(text)
    places = words_of_tokens(vocabulary, ids, text)
    words = text.split()
    assert len(places) == len(ids)
    assert {word for place in places for word in place} == set(range(len(words)))
    # Order is kept, and what is between the first and the last token of a word is of that word.
    flat = [word for place in places for word in place]
    assert flat == sorted(flat)
    for number, word in enumerate(words):
        own = [id_ for id_, place in zip(ids, places, strict=True) if number in place]
        assert word in vocabulary.decode(own)
        if all(len(place) <= 1 for place in places):
            assert vocabulary.decode(own).strip() == word


def test_every_byte_of_a_character_is_in_its_word() -> None:
    vocabulary = subwords()
    ids = vocabulary.encode("cat 日本 mat")
    places = words_of_tokens(vocabulary, ids, "cat 日本 mat")
    assert [place for place in places if place == (1,)] == [(1,)] * 6  # two characters × 3 bytes
    assert places[-1] == (2,)


def test_words_are_their_own_words_also_where_they_are_unknown() -> None:
    vocabulary = Words(["the", "cat"])
    text = "  the   unknown cat "
    assert words_of_tokens(vocabulary, vocabulary.encode(text), text) == [(0,), (1,), (2,)]


@given(text=st.text("ab \u3000\tü", max_size=12))
def test_characters_are_in_the_words_of_the_text_also_where_its_spaces_are_unknown(
    text: str,
) -> None:
    vocabulary = Characters(["a", "b", " "])
    places = words_of_tokens(vocabulary, vocabulary.encode(text), text)
    spelled = [""] * len(text.split())
    for character, place in zip(text, places, strict=True):
        assert len(place) == (not character.isspace())
        for word in place:
            spelled[word] += character
    assert spelled == text.split()


def test_a_token_of_several_words_is_in_all_of_them() -> None:
    class Phrases(Words):
        between = ""

    vocabulary = Phrases(["of the", " cat", " "])
    assert words_of_tokens(vocabulary, [4, 5, 6], "of the cat ") == [(0, 1), (2,), ()]


def test_two_words_are_linked_where_any_of_their_tokens_are() -> None:
    links = [(0, 0), (1, 0), (2, 1), (2, 2)]
    source_words = [(0,), (0,), (1, 2)]
    target_words = [(0,), (), (1,)]
    linked = word_links(links, source_words, target_words)
    assert linked == ((0, 0), (1, 1), (2, 1))
    assert pharaoh(linked) == "0-0 1-1 2-1"


def test_each_target_token_is_linked_to_the_source_token_it_looked_at_most() -> None:
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1], [0.2, 0.2, 0.6]])
    assert attention_links(weights, targets=2, sources=2) == ((1, 0), (0, 1))  # END on neither side
    assert attention_links(weights, targets=0, sources=2) == ()
