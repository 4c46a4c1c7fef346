"""Maps in words: one made-up map of each kind, and what the text says of it."""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.analysis._padding import query_mask, token_mask_of
from attlas.analysis.description import CAUTION, describe, map_features
from attlas.errors import AttlasError
from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap

WORDS = ["[CLS]", "the", "cat", "sat", "on", "it", ".", "[SEP]"]


def looking_at(keys, count, mass=1.0):
    """A map whose queries give `mass` to one key each, and the rest evenly to the others."""
    weights = torch.full((len(keys), count), (1 - mass) / max(1, count - 1), dtype=torch.float64)
    weights[torch.arange(len(keys)), torch.tensor(keys)] = mass
    return DenseAttentionMap(weights[None, None])


def test_a_previous_token_head_looks_one_slot_back():
    reported = describe(looking_at([0, 0, 1, 2, 3, 4, 5, 6], 8, 0.9), 0, 0, tokens=WORDS)
    assert reported.startswith("8 queries look at 8 keys. Most look one key back: 88 % have their ")
    assert (
        "greatest weight there, and give it 79 % on average." in reported
    )  # 7/8 · 0.9, and 0.1 / 7
    assert "The gaze is narrow:" in reported
    assert "with a greatest weight of 0.90." in reported
    assert "It runs steadily forward: " in reported
    assert "forward in 86 % of the steps, stays in 14 % and moves backward in 0 %" in reported


@pytest.mark.parametrize(
    ("offset", "reported"),
    [(0, "at their own place"), (1, "one key ahead"), (3, "3 keys ahead"), (-2, "2 keys back")],
)
def test_an_offset_is_named_from_the_query(offset, reported):
    keys = [min(max(place + offset, 0), 19) for place in range(20)]
    assert f"Most look {reported}: " in describe(looking_at(keys, 20, 0.8), 0, 0)


def test_a_sink_is_named_with_its_token_and_its_share():
    reported = describe(looking_at([0] * 8, 8, 0.8), 0, 0, tokens=WORDS)
    assert (
        'Most look at key 0 ("[CLS]"): 100 % have their greatest weight there, and it gets 80 % '
        "of all weight, as a sink does."
    ) in reported
    assert "It stays where it is: " in reported


def test_what_many_look_at_a_little_is_no_sink():
    reported = describe(looking_at([3] * 8, 8, 0.24), 0, 0, tokens=WORDS)
    assert "sink" not in reported


def test_what_is_neither_first_nor_a_separator_is_no_sink():
    for key, sink in ((0, True), (3, False), (6, True), (7, True)):
        reported = describe(looking_at([key] * 8, 8, 0.8), 0, 0, tokens=WORDS)
        assert f"Most look at key {key} " in reported
        assert ("as a sink does" in reported) == sink
    # Less than what a separator gets, more than what a first key needs.
    assert "sink" in describe(looking_at([0] * 8, 8, 0.4), 0, 0, tokens=WORDS)
    assert "sink" not in describe(looking_at([7] * 8, 8, 0.4), 0, 0, tokens=WORDS)


def test_half_is_not_most():
    half = looking_at([3, 3, 3, 3, 0, 7, 5, 1], 8, 0.9)
    for cross_attention in (True, False):
        reported = describe(half, 0, 0, cross_attention=cross_attention)
        assert "They look at no one place; the commonest place is key 3: 50 % have" in reported
        assert "Most" not in reported
    aside = looking_at([0, 1, 2, 3, 1, 0, 0, 2], 8, 0.9)
    assert "Most" not in describe(aside, 0, 0, cross_attention=False)


def test_two_words_that_answer_two_words_are_a_diagonal():
    reported = describe(DenseAttentionMap(torch.eye(2)[None, None]), 0, 0, cross_attention=True)
    assert "They look along the diagonal: query and key correlate with 1.00." in reported
    assert "Most" not in reported


def test_an_even_map_has_no_place_that_stands_out():
    even = DenseAttentionMap(torch.full((1, 1, 5, 9), 1 / 9))
    reported = describe(even, 0, 0)
    assert "They spread almost evenly over all visible keys: no place stands out." in reported
    assert (
        "The gaze is wide: on average as if spread evenly over 9.0 of 9.0 keys in sight" in reported
    )
    assert "It stays where it is" not in reported  # the first of equals is no place


def test_a_causal_map_is_even_over_what_is_in_sight():
    parts = torch.zeros(1, 1, 9, 4)
    reported = describe(FactoredAttentionMap(parts, parts, 1.0, causal, 0), 0, 0)
    assert "9 queries look at 9 keys. 8 of them see more than one key; of these: " in reported
    assert "They spread almost evenly" in reported
    assert "spread evenly over 5.5 of 5.5 keys in sight" in reported  # (2 + … + 9) / 8


def test_diagonals_of_two_texts_have_their_direction():
    rising = describe(looking_at(list(range(12)), 12, 0.9), 0, 0, cross_attention=True)
    falling = describe(looking_at(list(range(12))[::-1], 12, 0.9), 0, 0, cross_attention=True)
    assert "They look along the diagonal: query and key correlate with 0." in rising
    assert "It runs steadily forward: " in rising
    assert "They look along the anti-diagonal: query and key correlate with -0." in falling
    assert "It runs steadily backward: " in falling
    assert "key back" not in rising


def test_a_map_without_a_rule_is_said_to_have_none():
    reported = describe(looking_at([3, 6, 0, 7, 2, 5, 3, 1], 8, 0.5), 0, 0, tokens=WORDS)
    assert 'They look at no one place; the commonest place is key 3 ("sat"): 25 % have' in reported
    assert "It has no steady direction: " in reported


def test_one_query_is_reported_of_as_one():
    reported = describe(
        looking_at([2], 4, 0.7), 0, 0, tokens=["a", "b", "c", "d"], cross_attention=True
    )
    assert reported.startswith('1 query looks at 4 keys. It looks most at key 2 ("c"), with 70 % ')
    assert "from query to query" not in reported


def test_queries_without_a_choice_are_said_to_have_none():
    reported = describe(DenseAttentionMap(torch.ones(1, 1, 3, 1)), 0, 0)
    assert reported == (
        "3 queries look at 1 key. None of them sees more than one key, so there is no choice. "
        f"{CAUTION}"
    )
    empty = DenseAttentionMap(torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 2, 3, dtype=torch.bool))
    assert "None of them sees more than one key" in describe(empty, 0, 0)
    assert "2 queries look at 0 keys." in describe(DenseAttentionMap(torch.ones(1, 1, 2, 0)), 0, 0)
    assert "0 queries look at 0 keys." in describe(DenseAttentionMap(torch.ones(1, 1, 0, 0)), 0, 0)


def test_a_token_cannot_break_the_line_or_its_quotation_marks():
    reported = describe(looking_at([0] * 3, 3, 0.9), 0, 0, tokens=['a"\n', "ü", "c"])
    assert r'key 0 ("a\"\n")' in reported
    assert "\n" not in reported
    assert '("ü")' in describe(looking_at([1] * 3, 3, 0.9), 0, 0, tokens=["a", "ü", "c"])


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_is_not_reported_of(side):
    torch.manual_seed(0)
    parts = torch.randn(2, 1, 1, 5, 4)
    alone = FactoredAttentionMap(parts[0], parts[1], 2.0, everywhere, 0)
    zeros = torch.full((2, 1, 1, 3, 4), 9.0)
    order = (parts, zeros) if side == "right" else (zeros, parts)
    longer = torch.cat(order, 3)
    place = torch.arange(8)[None]
    token_mask = place < 5 if side == "right" else place >= 3
    padded = FactoredAttentionMap(longer[0], longer[1], 2.0, everywhere, 0, token_mask)
    names = list("abcde")
    shown = describe(padded, 0, 0, tokens=names)
    plain = describe(alone, 0, 0, tokens=names)
    if side == "left":
        plain, shown = (without_numbers(text) for text in (plain, shown))
    assert shown == plain


def without_numbers(text):
    """What is said but for the number of the key."""
    return re.sub(r"key \d+ \(", "key (", text)


def test_one_map_of_many_is_chosen_by_its_text_and_head():
    torch.manual_seed(0)
    weights = torch.softmax(torch.randn(2, 3, 6, 6) * 3, -1)
    reported = describe(DenseAttentionMap(weights), 1, 2)
    assert reported == describe(DenseAttentionMap(weights[1:, 2:]), 0, 0)
    assert reported != describe(DenseAttentionMap(weights), 0, 2)


@given(st.integers(1, 7), st.integers(1, 7), st.floats(0.1, 20), st.integers(0, 2**31))
def test_every_map_has_words_and_the_caution(queries, keys, sharpness, seed):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.softmax(sharpness * torch.randn(queries, keys, generator=generator), -1)
    for cross_attention in (None, True, False):
        reported = describe(
            DenseAttentionMap(weights[None, None]), 0, 0, cross_attention=cross_attention
        )
        assert reported.endswith(CAUTION)
        assert "nan" not in reported
        assert "why" in CAUTION


@given(st.integers(2, 7), st.integers(2, 7), st.integers(0, 2**31))
def test_the_numbers_of_the_text_are_those_of_the_map(queries, keys, seed):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.softmax(2 * torch.randn(queries, keys, generator=generator).double(), -1)
    attention_map = DenseAttentionMap(weights[None, None])
    token_mask = token_mask_of(attention_map)
    seen = map_features(
        attention_map, token_mask, query_mask(attention_map, token_mask, cross_attention=True)
    )
    best = weights.argmax(-1)
    entropy = -(weights * weights.log()).sum(-1)
    assert seen.queries == seen.num_queries == queries
    assert seen.effective_keys == pytest.approx(float(entropy.exp().mean()))
    assert seen.normalized_entropy == pytest.approx(float((entropy / math.log(keys)).mean()))
    assert seen.max_weight == pytest.approx(float(weights.max(-1).values.mean()))
    assert seen.key_share == pytest.approx(float((best == seen.key).double().mean()))
    assert seen.key_share == pytest.approx(int(torch.bincount(best).max()) / queries)
    assert seen.key_weight == pytest.approx(float(weights[:, seen.key].mean()), abs=1e-6)
    assert seen.forward + seen.still + seen.backward == pytest.approx(1)
    assert seen.forward == pytest.approx(float((best.diff() > 0).double().mean()))


def test_what_does_not_fit_is_reported():
    attention_map = looking_at([0, 1, 2], 3)
    with pytest.raises(AttlasError, match="a text of 1 and a head of 1; got row 0, head 1"):
        describe(attention_map, 0, 1)
    with pytest.raises(AttlasError, match="a token for each of 3 keys, or of the 3 that are not"):
        describe(attention_map, 0, 0, tokens=["a", "b"])
    all_of_them = torch.ones(1, 3, dtype=torch.bool)
    with pytest.raises(AttlasError, match="one map; got 1 × 2 of them"):
        map_features(DenseAttentionMap(torch.ones(1, 2, 3, 3) / 3), all_of_them, all_of_them)


def test_padding_is_left_out_of_a_map_of_two_texts_where_it_is_reported():
    weights = torch.full((1, 1, 7, 9), 1 / 9)
    whole = describe(DenseAttentionMap(weights), 0, 0)
    assert whole.startswith("7 queries look at 9 keys.")
    token_mask, queries = torch.arange(9) < 6, torch.arange(7) < 2
    reported = describe(DenseAttentionMap(weights), 0, 0, token_mask=token_mask, queries=queries)
    assert reported.startswith("2 queries look at 6 keys.")
    with pytest.raises(AttlasError, match=r"real queries of shape \(1, 7\)"):
        describe(DenseAttentionMap(weights), 0, 0, queries=token_mask)


@pytest.mark.parametrize("mark", ["。", "،", "▁.", "<|im_end|>"])
def test_separators_of_other_writings_are_sinks_too(mark):
    words = [*WORDS[:6], mark, WORDS[7]]
    assert "as a sink does" in describe(looking_at([6] * 8, 8, 0.9), 0, 0, tokens=words)


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\n", "\u200b"])
def test_no_token_breaks_the_line_or_hides_in_it(sign):
    words = [*WORDS[:3], f"a{sign}b", *WORDS[4:]]
    reported = describe(looking_at([3] * 8, 8, 0.9), 0, 0, tokens=words)
    assert sign not in reported
    assert len(reported.splitlines()) == 1
    assert "key 3" in reported
