"""Which pairs are fit to train on, and an account of those that were left out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import Field

from attlas.config import Config
from attlas.data.amount import amount
from attlas.data.pair import OnFault, Pair, Place
from attlas.errors import AttlasError

_NAMED = 5  # how many lines of each reason a report names


class FilterConfig(Config):
    """What to do with a pair that has an empty side, is too long, or is badly proportioned.

    Lengths are counted in characters, which every language has (Japanese has no spaces); a side
    that holds nothing but white space is empty. `empty`: what to do with an empty side, which is a
    fault in every split. `max_length` is that of the longer side, `max_ratio` how many times the
    shorter one it may be; `unfit`: what to do beyond these two, which are off until they are set,
    and hold for training alone. "skip" leaves the pair out, both sides of it, and counts it;
    "error" stops at the first.
    """

    empty: OnFault = "skip"
    max_length: int | None = Field(default=None, ge=1)
    max_ratio: float | None = Field(default=None, ge=1.0)
    unfit: OnFault = "skip"

    def fault(self, pair: Pair) -> str | None:
        """Why this pair is not fit; None where it is."""
        if not pair.source.strip():
            return EMPTY_SOURCE
        if not pair.target.strip():
            return EMPTY_TARGET
        short, long = sorted((len(pair.source), len(pair.target)))
        if self.max_length is not None and long > self.max_length:
            return f"more than {self.max_length} characters"
        if self.max_ratio is not None and long > self.max_ratio * short:
            return f"one side more than {self.max_ratio:g} times the other"
        return None

    def stops(self, fault: str) -> bool:
        """Whether this fault is an error."""
        return (self.empty if fault in (EMPTY_SOURCE, EMPTY_TARGET) else self.unfit) == "error"

    @property
    def empties_alone(self) -> "FilterConfig":
        """The same without the bounds: what a validation or test set is held to.

        A score is only comparable when it is taken on the whole set.
        """
        return self.model_copy(update={"max_length": None, "max_ratio": None})


EMPTY_SOURCE, EMPTY_TARGET = "an empty source", "an empty target"
LINE_BREAK = "a line break inside"


@dataclass(frozen=True, slots=True)
class Fault:
    """How many lines have one fault, and the numbers of the first few of them (from 1); names,
    where the places are not lines.
    """

    reason: str
    count: int
    first: tuple[Place, ...]

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.first) else ""
        lines = "line " if self.count == 1 else "lines "
        if isinstance(self.first[0], str):
            lines = ""
        return f"{self.count:,} with {self.reason} ({lines}{', '.join(map(str, self.first))}{more})"


@dataclass(frozen=True, slots=True)
class FilterReport:
    """What was read, what was kept, and why the rest was not; `str(report)` is a sentence.

    example: what was read, in words; remarks: what else there is to say.
    """

    name: str
    read: int
    kept: int
    left_out: tuple[Fault, ...] = ()
    cut: tuple[Fault, ...] = ()
    carriage_returns: int = 0
    example: str = "pair"
    remarks: tuple[str, ...] = ()

    @property
    def skipped(self) -> int:
        """How many were left out, for any reason."""
        return self.read - self.kept

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.kept:,} of {amount(self.read, self.example)} kept"]
        for done, faults in (("left out", self.left_out), ("cut", self.cut)):
            if faults:
                parts.append(f"{done} {' and '.join(map(str, faults))}")
        if self.carriage_returns:
            parts.append(
                f"{amount(self.carriage_returns, 'carriage return')} at line ends taken off"
            )
        return "; ".join([*parts, *self.remarks])


def by_reason(faults: Iterable[tuple[Place, str]]) -> tuple[Fault, ...]:
    """Group (place, reason) by reason, in the order in which the reasons came up."""
    lines: dict[str, list[Place]] = {}
    for number, reason in faults:
        lines.setdefault(reason, []).append(number)
    return tuple(Fault(why, len(all_), tuple(all_[:_NAMED])) for why, all_ in lines.items())


def filtered(
    pairs: Sequence[Pair], lines: Iterable[int], filters: FilterConfig, name: str
) -> tuple[list[Pair], list[int], tuple[Fault, ...]]:
    """The pairs that are fit, their numbers among `lines`, and what was left out.

    Errors: `AttlasError` with the line, for a fault that the settings call an error.
    """
    kept: list[Pair] = []
    places: list[int] = []
    faults: list[tuple[Place, str]] = []
    for number, pair in zip(lines, pairs, strict=True):
        fault = LINE_BREAK if "\n" in pair.source + pair.target else filters.fault(pair)
        if fault is None:
            kept.append(pair)
            places.append(number)
        elif filters.stops(fault):
            setting = "empty" if fault in (EMPTY_SOURCE, EMPTY_TARGET) else "unfit"
            raise AttlasError(
                f"fit sentence pairs in {name}",
                f"line {number} with {fault}",
                f'mend that line, or set data.filters.{setting} = "skip"',
            )
        else:
            faults.append((number, fault))
    return kept, places, by_reason(faults)
