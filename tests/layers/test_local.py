import subprocess
import sys

import pytest
import torch

from attlas.errors import AttlasError
from attlas.layers import (
    AdditiveAttention,
    DotAttention,
    GeneralAttention,
    LocalMonotonicAttention,
    LocalPredictiveAttention,
)
from attlas.patterns import causal, window
from attlas.recording import observe


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def test_local_m_is_the_inner_softmax_within_a_window_around_t():
    inner = GeneralAttention(3, 5).double()
    local = LocalMonotonicAttention(inner, 2)
    query, source = torch.randn(2, 4, 3).double(), torch.randn(2, 9, 5).double()
    weights = local.attention_weights(query, local.project_kv(source), query_offset=1)[:, 0]
    scores = inner.score(query, inner.project_kv(source).keys)
    for t in range(4):
        centre = t + 1
        inside = slice(max(0, centre - 2), centre + 3)
        torch.testing.assert_close(weights[:, t, inside], scores[:, t, inside].softmax(-1))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4).double())


def test_local_m_without_first_counts_the_queries_as_the_newest_positions():
    source = torch.randn(2, 6, 4)
    local, windowed = LocalMonotonicAttention(DotAttention(), 2), DotAttention(pattern=window(2))
    memory = local.project_kv(source)
    torch.testing.assert_close(local.attend(source, memory), windowed.attend(source, memory))
    torch.testing.assert_close(
        local.attend(source[:, 4:], memory), windowed.attend(source, memory)[:, 4:]
    )


def test_a_window_past_the_end_of_the_source_reads_zeros():
    local = LocalMonotonicAttention(DotAttention(), 1)
    query = torch.randn(1, 6, 4, requires_grad=True)
    context = local.attend(query, local.project_kv(torch.randn(1, 3, 4)), query_offset=0)
    assert (context[:, :4] != 0).any(-1).all()
    assert (context[:, 4:] == 0).all()
    context.sum().backward()
    assert torch.isfinite(query.grad).all()


def test_local_p_is_eq_10_divided_by_its_sum():
    inner = AdditiveAttention(3, 5, 4).double()
    local = LocalPredictiveAttention(inner, 3, 3, 6).double()
    query, source = torch.randn(1, 2, 3).double(), torch.randn(1, 11, 5).double()
    weights = local.attention_weights(query, local.project_kv(source))[0, 0]
    for t in range(2):
        hidden = torch.tanh(local.q_proj.weight @ query[0, t])
        p = 11 * torch.sigmoid(local.position_proj.weight[0] @ hidden)
        s = torch.arange(11).double()
        inside = (s - p).abs() <= 3
        scores = inner.score(query, inner.project_kv(source).keys)[0, t]
        aligned = torch.where(inside, scores, -torch.inf).softmax(-1)
        eq10 = aligned * torch.exp(-((s - p) ** 2) / (2 * (3 / 2) ** 2))
        torch.testing.assert_close(weights[t], eq10 / eq10.sum())
        assert ((weights[t] > 0) == inside).all()


def test_local_p_aims_within_the_real_slots_of_each_row_wherever_its_padding_is():
    local = LocalPredictiveAttention(DotAttention(), 2, 4, 3)
    source, query = torch.randn(1, 4, 4), torch.randn(1, 3, 4)
    alone = local.attend(query, local.project_kv(source))
    junk = torch.full((1, 3, 4), float("nan"))
    for padded, token_mask in (
        (torch.cat([source, junk], 1), [True] * 4 + [False] * 3),
        (torch.cat([junk, source], 1), [False] * 3 + [True] * 4),
        (torch.cat([source[:, :2], junk, source[:, 2:]], 1), [True] * 2 + [False] * 3 + [True] * 2),
    ):
        memory = local.project_kv(padded, torch.tensor([token_mask]))
        torch.testing.assert_close(local.attend(query, memory), alone)


def test_local_p_learns_where_to_look():
    # The value wanted stands at key 7 of 10; all keys are alike, so that only p_t can find it.
    local = LocalPredictiveAttention(GeneralAttention(2, 10), 2, 2, 4)
    with torch.no_grad():
        local.inner.k_proj.weight.zero_()
    local.inner.k_proj.weight.requires_grad_(False)
    source, query = torch.eye(10).unsqueeze(0), torch.ones(1, 1, 2)
    optimizer = torch.optim.Adam([p for p in local.parameters() if p.requires_grad], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        memory = local.project_kv(source)
        (torch.arange(10.0) - 7).square().mul(local.attend(query, memory)[0, 0]).sum().backward()
        optimizer.step()
    assert abs(local.centre(query, memory).item() - 7) < 0.25


def test_local_holds_the_pattern_and_the_dropout_of_what_is_inside():
    local = LocalMonotonicAttention(DotAttention(pattern=causal, dropout=0.25), 1)
    source = torch.randn(1, 4, 3)
    weights = local.attention_weights(source, local.project_kv(source))[0, 0]
    assert (weights > 0).tolist() == [[j in (i, i - 1) for j in range(4)] for i in range(4)]
    assert local.dropout == 0.25


def test_a_local_attention_is_heard_once_and_by_its_own_path():
    model = torch.nn.ModuleDict({"look": LocalMonotonicAttention(DotAttention(), 1)})
    source = torch.randn(1, 4, 3)
    with observe(model) as trace:
        model["look"](source, model["look"].project_kv(source))
    assert tuple(trace) == ("look",)


def test_local_attention_stays_finite_in_half_precision_far_from_its_centre():
    local = LocalPredictiveAttention(DotAttention(), 1, 4, 3).half()
    source = torch.randn(1, 3000, 4).half()
    context = local.attend(source[:, :2], local.project_kv(source))
    assert torch.isfinite(context).all()
    assert (context != 0).any()


def test_a_prediction_from_queries_that_the_inner_attention_does_not_take_is_an_error():
    with pytest.raises(AttlasError) as caught:
        LocalPredictiveAttention(GeneralAttention(3, 2), 1, 4, 5)
    assert str(caught.value) == (
        "expected the query_dim of the inner attention, 3; got 4; both get the same query"
    )


RADII = """
import numpy as np
from attlas.errors import AttlasError
from attlas.layers import DotAttention, LocalMonotonicAttention, LocalPredictiveAttention

for radius in (np.int64(3), np.uint8(3), True, np.bool_(True), 3.0, np.float32(3), "3", None):
    for local in (LocalMonotonicAttention, lambda *given: LocalPredictiveAttention(*given, 4, 5)):
        try:
            print(type(local(DotAttention(), radius).radius).__name__)
        except AttlasError as error:
            print(error.expected)
"""


@pytest.mark.slow
def test_a_radius_is_a_whole_number_of_python_or_of_numpy():
    # The tests run with a checker of types, which would speak first; an installed attlas has none.
    command = [sys.executable, "-c", RADII]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.stderr == ""
    refused = ["a local window with a radius D ≥ 1, a whole number"] * 12
    assert done.stdout.splitlines() == [*["int"] * 4, *refused]


def test_a_window_without_a_width_is_an_error():
    with pytest.raises(AttlasError) as caught:
        LocalMonotonicAttention(DotAttention(), 0)
    assert str(caught.value) == (
        "expected a local window with a radius D ≥ 1, a whole number; got 0; "
        "use e.g. 10, as the paper does"
    )
