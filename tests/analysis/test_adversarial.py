import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import config

from attlas.analysis.faithfulness.adversarial import adversarial_weights
from attlas.analysis.faithfulness.experiment import (
    AttentionTarget,
    distribution,
    jensen_shannon,
    total_variation,
)
from attlas.errors import AttlasError
from attlas.recording import intervene
from support.explained_models import (
    REAL,
    TEXTS,
    MultiheadPooling,
    Pooled,
    classifier,
    llama,
    reported,
)

LN2 = math.log(2)


def most(weights):
    """max JSD(α, α̃) over all α̃: convex, so at a corner of the simplex."""
    corners = torch.eye(len(weights), dtype=weights.dtype)
    return jensen_shannon(weights.expand_as(corners), corners).max()


def test_identical_values_leave_every_weight_free():
    torch.manual_seed(0)
    scores = torch.randn(4, 6).double()
    model = Pooled(scores, torch.randn(4, 1, 3).double().expand(4, 6, 3))
    found = adversarial_weights(model, model, seed=0, within=1e-6, starts=1, steps=30)
    best = torch.stack([most(weights) for weights in scores.softmax(-1)])
    torch.testing.assert_close(found.divergence, best, atol=0.01, rtol=0)
    assert (found.divergence <= best + 1e-9).all()
    assert found.distance.max() < 1e-9


def test_logits_may_be_more_precise_than_the_weights():
    torch.manual_seed(0)
    model = reported(torch.randn(4, 5).softmax(-1))
    options = {"seed": 0, "starts": 2, "steps": 15}
    single = adversarial_weights(model, model, **options)
    double = adversarial_weights(model, lambda: model().double(), **options)
    assert (double.distance <= 0.01).all()
    torch.testing.assert_close(double.divergence, single.divergence, atol=1e-3, rtol=0)


def test_an_output_that_is_the_weights_cannot_be_kept_by_other_weights():
    torch.manual_seed(0)
    model = reported(torch.randn(4, 5).softmax(-1))
    for within in (0.01, 0.05):
        found = adversarial_weights(model, model, seed=0, within=within, starts=1, steps=25)
        # JSD ≤ ln 2 · TVD (Lin, 1991, theorem 3), and here TVD is the output's.
        assert (found.divergence <= LN2 * within + 1e-9).all()
        assert (found.distance <= within).all()
        assert (found.divergence > 0).all()


def test_a_hundredth_of_the_output_is_all_that_may_move():
    model = reported([[0.5, 0.5]])
    found = adversarial_weights(model, model, seed=0, within=0.01, starts=2, steps=30)
    expected = jensen_shannon(torch.tensor([0.5, 0.5]), torch.tensor([0.51, 0.49]))
    assert float(found.divergence) == pytest.approx(float(expected), rel=0.01)
    assert float(found.distance) == pytest.approx(0.01, rel=0.01)


@pytest.mark.slow
@settings(max_examples=3)
@given(
    st.floats(0.05, 0.95), st.floats(-3, 3), st.floats(-3, 3), st.sampled_from([0.01, 0.05, 0.3])
)
def test_of_two_slots_it_finds_what_a_grid_finds(weight, first, second, within):
    own = np.array([weight, 1 - weight])
    values = torch.tensor([[[first, 0.0], [second, 0.0]]]).double()
    model = Pooled(torch.tensor(own)[None].log(), values)
    share = torch.linspace(0, 1, 20001).double()
    grid = torch.stack([share, 1 - share], -1)
    outputs = distribution(torch.stack([grid @ values[0, :, 0], torch.zeros(20001)], -1))
    plain = distribution(model())
    kept = total_variation(outputs, plain.expand_as(outputs)) <= within
    apart = jensen_shannon(grid, torch.tensor(own).expand_as(grid))
    best = float(apart[kept].max()) if kept.any() else 0.0
    found = adversarial_weights(model, model, seed=0, within=within, starts=8, steps=30)
    assert float(found.distance) <= within
    assert float(found.divergence) <= best + 1e-3
    assert float(found.divergence) >= 0.8 * best - 1e-3


def simplex(keys, parts):
    """All weights that are multiples of 1 / parts."""
    cuts = itertools.combinations_with_replacement(range(parts + 1), keys - 1)
    edges = torch.tensor([(0, *cut, parts) for cut in cuts], dtype=torch.float64)
    return edges.diff(dim=-1) / parts


def grid(keys):
    """A fine grid of every face of the simplex; of its edges the finest. Four columns."""
    faces = []
    for size, parts in ((1, 1), (2, 400), (3, 50), (4, 16)):
        for face in itertools.combinations(range(keys), size):
            points = simplex(size, parts)
            faces.append(torch.zeros(len(points), 4).double())
            faces[-1][:, list(face)] = points
    return torch.cat(faces)


class Tiny:
    """Many models at once: two to four keys, two or three labels.

    Flat and sharp weights, weights at a corner, small and large logits, a tanh after the pooling.
    """

    def __init__(self, seed, each):
        random = torch.Generator().manual_seed(seed)

        def normal(*shape):
            return torch.randn(*shape, generator=random).double()

        settings = (
            (1, 1.5, 0, False),
            (3, 1.5, 0, False),
            (8, 3, 0, False),
            (2, 1, 12, False),
            (2, 1.5, 0, True),
        )
        kinds = list(itertools.product((2, 3, 4), (2, 3), settings))
        scores, values, heads, bent, self.num_keys = [], [], [], [], []
        for keys, _, (scale, sharp, corner, tanh) in kinds:
            first = torch.zeros(each, 4).double()
            first[:, 0] = corner
            scores.append(normal(each, 4) * sharp + first)
            values.append(normal(each, 4, 5) * (2 if tanh else 1))
            head = normal(each, 5, 3) * scale / (1 if tanh else 5**0.5)
            heads.append(head)
            bent += [tanh] * each
            self.num_keys += [keys] * each
        self.labels = torch.tensor([kind[1] for kind in kinds for _ in range(each)])
        self.bent, self.heads = torch.tensor(bent), torch.cat(heads)
        self.values = torch.cat(values)
        self.token_mask = torch.arange(4) < torch.tensor(self.num_keys)[:, None]
        self.model = Pooled(torch.cat(scores), self.values, self.read, self.token_mask)
        self.own = torch.cat(scores).masked_fill(~self.token_mask, -torch.inf).softmax(-1)

    def read(self, context, one=slice(None)):
        context = torch.where(self.bent[one, None], context.tanh(), context)
        logits = (context[..., None, :] @ self.heads[one])[..., 0, :]
        return logits.masked_fill(torch.arange(3) >= self.labels[one, None], -1e4)

    def best(self, bounds):
        """What a grid finds within each bound."""
        grids = {keys: grid(keys) for keys in (2, 3, 4)}
        best = torch.zeros(len(self.own), len(bounds)).double()
        for one, keys in enumerate(self.num_keys):
            tried = torch.cat([self.own[one][None], grids[keys]])
            outputs = distribution(self.read(tried @ self.values[one], one))
            moved = total_variation(outputs, outputs[:1].expand_as(outputs))
            apart = jensen_shannon(tried, self.own[one].expand_as(tried))
            for number, bound in enumerate(bounds):
                best[one, number] = apart[moved <= bound].max()
        return best


@pytest.mark.slow
def test_at_its_defaults_it_finds_what_a_grid_of_the_simplex_finds():
    tiny = Tiny(seed=0, each=5)
    best = tiny.best([0.01, 1.0])
    found = adversarial_weights(tiny.model, tiny.model, seed=0)
    assert (found.distance <= 0.01).all()
    assert (found.weights[:, 0][~tiny.token_mask] == 0).all()
    assert (found.weights >= 0).all()
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(len(best), 1).double())
    # A maximum of a convex function: one or two in a hundred are missed.
    enough = found.divergence >= 0.98 * best[:, 0]
    assert enough.double().mean() >= 0.98
    assert (found.at_most >= best[:, 1] - 1e-9).all()
    assert (found.at_most >= found.divergence).all()
    torch.testing.assert_close(found.gap, found.at_most - found.divergence)


@pytest.mark.slow
def test_a_looser_bound_finds_no_less_than_a_tighter_one():
    tiny = Tiny(seed=1, each=1)
    before = torch.zeros(len(tiny.own)).double()
    most_of_all = tiny.best([1.0])[:, 0]
    for within in (0.0, 0.003, 0.01, 0.02, 0.05, 0.07, 0.5, 1.0):
        found = adversarial_weights(
            tiny.model, tiny.model, seed=0, within=within, starts=2, steps=6
        )
        assert (found.distance <= within).all()
        assert (found.divergence >= before - 1e-12).all()
        assert (found.at_most >= most_of_all - 1e-9).all()
        before = found.divergence
    torch.testing.assert_close(before, found.at_most)  # all is allowed, and a vertex is best


def test_the_greatest_divergence_of_a_row_is_that_of_its_farthest_vertex():
    torch.manual_seed(0)
    model = reported(torch.rand(4, 5).double().softmax(-1))
    found = adversarial_weights(model, model, seed=0, within=0.01, starts=1, steps=2)
    expected = torch.stack([most(weights) for weights in model().softmax(-1)])
    torch.testing.assert_close(found.at_most, expected)


def test_what_is_reported_is_what_the_weights_do():
    torch.manual_seed(0)
    model = classifier(dropout=0.5).train()
    path = "encoder.layers.1.self_attention"
    found = adversarial_weights(
        model,
        lambda: model(TEXTS, REAL),
        AttentionTarget(path, heads=1),
        seed=0,
        starts=1,
        steps=20,
    )
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert found.weights.shape == (2, 5, 5)
    assert not found.weights.requires_grad
    assert (found.weights >= 0).all()
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(2, 5).double())
    assert (found.weights[1, :, 3:] == 0).all()
    own = []

    def put(weights, seen, layer):
        if layer != path:
            return weights
        own.append(weights[:, 1])
        return torch.stack([weights[:, 0], found.weights], 1)

    model.eval()
    with torch.no_grad():
        plain = distribution(model(TEXTS, REAL))
        with intervene(model, put):
            changed = distribution(model(TEXTS, REAL))
    torch.testing.assert_close(total_variation(plain, changed), found.distance)
    apart = jensen_shannon(own[0], found.weights)  # of padding too, which does not count
    torch.testing.assert_close((apart * REAL).sum(-1) / REAL.sum(-1), found.divergence)
    assert (apart[~REAL] == 0).all()
    assert (found.distance <= 0.01).all()
    assert (found.divergence > 0).all()


@pytest.mark.parametrize("number", [np.int64(2), torch.tensor(2), [2], np.array([2])])
def test_a_row_may_be_named_by_a_number_of_numpy_or_torch(number) -> None:
    config.update("jaxtyping_disable", True)  # which knows Python's alone
    rows = AttentionTarget("layer", heads=number, queries=number).rows(3, 4, "layer")
    assert rows.nonzero().tolist() == [[2, 2]]


def test_multihead_attention_and_grouped_heads_have_adversaries_too():
    torch.manual_seed(0)
    model, source = MultiheadPooling(), torch.randn(2, 5, 8).double()
    padding = torch.tensor([[False] * 5, [False] + [True] * 4])
    found = adversarial_weights(
        model, lambda: model(source, padding), seed=0, within=0.05, starts=1, steps=20
    )
    assert found.divergence[0] > 0
    assert found.distance[0] <= 0.05
    assert found.divergence[1] == 0  # a single key leaves no choice
    torch.testing.assert_close(found.weights[1, :, 0], torch.ones(2).double())
    ids, language = torch.randint(0, 31, (2, 4)), llama()
    target = AttentionTarget("model.layers.1.self_attn", queries=-1)
    found = adversarial_weights(
        language, lambda: language(ids).logits[:, -1], target, seed=0, starts=1, steps=10
    )
    assert found.weights.shape == (2, 4, 4)
    assert (found.divergence > 0).all()


def test_the_seed_decides_and_gradients_may_be_off_around_it():
    model = reported(torch.rand(2, 4).softmax(-1))
    first = adversarial_weights(model, model, seed=1, starts=2, steps=5)
    with torch.no_grad():
        again = adversarial_weights(model, model, seed=1, starts=2, steps=5)
    assert torch.equal(first.weights, again.weights)
    assert torch.equal(first.divergence, again.divergence)


def test_too_many_weights_are_refused_with_the_way_out():
    model = Pooled(
        torch.zeros(1, 1 << 22).expand(2, -1), torch.zeros(1, 1, 2).expand(2, 1 << 22, 2)
    )
    with pytest.raises(AttlasError, match=r"at most 4,194,304 weights .*2 × 1 × 4,194,304"):
        adversarial_weights(model, model, seed=0)


def test_an_output_without_a_gradient_is_reported():
    model = reported([[0.5, 0.5]])
    with pytest.raises(AttlasError, match=r"has a gradient .*leave torch.no_grad\(\)"):
        adversarial_weights(model, lambda: model().detach(), seed=0)


@pytest.mark.parametrize(
    ("named", "told_of"),
    [
        ({"within": 1.5}, "an ε from 0 to 1; got within=1.5"),
        ({"starts": 0}, "at least one start"),
        ({"steps": 0}, "one step; got 30 and 0"),
    ],
)
def test_settings_that_are_none_are_reported(named, told_of):
    model = reported([[0.5, 0.5]])
    with pytest.raises(AttlasError, match=told_of):
        adversarial_weights(model, model, seed=0, **named)


def test_a_focus_that_fits_nothing_is_reported():
    model = classifier()

    def call():
        return model(TEXTS, REAL)

    path = "encoder.layers.0.self_attention"
    for target, told_of in (
        (None, r"one of the layers \['encoder.layers.0.*got none"),
        (AttentionTarget("encoder"), "got 'encoder'"),
        (AttentionTarget(path, heads=2), r"heads from 0 to 1 .*got \[2\]"),
        (AttentionTarget(path, queries=[5]), r"queries from 0 to 4 .*got \[5\]"),
        (AttentionTarget(path, heads=[]), "at least one head and one query"),
        (AttentionTarget(path, call=1), "one of the 1 calls .*got 1"),
    ):
        with pytest.raises(AttlasError, match=told_of):
            adversarial_weights(model, call, target, seed=0)
    with pytest.raises(AttlasError, match=r"shape \(batch, labels\), batch = 2; got shape \(3,\)"):
        adversarial_weights(model, lambda: call()[0], AttentionTarget(path), seed=0)
    with pytest.raises(AttlasError, match=r"one of the 2 calls .*got none"):
        adversarial_weights(model, lambda: call() + call(), AttentionTarget(path), seed=0)


def test_a_divergence_is_never_below_zero_and_keeps_its_gradient():
    torch.manual_seed(0)
    one = torch.randn(5000, 6).softmax(-1)
    other = (one + 1e-4 * torch.rand_like(one)).requires_grad_()
    found = jensen_shannon(one, other / other.sum(-1, keepdim=True))
    assert (found >= 0).all()
    assert not found.sqrt().isnan().any()
    (weight_gradient,) = torch.autograd.grad(found.sum(), other)
    assert (weight_gradient != 0).any(-1).all()
