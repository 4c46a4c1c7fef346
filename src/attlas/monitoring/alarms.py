"""Alarms: what of a reading is a sign of trouble, in words."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import Field

from attlas._text import count_noun
from attlas.config import Config
from attlas.monitoring.statistics import HeadStatistics

AlarmKind = Literal[
    "logit_growth",
    "entropy_collapse",
    "uniform_head",
    "constant_head",
    "sink_growth",
    "mask_diagonal",
    "context_error",
    "nonfinite",
]
KINDS: tuple[str, ...] = get_args(AlarmKind)


class Thresholds(Config):
    """The thresholds of the alarms."""

    max_logit: float = Field(default=100.0, gt=0.0)
    """Logit growth: the largest score of a head is above this. The τ of QK-clip is 100."""
    min_entropy: float = Field(default=0.02, ge=0.0, le=1.0)
    """Entropy collapse: the normalised entropy of a head has fallen below this."""
    entropy_fall: float = Field(default=0.1, ge=0.0, le=1.0)
    """Entropy collapse needs a fall of the normalised entropy by this since the first reading."""
    uniform_entropy: float = Field(default=0.999, ge=0.0, le=1.0)
    """Dead head: its normalised entropy is above this, so every query looks at all keys alike."""
    constant_share: float = Field(default=0.999, ge=0.0, le=1.0)
    """Dead head: one key of each text receives more than this share of what all queries give."""
    dead_readings: int = Field(default=10, ge=1)
    """A head is dead after so many readings in a row; new models begin with uniform heads."""
    sink_share: float = Field(default=0.8, ge=0.0, le=1.0)
    """Sink growth: the mean weight of the first token is above this."""
    sink_growth: float = Field(default=0.3, ge=0.0, le=1.0)
    """Sink growth needs a growth of that weight by this since the first reading; many trained
    models have sinks.
    """
    mask_diagonal: int | Literal["any"] = 0
    """Wrong mask: it is causal, and has another diagonal than this; "any" = no such alarm."""
    max_context_error: float = Field(default=90.0, gt=0.0)
    """Low precision: what a head has read is off by more roundings than this. Float16 has 2¹³
    times the roundings of float32; 90 is half of that in powers of two.
    """


@dataclass(frozen=True, slots=True)
class Alarm:
    """A figure beyond its threshold.

    Args:
        step: The step that was read.
        layer: The path of the module.
        head: None = the layer as a whole.
        name: The statistic; figure: its value (None: not finite); threshold: the bound.
    """

    step: int
    kind: AlarmKind
    layer: str
    head: int | None
    name: str
    figure: float | None
    threshold: float

    @property
    def message(self) -> str:
        """What happened, and what to do about it."""
        return f"{self._finding}. {self._advice}"

    @property
    def _advice(self) -> str:
        return _ADVICE_FOR_OUTPUT if self.name == "output" else ADVICE[self.kind]

    @property
    def _finding(self) -> str:
        place = f"layer {self.layer!r}" + ("" if self.head is None else f", head {self.head}")
        value = "not finite" if self.figure is None else f"{self.figure:.4g}"
        if self.name == "output":
            return (
                f"step {self.step}, module {self.layer!r}: of all modules, its output is the first "
                "with NaN, so NaN begins there, or in the code between it and the module before"
            )
        what = _WHAT[self.kind].format(figure=value, threshold=f"{self.threshold:g}")
        return f"step {self.step}, {place}: {what}"

    @property
    def _excess(self) -> float:
        """How far the figure is beyond its threshold."""
        return math.inf if self.figure is None else abs(self.figure - self.threshold)

    def __str__(self) -> str:
        return self.message

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": self.kind,
            "layer": self.layer,
            "head": self.head,
            "name": self.name,
            "figure": self.figure,
            "threshold": self.threshold,
            "message": self.message,
        }


def _of_layer(
    step: int, kind: AlarmKind, layer: str, name: str, figure: float | None, threshold: float
) -> Alarm:
    """An alarm of a layer as a whole."""
    return Alarm(step, kind, layer, None, name, figure, threshold)


_WHAT: Mapping[str, str] = {
    "logit_growth": "the largest attention score is {figure}, above {threshold}",
    "entropy_collapse": "the normalised entropy has fallen to {figure}, below {threshold}",
    "uniform_head": "the head looks at all keys alike: its normalised entropy is {figure}, above "
    "{threshold}",
    "constant_head": "all queries look at the same key: it receives {figure} of their weight, "
    "above {threshold}",
    "sink_growth": "the weight on the first token has grown to {figure}, above {threshold}",
    "mask_diagonal": "the causal mask is shifted: it has the diagonal {figure}, as of torch.tril, "
    "and not {threshold}",
    "context_error": "what the layer has read differs from attention to its own queries, keys and "
    "values by {figure} roundings of their type, above {threshold}: it is computed in a lower "
    "precision, or with another mask or scale",
    "nonfinite": "attention is not finite for {figure} queries: NaN or infinity begins here, or in "
    "what this layer reads",
}
ADVICE: Mapping[str, str] = {
    "logit_growth": "Lower the learning rate, normalise queries and keys (QK-norm), or clip their "
    "weights (QK-clip)",
    "entropy_collapse": "Lower the learning rate, lengthen the warm-up, or normalise queries and "
    "keys (QK-norm)",
    "uniform_head": "Check its mask and its gradient, or remove the head",
    "constant_head": "Check its mask and its inputs, or remove the head",
    "sink_growth": "It is harmless in many language models. If you do not expect it, check the "
    "mask, or add a key of zeros or a learned sink",
    "mask_diagonal": "With 1 each query sees the next token, with −1 none sees itself. Check the "
    "mask, and how the target is shifted",
    "context_error": "Compute the softmax in float32. Where exp(s) itself is in float16, it is "
    "infinite for a score above 11.09",
    "nonfinite": "Compute the softmax in float32, lower the learning rate, or look for rows that a "
    "mask hides whole",
}


_ADVICE_FOR_OUTPUT = (
    "Look there for a division by 0, a logarithm or root of a negative number, a number too large "
    "for its type, or a row that a mask hides whole. Else lower the learning rate"
)
_PLACES = 6
"""So many layers a message names one by one."""


def messages_of(alarms: Iterable[Alarm]) -> list[str]:
    """One message for each kind of alarm of a reading: the worst figure, and where else it is so.

    A training that goes wrong has the same alarm in many heads at once.
    """
    kinds: dict[str, list[Alarm]] = {}
    for alarm in alarms:
        kinds.setdefault(alarm.kind, []).append(alarm)
    return [_message(alike) for alike in kinds.values()]


def _message(alike: Sequence[Alarm]) -> str:
    worst = max(alike, key=lambda alarm: alarm._excess)
    others = [alarm for alarm in alike if alarm is not worst]
    if not others:
        return worst.message
    layers: dict[str, list[str]] = {}
    for other in others:
        heads = layers.setdefault(other.layer, [])
        if other.head is not None:
            heads.append(str(other.head))
    places = [
        f"{layer!r}" + (f" head{'s' if len(heads) > 1 else ''} {', '.join(heads)}" if heads else "")
        for layer, heads in layers.items()
    ]
    if len(places) > _PLACES:
        more = count_noun(len(places) - _PLACES, "more layer")
        places[_PLACES:] = [f"{more} (see `alarms` of the reading)"]
    return f"{worst._finding}; the same in {'; '.join(places)}. {worst._advice}"


class AlarmState:
    """Which alarms are active. A function of all readings so far, so a file of them restores it."""

    def __init__(self, thresholds: Thresholds) -> None:
        self.thresholds = thresholds
        self.active: dict[tuple[str, str, int | None], Alarm] = {}
        self._first: dict[tuple[str, int], HeadStatistics] = {}
        self._dead: dict[tuple[str, str, int], int] = {}

    def advance(
        self, step: int, heads: Iterable[HeadStatistics], nan_module: str | None = None
    ) -> tuple[Alarm, ...]:
        """The alarms that begin with this reading. One that goes on is not reported again.

        Args:
            nan_module: The first module whose output has NaN.
        """
        heads = list(heads)
        new = []
        for found, is_beyond in self._verdicts(step, heads, nan_module):
            key = found.kind, found.layer, found.head
            if not is_beyond:
                self.active.pop(key, None)
            elif key not in self.active:
                self.active[key] = found
                new.append(found)
        return tuple(new)

    def _verdicts(
        self, step: int, heads: list[HeadStatistics], nan_module: str | None
    ) -> Iterator[tuple[Alarm, bool]]:
        """Every alarm whose figure is known, and whether its figure is beyond the threshold."""
        if nan_module is None:
            yield from self._nonfinite(step, heads)
        else:
            yield from self._nan(step, nan_module)
        yield from self._masks(step, heads)
        yield from self._precision(step, heads)
        for head in heads:
            if head.nonfinite:
                continue  # its other figures say nothing
            first = self._first.setdefault((head.layer, head.head), head)
            for kind, name, threshold, is_beyond in self._of_head(head, first):
                figure = getattr(head, name)
                if figure is not None:
                    yield (
                        Alarm(
                            step=step,
                            kind=kind,
                            layer=head.layer,
                            head=head.head,
                            name=name,
                            figure=figure,
                            threshold=threshold,
                        ),
                        is_beyond,
                    )

    def _nan(self, step: int, module: str) -> Iterator[tuple[Alarm, bool]]:
        """One alarm until nothing is NaN: after an update with NaN it is everywhere."""
        if not any(kind == "nonfinite" for kind, _, _ in self.active):
            alarm = _of_layer(step, "nonfinite", module, "output", None, 0.0)
            yield alarm, True

    def _nonfinite(self, step: int, heads: list[HeadStatistics]) -> Iterator[tuple[Alarm, bool]]:
        """Only the first layer that is not finite is reported: later ones read what it wrote."""
        counts: dict[str, int] = {layer: 0 for kind, layer, _ in self.active if kind == "nonfinite"}
        for head in heads:
            counts[head.layer] = counts.get(head.layer, 0) + head.nonfinite
        broken = [layer for layer, count in counts.items() if count]
        known = any(kind == "nonfinite" for kind, _, _ in self.active)
        for layer, count in counts.items():
            begins = bool(count) and layer == broken[0] and not known
            is_active = ("nonfinite", layer, None) in self.active
            alarm = _of_layer(step, "nonfinite", layer, "nonfinite", float(count), 0.0)
            yield alarm, begins or (is_active and bool(broken))

    def _masks(self, step: int, heads: list[HeadStatistics]) -> Iterator[tuple[Alarm, bool]]:
        """A mask is that of a layer: one alarm for all of its heads."""
        bound = self.thresholds.mask_diagonal
        if bound == "any":
            return
        wrong: dict[str, int | None] = {}
        for head in heads:
            is_wrong = head.mask_diagonal not in (None, bound)
            if wrong.setdefault(head.layer, None) is None and is_wrong:
                wrong[head.layer] = head.mask_diagonal
        for layer, diagonal in wrong.items():
            alarm = _of_layer(
                step,
                "mask_diagonal",
                layer,
                "mask_diagonal",
                None if diagonal is None else float(diagonal),
                float(bound),
            )
            yield alarm, diagonal is not None

    def _precision(self, step: int, heads: list[HeadStatistics]) -> Iterator[tuple[Alarm, bool]]:
        """Of each layer whose error is known; a fault of a kernel is one of all heads."""
        bound = self.thresholds.max_context_error
        errors: dict[str, float] = {}
        for head in heads:
            if head.context_error is not None and not head.nonfinite:
                errors[head.layer] = max(head.context_error, errors.get(head.layer, 0.0))
        for layer, error in errors.items():
            alarm = _of_layer(step, "context_error", layer, "context_error", error, bound)
            yield alarm, error > bound

    def _of_head(
        self, head: HeadStatistics, first: HeadStatistics
    ) -> Iterator[tuple[AlarmKind, str, float, bool]]:
        bounds = self.thresholds
        if head.max_logit is not None:
            yield "logit_growth", "max_logit", bounds.max_logit, head.max_logit > bounds.max_logit
        entropy, before = head.normalized_entropy, first.normalized_entropy
        if entropy is not None and before is not None:
            fallen = entropy < bounds.min_entropy and before - entropy >= bounds.entropy_fall
            yield "entropy_collapse", "normalized_entropy", bounds.min_entropy, fallen
            yield (
                "uniform_head",
                "normalized_entropy",
                bounds.uniform_entropy,
                self._lasts("uniform_head", head, entropy > bounds.uniform_entropy),
            )
        if head.received_share is not None and (head.visible or 0) > 1:
            share = head.received_share
            yield (
                "constant_head",
                "received_share",
                bounds.constant_share,
                self._lasts("constant_head", head, share > bounds.constant_share),
            )
        if head.first_share is not None and first.first_share is not None:
            grown = head.first_share - first.first_share >= bounds.sink_growth
            above = head.first_share > bounds.sink_share
            yield "sink_growth", "first_share", bounds.sink_share, above and grown

    def _lasts(self, kind: str, head: HeadStatistics, is_beyond: bool) -> bool:
        """Return True if it is so for as many readings in a row as a dead head needs."""
        key = kind, head.layer, head.head
        self._dead[key] = self._dead.get(key, 0) + 1 if is_beyond else 0
        return self._dead[key] >= self.thresholds.dead_readings
