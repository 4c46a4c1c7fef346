import pytest
import torch

from attlas.analysis.faithfulness.experiment import distribution, total_variation
from attlas.analysis.faithfulness.permutation import uniform_distance
from attlas.errors import AttlasError
from support.explained_models import (
    REAL,
    TEXTS,
    MultiheadPooling,
    Pooled,
    bert,
    classifier,
    reported,
)


def test_uniform_weights_by_hand():
    model = reported([[0.8, 0.2, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.0, 1.0]])
    expected = torch.tensor([0.8 - 1 / 3, 0.0, 2 / 3]).double()
    torch.testing.assert_close(uniform_distance(model, model), expected)


def test_padding_gets_no_share():
    token_mask = torch.tensor([[True, True, False], [True, True, True]])
    model = reported([[0.6, 0.2, 0.2], [0.6, 0.2, 0.2]], token_mask)
    expected = torch.tensor([0.75 - 0.5, 0.6 - 1 / 3]).double()
    torch.testing.assert_close(uniform_distance(model, model), expected)


def test_values_that_are_all_the_same_make_weights_idle():
    model = Pooled(torch.randn(2, 5), torch.randn(2, 1, 3).expand(2, 5, 3))
    assert uniform_distance(model, model).max() < 1e-6


def test_a_model_whose_queries_are_zero_looks_everywhere_alike_anyway():
    torch.manual_seed(0)
    model = classifier().train()
    with torch.no_grad():
        for layer in model.encoder.layers:
            layer.self_attention.q_proj.weight.zero_()
            layer.self_attention.q_proj.bias.zero_()
    assert uniform_distance(model, lambda: model(TEXTS, REAL)).max() < 1e-9
    assert model.training


def test_multihead_attention_reads_the_mean_of_the_values():
    torch.manual_seed(0)
    model, source = MultiheadPooling(), torch.randn(3, 5, 8).double()
    found = uniform_distance(model, lambda: model(source))
    with torch.no_grad():
        attention = model.attention
        values = source @ attention.in_proj_weight[16:].T + attention.in_proj_bias[16:]
        logits = model.output(attention.out_proj(values.mean(1)))
        expected = total_variation(distribution(model(source)), distribution(logits))
    torch.testing.assert_close(found, expected)


def test_each_position_of_a_model_of_hugging_face_has_its_distance():
    torch.manual_seed(0)
    model, ids = bert(), torch.randint(1, 31, (2, 6))
    found = uniform_distance(model, lambda: model(ids).last_hidden_state, layers="*0*")
    assert found.shape == (2, 6)
    assert found.min() > 0
    with pytest.raises(AttlasError, match="return the logits alone, such as"):
        uniform_distance(model, lambda: model(ids))
