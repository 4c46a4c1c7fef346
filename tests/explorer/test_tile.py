import re
import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.explorer.maps import pack, unpack


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
    with pytest.raises(AttlasError, match="expected 8 or 16 bits; got 12"):
        pack(torch.zeros(1, 1, 1), 12)


def put(tile: bytes, place: int, kind: str, number: int) -> bytes:
    """The tile with another number at this place."""
    written = struct.pack(kind, number)
    return tile[:place] + written + tile[place + len(written) :]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda tile: tile[:20], "a buffer of at least 28 bytes .*buffer size is 20"),
        (lambda tile: b"NOPE" + tile[4:], "^it begins with b'NOPE', version 1$"),
        (lambda tile: put(tile, 4, "<H", 2), "^it begins with b'ATLT', version 2$"),
        (lambda tile: tile[:-4], "incomplete or truncated stream"),
        (lambda tile: put(tile, 8, "<I", 9), "^its sizes contradict each other$"),
        (lambda tile: put(tile, 6, "<H", 12), "^its sizes contradict each other$"),
        (lambda tile: put(tile, 24, "<I", 17), "^its sizes contradict each other$"),
    ],
)
def test_a_damaged_tile_is_refused_with_what_is_wrong_with_it(damage, reason: str) -> None:
    with pytest.raises(AttlasError) as refused:
        unpack(damage(pack(torch.rand(1, 3, 3))))
    assert refused.value.expected == "a whole tile of version 1"
    told = re.fullmatch(r"something else \((.*)\)", refused.value.got)
    assert told
    assert re.search(reason, told[1])
