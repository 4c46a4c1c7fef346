"""The scored mechanisms and what they share."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from attlas.errors import AttlasError
from attlas.layers import (
    AdditiveAttention,
    ConcatAttention,
    DotAttention,
    GeneralAttention,
    LocalMonotonicAttention,
    MultiheadAttention,
    ScaledDotProductAttention,
    additive,
)
from attlas.ops.attention import masked_softmax
from attlas.ops.cache import KeyValueCache
from attlas.patterns import causal
from support.warm_processes import python


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def test_masked_softmax_by_hand():
    scores = torch.tensor([[0.0, 1.0, 2.0], [5.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    seen = torch.tensor([[True, True, True], [False, True, True], [False, False, False]])
    powers = torch.tensor([1.0, 2.718281828, 7.389056099])
    expected = torch.stack([powers / powers.sum(), torch.tensor([0, 0.5, 0.5]), torch.zeros(3)])
    torch.testing.assert_close(masked_softmax(scores, seen), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_masked_softmax_stays_finite_where_scores_reach_the_end_of_their_type(dtype):
    end = torch.finfo(dtype).max
    scores = torch.tensor([[end, -end, 0.0], [-end, -end, end]], dtype=dtype, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[True, True, True], [True, True, False]]))
    assert weights.tolist() == [[1, 0, 0], [0.5, 0.5, 0]]
    weights.square().sum().backward()
    assert torch.isfinite(scores.grad).all()


def test_a_product_that_overflows_half_precision_still_gives_weights():
    dot = DotAttention()
    source = torch.full((1, 2, 4), 200.0, dtype=torch.float16)
    weights = dot.attention_weights(
        source * torch.tensor([2.0, 1.0], dtype=torch.float16)[:, None], dot.project_kv(source)
    )
    assert weights.tolist() == [[[[0.5, 0.5], [0.5, 0.5]]]]


def test_weights_of_many_slots_in_half_precision_sum_to_one():
    dot = DotAttention()
    source = torch.randn(1, 300, 4).bfloat16()
    sums = dot.attention_weights(source, dot.project_kv(source)).float().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=0.01)


def test_additive_is_its_formula():
    mechanism = AdditiveAttention(3, 5, 4).double()
    query, source = torch.randn(2, 3, 3).double(), torch.randn(2, 6, 5).double()
    w, u, v = mechanism.q_proj.weight, mechanism.k_proj.weight, mechanism.score_proj.weight[0]
    scores = torch.stack(
        [
            torch.stack([v @ torch.tanh(w @ query[0, i] + u @ source[0, j]) for j in range(6)])
            for i in range(3)
        ]
    )
    expected = torch.softmax(scores, -1)
    memory = mechanism.project_kv(source)
    torch.testing.assert_close(mechanism.attention_weights(query, memory)[0, 0], expected)
    torch.testing.assert_close(mechanism.attend(query, memory)[0], expected @ source[0])


def test_dot_is_its_formula():
    query, source = torch.randn(2, 3, 5).double(), torch.randn(2, 6, 5).double()
    expected = torch.softmax(torch.einsum("bqw,bsw->bqs", query, source), -1)
    torch.testing.assert_close(
        DotAttention().attention_weights(query, DotAttention().project_kv(source))[:, 0], expected
    )


def test_general_is_its_formula():
    mechanism = GeneralAttention(3, 5).double()
    query, source = torch.randn(2, 3, 3).double(), torch.randn(2, 6, 5).double()
    matrix = mechanism.k_proj.weight  # h_t · W h_s
    assert matrix.shape == (3, 5)
    expected = torch.softmax(torch.einsum("bqv,vw,bsw->bqs", query, matrix, source), -1)
    torch.testing.assert_close(
        mechanism.attention_weights(query, mechanism.project_kv(source))[:, 0], expected
    )


def test_concat_is_its_formula_with_the_pair_written_out():
    mechanism = ConcatAttention(3, 5, 4).double()
    query, source = torch.randn(2, 3, 3).double(), torch.randn(2, 6, 5).double()
    pairs = torch.cat(
        [query[:, :, None].expand(-1, -1, 6, -1), source[:, None].expand(-1, 3, -1, -1)], dim=-1
    )
    scores = mechanism.score_proj(torch.tanh(mechanism.pair_proj(pairs))).squeeze(-1)
    weights = mechanism.attention_weights(query, mechanism.project_kv(source))
    torch.testing.assert_close(weights[:, 0], torch.softmax(scores, -1))


@pytest.mark.parametrize("faster", [True, False])
def test_a_tanh_without_gradients_is_made_of_a_sigmoid_where_that_is_faster(faster, monkeypatch):
    monkeypatch.setattr("attlas.layers.additive.sigmoid_is_faster", lambda: faster)
    x = torch.cat([torch.linspace(-20, 20, 10_001), torch.logspace(-30, 38, 500)])
    with torch.no_grad():
        found = additive._tanh(x.clone())
        of_sigmoid = 2 * torch.sigmoid(2 * x) - 1
        assert torch.equal(found, of_sigmoid if faster else x.tanh())
        assert not torch.equal(of_sigmoid, x.tanh())
        assert (found.double() - x.double().tanh()).abs().max() < 2.5e-7
        for dtype in (torch.float64, torch.bfloat16, torch.float16):
            other = x.to(dtype)
            assert torch.equal(additive._tanh(other.clone()), other.tanh())


@pytest.mark.parametrize(
    "make", [lambda: AdditiveAttention(3, 5, 4), lambda: ConcatAttention(3, 5, 4)]
)
def test_with_gradients_a_tanh_is_torchs_own(make, monkeypatch):
    monkeypatch.setattr("attlas.layers.additive.sigmoid_is_faster", lambda: True)
    mechanism = make()
    query, keys = torch.randn(2, 7, 3), mechanism.project_kv(torch.randn(2, 6, 5)).keys.detach()
    kept = keys.clone()
    with torch.no_grad():
        without = mechanism.score(query, keys)
    assert torch.equal(keys, kept)
    scores = mechanism.score(query, keys)
    assert scores.requires_grad
    assert torch.equal(keys, kept)
    error = 3e-7 * mechanism.score_proj.weight.abs().sum().item()
    torch.testing.assert_close(without, scores.detach(), rtol=0, atol=error)
    requested = (
        mechanism.q_proj(query)
        if isinstance(mechanism, AdditiveAttention)
        else query @ mechanism.pair_proj.weight[:, :3].t()
    )
    pairs = requested.unsqueeze(2) + keys.unsqueeze(1)
    torch.testing.assert_close(scores, pairs.tanh() @ mechanism.score_proj.weight[0])


@pytest.mark.parametrize(
    "make", [lambda: AdditiveAttention(3, 5, 4), lambda: ConcatAttention(3, 5, 4)]
)
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # by torch itself
def test_whoever_differentiates_from_outside_gets_its_gradient(make, monkeypatch):
    monkeypatch.setattr("attlas.layers.additive.sigmoid_is_faster", lambda: True)
    mechanism = make().requires_grad_(False)
    keys = mechanism.project_kv(torch.randn(1, 6, 5)).keys
    query = torch.randn(3, 1, 1, 3)

    def total(one):
        return mechanism.score(one, keys).square().sum()

    wanted = torch.func.grad(lambda all_: sum(total(one) for one in all_))(query)
    of_all = torch.func.vmap(total)
    torch.testing.assert_close(torch.func.grad(lambda all_: of_all(all_).sum())(query), wanted)
    requested = query.clone().requires_grad_()
    of_all(requested).sum().backward()
    torch.testing.assert_close(requested.grad, wanted)
    curved = torch.func.jacrev(torch.func.jacfwd(total))(query[0])
    other = torch.func.jacfwd(torch.func.jacrev(total))(query[0])
    torch.testing.assert_close(curved, other)
    with torch.no_grad():
        traced = make_fx(total)(query[0])
    requested = query[0].clone().requires_grad_()
    traced(requested).backward()
    torch.testing.assert_close(requested.grad, wanted[0])


def test_what_is_too_large_or_no_number_scores_as_its_tanh_does():
    mechanism = AdditiveAttention(3, 5, 4)
    with torch.no_grad():
        mechanism.q_proj.weight.fill_(1.0)
        mechanism.k_proj.weight.fill_(1.0)
        source = torch.zeros(1, 2, 5)
        total = mechanism.score_proj.weight.sum()
        for number, wanted in ((3e38, total), (-3e38, -total), (torch.inf, total)):
            query = torch.full((1, 1, 3), number / 3)
            scores = mechanism.score(query, mechanism.project_kv(source).keys)
            torch.testing.assert_close(scores, wanted.expand(1, 1, 2))
        query = torch.full((1, 1, 3), torch.nan)
        assert mechanism.score(query, mechanism.project_kv(source).keys).isnan().all()


@pytest.mark.parametrize(
    "make", [lambda: AdditiveAttention(3, 5, 4), lambda: ConcatAttention(3, 5, 4)]
)
def test_queries_scored_in_groups_are_scored_as_at_once(make, monkeypatch):
    mechanism = make().double()
    query = torch.randn(2, 7, 3).double().requires_grad_()
    memory = mechanism.project_kv(torch.randn(2, 6, 5).double())
    results = []
    for pairs in (2**26, 2 * memory.keys.numel(), 1):
        monkeypatch.setattr(additive, "_PAIRS_AT_ONCE", pairs)
        context = mechanism.attend(query, memory)
        gradients = torch.autograd.grad(
            context.square().sum(), [query, mechanism.score_proj.weight], retain_graph=True
        )
        results.append((context, *gradients))
    for other in results[1:]:
        torch.testing.assert_close(other, results[0])


def test_dot_with_different_widths_says_what_to_use_instead():
    with pytest.raises(AttlasError) as caught:
        DotAttention()(torch.randn(1, 2, 3), DotAttention().project_kv(torch.randn(1, 2, 4)))
    assert str(caught.value) == (
        "expected queries as wide as the source for dot attention; "
        "got a query width of 3 and a source width of 4; "
        "use general attention, which has a matrix between them"
    )


@pytest.mark.parametrize("dropout", [-0.1, 1.5, float("nan")])
def test_a_dropout_that_is_no_share_is_an_error(dropout):
    with pytest.raises(AttlasError, match="expected a dropout from 0 to 1; got"):
        DotAttention(dropout=dropout)


def test_dropout_falls_on_the_weights_in_training_alone_and_is_not_recorded():
    dot = DotAttention(dropout=0.5)
    source = torch.eye(64).unsqueeze(0)
    query = torch.zeros(1, 1, 64)
    memory = dot.project_kv(source)
    context = dot.attend(query, memory)  # the values are a unit matrix: the context is the weights
    assert set(context.flatten().tolist()) == {0.0, 2 / 64}
    assert torch.equal(dot.eval()(query, memory), torch.full((1, 1, 64), 1 / 64))
    assert torch.equal(
        dot.train().attention_weights(query, memory), torch.full((1, 1, 1, 64), 1 / 64)
    )


def test_a_pattern_and_padding_hide_slots_together():
    dot = DotAttention(pattern=causal)
    source = torch.randn(1, 3, 4)
    memory = dot.project_kv(source, torch.tensor([[True, False, True]]))
    assert (dot.attention_weights(source, memory)[0, 0] > 0).tolist() == [
        [True, False, False],
        [True, False, False],
        [True, False, True],
    ]


def test_a_memory_grows_and_is_chosen_from():
    early, late = (
        KeyValueCache(torch.ones(2, 3, 4), torch.ones(2, 3, 5)),
        KeyValueCache(torch.zeros(2, 1, 4), torch.zeros(2, 1, 5), torch.tensor([[True], [False]])),
    )
    grown = early.append(late)
    assert grown.num_keys == 4
    assert grown.token_mask.tolist() == [[True, True, True, True], [True, True, True, False]]
    assert early.num_keys == 3
    assert early.append(early).token_mask is None
    chosen = grown.select(torch.tensor([1, 1, 0]))
    assert chosen.token_mask.tolist() == [[True, True, True, False]] * 2 + [[True] * 4]
    assert torch.equal(chosen.values, grown.values[[1, 1, 0]])


@pytest.mark.parametrize(
    "mechanism",
    [
        AdditiveAttention(4, 6, 5),
        GeneralAttention(4, 6),
        ConcatAttention(4, 6, 5),
        LocalMonotonicAttention(GeneralAttention(4, 6), 2),
        MultiheadAttention(4, 2, kdim=6, vdim=6),
        MultiheadAttention(6, 2),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_source_of_another_width_is_refused_by_its_shape(mechanism):
    mechanism.project_kv(torch.randn(2, 3, 6))
    with pytest.raises(AttlasError) as caught:
        mechanism.project_kv(torch.randn(2, 3, 7))
    assert str(caught.value) == (
        "expected a source of shape (batch, keys, dim) = (batch, keys, 6); got shape (2, 3, 7); "
        "pass vectors of the width that the attention was made for"
    )


@pytest.mark.parametrize("mechanism", [DotAttention(), ScaledDotProductAttention()])
def test_what_has_no_parameters_remembers_any_width(mechanism):
    for width in (1, 7):
        assert mechanism.project_kv(torch.randn(2, 3, width)).num_keys == 3


@pytest.mark.parametrize("made", [(0, 6, 5), (4, 0, 5), (4, 6, -1)])
def test_widths_below_one_are_refused(made):
    for mechanism in (AdditiveAttention, ConcatAttention):
        with pytest.raises(AttlasError, match="as a whole number ≥ 1; got"):
            mechanism(*made)
    if made[2] > 0:
        with pytest.raises(AttlasError, match="as a whole number ≥ 1; got 0"):
            GeneralAttention(*made[:2])


WRONG_TYPES = """
import numpy as np, torch
from attlas.errors import AttlasError
from attlas.layers import AdditiveAttention, ConcatAttention, DotAttention, GeneralAttention
from attlas.layers import LocalPredictiveAttention, MultiheadAttention, ScaledDotProductAttention
from attlas.recording import intervene, observe, uniform

dot, array = DotAttention(), np.zeros((1, 2, 4), np.float32)
for wrong in (
    lambda: AdditiveAttention(4, 4, hidden_dim="32"),
    lambda: ConcatAttention(4, 4.0, hidden_dim=8),
    lambda: GeneralAttention(True, 4),
    lambda: MultiheadAttention(8, "2"),
    lambda: MultiheadAttention(8, 2, value_dim=2.5),
    lambda: LocalPredictiveAttention(DotAttention(), 2, 4, "8"),
    lambda: dot.project_kv(array),
    lambda: ScaledDotProductAttention().project_kv(array),
    lambda: MultiheadAttention(4, 2).project_kv(array),
    lambda: dot(array, dot.project_kv(torch.from_numpy(array))),
    lambda: dot.project_kv(array.tolist()),
    lambda: observe(3).__enter__(),
    lambda: intervene(dot.forward, uniform).__enter__(),
):
    try:
        wrong()
    except AttlasError as error:
        print(error)
"""


@pytest.mark.slow
def test_what_is_of_another_type_is_reported_without_a_checker_of_types():
    # The tests run with one, which would speak first; an installed attlas has none.
    done = python(WRONG_TYPES)
    assert done.stderr == ""
    sizes = [
        ("hidden_dim", "'32'"),
        ("key_dim", "4.0"),
        ("query_dim", "True"),
        ("num_heads", "'2'"),
        ("value_dim", "2.5"),
        ("hidden_dim", "'8'"),
    ]
    advice = "pass torch.from_numpy(…); attlas.scaled_dot_product_attention takes NumPy arrays too"
    tensors = [("source", "ndarray")] * 3 + [("query", "ndarray"), ("source", "list")]
    models = [
        "a int; pass the model itself",
        "its method 'forward'; pass the model itself, and call the method inside the block",
    ]
    assert done.stdout.splitlines() == [
        *(f"expected {n} as a whole number ≥ 1; got {v}; choose such a size" for n, v in sizes),
        *(f"expected a {n} that is a tensor; got a {of}; {advice}" for n, of in tensors),
        *(f"expected a model, a torch.nn.Module; got {reported}" for reported in models),
    ]
