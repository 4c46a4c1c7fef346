"""The sweep over transformers' model types, on a sample, and that it sees what differs."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import attlas

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import model_types  # noqa: E402

SAMPLE = (
    *("albert", "bart", "bloom", "camembert", "clip_text_model", "cohere", "data2vec-audio"),
    *("deepseek_v3", "distilbert", "gemma2", "lasr_ctc", "mimi_encoder", "t5", "vit_msn"),
)


class Attention(nn.Module):
    """An attention module that returns its map, or another one in its place."""

    def __init__(self, returned: float) -> None:
        super().__init__()
        self.returned = returned

    def forward(self, query: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = (self.returned * query @ keys.mT / 2).exp()  # no softmax, so that nobody hears it
        weights = scores / scores.sum(-1, keepdim=True)
        return scaled_dot_product_attention(query, keys, keys), weights


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sampled_model_type_is_read_exactly(name: str) -> None:
    found = model_types.within(name, 300)
    assert [one.verdict for one in found] == ["exact"] * len(found), found
    assert all(one.expected for one in found)


@pytest.mark.slow
def test_a_model_without_attention_is_said_to_have_none() -> None:
    (found,) = model_types.within("fnet", 300)
    assert found.verdict == "none"
    assert "attention" in found.reason


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, "exact"), (0.9, "silent")])
def test_a_map_that_differs_from_what_the_model_returns_is_silent(
    scale: float, verdict: str
) -> None:
    model = Attention(scale)
    given = dict(zip(("query", "keys"), torch.randn(2, 1, 2, 5, 4), strict=True))
    expected = model_types.returned(model, given)
    assert [one.shape for one in expected] == [(1, 2, 5, 5)]
    found = model_types.judged("mine", "sdpa", expected, model, given)
    assert found.verdict == verdict


def test_a_reading_serves_for_one_map_alone() -> None:
    model, weights = Attention(1.0), torch.full((1, 1, 1, 2), 0.5)
    with attlas.observe(model) as trace:
        model(torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 2, 4))
    assert model_types.in_trace(trace, [weights]) == 1
    assert model_types.in_trace(trace, [weights, weights]) == 1


def test_rows_that_are_no_weights_are_no_map() -> None:
    assert not model_types._is_map(torch.randn(1, 2, 3, 3))
    assert not model_types._is_map(torch.full((2, 3, 3), 1 / 3))
    assert model_types._is_map(torch.full((1, 2, 3, 3), 1 / 3))


def test_the_types_are_those_that_transformers_builds() -> None:
    names = model_types.types()
    assert {"bert", "llama", "t5"} <= set(names)
    assert len(names) > 100
