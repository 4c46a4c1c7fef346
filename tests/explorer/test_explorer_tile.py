import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.explorer.tile import pack, unpack


@given(
    heads=st.integers(0, 4),
    rows=st.integers(0, 9),
    slots=st.integers(0, 9),
    bits=st.sampled_from([8, 16]),
    largest=st.sampled_from([1.0, 0.03, 1e-6, 1e-30, 7.0]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    seed=st.integers(0, 2**16),
)
def test_a_weight_comes_back_within_half_a_level(
    heads: int, rows: int, slots: int, bits: int, largest: float, dtype: torch.dtype, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(heads, rows, slots, generator=generator, dtype=torch.float64) * largest
    weights = weights.to(dtype)
    back = unpack(pack(weights, bits))
    assert back.shape == weights.shape
    if not weights.numel():
        return
    exact = weights.to(torch.float64)
    level = float(exact.max()) / (2**bits - 1)
    # Half a level, and what float32 rounds off the scale and the product.
    bound = level / 2 + float(exact.max()) * 2**-22
    assert float((back.to(torch.float64) - exact).abs().max()) <= bound


def test_with_16_bits_a_weight_is_off_by_less_than_eight_millionths() -> None:
    weights = torch.softmax(
        4 * torch.randn(2, 50, 60, generator=torch.Generator().manual_seed(1)), -1
    )
    assert float((unpack(pack(weights)) - weights).abs().max()) < 8e-6


def test_nothing_stays_exactly_nothing() -> None:
    weights = torch.tensor([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 0.0]]])
    assert torch.equal(unpack(pack(weights, 8)), weights)
    assert torch.equal(unpack(pack(torch.zeros(1, 2, 2))), torch.zeros(1, 2, 2))


def test_the_header_is_what_the_page_reads() -> None:
    tile = pack(torch.tensor([[[0.0, 0.5], [0.25, 1.0], [1.0, 0.0]]]), 8)
    magic, version, bits, heads, rows, slots, scale, size = struct.unpack("<4sHHIIIfI", tile[:28])
    assert (magic, version, bits) == (b"ATLT", 1, 8)
    assert (heads, rows, slots, size) == (1, 3, 2, 6)
    assert scale == pytest.approx(1 / 255)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -0.1])
def test_weights_that_are_none_are_refused(wrong: float) -> None:
    with pytest.raises(AttlasError, match="finite and not negative"):
        pack(torch.tensor([[[0.5, wrong]]]))


def test_other_bits_are_refused() -> None:
    with pytest.raises(AttlasError, match="wanted 8 or 16 bits; got 12"):
        pack(torch.zeros(1, 1, 1), 12)


@pytest.mark.parametrize(
    "damage",
    [
        lambda tile: tile[:20],
        lambda tile: b"NOPE" + tile[4:],
        lambda tile: tile[:-4],
        lambda tile: tile[:8] + struct.pack("<I", 9) + tile[12:],
        lambda tile: tile[:6] + struct.pack("<H", 12) + tile[8:],
    ],
)
def test_a_damaged_tile_is_refused(damage) -> None:
    with pytest.raises(AttlasError, match="wanted a whole tile of version 1"):
        unpack(damage(pack(torch.rand(1, 3, 3))))
