import math

import pytest
import torch
from torch._subclasses import FakeTensorMode

from attlas.errors import AttlasError
from attlas.layers import LearnedPositions, NoPositions, RotaryPositions, SinusoidalPositions
from attlas.layers.positional import _cached_sinusoid


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def test_sinusoidal_positions_are_the_papers_formula():
    table = SinusoidalPositions(6).encoding(20)
    for p in (0, 1, 7, 19):
        for i in range(3):
            angle = p / 10_000 ** (2 * i / 6)
            assert table[p, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[p, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


@pytest.mark.parametrize(
    "make", [lambda: SinusoidalPositions(8), lambda: LearnedPositions(8, 12), NoPositions]
)
def test_step_by_step_the_same_positions_are_added_as_at_once(make):
    positions, embedded = make(), torch.randn(2, 12, 8)
    steps = [positions(embedded[:, t : t + 1], offset=t) for t in range(12)]
    assert torch.equal(torch.cat(steps, 1), positions(embedded))


@pytest.mark.parametrize("met", [False, True])
def test_a_step_that_is_exported_is_the_same_step_and_so_are_those_after_it(met):
    positions, embedded = SinusoidalPositions(8), torch.randn(2, 1, 8)
    _cached_sinusoid.cache_clear()
    if met:
        positions(embedded)
    program = torch.export.export(positions, (embedded,)).module()
    stepped = embedded + positions.encoding(1).float()
    assert torch.equal(program(embedded), stepped)
    assert torch.equal(positions(embedded), stepped)


def test_a_step_of_fake_tensors_is_not_kept_for_true_ones():
    positions, embedded = SinusoidalPositions(8), torch.randn(2, 1, 8)
    _cached_sinusoid.cache_clear()
    with FakeTensorMode() as mode:
        assert positions(mode.from_tensor(embedded)).shape == embedded.shape
    assert torch.equal(positions(embedded), embedded + positions.encoding(1).float())


def test_no_positions_change_nothing():
    embedded = torch.randn(1, 3, 4)
    assert torch.equal(NoPositions()(embedded), embedded)


def test_learned_positions_end_where_their_table_ends():
    positions = LearnedPositions(4, 5)
    positions(torch.zeros(1, 2, 4), offset=3)
    with pytest.raises(AttlasError) as caught:
        positions(torch.zeros(1, 2, 4), offset=4)
    assert str(caught.value) == (
        "expected positions within 0 … 4, which is all that was learned; got positions 4 … 5; "
        "shorten the input, or train with a greater longest length"
    )
    with pytest.raises(AttlasError, match="got positions -1 … 0"):
        positions(torch.zeros(1, 2, 4), offset=-1)
    with pytest.raises(AttlasError, match="a longest length ≥ 1 for learned positions; got 0"):
        LearnedPositions(4, 0)


def test_learned_positions_begin_as_long_as_the_vectors_of_tokens():
    norms = LearnedPositions(64, 500).vectors.weight.norm(dim=1)
    # One norm of 64 draws from N(0, 1/64) is 0.996 ± 0.09, the mean of 500 of them ± 0.004.
    assert norms.mean().item() == pytest.approx(1, abs=0.02)


def test_learned_positions_learn():
    positions = LearnedPositions(4, 5)
    positions(torch.zeros(1, 2, 4), offset=1).sum().backward()
    assert positions.vectors.weight.grad.sum(1).tolist() == [0, 4, 4, 0, 0]


def test_rotary_positions_turn_each_pair_by_its_own_angle():
    rotary, vectors = RotaryPositions(6), torch.randn(2, 3, 5, 6).double()
    turned = rotary(vectors, offset=2)
    for p in range(5):
        for i in range(3):
            angle = (p + 2) * 10_000 ** (-2 * i / 6)
            pair = torch.complex(vectors[..., p, 2 * i], vectors[..., p, 2 * i + 1])
            expected = pair * complex(math.cos(angle), math.sin(angle))
            torch.testing.assert_close(turned[..., p, 2 * i], expected.real)
            torch.testing.assert_close(turned[..., p, 2 * i + 1], expected.imag)


def test_rotary_products_depend_on_the_distance_alone():
    rotary = RotaryPositions(8)
    query, key = torch.randn(1, 1, 8).double(), torch.randn(1, 1, 8).double()
    products = [
        (rotary(query, offset=offset) * rotary(key, offset=offset - 5)).sum().item()
        for offset in (5, 6, 1_000, 100_000)
    ]
    assert products == pytest.approx([products[0]] * 4, abs=1e-9)
    other = (rotary(query, offset=5) * rotary(key, offset=1)).sum().item()
    assert other != pytest.approx(products[0], abs=1e-3)


@pytest.mark.parametrize("make", [SinusoidalPositions, RotaryPositions])
@pytest.mark.parametrize("width", [7, 0])
def test_positions_that_come_in_pairs_need_an_even_width(make, width):
    with pytest.raises(AttlasError, match=rf"an even width for \w+ positions; got {width}; "):
        make(width)


@pytest.mark.parametrize("base", [1.0, float("inf"), float("nan")])
def test_a_rotary_base_has_to_turn_each_pair_at_a_speed_of_its_own(base):
    with pytest.raises(AttlasError, match=rf"expected a rotary base above 1; got {base}"):
        RotaryPositions(4, base=base)
