"""Batches that are encoded in parts, by the lengths of their texts."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformer_kinds import KINDS, made

from attlas.models import Transformer
from attlas.models.block import by_length as module
from attlas.models.block.by_length import by_length
from attlas.recording import intervene, observe, uniform

LENGTHS = torch.tensor([8, 1, 3, 2, 8, 1, 5])
REAL = torch.arange(8) < LENGTHS[:, None]
SOURCE = (torch.arange(56).view(7, 8) % 7 + 4).masked_fill(~REAL, 0)
TARGET = torch.arange(21).view(7, 3) % 9 + 4


@pytest.fixture(autouse=True)
def _pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 2)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[torch.Size]:
    """The shapes that the encoder's layers together were given."""
    from attlas.models.block.encoder import Encoder

    together, shapes = Encoder._together, list[torch.Size]()

    def noted(self: Encoder, x: Tensor, real: Tensor | None) -> Tensor:
        shapes.append(x.shape)
        return together(self, x, real)

    monkeypatch.setattr(Encoder, "_together", noted)
    return shapes


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_in_parts_is_read_as_it_is_read_whole(kind: str, parts: list[torch.Size]) -> None:
    model = made(KINDS[kind]).eval()
    expected = model.features(TARGET, model.encode(SOURCE, REAL)).detach()
    assert [shape[:2] for shape in parts] == [(7, 8)]
    with torch.inference_mode():
        found = model.features(TARGET, model.encode(SOURCE, REAL))
    assert [shape[:2] for shape in parts[1:]] == [(2, 1), (2, 3), (2, 8), (1, 8)]
    torch.testing.assert_close(found, expected)


def _observed(model: Transformer) -> None:
    with observe(model) as trace:
        model.encode(SOURCE, REAL)
    assert trace["encoder.layers.0.self_attention"].shape == (7, 2, 8, 8)


def _changed(model: Transformer) -> None:
    with intervene(model, uniform):
        model.encode(SOURCE, REAL)


def _hooked(model: Transformer) -> None:
    hook = model.encoder.layers[1].register_forward_hook(lambda *_: None)
    model.encode(SOURCE, REAL)
    hook.remove()


def _in_training(model: Transformer) -> None:
    model.train().encode(SOURCE, REAL)


def _padded_before(model: Transformer) -> None:
    model.encode(SOURCE.flip(1), REAL.flip(1))


def _hardly_padded(model: Transformer) -> None:
    model.encode(SOURCE[:, :1].repeat(1, 8), torch.ones(7, 8, dtype=torch.bool))
    real = torch.ones(7, 8, dtype=torch.bool)
    real[0, 7] = False
    model.encode(SOURCE[:, :1].repeat(1, 8), real)


@pytest.mark.parametrize(
    "use", [_observed, _changed, _hooked, _in_training, _padded_before, _hardly_padded]
)
def test_a_batch_stays_whole_where_parts_would_be_seen_or_spare_nothing(
    use: Callable[[Transformer], None], parts: list[torch.Size]
) -> None:
    with torch.no_grad():
        use(made(KINDS["post"]).eval())
    assert {shape[:2] for shape in parts} == {(7, 8)}


def test_behind_the_longest_text_of_its_part_there_are_zeros() -> None:
    x = torch.ones(7, 8, 1)
    found = by_length(lambda part, real: part + real.unsqueeze(-1), x, REAL)
    wanted = torch.zeros(7, 8)
    for row, length in enumerate(LENGTHS.tolist()):
        longest = {1: 1, 2: 3, 3: 3, 5: 8, 8: 8}[length]  # of its part
        wanted[row, :length], wanted[row, length:longest] = 2, 1
    assert torch.equal(found.squeeze(-1), wanted)
