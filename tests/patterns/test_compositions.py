"""Properties of every composition: text round trip, sound bounds."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.patterns import both, causal, either, landmarks, parse, window
from attlas.patterns.base import Bound

# Texts, so that a failure prints as a pattern; `parse` has tests of its own by hand.
elementary = st.one_of(
    st.sampled_from(["everywhere", "causal"]),
    st.integers(0, 6).map("window({})".format),
    st.integers(1, 6).map("strided({})".format),
    st.lists(st.integers(0, 14).map(str), max_size=3).map(lambda at: f"landmarks({', '.join(at)})"),
    st.builds("scattered({}, {})".format, st.floats(0, 1), st.integers(0, 9)),
)
patterns = st.recursive(
    elementary,
    lambda inner: st.builds(
        lambda name, parts: f"{name}({', '.join(parts)})",
        st.sampled_from(["both", "either"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


@given(patterns)
def test_a_pattern_is_read_back_from_its_text(text):
    pattern = parse(text)
    assert parse(str(pattern)) == pattern
    assert parse(f"  {pattern} ") == pattern


@given(patterns)
def test_nothing_is_seen_outside_the_bound_but_at_its_marks(text):
    pattern = parse(text)
    bound = pattern.bound
    query, key = torch.arange(15).unsqueeze(1), torch.arange(15)
    outside = torch.zeros(15, 15, dtype=torch.bool)
    if bound.back is not None:
        outside |= key < query - bound.back
    if bound.ahead is not None:
        outside |= key > query + bound.ahead
    marks = torch.tensor(sorted(bound.marks), dtype=torch.long)
    outside &= ~torch.isin(query, marks) & ~torch.isin(key, marks)
    assert not (pattern.mask(15, 15) & outside).any()


@given(patterns)
def test_a_pattern_that_says_so_lets_every_query_see_itself(text):
    pattern = parse(text)
    assert not pattern.sees_itself or pattern.mask(15, 15).diagonal().all()


def test_only_landmarks_leave_a_query_without_itself():
    selves = ["everywhere", "causal", "window(0)", "strided(3)", "scattered(0.0, 1)"]
    assert all(parse(text).sees_itself for text in selves)
    assert not landmarks(0).sees_itself
    assert either(landmarks(0), window(1)).sees_itself
    assert not both(causal, landmarks(0)).sees_itself


@given(patterns, st.integers(0, 10), st.integers(1, 5))
def test_a_part_of_a_mask_is_the_mask_of_that_part(text, first, queries):
    pattern = parse(text)
    whole = pattern.mask(15, 15)
    part = pattern.mask(queries, 12, first)
    assert torch.equal(part, whole[first : first + queries, :12])


def test_windows_and_their_compositions_have_a_bound_narrow_enough_for_the_banded_kernel():
    assert window(3).bound == Bound(3, 3)
    assert both(causal, window(3)).bound == Bound(3, 0)
    assert either(window(2), both(causal, window(5))).bound == Bound(5, 2)
    longformer = either(window(2), landmarks(0, 9))
    assert (longformer.bound.back, longformer.bound.ahead) == (2, 2)
    assert longformer.bound.marks == {0, 9}
