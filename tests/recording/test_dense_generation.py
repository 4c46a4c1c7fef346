"""Steps of a generation of which nothing is known but their weights."""

import pytest
import torch

from attlas.recording import DenseAttentionMap
from attlas.recording.dense_generation import followed


def causal_weights(batch=1, heads=2, places=6):
    hidden = torch.ones(places, places).triu(1).bool()
    scores = torch.randn(batch, heads, places, places).masked_fill(hidden, -torch.inf)
    return scores.softmax(-1)


@pytest.mark.parametrize("steps", [[3, 1, 1, 1], [1, 2, 3], [5, 1]])
def test_the_steps_of_one_text_are_one_map(steps):
    weights = causal_weights()
    together, stop = None, 0
    for step in steps:
        start, stop = stop, stop + step
        call = DenseAttentionMap(weights[:, :, start:stop, :stop])
        together = call if together is None else followed(together, call, cross_attention=False)
    assert torch.equal(together.weights(), weights)
    assert together.causal
    assert together.position == 0
    assert not together.allowed_rows(0, 6)[0, 0, 0, steps[0] :].any()


def test_a_source_that_is_asked_again_has_one_map():
    weights = torch.rand(1, 2, 4, 5).softmax(-1)
    together = DenseAttentionMap(weights[:, :, :1])
    for place in range(1, 4):
        together = followed(
            together, DenseAttentionMap(weights[:, :, place : place + 1]), cross_attention=True
        )
    assert torch.equal(together.weights(), weights)
    assert bool(together.allowed_rows(0, 4).all())


def test_rows_go_on_from_where_other_layers_say():
    weights = causal_weights(batch=2)
    before = DenseAttentionMap(weights[:, :, :4, :4])
    moved = weights.flip(0)
    step = DenseAttentionMap(moved[:, :, 4:5, :5])
    parents = torch.tensor([[False, True], [True, False]])
    together = followed(before, step, parents, cross_attention=False)
    assert torch.equal(together.weights(), moved[:, :, :5, :5])


@pytest.mark.parametrize(
    ("batch", "keys", "parents", "cross_attention"),
    [
        (2, 5, None, False),  # rows may have changed places
        (2, 5, torch.ones(2, 2, dtype=torch.bool), False),  # nobody knows which went on
        (1, 6, None, False),  # a gap
        (1, 4, None, False),  # a cache that dropped the oldest, or has room
        (1, 5, None, True),  # another source
    ],
)
def test_what_may_not_go_on_is_left_apart(batch, keys, parents, cross_attention):
    weights = causal_weights(batch=batch)
    before = DenseAttentionMap(weights[:, :, :4, :4])
    step = DenseAttentionMap(weights[:, :, 4:5, :keys])
    assert followed(before, step, parents, cross_attention=cross_attention) is None
    assert followed(before, DenseAttentionMap(step.values.double()), parents) is None
