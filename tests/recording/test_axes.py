"""The axes of what a model computes: texts, heads, queries and keys, and where they stand."""

import pytest
import torch
from torch import nn

from attlas.recording import DenseAttentionMap, observe
from attlas.recording.torch_functions.transformers import InterfaceCall
from support.warm_processes import python
from support.written_attention import QUERIES, check, vectors


def test_one_text_without_a_batch_is_read():
    query, key, value = vectors(QUERIES, 4)

    def written(query, key, value):
        return (query @ key.T / 2).softmax(-1) @ value

    check(written, (query @ key.T / 2).softmax(-1)[None, None], query, key, value)


def test_heads_in_the_first_axis_are_found_by_the_width_of_a_map():
    class Folded(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads, self.to_q = 2, nn.Linear(6, 8)

        def forward(self, source):
            query = self.to_q(source).unflatten(-1, (2, 4)).transpose(1, 2).flatten(0, 1)
            return (query @ query.mT).softmax(-1) @ query

    model, source = Folded(), torch.randn(3, QUERIES, 6)
    with observe(model) as trace:
        model(source)
    assert trace[""].shape == (3, 2, QUERIES, QUERIES)


def test_several_texts_in_one_row_are_not_read_as_one():
    query, key, value = vectors(1, 2, QUERIES, 4)
    module = nn.Module()
    packed, one = torch.tensor([[0, 1, 2, 0, 1]]), torch.arange(5)[None]
    given = module, query, key, value, None
    assert InterfaceCall.of(*given, {"is_causal": True, "position_ids": packed}) is None
    assert InterfaceCall.of(*given, {"is_causal": True, "position_ids": one}) is not None


@pytest.mark.parametrize("batch_first", [False, True])
def test_positions_added_to_queries_and_keys_alone_leave_it_self_attention(batch_first):
    model = nn.MultiheadAttention(8, 2, batch_first=batch_first)
    source, positions = torch.randn(2, 4, 3, 8)
    asking = source + positions
    with observe(model) as trace:
        model(asking, asking, source)
    assert trace.kind("") == "self"
    with observe(model) as trace:
        model(asking, source, source)
    assert trace.kind("") == "cross"


def test_what_may_be_self_attention_is_not_called_cross():
    model, source = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(2, 4, 8)
    norm, positions = nn.LayerNorm(8), torch.randn(2, 4, 8)
    for given in (
        (norm(source), norm(source), norm(source)),
        (norm(source) + positions, norm(source) + positions, source),
        (source[:, -1:], source, source),
    ):
        with observe(model) as trace:
            model(*given)
        assert trace.kind("") is None
    with observe(model) as trace:
        model(source, torch.randn(2, 7, 8), torch.randn(2, 7, 8))
    assert trace.kind("") == "cross"


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["torch.ones(2, 3)", "torch.ones(1, 1, 2, 2).numpy()"])
def test_weights_that_are_no_tensor_of_four_axes_are_refused(wrong):
    code = (
        f"import torch; from attlas.recording import DenseAttentionMap; DenseAttentionMap({wrong})"
    )
    done = python(code)
    assert "AttlasError: expected weights as a tensor (batch, heads, queries, keys)" in done.stderr


def test_beside_a_source_the_first_query_stands_at_the_first_slot():
    weights = torch.eye(3, 5)[None, None]
    newest, first = (
        DenseAttentionMap(weights, query_offset=2),
        DenseAttentionMap(weights, query_offset=0),
    )
    assert newest.position == 2
    assert first.distance().tolist() == [[[0, 0, 0]]]
    assert newest.distance().tolist() == [[[2, 2, 2]]]
    assert first.select_heads(torch.tensor([0])).at(0).detached_copy().position == 0
