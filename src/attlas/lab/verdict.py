"""Rules that turn measurements into a verdict.

    low, high = mean(d) ∓ t(0.975, n − 1) · sd(d) / √n

d: the effect, once for each of n seeds. A rule holds where the whole interval is on its side, does
not hold where the whole interval is on the other side, and is undecided where the interval holds
the bound. One seed has no interval, so it decides nothing. A rule with a bound on either side holds
where the whole interval is between them, and does not hold where it is outside of one.
"""

import math
import re
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import ClassVar, Literal

from attlas.errors import DataError

Outcome = Literal["holds", "does not hold", "depends", "undecided", "not judged"]
Condition = Mapping[str, str | int | float]
# The 0.975 quantile of Student's t by degrees of freedom; beyond: that of the normal distribution.
_T = (
    (1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (6, 2.447), (7, 2.365), (8, 2.306),
    (9, 2.262), (14, 2.145), (19, 2.093), (29, 2.045),
)  # fmt: skip


@dataclass(frozen=True)
class Measurements:
    """The measurements of an experiment: for each seed, (metric, condition, value).

    Args:
        by_seed: The measurements.
        deterministic: Metrics that no seed can change. They have no interval.
    """

    by_seed: Mapping[int, Sequence[tuple[str, Condition, float]]]
    deterministic: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        first: dict[tuple[str, str], float] = {}
        for metric, where, value in chain.from_iterable(self.by_seed.values()):
            known = first.setdefault((metric, condition_text(where)), value)
            if metric in self.deterministic and value != known:
                raise DataError(
                    f"one number of {_metric_text(metric, where)} with every seed, as it is called "
                    "deterministic",
                    f"{known} and {value}",
                    "take it out of the deterministic metrics of the experiment",
                )

    def values(self, metric: str, where: Condition) -> dict[int, float]:
        """The number of each seed that was measured under `where`.

        Raises:
            DataError: If a seed has no such number, or several.
        """
        found: dict[int, float] = {}
        for seed, rows in self.by_seed.items():
            numbers = [
                value
                for name, condition, value in rows
                if name == metric and fits(condition, where)
            ]
            if len(numbers) != 1:
                raise DataError(
                    f"one measurement of {metric!r} under {dict(where)} with seed {seed}",
                    str(len(numbers)),
                    "name the condition in full, or run the experiment again",
                )
            found[seed] = numbers[0]
        return found

    def series(self, metric: str, along: str, where: Condition) -> dict[int, dict[float, float]]:
        """For each seed, the numbers of a metric by one part of their condition, in its order.

        Raises:
            DataError: If a seed has fewer than two.
        """
        found: dict[int, dict[float, float]] = {}
        for seed, rows in self.by_seed.items():
            points = {
                float(condition[along]): value
                for name, condition, value in rows
                if name == metric and along in condition and fits(condition, where)
            }
            if len(points) < 2:
                raise DataError(
                    f"two or more measurements of {metric!r} along {along!r} with seed {seed}",
                    str(len(points)),
                    "measure it at more places",
                )
            found[seed] = dict(sorted(points.items()))
        return found


def fits(condition: Condition, where: Condition) -> bool:
    """Return True if a condition has every part of `where`."""
    return all(condition.get(name) == value for name, value in where.items())


@dataclass(frozen=True)
class Judgement:
    """What a rule says.

    Args:
        outcome: The verdict.
        effect: The mean of the effect over seeds; NaN where a rule has several parts.
        low, high: Its 95 % interval.
        reason: The comparison in words, with its numbers.
        parts: Those of a rule that is made of rules.
        provided: What was measured for each `Provided`, from the outermost on.
        deterministic: Whether no seed can change the effect: then it has no interval.
    """

    outcome: Outcome
    effect: float
    low: float
    high: float
    reason: str
    parts: tuple["Judgement", ...] = ()
    provided: tuple[str, ...] = ()
    deterministic: bool = False


class Rule(ABC):
    """Decides about a claim by the measurements of all seeds."""

    @abstractmethod
    def judge(self, table: Measurements) -> Judgement:
        """Return the verdict.

        Raises:
            DataError: If a measurement that the rule reads is missing.
        """

    @abstractmethod
    def __str__(self) -> str: ...


def interval(effects: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean by Student's t; infinite for one number, and for no number.

    Example:
        >>> low, high = interval([1.0, 2.0, 3.0])
        >>> round(low, 2), round(high, 2)
        (-0.48, 4.48)
    """
    mean = statistics.fmean(effects)
    if len(effects) < 2 or not math.isfinite(mean):
        return -math.inf, math.inf
    freedom = len(effects) - 1
    # The quantile of the next smaller tabulated number of degrees is the wider one.
    quantile = next(value for degrees, value in reversed(_T) if degrees <= freedom)
    half_width = quantile * statistics.stdev(effects) / math.sqrt(len(effects))
    return mean - half_width, mean + half_width


_SHARE = re.compile(
    r"(?!.* less that of )"
    r"(share of|even share|the same share|(token |sequence )?accuracy|alignment error rate)\b"
)


def interval_of(metric: str, values: Sequence[float]) -> tuple[float, float]:
    """The interval of the mean of a metric. That of a share, as an accuracy, is cut at 0 and 1.

    Example:
        >>> low, high = interval_of("token accuracy", [0.9, 0.99, 1.0])
        >>> round(low, 3), high
        (0.827, 1.0)
    """
    low, high = interval(values)
    is_share = _SHARE.match(metric) and all(0 <= value <= 1 for value in values)
    if math.isfinite(low) and is_share:
        return max(low, 0.0), min(high, 1.0)
    return low, high


def _judged(
    effects: Sequence[float],
    bound: float,
    sign: int,
    description: str,
    deterministic: bool,
    metric: str = "",
) -> Judgement:
    """Compare sign · effect with sign · bound."""
    sides = (bound, math.inf) if sign > 0 else (-math.inf, bound)
    return _judged_between(effects, *sides, description, deterministic, metric)


def _judged_between(
    effects: Sequence[float],
    low_bound: float,
    high_bound: float,
    description: str,
    deterministic: bool,
    metric: str = "",
) -> Judgement:
    """Compare the effect with a bound on either side.

    Args:
        metric: Where the effect is that metric itself.
    """
    mean = statistics.fmean(effects)
    low, high = interval_of(metric, effects)
    if not math.isfinite(mean):
        return Judgement(
            "undecided", mean, low, high, f"{description}: {mean}, which is not finite"
        )
    if deterministic:  # the same with every seed: `Measurements` has checked it
        mean = low = high = effects[0]
    outcome: Outcome = "undecided"
    if low_bound <= low and high <= high_bound:
        outcome = "holds"
    elif high < low_bound or low > high_bound:
        outcome = "does not hold"
    reason = f"{description}: {with_interval(mean, low, high, deterministic)}"
    return Judgement(outcome, mean, low, high, reason, deterministic=deterministic)


def with_interval(mean: float, low: float, high: float, deterministic: bool = False) -> str:
    """A mean with its interval.

    Example:
        >>> with_interval(0.5, 0.25, 0.75)
        '0.5 (0.25 to 0.75)'
        >>> with_interval(64, 64, 64, deterministic=True)
        '64 (deterministic)'
    """
    if deterministic:
        return f"{mean:,.0f} (deterministic)" if _whole(mean) else f"{mean:.4g} (deterministic)"
    if math.isinf(low):
        return f"{mean:.4g} (one seed, no interval)"
    return f"{mean:.4g} ({low:.4g} to {high:.4g})"


def _whole(number: float) -> bool:
    return number == round(number)


def condition_text(condition: Condition) -> str:
    """The parts of a condition in words.

    Example:
        >>> condition_text({"bias": -1e9, "scores": 10_000.0, "rate": 0.1, "heads": 8})
        'bias −1e9, scores 10000, rate 0.1, heads 8'
    """
    return ", ".join(f"{name} {_value_text(value)}" for name, value in condition.items())


def _value_text(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    digits = f"{value:.15g}"
    if digits.lstrip("-").isdigit() and abs(value) >= 1e6:
        digits = re.sub(r"\.?0*e\+?0*", "e", f"{value:e}")
    return digits.replace("-", "−", 1) if value < 0 else digits


def _metric_text(metric: str, condition: Condition) -> str:
    return f"{metric} [{condition_text(condition)}]" if condition else metric


@dataclass(frozen=True)
class _Bound(Rule):
    metric: str
    bound: float
    where: Condition = field(default_factory=dict)
    _sign: ClassVar[int]

    def judge(self, table: Measurements) -> Judgement:
        values = list(table.values(self.metric, self.where).values())
        what = _metric_text(self.metric, self.where)
        deterministic = self.metric in table.deterministic
        return _judged(values, self.bound, self._sign, what, deterministic, self.metric)

    def __str__(self) -> str:
        relation = "≥" if self._sign > 0 else "≤"
        return f"{_metric_text(self.metric, self.where)} {relation} {self.bound:g}"


@dataclass(frozen=True)
class AtLeast(_Bound):
    """metric ≥ bound."""

    _sign = 1


@dataclass(frozen=True)
class AtMost(_Bound):
    """metric ≤ bound."""

    _sign = -1


@dataclass(frozen=True)
class InRange(Rule):
    """low ≤ metric ≤ high."""

    metric: str
    low: float
    high: float
    where: Condition = field(default_factory=dict)

    def judge(self, table: Measurements) -> Judgement:
        values = list(table.values(self.metric, self.where).values())
        what = _metric_text(self.metric, self.where)
        deterministic = self.metric in table.deterministic
        return _judged_between(values, self.low, self.high, what, deterministic, self.metric)

    def __str__(self) -> str:
        return f"{self.low:g} ≤ {_metric_text(self.metric, self.where)} ≤ {self.high:g}"


@dataclass(frozen=True)
class _Comparison(Rule):
    metric: str
    more: Condition
    less: Condition
    bound: float = 0.0
    _operator: ClassVar[str]

    @abstractmethod
    def _effect(self, more: float, less: float) -> float: ...

    def judge(self, table: Measurements) -> Judgement:
        deterministic = self.metric in table.deterministic
        return _judged(self._effects(table), self.bound, 1, self._what(), deterministic)

    def _effects(self, table: Measurements) -> list[float]:
        more, less = table.values(self.metric, self.more), table.values(self.metric, self.less)
        return [self._effect(more[seed], less[seed]) for seed in more]

    def _what(self) -> str:
        more, less = condition_text(self.more), condition_text(self.less)
        return f"{self.metric} [{more}] {self._operator} [{less}]"

    def __str__(self) -> str:
        return f"{self._what()} ≥ {self.bound:g}"


@dataclass(frozen=True)
class Difference(_Comparison):
    """metric under `more` − metric under `less` ≥ bound, seed by seed."""

    _operator = "−"

    def _effect(self, more: float, less: float) -> float:
        return more - less


@dataclass(frozen=True)
class Ratio(_Comparison):
    """metric under `more` / metric under `less` ≥ bound, seed by seed."""

    bound: float = 1.0
    _operator = "/"

    def _effect(self, more: float, less: float) -> float:
        return more / less if less else math.nan


@dataclass(frozen=True)
class Alike(Difference):
    """−bound ≤ metric under `more` − metric under `less` ≤ bound: a test of equivalence.

    The 95 % interval has to lie between the bounds: each of the two one-sided tests errs in 2.5 %
    of cases at most. `All` of two differences, one with the sides swapped, cannot take its place:
    the two never fail together, so that it never says "does not hold".
    """

    def judge(self, table: Measurements) -> Judgement:
        deterministic, bounds = self.metric in table.deterministic, (-self.bound, self.bound)
        return _judged_between(self._effects(table), *bounds, self._what(), deterministic)

    def __str__(self) -> str:
        return f"{0.0 - self.bound:g} ≤ {self._what()} ≤ {self.bound:g}"


@dataclass(frozen=True)
class AlikeRatio(Ratio):
    """bound ≤ metric under `more` / metric under `less` ≤ 1 / bound: a test of equivalence.

    The bound is above 0 and at most 1.
    """

    def judge(self, table: Measurements) -> Judgement:
        deterministic, bounds = self.metric in table.deterministic, (self.bound, 1 / self.bound)
        return _judged_between(self._effects(table), *bounds, self._what(), deterministic)

    def __str__(self) -> str:
        return f"{self.bound:g} ≤ {self._what()} ≤ {1 / self.bound:.4g}"


@dataclass(frozen=True)
class Widens(Rule):
    """The difference of two conditions is greater in one place than in another one.

    (metric [more, at] − metric [less, at]) − (metric [more, than] − metric [less, than]) ≥ bound
    """

    metric: str
    more: Condition
    less: Condition
    at: Condition
    than: Condition
    bound: float = 0.0

    def judge(self, table: Measurements) -> Judgement:
        gaps = [
            Difference(self.metric, {**self.more, **place}, {**self.less, **place})._effects(table)
            for place in (self.at, self.than)
        ]
        effects = [wide - narrow for wide, narrow in zip(*gaps, strict=True)]
        deterministic = self.metric in table.deterministic
        return _judged(effects, self.bound, 1, self._what(), deterministic)

    def _what(self) -> str:
        more, less = condition_text(self.more), condition_text(self.less)
        at, than = condition_text(self.at), condition_text(self.than)
        return f"{self.metric} [{more}] − [{less}], with [{at}] minus with [{than}]"

    def __str__(self) -> str:
        return f"{self._what()} ≥ {self.bound:g}"


@dataclass(frozen=True)
class Outweighs(Rule):
    """The least that any of several conditions gains is more than what they differ by.

    (min over `others` − `base`) − (max over `others` − min over `others`) ≥ bound
    """

    metric: str
    base: Condition
    others: tuple[Condition, ...]
    bound: float = 0.0

    def judge(self, table: Measurements) -> Judgement:
        base = table.values(self.metric, self.base)
        others = [table.values(self.metric, one) for one in self.others]
        effects = []
        for seed, least in base.items():
            found = [values[seed] for values in others]
            effects.append((min(found) - least) - (max(found) - min(found)))
        deterministic = self.metric in table.deterministic
        return _judged(effects, self.bound, 1, self._what(), deterministic)

    def _what(self) -> str:
        others = ", ".join(f"[{condition_text(one)}]" for one in self.others)
        return (
            f"{self.metric}: the smallest of {others}, less [{condition_text(self.base)}], "
            "less the range of the former"
        )

    def __str__(self) -> str:
        return f"{self._what()} ≥ {self.bound:g}"


ONE_TEST = (
    "it had a part for each side, of which one held or was undecided whatever was measured. So it "
    "could never be judged not to hold. Both sides are one test now, with the same bounds."
)
"""Why claims of equality were revised; see `Alike`."""


@dataclass(frozen=True)
class Monotone(Rule):
    """The metric never falls by more than `slack` (rising) or never rises (falling) along a part.

    The effect is the smallest step in the stated direction.
    """

    metric: str
    along: str
    rising: bool
    where: Condition = field(default_factory=dict)
    slack: float = 0.0

    def judge(self, table: Measurements) -> Judgement:
        effects = []
        for points in table.series(self.metric, self.along, self.where).values():
            values = list(points.values())
            sign = 1 if self.rising else -1
            effects.append(min(sign * (b - a) for a, b in pairwise(values)))
        deterministic = self.metric in table.deterministic
        return _judged(effects, -self.slack, 1, self._what(), deterministic)

    def _what(self) -> str:
        direction = "rising" if self.rising else "falling"
        metric = _metric_text(self.metric, self.where)
        return f"smallest {direction} step of {metric} along {self.along}"

    def __str__(self) -> str:
        return f"{self._what()} ≥ {0.0 - self.slack:g}"


@dataclass(frozen=True)
class Exponent(Rule):
    """low ≤ slope of log metric over log `along` ≤ high, by least squares."""

    metric: str
    along: str
    low: float
    high: float
    where: Condition = field(default_factory=dict)

    def judge(self, table: Measurements) -> Judgement:
        slopes = []
        for points in table.series(self.metric, self.along, self.where).values():
            x, y = (list(map(math.log, side)) for side in (points.keys(), points.values()))
            slopes.append(statistics.linear_regression(x, y).slope)
        what = f"exponent of {_metric_text(self.metric, self.where)} in {self.along}"
        deterministic = self.metric in table.deterministic
        return _judged_between(slopes, self.low, self.high, what, deterministic)

    def __str__(self) -> str:
        return (
            f"{self.low:g} ≤ exponent of {_metric_text(self.metric, self.where)} in {self.along} "
            f"≤ {self.high:g}"
        )


@dataclass(frozen=True, init=False)
class All(Rule):
    """Every part holds.

    Where some parts hold and others do not, the claim depends on the condition. Where a part does
    not hold and none holds, the claim does not hold: no verdict on the others could save it.
    Where no part can be judged, the claim is not judged. Where some hold and the others cannot be
    judged, it is undecided.
    """

    rules: tuple[Rule, ...]

    def __init__(self, *rules: Rule) -> None:
        object.__setattr__(self, "rules", rules)

    def judge(self, table: Measurements) -> Judgement:
        parts = tuple(rule.judge(table) for rule in self.rules)
        outcomes = {part.outcome for part in parts}
        outcome: Outcome
        if outcomes == {"holds"}:
            outcome = "holds"
        elif {"holds", "does not hold"} <= outcomes or "depends" in outcomes:
            outcome = "depends"
        elif "does not hold" in outcomes:
            outcome = "does not hold"
        elif outcomes == {"not judged"}:
            outcome = "not judged"
        else:
            outcome = "undecided"
        reason = "; ".join(f"{part.reason}: {part.outcome}" for part in parts)
        return Judgement(outcome, math.nan, math.nan, math.nan, reason, parts)

    def __str__(self) -> str:
        return " and ".join(map(str, self.rules))


@dataclass(frozen=True, init=False)
class Provided(Rule):
    """A rule that is judged only where a number says that it can be.

    A comparison of models that have learnt nothing says nothing about the claim. So with each seed
    the metric has to reach a bound under one of several conditions at least.

    Args:
        rule: What is judged then; it may ask for another number.
        metric: How well the task is learnt, or what there is to gain.
        bound: What the largest of the numbers has to reach.
        where: The conditions of the numbers.
    """

    rule: Rule
    metric: str
    bound: float
    where: tuple[Condition, ...]
    _sign: ClassVar[int] = 1

    def __init__(self, rule: Rule, metric: str, bound: float, *where: Condition) -> None:
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "metric", metric)
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "where", where)

    def judge(self, table: Measurements) -> Judgement:
        by_condition = [table.values(self.metric, condition) for condition in self.where]
        best = [max(self._sign * v[seed] for v in by_condition) for seed in table.by_seed]
        found = f"{self._sign * min(best):.4g} with the worst seed"
        # Not finite: a training that has diverged.
        if all(map(math.isfinite, best)) and min(best) >= self._sign * self.bound:
            judgement = self.rule.judge(table)
            return replace(judgement, provided=(found, *judgement.provided))
        reason = f"it asks for {self.condition_text()}, and there is {found}"
        return Judgement("not judged", math.nan, math.nan, math.nan, reason, provided=(found,))

    def condition_text(self) -> str:
        """What is asked of the numbers."""
        conditions = " or ".join(f"[{condition_text(condition)}]" for condition in self.where)
        relation = "≥" if self._sign > 0 else "≤"
        return f"{self.metric} {conditions} {relation} {self.bound:g} with every seed"

    def __str__(self) -> str:
        return f"{self.rule}, provided that {self.condition_text()}"


@dataclass(frozen=True, init=False)
class Improvable(Provided):
    """A rule that is judged only where something is left to gain.

    No model can be better than one that is right nearly always. So with each seed the metric has to
    be at most `bound` under one of several conditions at least: those of the models that are said
    to be worse. It is not for claims that something does harm: there a model that is right nearly
    always is the evidence against them.
    """

    _sign: ClassVar[int] = -1
