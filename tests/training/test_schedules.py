"""Schedules against their formulas, by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.training.learner import derive_seed
from attlas.training.scheduled_sampling import (
    ConstantSampling,
    ExponentialSampling,
    InverseSigmoidSampling,
    LinearSampling,
    ScheduledSampling,
)
from attlas.training.schedules import (
    ConstantSchedule,
    CosineSchedule,
    InverseSquareRootSchedule,
    LinearSchedule,
    Schedule,
)


@pytest.mark.parametrize(
    ("schedule", "update", "factor"),
    [
        (ConstantSchedule(), 1, 1.0),
        (ConstantSchedule(), 10**9, 1.0),
        (ConstantSchedule(warmup=10), 1, 0.1),
        (ConstantSchedule(warmup=10), 10, 1.0),
        (InverseSquareRootSchedule(warmup=100), 25, 0.25),
        (InverseSquareRootSchedule(warmup=100), 100, 1.0),
        (InverseSquareRootSchedule(warmup=100), 400, 0.5),
        (LinearSchedule(warmup=10, total_steps=110), 60, 0.5),
        (LinearSchedule(total_steps=100, final=0.2), 100, 0.2),
        (LinearSchedule(total_steps=100, final=0.2), 5000, 0.2),
        (LinearSchedule(warmup=10, total_steps=110, final=0.5), 35, 0.875),
        (CosineSchedule(warmup=10, total_steps=110), 60, 0.5),
        (CosineSchedule(total_steps=120, final=0.1), 40, 0.1 + 0.9 * 0.75),  # cos 60° = ½
        (CosineSchedule(total_steps=120, final=0.1), 9999, 0.1),
    ],
)
def test_a_factor_is_what_the_formula_gives(schedule: Schedule, update: int, factor: float) -> None:
    assert schedule.factor(update) == pytest.approx(factor, abs=1e-12)


def test_the_warmup_of_the_transformer_is_its_formula() -> None:
    schedule = InverseSquareRootSchedule(warmup=4000)
    for update in (1, 17, 3999, 4000, 4001, 100_000):  # eq. 3 of the paper, up to a constant
        ours = schedule.factor(update) / math.sqrt(4000)
        assert ours == pytest.approx(min(update**-0.5, update * 4000**-1.5))


@given(
    st.sampled_from([LinearSchedule, CosineSchedule]),
    st.integers(0, 50),
    st.integers(1, 100),
    st.floats(0, 1),
    st.integers(1, 300),
)
def test_after_the_warmup_a_rate_never_rises_and_stays_between_its_ends(
    kind: type[LinearSchedule], warmup: int, fall: int, final: float, update: int
) -> None:
    schedule = kind(warmup=warmup, total_steps=warmup + fall, final=final)
    now, next_ = schedule.factor(update), schedule.factor(update + 1)
    assert 0 <= now <= 1 + 1e-12
    assert update < warmup or next_ <= now + 1e-12


def test_a_fall_that_ends_before_it_begins_is_an_error() -> None:
    with pytest.raises(AttlasError, match=r"above training\.schedule\.warmup = 10 .*; got 10"):
        LinearSchedule.read({"warmup": 10, "total_steps": 10}, "the test")


@pytest.mark.parametrize("kind", [LinearSchedule, CosineSchedule])
def test_a_schedule_that_comes_to_nothing_says_how_many_updates_teach_nothing(
    kind: type[LinearSchedule],
) -> None:
    schedule = kind(warmup=400, total_steps=2367)
    assert schedule.factor(23_670) == 0.0
    reported = schedule.misfit(23_670)
    assert reported is not None
    assert "falls to about 0 at update 2,367" in reported
    assert "ends after about 23,670: 21,303 updates would teach nothing" in reported
    assert "Set training.schedule.total_steps" in reported


@pytest.mark.parametrize(
    ("schedule", "planned"),
    [
        (CosineSchedule(total_steps=2367), 2367),
        (CosineSchedule(total_steps=2367), 2400),  # epochs differ
        (CosineSchedule(total_steps=2367), None),
        (CosineSchedule(total_steps=2367, final=0.01), 23_670),
        (LinearSchedule(total_steps=100, final=0.02), 10**6),
        (ConstantSchedule(warmup=10), 10**9),
        (InverseSquareRootSchedule(warmup=1), 10**9),
    ],
)
def test_a_schedule_that_leaves_a_rate_until_the_end_is_not_reported(
    schedule: Schedule, planned: int | None
) -> None:
    assert schedule.misfit(planned) is None


@pytest.mark.parametrize(
    ("scheduled_sampling", "i", "probability"),
    [
        (ConstantSampling(p=0.3), 12345, 0.3),
        (LinearSampling(slope=0.01), 0, 1.0),
        (LinearSampling(slope=0.01), 30, 0.7),
        (LinearSampling(slope=0.01, floor=0.25), 1000, 0.25),
        (LinearSampling(start=0.9, slope=0.1), 2, 0.7),
        (ExponentialSampling(k=0.5), 0, 1.0),
        (ExponentialSampling(k=0.5), 3, 0.125),
        (InverseSigmoidSampling(k=1.0), 0, 0.5),
        (InverseSigmoidSampling(k=10.0), 0, 10 / 11),
        (InverseSigmoidSampling(k=10.0), 25, 10 / (10 + math.exp(2.5))),
        (InverseSigmoidSampling(k=math.e), 0, math.e / (math.e + 1)),
        (InverseSigmoidSampling(k=1.0), 10**6, 0.0),
    ],
)
def test_a_probability_of_feeding_is_what_the_formula_gives(
    scheduled_sampling: ScheduledSampling, i: int, probability: float
) -> None:
    assert scheduled_sampling.probability(i) == pytest.approx(probability, abs=1e-12)


def test_seeds_of_different_purposes_and_numbers_differ() -> None:
    seeds = {
        derive_seed(seed, purpose, number)
        for seed in range(5)
        for purpose in ("update", "feeding")
        for number in range(50)
    }
    assert len(seeds) == 500
    assert all(0 <= seed < 2**63 for seed in seeds)
