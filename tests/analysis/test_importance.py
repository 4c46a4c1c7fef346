import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attlas.analysis.head_importance import HeadImportance, gated, head_importance
from attlas.errors import AttlasError
from attlas.recording import intervene, without
from support.explained_models import REAL, TEXTS, MultiheadPooling, bert, classifier, llama

LABELS = torch.tensor([2, 0])


def texts():
    torch.manual_seed(0)
    model = classifier(dropout=0.3)
    return model, lambda: F.cross_entropy(model(TEXTS, REAL), LABELS, reduction="none")


def transformer():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).double()
    source = torch.randn(2, 5, 8).double()
    return model, lambda: model(source)[:, :, 0].square().mean(1)


def bidirectional():
    torch.manual_seed(0)
    model, ids = bert(), torch.randint(1, 31, (2, 5))
    return model, lambda: model(ids).last_hidden_state[:, 0, :3].sum(-1)


def shared():
    """A layer that is called twice: its gate stands in both calls."""
    torch.manual_seed(0)
    model, ids = bert("albert", embedding_size=8), torch.randint(1, 31, (2, 5))
    return model, lambda: model(ids).last_hidden_state[:, 0, :3].sum(-1)


def causal():
    torch.manual_seed(0)
    model, ids = llama(), torch.randint(0, 31, (2, 5))

    def losses():
        logits = model(ids).logits[:, :-1]
        return F.cross_entropy(logits.mT, ids[:, 1:], reduction="none").mean(-1)

    return model, losses


@pytest.mark.parametrize("made", [texts, transformer, bidirectional, shared, causal])
def test_the_slope_of_every_gate_is_its_finite_difference(made):
    model, losses = made()
    before = [module.training for module in model.modules()]
    found = head_importance(model, losses)
    assert [module.training for module in model.modules()] == before
    assert all(parameter.grad is None for parameter in model.parameters())
    model.eval()
    step = 1e-5
    for layer, slopes in found.derivatives.items():
        assert not slopes.requires_grad
        for head in range(slopes.shape[1]):
            ends = []
            for moved in (step, -step):
                gates = torch.ones(slopes.shape[1]).double()
                gates[head] += moved
                with intervene(model, gated({layer: gates})), torch.no_grad():
                    ends.append(losses())
            difference = (ends[0] - ends[1]) / (2 * step) / len(ends[0])
            torch.testing.assert_close(slopes[:, head], difference, atol=1e-9, rtol=1e-5)


def test_the_score_is_the_mean_of_absolute_slopes_over_the_examples():
    model, losses = texts()
    found = head_importance(model, losses)
    alone = []
    for row in range(2):

        def one(row=row):
            return F.cross_entropy(model(TEXTS, REAL), LABELS, reduction="none")[row]

        alone.append(head_importance(model, one))
    for layer, score in found.scores.items():
        expected = sum(one.derivatives[layer].sum(0).abs() for one in alone) / 2
        torch.testing.assert_close(score, expected)
    mean = head_importance(model, lambda: losses().mean())
    for layer in found.scores:
        torch.testing.assert_close(mean.scores[layer], found.scores[layer])


def test_the_score_of_a_corpus_is_that_of_its_batches_weighted_by_their_sizes():
    torch.manual_seed(0)
    model, texts, labels = classifier(), torch.randint(4, 11, (3, 5)), torch.tensor([2, 0, 1])

    def scores(some):
        return head_importance(
            model, lambda: F.cross_entropy(model(texts[some]), labels[some])
        ).scores

    whole, first, rest = scores(slice(3)), scores(slice(2)), scores(slice(2, 3))
    for layer, score in whole.items():
        torch.testing.assert_close((2 * first[layer] + rest[layer]) / 3, score)


def test_heads_are_ranked_by_what_is_normalised_in_their_layers():
    # 3-4-5 triangles: (0.6, 0.8) in one layer, (1, 0) in the other.
    found = HeadImportance(
        {"a": torch.tensor([[-300.0, 200.0], [0.0, -200.0]]), "b": torch.tensor([[0.1, 0.0]])}
    )
    torch.testing.assert_close(found.scores["a"], torch.tensor([300.0, 400.0]))
    torch.testing.assert_close(found.normalised["a"], torch.tensor([0.6, 0.8]))
    torch.testing.assert_close(found.normalised["b"], torch.tensor([1.0, 0.0]))
    assert found.ranked() == [("b", 1), ("a", 0), ("a", 1), ("b", 0)]
    idle = HeadImportance({"a": torch.zeros(2, 3)})
    assert torch.equal(idle.normalised["a"], torch.zeros(3))


def test_a_head_whose_values_are_zero_does_not_matter():
    torch.manual_seed(0)
    model, source = MultiheadPooling(), torch.randn(2, 5, 8).double()
    with torch.no_grad():
        model.attention.in_proj_weight[16:20] = 0.0  # the values of head 0
        model.attention.in_proj_bias[16:20] = 0.0
    found = head_importance(model, lambda: F.cross_entropy(model(source), LABELS))
    assert list(found.derivatives) == ["attention"]
    assert (found.derivatives["attention"][:, 0] == 0).all()
    assert (found.derivatives["attention"][:, 1] != 0).all()


def test_layers_and_heads_can_be_chosen_and_gradients_may_be_off_around_it():
    model, losses = texts()
    with torch.no_grad():
        found = head_importance(model, losses, layers="*.1.*", heads=1)
    whole = head_importance(model, losses).derivatives
    assert list(found.derivatives) == ["encoder.layers.1.self_attention"]
    slopes = found.derivatives["encoder.layers.1.self_attention"]
    torch.testing.assert_close(slopes[:, 1], whole["encoder.layers.1.self_attention"][:, 1])
    assert (slopes[:, 0] == 0).all()
    assert found.ranked() == [("encoder.layers.1.self_attention", 1)]


def test_a_loss_of_two_batches_of_different_sizes_is_reported():
    model, _ = texts()

    def losses():
        return torch.cat([model(TEXTS, REAL), model(TEXTS[:1], REAL[:1])])[:, 0]

    with pytest.raises(AttlasError, match=rf"one batch, of {len(TEXTS)}; got one of 1; let it run"):
        head_importance(model, losses)


def test_a_closed_gate_is_a_head_that_reads_nothing():
    model, losses = texts()
    model.eval()
    path = "encoder.layers.0.self_attention"
    ends = []
    for change in (
        gated({path: torch.tensor([1.0, 0.0])}),
        gated({path: torch.tensor([[1.0, 0.0]] * 2)}),
        lambda weights, seen, layer: without(1)(weights, seen, layer) if layer == path else weights,
    ):
        with intervene(model, change), torch.no_grad():
            ends.append(losses())
    assert torch.equal(ends[0], ends[1])
    torch.testing.assert_close(ends[0], ends[2])
    with (
        pytest.raises(AttlasError, match=r"gates of shape \(2,\) or \(2, 2\).*got shape \(3,\)"),
        intervene(model, gated({path: torch.ones(3)})),
    ):
        losses()


@pytest.mark.parametrize(
    ("loss", "told_of"),
    [
        (lambda model: 1.5, "got a float; return the loss alone"),
        (lambda model: model(TEXTS, REAL), r"got torch.float64 of shape \(2, 3\)"),
        (lambda model: model(TEXTS, REAL).sum().detach(), "a loss that has a gradient"),
        (lambda model: model(TEXTS, REAL).detach().sum() * model.output.bias.sum(), "got one that"),
        (lambda model: model(TEXTS, REAL).sum() * torch.nan, "a loss that is a number; got nan"),
    ],
)
def test_what_is_no_loss_is_reported(loss, told_of):
    model = classifier()

    def call():
        found = loss(model)
        model(TEXTS, REAL)
        return found

    with pytest.raises(AttlasError, match=told_of):
        head_importance(model, call)
