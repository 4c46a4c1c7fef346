import re
import struct
import zlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.explorer.tiles import pack, pyramid_level, read_tile, unpack


@given(
    heads=st.integers(0, 4),
    rows=st.integers(0, 9),
    keys=st.integers(0, 9),
    bits=st.sampled_from([8, 16]),
    largest=st.sampled_from([1.0, 0.03, 1e-6, 1e-30, 7.0]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    seed=st.integers(0, 2**16),
)
def test_a_weight_comes_back_within_half_a_level(
    heads: int, rows: int, keys: int, bits: int, largest: float, dtype: torch.dtype, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(heads, rows, keys, generator=generator, dtype=torch.float64) * largest
    weights = weights.to(dtype)
    back = unpack(pack(weights, bits))
    assert back.shape == weights.shape
    if not weights.numel():
        return
    exact = weights.to(torch.float64)
    # Half a level of its own head, and what float32 rounds off the scale and the product.
    most = exact.flatten(1).amax(1).reshape(-1, 1, 1)
    bound = most * (0.5 / (2**bits - 2) + 2**-22)
    assert bool(((back.to(torch.float64) - exact).abs() <= bound).all())


@given(
    rows=st.integers(1, 9),
    keys=st.integers(1, 9),
    bits=st.sampled_from([8, 16]),
    seed=st.integers(0, 2**16),
)
def test_by_its_root_a_weight_comes_back_within_half_a_level_of_its_root(
    rows: int, keys: int, bits: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(3, rows, keys, generator=generator, dtype=torch.float64) ** 4
    back = unpack(pack(weights, bits, curve="root")).to(torch.float64)
    most = weights.flatten(1).amax(1).reshape(-1, 1, 1)
    off = (back.sqrt() - weights.sqrt()).abs() / most.sqrt()
    assert float(off.max()) <= 0.5 / (2**bits - 2) + 1e-6


def test_each_head_has_a_scale_of_its_own() -> None:
    weights = torch.tensor([[[1.0, 0.0]], [[0.001, 0.0005]]])
    torch.testing.assert_close(unpack(pack(weights, 8)), weights, rtol=0.002, atol=0)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("curve", ["linear", "root"])
def test_where_no_query_may_look_is_reported_apart_from_nothing(bits: int, curve: str) -> None:
    weights = torch.tensor([[[1.0, 0.0, -torch.inf]], [[-torch.inf, -torch.inf, -torch.inf]]])
    back = read_tile(pack(weights, bits, curve=curve))
    assert back.hidden.tolist() == [[[False, False, True]], [[True, True, True]]]
    assert back.weights.tolist() == [[[1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]]


def test_a_tile_says_how_coarse_it_is_and_whether_it_was_sampled() -> None:
    back = read_tile(pack(torch.zeros(1, 1, 1), pyramid_level=5, sampled=True))
    assert (back.pyramid_level, back.sampled) == (5, True)
    assert (read_tile(pack(torch.zeros(1, 1, 1))).sampled) is False


@pytest.mark.parametrize(
    ("size", "cells", "level"),
    [
        ((9, 9), (9, 9), 0),
        ((9, 9), (9, 8), 1),
        ((16, 4), (8, 4), 1),
        ((17, 4), (8, 4), 2),
        ((1_000, 64), (64, 64), 4),
    ],
)
def test_the_level_of_the_pyramid_bounds_the_weights_of_a_cell(
    size: tuple[int, int], cells: tuple[int, int], level: int
) -> None:
    assert pyramid_level(size, cells) == level


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
    reported = struct.unpack("<4sHBBIIIHHI", tile[:28])
    assert reported[:4] == (b"ATLT", 2, 8, 1)
    assert reported[4:] == (1, 3, 2, 0, 0, 4 + 6)
    body = zlib.decompress(tile[28:])
    assert struct.unpack("<f", body[:4]) == (1.0,)
    assert list(body[4:]) == [0, 127, 64, 254, 254, 0]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -0.1])
def test_weights_that_are_none_are_refused(wrong: float) -> None:
    with pytest.raises(AttlasError, match="finite and not negative"):
        pack(torch.tensor([[[0.5, wrong]]]))


def test_other_bits_are_refused() -> None:
    with pytest.raises(AttlasError, match="expected 8 or 16 bits; got 12"):
        pack(torch.zeros(1, 1, 1), 12)
    with pytest.raises(AttlasError, match="a curve of linear, root"):
        pack(torch.zeros(1, 1, 1), curve="cube")


def put(tile: bytes, place: int, kind: str, number: int) -> bytes:
    """The tile with another number at this place."""
    written = struct.pack(kind, number)
    return tile[:place] + written + tile[place + len(written) :]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda tile: tile[:20], "a buffer of at least 28 bytes .*buffer size is 20"),
        (lambda tile: b"NOPE" + tile[4:], "^it begins with b'NOPE', version 2$"),
        (lambda tile: put(tile, 4, "<H", 1), "^it begins with b'ATLT', version 1$"),
        (lambda tile: tile[:-4], "incomplete or truncated stream"),
        (lambda tile: put(tile, 8, "<I", 9), "^its sizes contradict each other$"),
        (lambda tile: put(tile, 6, "<B", 12), "^its sizes contradict each other$"),
        (lambda tile: put(tile, 7, "<B", 3), "^its sizes contradict each other$"),
        (lambda tile: put(tile, 24, "<I", 17), "^its sizes contradict each other$"),
    ],
)
def test_a_damaged_tile_is_refused_with_what_is_wrong_with_it(damage, reason: str) -> None:
    with pytest.raises(AttlasError) as refused:
        unpack(damage(pack(torch.rand(1, 3, 3))))
    assert refused.value.expected == "a whole tile of version 2"
    reported = re.fullmatch(r"something else \((.*)\)", refused.value.got)
    assert reported
    assert re.search(reason, reported[1])
