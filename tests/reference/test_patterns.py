"""Patterns and dropout, held against their references."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas import patterns, reference
from attlas.ops.dropout import Dropout

PAIRS = {
    "causal": (patterns.causal, reference.patterns.causal),
    "window": (patterns.window(2), reference.patterns.window(2)),
    "strided": (patterns.strided(3), reference.patterns.strided(3)),
    "landmarks": (patterns.landmarks(1, 6), reference.patterns.landmarks(1, 6)),
    "scattered": (patterns.scattered(0.3, 7), reference.patterns.scattered(0.3, 7)),
}
PAIRS["Longformer"] = (
    patterns.either(patterns.window(2), patterns.landmarks(0)),
    reference.patterns.either(reference.patterns.window(2), reference.patterns.landmarks(0)),
)
PAIRS["causal strides"] = (
    patterns.both(patterns.causal, patterns.strided(4)),
    reference.patterns.both(reference.patterns.causal, reference.patterns.strided(4)),
)


@given(
    name=st.sampled_from(sorted(PAIRS)),
    queries=st.integers(0, 9),
    keys=st.integers(0, 12),
    query_offset=st.integers(0, 30),
)
def test_a_pattern_shows_the_pairs_of_its_rule(name, queries, keys, query_offset):
    pattern, rule = PAIRS[name]
    shown = pattern.mask(queries, keys, query_offset)
    np.testing.assert_array_equal(
        shown.numpy(), reference.patterns.mask(rule, queries, keys, query_offset)
    )


@given(share=st.floats(0, 1), seed=st.integers(0, 2**31 - 1), far=st.integers(0, 2**30))
def test_random_links_are_the_same_hash_however_far(share, seed, far):
    pattern, rule = patterns.scattered(share, seed), reference.patterns.scattered(share, seed)
    query, key = torch.tensor([[far], [far + 1]]), torch.tensor([0, far, far + 5])
    expected = [[rule(i, j) for j in key.tolist()] for i in query.flatten().tolist()]
    assert pattern(query, key).tolist() == expected


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_what_is_kept_of_weights_grows_by_what_is_dropped(p):
    torch.manual_seed(0)
    weights = torch.rand(4, 3, 50, 60, dtype=torch.float64).softmax(-1)
    layer = Dropout(p).train()
    dropped = layer(weights)
    expected = reference.dropout(weights.numpy(), (dropped != 0).numpy(), layer.active_p)
    np.testing.assert_allclose(dropped.numpy(), expected, rtol=1e-4)  # p is rounded
    assert abs(float((dropped == 0).double().mean()) - p) < 0.02
