"""Which rows of a map count: those that a token asks, so that a text's company says nothing."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attlas.analysis.faithfulness.adversarial import adversarial_weights
from attlas.analysis.faithfulness.correlation import (
    gradient_correlation,
    leave_one_out_correlation,
    product_correlation,
)
from attlas.analysis.faithfulness.erasure import multi_erasure, single_erasure
from attlas.analysis.faithfulness.experiment import AttentionRows, AttentionTarget
from attlas.analysis.faithfulness.permutation import uniform_distance
from attlas.errors import AttlasError
from support.explained_models import REAL, TEXTS, classifier

PATH = "encoder.layers.0.self_attention"
FOCUS = AttentionTarget(PATH)


def correlated(correlation):
    def numbers(model, call):
        found = correlation(model, call, FOCUS)
        return [found.tau, found.weights[:, :3], found.importance[:, :3]]

    return numbers


def erased(model, call):
    found = single_erasure(model, call, FOCUS, seed=0).greatest
    flips = multi_erasure(model, call, FOCUS, seed=0)
    orders = [flips[name].count for name in ("weight", "gradient", "weight × gradient")]
    return [found.key, found.weight, found.divergence, *orders]


def opposed(model, call):
    found = adversarial_weights(model, call, FOCUS, seed=0, starts=1, steps=15)
    return [found.divergence, found.distance]


@pytest.mark.parametrize(
    "numbers",
    [
        correlated(gradient_correlation),
        correlated(product_correlation),
        correlated(leave_one_out_correlation),
        erased,
        opposed,
        lambda model, call: [uniform_distance(model, call)],
    ],
)
def test_the_numbers_of_a_text_are_the_same_beside_a_longer_one_and_alone(numbers):
    torch.manual_seed(0)
    model, alone = classifier(), TEXTS[1:, :3]
    beside = numbers(model, lambda: model(TEXTS, REAL))
    for ours, other in zip(beside, numbers(model, lambda: model(alone)), strict=True):
        torch.testing.assert_close(ours[1:], other, equal_nan=True)


def test_queries_of_padding_are_not_asked_and_keep_their_weights():
    torch.manual_seed(0)
    model = classifier()
    rows = AttentionRows.of(model, lambda: model(TEXTS, REAL), AttentionTarget(PATH, heads=1))
    assert torch.equal(rows.query_mask, REAL)
    assert (rows.weights[1, 3:].sum(-1) > 0).all()  # they look all the same
    left = rows.without(torch.tensor([[True] + [False] * 4] * 2))
    assert torch.equal(left[1, 3:], rows.weights[1, 3:])
    assert (left[1, :3, 0] == 0).all()
    assert (rows.gradients()[1, 3:] == 0).all()
    found = adversarial_weights(
        model, lambda: model(TEXTS, REAL), AttentionTarget(PATH, heads=1), seed=0, starts=1, steps=5
    )
    assert torch.equal(found.weights[1, 3:], rows.weights[1, 3:])
    assert not torch.equal(found.weights[1, :3], rows.weights[1, :3])


def test_a_focus_on_padding_alone_is_reported():
    model = classifier()
    with pytest.raises(AttlasError, match=r"a query of a token in every text.*padding alone in te"):
        AttentionRows.of(model, lambda: model(TEXTS, REAL), AttentionTarget(PATH, queries=-1))


class Across(nn.Module):
    """Three queries look at three keys of another text, of which the last is padding."""

    def forward(self):
        torch.manual_seed(0)
        query, keys, values = torch.randn(3, 1, 1, 3, 4)
        seen = torch.tensor([True, True, False])
        return F.scaled_dot_product_attention(
            query, keys, values, attn_mask=seen[None, None, None]
        )[:, 0, 0]


def test_a_square_map_between_two_texts_counts_every_query_where_that_is_said():
    model = Across()
    assert AttentionRows.of(model, model, AttentionTarget()).query_mask.tolist() == [
        [True, True, False]
    ]
    assert AttentionRows.of(
        model, model, AttentionTarget(cross_attention=True)
    ).query_mask.tolist() == [[True, True, True]]
