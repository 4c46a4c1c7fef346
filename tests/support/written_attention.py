"""Attention as people write it, and what has to hold however they do."""

import torch
from torch import nn

from attlas.patterns import causal
from attlas.recording import FactoredAttentionMap, intervene, observe

QUERIES = 5


class Calling(nn.Module):
    """Runs a function that it is given."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *given):
        return self.function(*given)


def vectors(*shape, count=3):
    torch.manual_seed(0)
    return torch.randn(count, *shape)


def same(weights, seen, layer):
    return weights


def check(function, expected, *given, kind=FactoredAttentionMap):
    """What is read of it is as expected; looking, and putting the same weights, changes nothing."""
    model = Calling(function)
    plain = model(*given)
    with observe(model) as trace:
        seen = model(*given)
    assert torch.equal(plain, seen)
    assert isinstance(trace[""], kind)
    torch.testing.assert_close(trace[""].weights(), expected, atol=1e-6, rtol=1e-5)
    with intervene(model, same):
        torch.testing.assert_close(model(*given), plain, atol=1e-5, rtol=1e-5)
    return trace[""]


HIDDEN = ~causal.mask(QUERIES, QUERIES, 0)
