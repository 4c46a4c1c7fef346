"""Einstein sums: their letters say what is read."""

import pytest
import torch

from attlas.errors import AttlasError
from attlas.recording import intervene, observe
from support.written_attention import QUERIES, Calling, check, vectors

SUMS = {
    "heads in front": ("bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd", "bhnd"),
    "heads behind": ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "bnhd"),
    "queries in front of heads": ("bqhd,bkhd->bqhk", "bqhk,bkhd->bqhd", "bnhd"),
    "queries first": ("bqhd,bkhd->qbhk", "qbhk,bkhd->bqhd", "bnhd"),
    "keys asked first": ("bkhd,bqhd->bhqk", "bkhd,bhqk->bqhd", "bnhd"),
    "values shared by heads": ("bhqd,bhkd->bhqk", "bhqk,bkd->bhqd", "bhnd"),
    "dots for batch and heads": ("...qd,...kd->...qk", "...qk,...kd->...qd", "bhnd"),
    "dots for heads, in between": ("bq...d,bk...d->b...qk", "b...qk,bk...d->bq...d", "bnhd"),
}


@pytest.mark.parametrize("way", SUMS)
@pytest.mark.parametrize("listed", [False, True])
def test_the_letters_of_a_sum_say_what_is_a_query(way, listed):
    scores, context, axes = SUMS[way]
    query, key, value = vectors(*({"b": 2, "h": 3, "n": QUERIES, "d": 4}[axis] for axis in axes))
    if way == "values shared by heads":
        value = value[:, 0]

    def einsum(equation, *tensors):
        return torch.einsum(equation, tensors) if listed else torch.einsum(equation, *tensors)

    def written(query, key, value):
        given = (key, query) if scores.startswith("bk") else (query, key)
        weights = einsum(scores, *given).softmax(-1)
        pair = (value, weights) if context.startswith("bk") else (weights, value)
        return einsum(context, *pair)

    requested, keys = (t if axes == "bhnd" else t.transpose(1, 2) for t in (query, key))
    expected = (requested @ keys.mT).softmax(-1)
    model = Calling(written)
    plain = model(query, key, value)
    with observe(model) as trace:
        assert torch.equal(model(query, key, value), plain)
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-6, rtol=1e-5)
    with intervene(
        model, lambda weights, seen, layer: weights * torch.tensor([1.0, 0.0, 1.0])[:, None, None]
    ):
        changed = model(query, key, value)
    of_head = changed[:, 1] if axes == "bhnd" else changed[:, :, 1]
    assert not of_head.any()
    assert changed.any()


def test_a_sum_without_an_arrow_keeps_the_letters_that_stand_alone():
    query, key, value = vectors(QUERIES, 4)

    def written(query, key, value):
        return torch.einsum("ij,jd", torch.einsum("id,jd", query, key).softmax(-1), value)

    check(written, (query @ key.T).softmax(-1)[None, None], query, key, value)

    def turned(query, key, value):
        scores = torch.einsum("qd,kd", query, key).T  # by letter: keys before queries
        return torch.einsum("ij,jd", scores.softmax(-1), value)

    check(turned, (query @ key.T).softmax(-1)[None, None], query, key, value)


def test_a_sum_of_lists_of_numbers_is_read():
    def written(query, key, value):
        weights = torch.einsum(query, [..., 0, 1], key, [..., 2, 1], [..., 0, 2]).softmax(-1)
        return torch.einsum(weights, [..., 0, 2], value, [..., 2, 1], [..., 0, 1])

    query, key, value = vectors(2, 2, QUERIES, 4)
    check(written, (query @ key.mT).softmax(-1), query, key, value)


@pytest.mark.parametrize("equation", ["bhqs,bhqs->bh", "bte,bted->btd"])
def test_a_sum_without_queries_is_no_attention(equation):
    letters = dict(zip("bhqstedk", [2, 3, 4, 5, 4, 5, 6, 7], strict=True))
    terms = equation.split("->")[0].split(",")

    def written(first, second):
        return torch.einsum(equation, first.softmax(-1), second)

    model = Calling(written)
    with pytest.raises(AttlasError, match="at least one attention call"), observe(model):
        model(*(torch.randn([letters[letter] for letter in term]) for term in terms))
