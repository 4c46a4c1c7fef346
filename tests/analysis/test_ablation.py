import math

import numpy as np
import pytest
import torch

from attlas.analysis.head_importance import head_ablation, head_importance, pruning_curve
from attlas.errors import AttlasError
from support.explained_models import REAL, TEXTS, MultiheadPooling, classifier, llama

FIRST, SECOND = (f"encoder.layers.{n}.self_attention" for n in range(2))


def pooling():
    torch.manual_seed(0)
    return MultiheadPooling(heads=4, labels=2, dropout=0.5).train(), torch.randn(6, 5, 8).double()


def test_each_head_costs_what_its_part_of_the_output_is_worth():
    model, source = pooling()
    output, projected = model.output.weight[0], model.attention.out_proj.weight

    def metric():
        return float(model(source)[:, 0].mean())

    found = head_ablation(model, metric)
    assert model.training
    # The logit is a sum over the heads: a head that reads nothing costs just its own term.
    with torch.no_grad():
        model.eval()
        bias = model.attention.in_proj_bias
        query, key, value = (
            (side @ model.attention.in_proj_weight[8 * n : 8 * n + 8].T + bias[8 * n : 8 * n + 8])
            .unflatten(-1, (4, 2))
            .transpose(1, 2)
            for n, side in enumerate((model.query.expand(6, -1, -1), source, source))
        )
        read = (query @ key.mT / 2**0.5).softmax(-1) @ value
        even = value.mean(2, keepdim=True)
        for name, rows in (("nothing", read), ("uniform", read - even)):
            costs = {
                head: float(
                    (rows[:, head, 0] @ projected[:, 2 * head : 2 * head + 2].T @ output).mean()
                )
                for head in range(4)
            }
            table = (
                found if name == "nothing" else head_ablation(model, metric, replacement="uniform")
            )
            assert {row.head: row.cost for row in table.heads} == pytest.approx(costs)
            assert [row.cost for row in table.heads] == sorted(costs.values(), reverse=True) or [
                row.cost for row in table.heads
            ] == pytest.approx(sorted(costs.values(), reverse=True))
            assert table.metric == pytest.approx(metric())
            for row in table.heads:
                assert row.layer == "attention"
                assert row.metric == pytest.approx(table.metric - row.cost)


def test_layers_and_heads_can_be_chosen():
    torch.manual_seed(0)
    model = classifier()

    def metric():
        return model(TEXTS, REAL)[0, 0]

    whole = head_ablation(model, metric)
    assert sorted((row.layer, row.head) for row in whole.heads) == [
        (FIRST, 0),
        (FIRST, 1),
        (SECOND, 0),
        (SECOND, 1),
    ]
    assert [row.cost for row in whole.heads] == sorted(
        (row.cost for row in whole.heads), reverse=True
    )
    some = head_ablation(model, metric, layers=SECOND, heads=1)
    assert len(some.heads) == 1
    assert some.heads[0] in whole.heads
    with pytest.raises(AttlasError, match=r"heads from 0 to 1 .*got \[2\]"):
        head_ablation(model, metric, heads=2)
    with pytest.raises(AttlasError, match="layers among those that were called"):
        head_ablation(model, metric, layers="decoder")


def test_the_table_has_a_line_for_each_head_the_dearest_first():
    torch.manual_seed(0)
    model = classifier()
    found = head_ablation(model, lambda: float(model(TEXTS, REAL)[0, 0]))
    lines = str(found).splitlines()
    assert lines[0].split() == ["layer", "head", "metric", "cost"]
    assert lines[1].startswith("(whole model)")
    assert [line.split()[:2] for line in lines[2:]] == [
        [row.layer, str(row.head)] for row in found.heads
    ]
    assert len({len(line) for line in (lines[0], *lines[2:])}) == 1


def test_heads_that_cost_the_same_stand_in_the_order_of_the_model():
    model = classifier()
    found = head_ablation(model, lambda: float(model(TEXTS, REAL).shape[0]))
    assert [(row.layer, row.head) for row in found.heads] == [
        (FIRST, 0),
        (FIRST, 1),
        (SECOND, 0),
        (SECOND, 1),
    ]
    assert all(row.cost == 0 for row in found.heads)


@pytest.mark.parametrize(
    ("metric", "told_of"),
    [
        (math.nan, "a finite number; got nan"),
        (-math.inf, "a finite number; got -inf"),
        (np.float32(math.inf), "a finite number; got inf"),
        ("good", "got a str"),
        (torch.ones(2), "got a Tensor"),
        (np.ones(2), "got a ndarray"),
    ],
)
def test_a_metric_that_is_no_number_is_reported(metric, told_of):
    model = classifier()

    def call():
        model(TEXTS, REAL)
        return metric

    with pytest.raises(AttlasError, match=told_of):
        head_ablation(model, call)


@pytest.mark.parametrize(
    "metric", [2, 2.0, np.float32(2), np.int64(2), np.array([2.0]), torch.tensor([2])]
)
def test_a_metric_may_be_any_one_number(metric):
    model = classifier()

    def call():
        model(TEXTS, REAL)
        return metric

    assert head_ablation(model, call).metric == 2.0


def test_a_layer_that_is_not_there_is_reported_beside_one_that_is():
    model = classifier()
    with pytest.raises(AttlasError, match=r"layers=\['encoder.typo'\], which none of them matches"):
        head_ablation(
            model, lambda: float(model(TEXTS, REAL).sum()), layers=[FIRST, "encoder.typo"]
        )


def test_the_curve_goes_from_the_whole_model_to_one_without_attention():
    model, source = pooling()

    def metric():
        return float(model(source)[:, 0].mean())

    table = head_ablation(model, metric)
    order = [(row.layer, row.head) for row in reversed(table.heads)]
    curve = pruning_curve(model, metric, order)
    assert [point.count for point in curve] == [0, 1, 2, 3, 4]
    assert [point.share for point in curve] == [0, 0.25, 0.5, 0.75, 1]
    # Here costs add up, because the logit is a sum over the heads.
    costs = [row.cost for row in reversed(table.heads)]
    for point in curve:
        assert point.metric == pytest.approx(table.metric - sum(costs[: point.count]))
    assert [point.count for point in pruning_curve(model, metric, order, points=2)] == [0, 2, 4]
    assert model.training


def test_a_language_model_is_pruned_by_the_importance_of_its_heads():
    torch.manual_seed(0)
    model, ids = llama(), torch.randint(0, 31, (2, 6))

    def loss():
        return model(ids, labels=ids).loss

    order = head_importance(model, loss).ranked()
    assert len(set(order)) == 8
    curve = pruning_curve(model, lambda: -float(loss()), order, points=2)
    assert [point.count for point in curve] == [0, 4, 8]
    with torch.no_grad():
        model.eval()
        assert curve[0].metric == pytest.approx(-float(loss()))
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
        assert curve[-1].metric == pytest.approx(-float(loss()))


def test_an_order_that_does_not_fit_is_reported():
    model = classifier()

    def metric():
        return float(model(TEXTS, REAL)[0, 0])

    for order, told_of in (
        ([], "an order of heads that names each once"),
        ([(FIRST, 0), (FIRST, 0)], "2 heads, 1 of them distinct"),
        ([(FIRST, 2)], r"heads from 0 to 1 .*got \[2\]"),
        ([("decoder", 0)], r"layers among those that were called.*got \['decoder'\]"),
    ):
        with pytest.raises(AttlasError, match=told_of):
            pruning_curve(model, metric, order)
