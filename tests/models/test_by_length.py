"""Batches that are encoded in parts, by the lengths of their texts."""

from collections.abc import Callable

import pytest
import torch
from jaxtyping import config
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.flop_counter import FlopCounterMode

from attlas.errors import AttlasError
from attlas.models import Transformer, TransformerState
from attlas.models.transformer import block as module
from attlas.models.transformer.block import TransformerEncoder, encode_by_length
from attlas.recording import intervene, observe, uniform
from support.transformer_kinds import KINDS, made

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
    forward, shapes = TransformerEncoder.forward, list[torch.Size]()

    def noted(self: TransformerEncoder, x: Tensor, token_mask: Tensor | None) -> Tensor:
        shapes.append(x.shape)
        return forward(self, x, token_mask)

    monkeypatch.setattr(TransformerEncoder, "forward", noted)
    return shapes


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_in_parts_is_read_as_it_is_read_whole(kind: str, parts: list[torch.Size]) -> None:
    model = made(KINDS[kind]).eval()
    expected = model.decode(TARGET, model.encode(SOURCE, REAL)).detach()
    assert [shape[:2] for shape in parts] == [(7, 8)]
    with torch.inference_mode():
        found = model.decode(TARGET, model.encode_for_search(SOURCE, REAL))
    assert [shape[:2] for shape in parts[1:]] == [(2, 1), (2, 3), (2, 8), (1, 8)]
    torch.testing.assert_close(found, expected)


def _observed(model: Transformer) -> None:
    with observe(model) as trace:
        model.encode_for_search(SOURCE, REAL)
    assert trace["encoder.layers.0.self_attention"].shape == (7, 2, 8, 8)


def _changed(model: Transformer) -> None:
    with intervene(model, uniform):
        model.encode_for_search(SOURCE, REAL)


def _hooked(model: Transformer) -> None:
    hook = model.encoder.layers[1].register_forward_hook(lambda *_: None)
    model.encode_for_search(SOURCE, REAL)
    hook.remove()


def _hooked_everywhere(model: Transformer) -> None:
    hook = register_module_forward_hook(lambda *_: None)
    model.encode_for_search(SOURCE, REAL)
    hook.remove()


def _encoded(model: Transformer) -> None:
    model.encode(SOURCE, REAL)


def _with_gradients(model: Transformer) -> None:
    with torch.enable_grad():
        model.encode_for_search(SOURCE, REAL)


def _counted(model: Transformer) -> None:
    with FlopCounterMode(display=False):
        model.encode_for_search(SOURCE, REAL)


def _in_training(model: Transformer) -> None:
    model.train().encode_for_search(SOURCE, REAL)


def _padded_before(model: Transformer) -> None:
    model.encode_for_search(SOURCE.flip(1), REAL.flip(1))


def _hardly_padded(model: Transformer) -> None:
    model.encode_for_search(SOURCE[:, :1].repeat(1, 8), torch.ones(7, 8, dtype=torch.bool))
    token_mask = torch.ones(7, 8, dtype=torch.bool)
    token_mask[0, 7] = False
    model.encode_for_search(SOURCE[:, :1].repeat(1, 8), token_mask)


@pytest.mark.parametrize(
    "use",
    [
        *(_encoded, _observed, _changed, _hooked, _hooked_everywhere),
        *(_with_gradients, _counted, _in_training, _padded_before, _hardly_padded),
    ],
)
def test_a_batch_stays_whole_where_parts_would_be_seen_or_spare_nothing(
    use: Callable[[Transformer], None], parts: list[torch.Size]
) -> None:
    with torch.no_grad():
        use(made(KINDS["post"]).eval())
    assert {shape[:2] for shape in parts} == {(7, 8)}


def test_behind_the_longest_text_of_its_part_there_are_zeros() -> None:
    x = torch.ones(7, 8, 1)
    found = encode_by_length(lambda part, token_mask: part + token_mask.unsqueeze(-1), x, REAL)
    wanted = torch.zeros(7, 8)
    for row, length in enumerate(LENGTHS.tolist()):
        longest = {1: 1, 2: 3, 3: 3, 5: 8, 8: 8}[length]  # of its part
        wanted[row, :length], wanted[row, length:longest] = 2, 1
    assert torch.equal(found.squeeze(-1), wanted)


def test_junk_in_padding_changes_nothing() -> None:
    model = made(KINDS["post"]).eval()
    x = torch.randn(7, 8, 8, dtype=torch.double)
    junk = x.masked_fill(~REAL.unsqueeze(-1), torch.nan)
    with torch.no_grad():
        found, expected = model.encoder.forward_by_length(junk, REAL), model.encoder(x, REAL)
    torch.testing.assert_close(found[REAL], expected[REAL])


def test_a_mask_of_another_shape_is_refused_and_a_batch_of_none_is_one() -> None:
    model = made(KINDS["post"]).eval()
    x = torch.randn(7, 8, 8, dtype=torch.double)
    with torch.no_grad():
        assert model.encoder.forward_by_length(x[:0], REAL[:0]).shape == (0, 8, 8)
        config.update("jaxtyping_disable", True)  # whose own error would come first
        with pytest.raises(AttlasError, match=r"token_mask of bool and shape \(7, 8\)"):
            model.encoder.forward_by_length(x, REAL[:1])


@pytest.mark.parametrize("kind", ["pre", "post"])
def test_a_model_that_is_observed_gives_the_same_to_the_bit(kind: str) -> None:
    model = made(KINDS[kind]).eval()
    with torch.no_grad():
        plain = model(SOURCE, TARGET, token_mask=REAL)
        with observe(model):
            seen = model(SOURCE, TARGET, token_mask=REAL)
    assert torch.equal(plain, seen)


def test_what_somebody_put_in_place_of_a_part_is_what_a_search_runs() -> None:
    class Own(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Tensor, token_mask: Tensor | None) -> Tensor:
            return 2 * self.inner(x, token_mask)

    class Mine(Transformer):
        def encode(self, source: Tensor, token_mask: Tensor | None = None) -> TransformerState:
            return super().encode(source)

    model = made(KINDS["post"]).eval()
    with torch.no_grad():
        model.__class__ = Mine
        expected = model.encode(SOURCE, REAL).source.layers[0].keys
        assert torch.equal(model.encode_for_search(SOURCE, REAL).source.layers[0].keys, expected)
        model.__class__ = Transformer
        model.encoder = Own(model.encoder)
        expected = model.encode(SOURCE, REAL).source.layers[0].keys
        assert torch.equal(model.encode_for_search(SOURCE, REAL).source.layers[0].keys, expected)
