"""Muon: its directions are those of a singular value decomposition, its steps those of torch's."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attlas._parallel import ThreadGroup
from attlas.models import (
    ClassifierConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
    build,
    build_classifier,
)
from attlas.training.optimizers import (
    Muon,
    MuonConfig,
    Parallelism,
    hidden_weights,
    load_optimizer_state,
    optimizer_state,
    orthogonalize,
)


def gradients(model: nn.Module, seed: int) -> None:
    """Random ones, for every parameter."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter)


def transformer() -> nn.Module:
    torch.manual_seed(0)
    config = TransformerConfig(
        embed_dim=16,
        num_heads=2,
        ffn_dim=48,
        encoder_layers=1,
        decoder_layers=1,
        positions="learned",
    )
    return build(config, 30, 20)


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.named_parameters()}


@given(
    rows=st.integers(2, 40), columns=st.integers(2, 40), seed=st.integers(0, 2**32),
    size=st.sampled_from([1e-4, 1.0, 1e4]),
)  # fmt: skip
def test_the_directions_stay_and_become_about_as_long(
    rows: int, columns: int, seed: int, size: float
) -> None:
    matrix = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)).double()
    u, lengths, v = torch.linalg.svd(matrix * size, full_matrices=False)
    inside = u.mT @ orthogonalize(matrix * size) @ v.mT
    torch.testing.assert_close(inside, inside.diagonal().diag(), atol=1e-9, rtol=0.0)
    heard = lengths > 0.02 * matrix.norm() * size
    assert ((inside.diagonal() > 0.6) & (inside.diagonal() < 1.3))[heard].all()


def test_of_nothing_comes_nothing() -> None:
    assert torch.equal(orthogonalize(torch.zeros(3, 5)), torch.zeros(3, 5))


@pytest.mark.parametrize("shape", [(8, 8), (8, 24), (24, 8)])
def test_a_matrix_goes_where_torchs_muon_takes_it(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int]
) -> None:
    """Torch's iterates in bfloat16; with our iteration in it all else is the same."""
    torch.manual_seed(0)
    ours, theirs = nn.Linear(*shape, bias=False), nn.Linear(*shape, bias=False)
    theirs.load_state_dict(ours.state_dict())
    settings: dict[str, Any] = {"momentum": 0.9, "weight_decay": 0.2}
    one = MuonConfig(**settings).build(ours, 0.02)
    other = torch.optim.Muon(
        theirs.parameters(), lr=0.02, adjust_lr_fn="match_rms_adamw", **settings
    )
    for seed in range(4):
        gradients(ours, seed)
        gradients(theirs, seed)
        one.step()
        other.step()
    moved = (ours.weight - theirs.weight).norm() / theirs.weight.norm()
    assert 0.0 < moved < 0.02  # eight bits
    monkeypatch.setattr("torch.optim._muon._zeropower_via_newtonschulz", _ours)
    theirs.load_state_dict(ours.state_dict())
    gradients(ours, 4)
    gradients(theirs, 4)
    one.step()
    other.step()
    torch.testing.assert_close(ours.weight, theirs.weight)


def _ours(gradient: Tensor, coefficients: Any, iterations: int, eps: float) -> Tensor:
    return orthogonalize(gradient, iterations)


def test_all_that_is_no_hidden_matrix_goes_where_adamw_takes_it() -> None:
    ours, theirs = transformer(), transformer()
    one = MuonConfig(betas=(0.8, 0.95), eps=1e-6, weight_decay=0.3).build(ours, 0.01)
    other = torch.optim.AdamW(
        theirs.parameters(), lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.3
    )
    for seed in range(3):
        gradients(ours, seed)
        gradients(theirs, seed)
        one.step()
        other.step()
    turned = set(map(id, hidden_weights(ours)))
    found, expected = dict(ours.named_parameters()), dict(theirs.named_parameters())
    for name, parameter in found.items():
        if id(parameter) in turned:
            assert not torch.allclose(parameter, expected[name])
        else:
            torch.testing.assert_close(parameter, expected[name], msg=name)


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        (
            TransformerConfig(
                embed_dim=8, num_heads=2, ffn_dim=16, positions="learned", tie_output=False
            ),
            {"source_embedding", "target_embedding", "output", "positions"},
        ),
        (
            RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=8),
            {"source_embedding", "target_embedding", "output", "score_proj"},
        ),
    ],
    ids=["transformer", "recurrent"],
)
def test_words_places_and_vectors_are_no_hidden_matrices(
    config: ModelConfig, kept: set[str]
) -> None:
    model = build(config, 30, 20)
    turned = set(map(id, hidden_weights(model)))
    others = [n for n, p in model.named_parameters() if p.ndim > 1 and id(p) not in turned]
    assert all(kept & set(name.split(".")) or "positions" in name for name in others), others
    assert {word for word in kept if any(word in name for name in others)} == kept
    assert len(turned) >= 10


def test_the_labels_of_a_classifier_are_no_hidden_matrix() -> None:
    model = build_classifier(ClassifierConfig(embed_dim=8, num_heads=2, ffn_dim=16), 30, 3)
    turned = set(map(id, hidden_weights(model)))
    others = [n for n, p in model.named_parameters() if p.ndim > 1 and id(p) not in turned]
    assert others == ["embedding.weight", "output.weight"]


def test_a_thread_group_comes_to_the_same_bits_as_one_thread() -> None:
    thread_group = ThreadGroup(2)
    models = [transformer(), transformer()]
    for model, parallelism in zip(
        models, (Parallelism(), Parallelism(map=thread_group.map)), strict=True
    ):
        optimizer = MuonConfig().build(model, 0.01, parallelism)
        for seed in range(3):
            gradients(model, seed)
            optimizer.step()
    thread_group.close()
    one, other = map(weights, models)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_what_has_no_gradient_stays() -> None:
    model = transformer()
    before = weights(model)
    optimizer = MuonConfig(weight_decay=0.5).build(model, 0.01)
    gradients(model, 0)
    still = {"encoder.layers.0.feed_forward.inner.weight", "source_embedding.weight"}
    for name, parameter in model.named_parameters():
        if name in still:
            parameter.grad = None
    optimizer.step()
    after = weights(model)
    assert {name for name in before if torch.equal(before[name], after[name])} == still


def test_its_state_goes_on_by_the_names_of_the_parameters() -> None:
    whole, cut = transformer(), transformer()
    optimizer = MuonConfig().build(whole, 0.01)
    first = MuonConfig().build(cut, 0.01)
    for seed in range(2):
        for model, one in ((whole, optimizer), (cut, first)):
            gradients(model, seed)
            one.step()
    saved = optimizer_state(first, cut)
    assert "encoder.layers.0.feed_forward.inner.weight/momentum" in saved
    assert "source_embedding.weight/exp_avg" in saved
    second = MuonConfig().build(cut, 0.01)
    load_optimizer_state(second, cut, saved)
    for model, one in ((whole, optimizer), (cut, second)):
        gradients(model, 9)
        one.step()
    found, expected = weights(cut), weights(whole)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_a_model_of_vectors_alone_is_stepped_too() -> None:
    model = nn.LayerNorm(4)
    optimizer = MuonConfig().build(model, 0.01)
    assert isinstance(optimizer, Muon)
    gradients(model, 0)
    optimizer.step()
    assert not torch.equal(model.weight, torch.ones(4))
