"""An experiment as a value: what is claimed, how it is measured, and by which rule it is judged."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from attlas.errors import ConfigError, quoted
from attlas.lab.verdict import Rule
from attlas.recording import Trace

Scale = Literal["quick", "full"]
"""How large an experiment is run: "quick" in minutes on a laptop, "full" as it is reported."""
Condition = Mapping[str, str | int | float]
"""What a number was measured under, such as {"model": "additive", "length": 20}."""


@dataclass(frozen=True)
class Measurement:
    """One measured number.

    Args:
        metric: What was measured, with its unit, such as "token accuracy".
        value: The number.
        condition: What it was measured under.
    """

    metric: str
    value: float
    condition: Condition = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """Where a claim stands.

    Args:
        title: Title or authors and year.
        place: Section, table or figure.
        read: True: the claim was read there. False: it is quoted at second hand. It has no default:
            who cites has to say which.
    """

    title: str
    place: str
    read: bool

    @property
    def cited(self) -> str:
        """Title and place."""
        return f"{self.title}, {self.place}"

    def __str__(self) -> str:
        return self.cited + ("" if self.read else " (second hand)")


@dataclass(frozen=True)
class Published:
    """A number from the literature, which stands beside ours.

    Args:
        what: What it is a number of.
        value: The number.
        source: Where it stands.
        shown: How it is written there, where that is not a decimal number; "" = as `value`.
        measured: False: a threshold, or a weight that an author typed in, which is no result.
    """

    what: str
    value: float
    source: Source
    shown: str = ""
    measured: bool = True

    def __str__(self) -> str:
        return self.shown or f"{self.value:g}"


@dataclass(frozen=True)
class Claim:
    """One sentence that is judged.

    Args:
        text: The claim as it is taught, in our words.
        source: Where it is taught.
        rule: How measurements become a verdict. It is written before the run, see `revised`.
        change: What would change our mind.
        published: Numbers from the literature.
        judged_at: The scales at which the rule is applied; at others the claim is not judged.
        revised: What was changed in the rule after numbers were known; "" = nothing.
        added: Why the claim and its rule were written when numbers were known; "" = before.
    """

    text: str
    source: Source
    rule: Rule
    change: str
    published: tuple[Published, ...] = ()
    judged_at: tuple[Scale, ...] = ("quick", "full")
    revised: str = ""
    added: str = ""


@dataclass(frozen=True)
class Plot:
    """A picture of measurements: one line for each value of `by`.

    Args:
        metric: What is on the y axis.
        x: The part of the condition on the x axis.
        by: The part of the condition that tells the lines apart; "" = one line.
        where: Only measurements whose condition has these parts.
        logarithmic: Whether both axes are logarithmic.
    """

    metric: str
    x: str
    by: str = ""
    where: Condition = field(default_factory=dict)
    logarithmic: bool = False


@dataclass(frozen=True)
class Context:
    """What the measuring function of an experiment gets.

    Args:
        settings: Those of the scale.
        seed: The seed of everything that is random.
        folder: A folder of its own, which outlives an interrupted run: trainings go on in it.
        report: Called with a line about what is being done.
    """

    settings: Mapping[str, Any]
    seed: int
    folder: Path
    report: Callable[[str], None]


@dataclass(frozen=True)
class AttentionExample:
    """Attention to be looked at: of a model of the experiment, on a text.

    Args:
        name: Of its files, such as "reverse".
        caption: What it shows, in a sentence.
        trace: With labels.
        layer: The layer whose map the picture shows.
        head: Its head.
    """

    name: str
    caption: str
    trace: Trace
    layer: str
    head: int = 0


@dataclass(frozen=True)
class Experiment:
    """A set of measurements that decides about one claim or more.

    Args:
        name: As on the command line.
        title: A short heading.
        method: How it is tested, in two or three sentences.
        measure: Gives all measurements of one seed.
        settings: By scale, the sizes that `measure` reads.
        seeds: By scale, how many seeds are run.
        claims: What is judged.
        plots: The pictures of its page.
        needs: Names of the data folders that it reads beside what attlas ships; see `data_folder`.
        examples: Gives the maps of its page, with the settings and the trainings of the first seed.
        alone: Whether it measures time or memory, and so runs when no other one does.
        deterministic: Metrics that no seed can change, such as a number of parameters.
    """

    name: str
    title: str
    method: str
    measure: Callable[[Context], Iterable[Measurement]]
    settings: Mapping[Scale, Mapping[str, Any]]
    seeds: Mapping[Scale, int]
    claims: tuple[Claim, ...]
    plots: tuple[Plot, ...] = ()
    needs: tuple[str, ...] = ()
    examples: Callable[[Context], Iterable[AttentionExample]] | None = None
    alone: bool = False
    deterministic: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for scale in ("quick", "full"):
            if scale not in self.settings or scale not in self.seeds:
                raise ConfigError(
                    f"settings and seeds of the scale {scale!r} in the experiment {self.name}",
                    quoted(sorted(self.settings)),
                    "add them",
                )
