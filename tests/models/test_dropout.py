"""Where the dropout of a model falls, beside that of its layers: on what enters and what leaves."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from attlas.models import ClassifierConfig, build_classifier
from support.transformer_kinds import made, small


@contextmanager
def entering(module: nn.Module) -> Iterator[list[Tensor]]:
    """What the module is given in the block."""
    found: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, given: found.append(given[0]))
    yield found
    handle.remove()


def check_dropped(seen: Tensor, whole: Tensor) -> None:
    """That half of the places are dropped, each by itself, and the others doubled."""
    dropped = seen == 0
    torch.testing.assert_close(seen[~dropped], 2.0 * whole[~dropped])
    for share in (dropped, dropped[..., :1], dropped[:1]):  # neither whole tokens nor whole places
        assert share.double().mean().item() == pytest.approx(0.5, abs=0.1)
    assert not dropped.all(-1).any()


def check_left_out(seen: Tensor, whole: Tensor) -> None:
    """That half of the tokens are left out whole, and the others doubled."""
    left_out = (seen == 0).all(-1)
    assert ((seen == 0).any(-1) == left_out).all()
    torch.testing.assert_close(seen[~left_out], 2.0 * whole[~left_out])
    for share in (left_out, left_out[:, :1], left_out[:1]):  # neither whole texts nor whole places
        assert share.double().mean().item() == pytest.approx(0.5, abs=0.25)
    assert left_out.double().mean().item() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_transformer_leaves_out_whole_tokens_in_training_alone(
    source: Tensor, target: Tensor, side: str
) -> None:
    model = made(small(word_dropout=0.5, positions="none"))
    source, target = source.repeat(100, 1), target.repeat(100, 1)
    embedding = model.source_embedding if side == "source" else model.target_embedding
    assert embedding is not None
    whole = embedding(source if side == "source" else target) * model.scale
    with entering(model.encoder if side == "source" else model.decoder) as seen:
        model(source, target)
        model.eval()
        model(source, target)
    check_left_out(seen[0], whole)
    torch.testing.assert_close(seen[1], whole)


def test_a_classifier_leaves_out_whole_tokens_in_training_alone(source: Tensor) -> None:
    torch.manual_seed(5)
    config = ClassifierConfig(
        embed_dim=8, num_heads=2, ffn_dim=12, dropout=0.0, word_dropout=0.5, positions="none"
    )
    model = build_classifier(config, 11, 3).double()
    many = source.repeat(200, 1)
    whole = model.embedding(many) * model.scale
    with entering(model.encoder) as seen:
        model(many, torch.ones_like(many, dtype=torch.bool))
        model.eval()
        model(many, torch.ones_like(many, dtype=torch.bool))
    check_left_out(seen[0], whole)
    torch.testing.assert_close(seen[1], whole)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_transformer_drops_of_the_sum_of_embeddings_and_positions(
    source: Tensor, target: Tensor, side: str
) -> None:
    model = made(small(embed_dim=64, dropout=0.5))
    source, target = source.repeat(50, 1), target.repeat(50, 1)
    if side == "source":
        read, ids = model.encoder, source
        embedding, positions = model.source_embedding, model.source_positions
    else:
        read, ids = model.decoder, target
        embedding, positions = model.target_embedding, model.target_positions
    assert embedding is not None
    whole = positions(embedding(ids) * model.scale)
    with entering(read) as seen:
        model(source, target)
        model.eval()
        model(source, target)
    check_dropped(seen[0], whole)
    torch.testing.assert_close(seen[1], whole)


def test_a_classifier_drops_of_the_sum_of_embeddings_and_positions_and_of_what_is_pooled(
    source: Tensor,
) -> None:
    torch.manual_seed(5)
    config = ClassifierConfig(embed_dim=64, num_heads=2, ffn_dim=12, dropout=0.5)
    model = build_classifier(config, 11, 3).double()
    many = source.repeat(50, 1)
    whole = model.positions(model.embedding(many) * model.scale)
    with (
        entering(model.encoder) as read,
        entering(model.pooling) as encoded,
        entering(model.output) as pooled,
    ):
        model(many, torch.ones_like(many, dtype=torch.bool))
        model.eval()
        model(many, torch.ones_like(many, dtype=torch.bool))
    check_dropped(read[0], whole)
    check_dropped(pooled[0], encoded[0].mean(1))
    torch.testing.assert_close(read[1], whole)
    torch.testing.assert_close(pooled[1], encoded[1].mean(1))
