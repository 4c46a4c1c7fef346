"""Rules: an effect with its interval beside a bound that was written before."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import DataError
from attlas.lab.verdict import (
    Alike,
    AlikeRatio,
    All,
    AtLeast,
    AtMost,
    Difference,
    Exponent,
    Improvable,
    InRange,
    Measurements,
    Monotone,
    Outweighs,
    Provided,
    Ratio,
    Widens,
    interval,
    interval_of,
)

A, B = {"model": "a"}, {"model": "b"}


def table(a: list[float], b: list[float]) -> Measurements:
    return Measurements(
        {
            seed: [("accuracy", A, x), ("accuracy", B, y)]
            for seed, (x, y) in enumerate(zip(a, b, strict=True), 1)
        }
    )


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 10, 15, 20, 30])
def test_the_interval_holds_95_percent_of_students_t(count: int) -> None:
    numbers = [0.1 * i**2 for i in range(count)]
    low, high = interval(numbers)
    error = statistics.stdev(numbers) / math.sqrt(count)
    quantile, freedom = (high - low) / 2 / error, count - 1
    # The density of Student's t, integrated by Simpson's rule.
    t = np.linspace(-quantile, quantile, 200_001)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    density = scale / math.sqrt(freedom * math.pi) * (1 + t**2 / freedom) ** (-(freedom + 1) / 2)
    step = t[1] - t[0]
    inside = (
        step
        / 3
        * (density[0] + density[-1] + 4 * density[1:-1:2].sum() + 2 * density[2:-1:2].sum())
    )
    assert inside == pytest.approx(0.95, abs=2e-4)
    assert (low + high) / 2 == pytest.approx(statistics.fmean(numbers))


def test_the_interval_of_a_count_that_is_not_tabulated_is_the_wider_one() -> None:
    numbers = [float(i % 3) for i in range(13)]
    low, high = interval(numbers)
    half = 2.179 * statistics.stdev(numbers) / math.sqrt(13)  # t(0.975, 12)
    assert high - low >= 2 * half


def test_one_seed_decides_nothing() -> None:
    judgement = AtLeast("accuracy", 0.1, A).judge(table([0.9], [0.1]))
    assert judgement.outcome == "undecided"
    assert "one seed" in judgement.reason


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8), st.floats(-1, 1))
def test_at_least_and_at_most_never_both_hold_unless_equal(
    values: list[float], bound: float
) -> None:
    numbers = table(values, values)
    above = AtLeast("accuracy", bound, A).judge(numbers).outcome
    below = AtMost("accuracy", bound, A).judge(numbers).outcome
    if above == "holds" and below == "holds":
        assert set(values) == {bound}
    if above == "does not hold":
        assert below == "holds"


def test_a_difference_is_paired_by_seed() -> None:
    # Seeds differ by far more than the models do.
    numbers = table([0.1, 0.5, 0.9], [0.05, 0.45, 0.85])
    judgement = Difference("accuracy", A, B, 0.01).judge(numbers)
    assert judgement.outcome == "holds"
    assert judgement.effect == pytest.approx(0.05)
    assert judgement.high - judgement.low == pytest.approx(0, abs=1e-9)


def test_a_ratio_is_judged_by_its_bound() -> None:
    assert Ratio("accuracy", A, B, 1.5).judge(table([4.0, 4.2], [2.0, 2.1])).outcome == "holds"
    assert (
        Ratio("accuracy", A, B, 3.0).judge(table([4.0, 4.2], [2.0, 2.1])).outcome == "does not hold"
    )


def test_a_ratio_with_a_zero_below_is_undecided() -> None:
    assert Ratio("accuracy", A, B).judge(table([1.0, 1.0], [0.0, 1.0])).outcome == "undecided"


@pytest.mark.parametrize(
    ("a", "outcome"),
    [
        ([0.5, 0.51, 0.49], "holds"),
        ([0.3, 0.31, 0.29], "does not hold"),
        ([0.7, 0.71, 0.69], "does not hold"),
        ([0.45, 0.46, 0.44], "undecided"),  # the interval has the bound in it
        ([0.3, 0.5, 0.7], "undecided"),  # and here both bounds
        ([0.5, math.nan, 0.5], "undecided"),
    ],
)
def test_numbers_are_alike_where_the_interval_is_within_the_margin(
    a: list[float], outcome: str
) -> None:
    numbers = table(a, [0.5] * 3)
    swapped = table([0.5] * 3, a)
    assert Alike("accuracy", A, B, 0.05).judge(numbers).outcome == outcome
    assert Alike("accuracy", A, B, 0.05).judge(swapped).outcome == outcome
    assert InRange("accuracy", 0.45, 0.55, A).judge(numbers).outcome == outcome
    assert AlikeRatio("accuracy", A, B, 0.9).judge(numbers).outcome == outcome


def test_one_seed_shows_no_equality() -> None:
    assert Alike("accuracy", A, B, 0.1).judge(table([0.5], [0.5])).outcome == "undecided"


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8), st.floats(0, 1))
def test_two_differences_say_the_same_as_alike_but_for_what_does_not_hold(
    values: list[float], margin: float
) -> None:
    numbers = table(values, [0.0] * len(values))
    two = All(Difference("accuracy", A, B, -margin), Difference("accuracy", B, A, -margin)).judge(
        numbers
    )
    one = Alike("accuracy", A, B, margin).judge(numbers)
    assert (two.outcome == "holds") == (one.outcome == "holds")
    assert two.outcome != "does not hold"
    assert (one.outcome == "does not hold") == (two.outcome == "depends")


def test_a_test_of_equivalence_names_both_bounds() -> None:
    assert str(Alike("accuracy", A, B, 0.05)) == ("-0.05 ≤ accuracy [model a] − [model b] ≤ 0.05")
    assert str(Alike("accuracy", A, B)) == "0 ≤ accuracy [model a] − [model b] ≤ 0"
    assert str(AlikeRatio("accuracy", A, B, 0.8)) == ("0.8 ≤ accuracy [model a] / [model b] ≤ 1.25")
    assert str(InRange("accuracy", 0.7, 0.9, A)) == "0.7 ≤ accuracy [model a] ≤ 0.9"


@pytest.mark.parametrize(
    ("values", "outcome"), [([3.0, 2.0, 1.0], "holds"), ([3.0, 1.0, 2.0], "does not hold")]
)
def test_monotone_looks_at_every_step(values: list[float], outcome: str) -> None:
    rows = [("cosine", {"distance": i}, value) for i, value in enumerate(values)]
    numbers = Measurements({1: rows, 2: rows})
    assert Monotone("cosine", "distance", rising=False).judge(numbers).outcome == outcome


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_an_exponent_is_the_slope_of_logarithms(exponent: float) -> None:
    rows = [("seconds", {"length": n}, 3 * n**exponent) for n in (64, 128, 512)]
    judgement = Exponent("seconds", "length", 1.9, 2.1).judge(Measurements({1: rows, 2: rows}))
    assert judgement.effect == pytest.approx(exponent)
    assert judgement.outcome == ("holds" if exponent == 2.0 else "does not hold")


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        ((0.1, 0.2), "holds"),
        ((0.8, 0.9), "does not hold"),
        ((0.1, 0.9), "depends"),
    ],
)
def test_a_claim_of_several_parts_depends_where_they_disagree(
    bounds: tuple[float, ...], outcome: str
) -> None:
    rule = All(*(AtLeast("accuracy", bound, A) for bound in bounds))
    assert rule.judge(table([0.5, 0.5], [0.0, 0.0])).outcome == outcome


# The values 0.4, 0.5 and 0.6 have the interval 0.25 to 0.75.
HELD, UNDECIDED, FALSE = 0.1, 0.5, 0.9


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        ((FALSE, FALSE, UNDECIDED), "does not hold"),
        ((UNDECIDED, FALSE), "does not hold"),
        ((HELD, UNDECIDED), "undecided"),
        ((UNDECIDED, UNDECIDED), "undecided"),
        ((HELD, FALSE, UNDECIDED), "depends"),
    ],
)
def test_a_claim_with_a_false_part_is_never_undecided(
    bounds: tuple[float, ...], outcome: str
) -> None:
    numbers = table([0.4, 0.5, 0.6], [0.0] * 3)
    rule = All(*(AtLeast("accuracy", bound, A) for bound in bounds))
    assert rule.judge(numbers).outcome == outcome
    assert All(*reversed(rule.rules)).judge(numbers).outcome == outcome


def test_a_false_part_beside_one_that_is_not_judged_does_not_hold() -> None:
    numbers = table([0.4, 0.5, 0.6], [0.0] * 3)
    unlearnt = Provided(AtLeast("accuracy", HELD, A), "accuracy", 0.9, A)
    assert unlearnt.judge(numbers).outcome == "not judged"
    rule = All(unlearnt, AtLeast("accuracy", FALSE, A))
    assert rule.judge(numbers).outcome == "does not hold"


def test_a_missing_measurement_is_named() -> None:
    with pytest.raises(DataError, match="'loss'"):
        AtLeast("loss", 0.1, A).judge(table([1.0, 1.0], [1.0, 1.0]))


def test_an_ambiguous_condition_is_refused() -> None:
    with pytest.raises(DataError, match="got 2"):
        AtLeast("accuracy", 0.1).judge(table([1.0, 1.0], [1.0, 1.0]))


def test_a_rule_is_judged_only_where_a_model_has_learnt_its_task() -> None:
    rule = Provided(Difference("accuracy", A, B, 0.1), "accuracy", 0.9, A, B)
    judgement = rule.judge(table([0.95, 1.0, 0.4], [0.5, 0.5, 0.9]))
    assert (
        judgement.outcome
        == Difference("accuracy", A, B, 0.1).judge(table([0.95, 1.0, 0.4], [0.5, 0.5, 0.9])).outcome
    )
    assert judgement.provided == ("0.9 with the worst seed",)
    nested = Provided(rule, "accuracy", 0.6, B)
    assert "[model b] ≥ 0.6" in nested.judge(table([1.0, 1.0], [0.7, 0.5])).reason
    assert nested.judge(table([1.0, 1.0], [0.7, 0.8])).provided == (
        "0.7 with the worst seed",
        "1 with the worst seed",
    )
    judgement = rule.judge(table([0.95, 1.0, 0.4], [0.5, 0.5, 0.89]))
    assert judgement.outcome == "not judged"
    assert "0.89 with the worst seed" in judgement.reason
    assert str(rule) == (
        "accuracy [model a] − [model b] ≥ 0.1, provided that "
        "accuracy [model a] or [model b] ≥ 0.9 with every seed"
    )


def test_a_rule_of_two_models_that_are_right_nearly_always_is_not_judged() -> None:
    rule = Improvable(Difference("accuracy", A, B, 0.01), "accuracy", 0.98, A, B)
    full = table([1.0, 1.0, 0.999], [1.0, 0.99, 1.0])
    judgement = rule.judge(full)
    assert judgement.outcome == "not judged"
    assert "≤ 0.98 with every seed, and there is 1 with the worst seed" in judgement.reason
    assert Difference("accuracy", A, B, 0.01).judge(full).outcome != "not judged"
    judgement = rule.judge(table([1.0, 1.0, 1.0], [0.9, 0.92, 0.91]))
    assert (judgement.outcome, judgement.provided) == ("holds", ("0.92 with the worst seed",))


def test_a_training_that_has_diverged_has_learnt_nothing() -> None:
    rule = Provided(Difference("accuracy", A, B, 0.1), "accuracy", 0.9, A)
    for values in ([0.95, math.nan], [math.nan, 0.95]):
        assert rule.judge(table(values, [0.1, 0.1])).outcome == "not judged"


def grid(rows: dict[tuple[str, int], tuple[float, ...]]) -> Measurements:
    """Accuracies by (model, length), one for each seed."""
    seeds = range(len(next(iter(rows.values()))))
    return Measurements(
        {
            seed: [
                ("accuracy", {"model": model, "length": length}, values[seed])
                for (model, length), values in rows.items()
            ]
            for seed in seeds
        }
    )


@pytest.mark.parametrize(
    ("far", "outcome"),
    [(0.5, "holds"), (0.85, "undecided"), (0.99, "does not hold")],
)
def test_a_gap_widens_where_it_is_greater_in_one_place(far: float, outcome: str) -> None:
    rule = Widens("accuracy", A, B, {"length": 40}, {"length": 20}, 0.02)
    found = rule.judge(
        grid(
            {
                ("a", 20): (1.0, 1.0),
                ("b", 20): (0.9, 0.89),
                ("a", 40): (1.0, 1.0),
                ("b", 40): (far, far),
            }
        )
    )
    assert found.outcome == outcome
    assert found.effect == pytest.approx((1 - far) - 0.105)


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [((0.9, 0.8), "holds"), ((0.9, 0.3), "does not hold"), ((0.9, 0.5), "undecided")],
)
def test_attention_matters_more_where_the_least_gain_is_above_the_range(
    scores: tuple[float, float], outcome: str
) -> None:
    one, other = scores
    rows = {1: (0.1, one, other), 2: (0.11, one, other + 0.01)}
    models = ("none", "x", "y")
    numbers = Measurements(
        {
            seed: [("accuracy", {"model": m}, v) for m, v in zip(models, values, strict=True)]
            for seed, values in rows.items()
        }
    )
    rule = Outweighs("accuracy", {"model": "none"}, ({"model": "x"}, {"model": "y"}))
    found = rule.judge(numbers)
    assert found.outcome == outcome
    effects = [2 * min(x, y) - none - max(x, y) for none, x, y in rows.values()]
    assert found.effect == pytest.approx(statistics.fmean(effects))


def test_a_number_that_no_seed_changes_needs_no_interval() -> None:
    one = Measurements({1: [("bytes", {}, 64.0)]}, frozenset({"bytes"}))
    found = AtLeast("bytes", 64.0).judge(one)
    assert (found.outcome, found.low, found.high) == ("holds", 64.0, 64.0)
    assert found.reason == "bytes: 64 (deterministic)"
    assert AtLeast("bytes", 65.0).judge(one).outcome == "does not hold"
    assert AtLeast("bytes", 64.0).judge(Measurements(one.by_seed)).outcome == "undecided"
    other = {**one.by_seed, 2: [("bytes", {}, 65.0)]}
    with pytest.raises(DataError, match="deterministic"):
        AtLeast("bytes", 64.0).judge(Measurements(other, frozenset({"bytes"})))


def test_a_rule_of_parts_that_cannot_be_judged_is_not_judged() -> None:
    numbers = table([0.2, 0.2], [0.1, 0.1])
    part = Provided(Difference("accuracy", A, B), "accuracy", 0.9, A)
    assert All(part, part).judge(numbers).outcome == "not judged"
    assert All(part, Difference("accuracy", A, B)).judge(numbers).outcome == "undecided"


@pytest.mark.parametrize(
    ("metric", "cut"),
    [
        ("token accuracy, teacher-forced", True),
        ("share of heads that cost less than 1 point of accuracy when they are taken out", True),
        ("alignment error rate", True),
        ("token accuracy of training texts less that of new texts", False),
        ("BLEU", False),
        ("log10 of the first input's share of the gradient", False),
    ],
)
def test_the_interval_of_a_share_is_cut_and_no_other(metric: str, cut: bool) -> None:
    values = [0.1, 0.9, 0.95]
    low, high = interval_of(metric, values)
    assert (low, high) == ((0.0, 1.0) if cut else interval(values))
    table = Measurements({seed: [(metric, {}, value)] for seed, value in enumerate(values)})
    judgement = AtLeast(metric, 0.5).judge(table)
    assert (judgement.low, judgement.high, judgement.outcome) == (low, high, "undecided")
    assert interval_of(metric, [0.5]) == (-math.inf, math.inf)
    assert interval_of(metric, [-1.0, 2.0]) == interval([-1.0, 2.0])  # that is no share
