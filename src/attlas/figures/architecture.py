"""The architecture of a model: one box for each part, with the number of its parameters.

    plot_architecture(model, config)

The boxes come from the configuration, the numbers from the model. Each parameter is counted once,
in the box of the part that has it, so the numbers add up to the size of the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.transforms import Bbox
from torch import nn

from attlas._text import count_noun
from attlas.figures.layout import HEADLINE, INK, LABEL, QUIET, SMALL, TITLE, axes_at, fit, sheet
from attlas.models import ClassifierConfig, RecurrentConfig, TransformerConfig
from attlas.models.rnn.config import LocalConfig
from attlas.models.transformer.config import BlockConfig

Config = TransformerConfig | RecurrentConfig | ClassifierConfig


@dataclass(frozen=True, slots=True)
class Box:
    """One box.

    Args:
        modules: The paths of the modules whose parameters it counts.
        kind: What decides its colour: "embedding", "attention", "network", "output" or "norm".
        adds: How many boxes below this one the residual connection begins, whose sum is above this
            box; 0 = there is none.
    """

    name: str
    detail: str
    kind: str
    modules: tuple[str, ...] = ()
    adds: int = 0
    parameters: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Boxes from the input up, which the model has `repeats` times in a row."""

    boxes: tuple[Box, ...]
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Stack:
    """Groups from the input up."""

    title: str
    input: str
    groups: tuple[Group, ...]
    output: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow from a box of the first stack to one of the second, by their names."""

    start: str
    end: str
    label: str


@dataclass(frozen=True, slots=True)
class Between:
    """A box between two stacks: the attention of a recurrent model.

    Args:
        keys: The box of the first stack that has keys and values.
        asks: The box of the second stack whose state is the query.
        query: Which state that is.
        gives: The box of the second stack that takes the context.
    """

    box: Box
    keys: str
    asks: str
    query: str
    gives: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """What `plot_architecture` draws."""

    stacks: tuple[Stack, ...]
    links: tuple[Link, ...] = ()
    between: Between | None = None

    @property
    def boxes(self) -> list[Box]:
        """All boxes, stack by stack, from the input up; then the one between stacks."""
        boxes = [b for stack in self.stacks for group in stack.groups for b in group.boxes]
        return [*boxes, self.between.box] if self.between else boxes


def architecture_of(model: nn.Module, config: Config) -> Architecture:
    """The parts of a model of attlas, and how many parameters each has.

    Args:
        config: The settings that the model was built with.
    """
    match config:
        case RecurrentConfig():
            planned = _recurrent(model, config)
        case TransformerConfig():
            planned = _transformer(model, config)
        case ClassifierConfig():
            planned = _classifier(model, config)
    return _counted(planned, model)


# From settings to boxes.


def _transformer(model: nn.Module, config: TransformerConfig) -> Architecture:
    source = _source_embedding(model, config)
    encoder = _layers(config, "encoder", config.encoder_layers, config.encoder_patterns, False)
    decoder = _layers(config, "decoder", config.decoder_layers, config.decoder_patterns, True)
    return Architecture(
        (
            Stack(
                "encoder",
                "source tokens",
                (
                    Group((source, *_positions(config, "source_positions"))),
                    *encoder,
                    *_last_norm(config, "encoder"),
                ),
            ),
            Stack(
                "decoder",
                "target tokens so far",
                (
                    Group(
                        (
                            _embedding(model, "target_embedding"),
                            *_positions(config, "target_positions"),
                        )
                    ),
                    *decoder,
                    *_last_norm(config, "decoder"),
                    Group((_output(config.tie_output),)),
                ),
                "the next token",
            ),
        ),
        (Link("", "cross-attention", "keys, values"),),
    )


def _classifier(model: nn.Module, config: ClassifierConfig) -> Architecture:
    labels = len(model.get_parameter("output.bias"))
    first = (
        _embedding(model, "embedding"),
        *_positions(config, "positions"),
    )
    groups = (
        Group(first),
        *_layers(config, "encoder", config.layers, config.patterns, False),
        *_last_norm(config, "encoder"),
        Group(
            (
                _box("pooling", config.pooling, "network", "pooling"),
                _box("output", f"{count_noun(labels, 'label')}, softmax", "output", "output"),
            )
        ),
    )
    return Architecture((Stack("classifier", "tokens", groups, "label"),))


def _recurrent(model: nn.Module, config: RecurrentConfig) -> Architecture:
    source = _source_embedding(model, config)
    cell, layers = config.cell.upper(), count_noun(config.layers, "layer")
    width = f"2 × {config.encoder_hidden_dim}, both directions"
    if not config.bidirectional:
        width = str(config.encoder_hidden_dim)
    encoder = _box(f"{cell} of the encoder", f"{layers} of {width}", "network", "encoder")
    state = _box("initial state", "of the decoder", "network", "decoder.bridge")
    recurrence = _box(
        f"{cell} of the decoder",
        f"{layers} of {config.hidden_dim}",
        "network",
        "decoder.recurrence",
    )
    first = _embedding(model, "target_embedding")
    features: tuple[Box, ...] = (recurrence,)
    between = None
    if config.attention != "none":
        name = config.attention + (" attention, coverage" if config.coverage else " attention")
        local = config.local or LocalConfig()
        where = "of all source positions"
        if config.attention == "local":
            where = f"{local.centre} window of {2 * local.radius + 1}, {local.score}"
        attention = _box(name, where, "attention", "decoder.attention", "decoder.coverage")
        if config.decoder == "bahdanau":
            readout = _box("readout", _READOUTS[config.readout], "network", "decoder.readout")
            features = (recurrence, readout)
            between = Between(
                attention, encoder.name, recurrence.name, "previous state", recurrence.name
            )
        elif config.readout == "linear":
            readout = _box("readout", _READOUTS["linear"], "network")
            features = (recurrence, readout)
            between = Between(attention, encoder.name, recurrence.name, "state", readout.name)
        else:
            fed = ", fed to the next step" if config.input_feeding else ""
            vector = _box(
                "attentional vector", f"of state and context{fed}", "network", "decoder.concat_proj"
            )
            features = (recurrence, vector)
            between = Between(attention, encoder.name, recurrence.name, "state", vector.name)
    return Architecture(
        (
            Stack("encoder", "source tokens", (Group((source, encoder, state)),)),
            Stack(
                "decoder",
                "the previous target token",
                (Group((first, *features, _output(config.tie_output))),),
                "the next token",
            ),
        ),
        (Link("initial state", recurrence.name, ""),),
        between,
    )


_READOUTS = {
    "maxout": "maxout of state, token and context",
    "tanh": "tanh of state, token and context",
    "linear": "state and context",
    "linear_output": "the state",
}


def _box(name: str, detail: str, kind: str, *modules: str, adds: int = 0) -> Box:
    return Box(name, detail, kind, modules, adds)


def _embedding(model: nn.Module, path: str) -> Box:
    tokens, width = model.get_parameter(f"{path}.weight").shape
    return _box("embedding", f"{tokens:,} × {width}", "embedding", path)


def _source_embedding(model: nn.Module, config: TransformerConfig | RecurrentConfig) -> Box:
    if config.tie_source:
        return _box("embedding", "the matrix of the decoder", "embedding")
    return _embedding(model, "source_embedding")


def _output(tied: bool) -> Box:
    detail = "the embedding's matrix, softmax" if tied else "linear, softmax"
    return _box("output", detail, "output", "output")


def _positions(config: BlockConfig, path: str) -> tuple[Box, ...]:
    if config.positions in ("none", "rotary"):  # rotary ones belong to each attention
        return ()
    return (_box("positions", config.positions, "embedding", path),)


def _last_norm(config: BlockConfig, path: str) -> tuple[Group, ...]:
    if config.norm_type == "none" or config.norm == "post":
        return ()
    return (Group((_box(_NORMS[config.norm_type], "", "norm", f"{path}.norm"),)),)


_NORMS = {"layer": "LayerNorm", "rms": "RMSNorm"}


def _layers(
    config: BlockConfig, path: str, count: int, patterns: Sequence[str], decodes: bool
) -> list[Group]:
    """Layers that are alike and follow each other are one group."""
    of_each = list(patterns) * count if len(patterns) == 1 else list(patterns)
    groups, start = [], 0
    for pattern, alike in groupby(of_each):
        numbers = range(start, start + len(list(alike)))
        start = numbers.stop
        groups.append(Group(_layer(config, path, numbers, pattern, decodes), len(numbers)))
    return groups


def _layer(
    config: BlockConfig, path: str, numbers: range, pattern: str, decodes: bool
) -> tuple[Box, ...]:
    heads = f"{config.num_heads} heads of {config.embed_dim // config.num_heads}"
    if config.num_kv_heads not in (None, config.num_heads):
        heads += f", keys of {config.num_kv_heads}"
    heads += ", qk_norm" if config.qk_norm else ""
    rotary = ", rotary" if config.positions == "rotary" else ""
    where = "" if pattern == "everywhere" else f", {pattern}"
    network = f"{config.activation}, {config.ffn_dim}"
    sublayers = [
        (
            "causal self-attention" if decodes else "self-attention",
            heads + rotary + where,
            "attention",
            "self_attention",
        )
    ]
    if decodes:
        sublayers.append(("cross-attention", heads, "attention", "cross_attention"))
    if config.ffn_dim:
        sublayers.append(("feed-forward", network, "network", "feed_forward"))
    boxes: list[Box] = []
    for name, detail, kind, module in sublayers:
        own = tuple(f"{path}.layers.{number}.{module}" for number in numbers)
        around = tuple(f"{path}.layers.{number}.around_{module}" for number in numbers)
        box = Box(name, detail, kind, own)
        if config.norm_type == "none":
            boxes.append(replace(box, adds=1 if config.residual else 0))
            continue
        norm = Box(_NORMS[config.norm_type], "", "norm", around)
        if config.norm == "pre":
            boxes += [norm, replace(box, adds=2 if config.residual else 0)]
        else:
            boxes += [replace(box, adds=1 if config.residual else 0), norm]
    return tuple(boxes)


def _counted(planned: Architecture, model: nn.Module) -> Architecture:
    """With the number of parameters in each box; one that modules share counts in its first."""
    paths = {module: box for box in planned.boxes for module in box.modules}
    counts = dict.fromkeys(map(id, planned.boxes), 0)
    for name, parameter in model.named_parameters():
        owners = [path for path in paths if name.startswith(f"{path}.")]
        counts[id(paths[max(owners, key=len)])] += parameter.numel()
    between = planned.between
    if between is not None:
        counted = replace(between.box, parameters=counts[id(between.box)])
        between = replace(between, box=counted)
    return replace(
        planned,
        between=between,
        stacks=tuple(
            replace(
                stack,
                groups=tuple(
                    replace(
                        group,
                        boxes=tuple(replace(b, parameters=counts[id(b)]) for b in group.boxes),
                    )
                    for group in stack.groups
                ),
            )
            for stack in planned.stacks
        ),
    )


# From boxes to a figure. Lengths are inches.

_WIDTH, _TALL, _THIN, _BETWEEN, _APART = 2.3, 0.46, 0.22, 0.16, 1.85
_LEFT, _RIGHT, _SUM = 0.22, 0.78, 0.07  # of a frame beyond its boxes; the radius of a sum
_COLOURS = {
    "embedding": "#e4e9f2",
    "attention": "#f8dcc4",
    "network": "#d9ead3",
    "output": "#e6dcee",
    "norm": "#f3f1da",
}
_LINE: dict[str, Any] = {"color": QUIET, "linewidth": 0.8, "solid_capstyle": "round"}


def plot_architecture(model: nn.Module, config: Config, *, title: str = "") -> Figure:
    """Boxes from the input up; encoder and decoder side by side, with what passes between them.

    Args:
        model: A model of attlas, such as `run.model()`.
        config: The settings that it was built with, such as `Recipe.read(run.config).model`.
        title: The headline. Default: the number of parameters.
    """
    architecture = architecture_of(model, config)
    total = sum(box.parameters for box in architecture.boxes)
    height = max(
        _draw_stack(sheet().add_axes((0, 0, 1, 1)), 0, stack, 0.0, {})
        for stack in architecture.stacks
    )
    columns = len(architecture.stacks) + (architecture.between is not None)
    width = columns * (_WIDTH + _APART)
    figure = sheet()
    axes = axes_at(figure, Bbox.from_bounds(0, 0, width, height))
    axes.set(xlim=(-_LEFT - 0.4, width - _LEFT - 0.4), ylim=(0, height), aspect="equal")
    axes.axis("off")
    places: dict[tuple[int, str], list[float]] = {}
    lefts = [0.0, (columns - 1) * (_WIDTH + _APART)]
    for index, stack in enumerate(architecture.stacks):
        _draw_stack(axes, index, stack, lefts[index], places)
    if architecture.between is not None:
        _draw_between(axes, architecture.between, places)
    for link in architecture.links:
        _draw_link(axes, link, places, lefts[1], _STATE if architecture.between else 0.0)
    fit(figure, title or count_noun(total, "parameter"), {"size": HEADLINE})
    return figure


def _box_height(box: Box) -> float:
    return _THIN if box.kind == "norm" else _TALL


def _draw_stack(
    axes: Axes,
    index: int,
    stack: Stack,
    left: float,
    places: dict[tuple[int, str], list[float]],
) -> float:
    """Draw it, enter the middle of each box in `places` ("" is the top of the stack), and return
    its height.
    """
    middle, y = left + _WIDTH / 2, 0.2
    _text(axes, middle, 0.08, stack.input, LABEL, QUIET)
    for group in stack.groups:
        bottom = y + _BETWEEN  # of the frame
        if group.repeats > 1:
            _arrow(axes, middle, y, bottom)
            y = bottom
        starts: list[float] = []  # where the line enters each box
        for box in group.boxes:
            starts.append(y + _BETWEEN / 2)
            height = _box_height(box)
            _arrow(axes, middle, y, y + _BETWEEN)
            y += _BETWEEN
            _draw_box(axes, box, left, y, height, repeats=group.repeats)
            places.setdefault((index, box.name), []).append(y + height / 2)
            y += height
            if box.adds:
                y = _draw_sum(axes, middle, left, starts[-box.adds], y)
        if group.repeats > 1:
            axes.plot([middle, middle], [y, y + _BETWEEN], **_LINE)
            y += _BETWEEN
            _draw_frame(axes, left, bottom, y, group.repeats)
    places[index, ""] = [y]
    if stack.output:
        _arrow(axes, middle, y, y + _BETWEEN)
        y += _BETWEEN
        _text(axes, middle, y + 0.1, stack.output, LABEL, QUIET)
        y += 0.16
    y += 2 * _BETWEEN
    _text(axes, middle, y, stack.title, TITLE, INK, weight="bold")
    return y + _BETWEEN


def _draw_box(
    axes: Axes,
    box: Box,
    left: float,
    bottom: float,
    height: float,
    *,
    repeats: int = 1,
    count_below: bool = False,
) -> None:
    """Draw it with its parameters, beside it or below it; of several layers those of each."""
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom), _WIDTH, height, boxstyle="round,pad=0,rounding_size=0.05",
            facecolor=_COLOURS[box.kind], edgecolor=QUIET, linewidth=0.6,
        )
    )  # fmt: skip
    count = f"{box.parameters // repeats:,}" if box.parameters else ""
    if count and repeats > 1:
        count = f"{repeats} × {count}"
    middle = left + _WIDTH / 2
    if not box.detail:
        _text(axes, middle, bottom + height / 2, box.name, SMALL, INK)
    else:
        _text(axes, middle, bottom + height * 0.66, box.name, LABEL, INK)
        _text(axes, middle, bottom + height * 0.28, box.detail, SMALL, INK)
    if count and count_below:
        _text(axes, middle, bottom - 0.09, count, SMALL, QUIET)
    elif count:
        right = left + _WIDTH + 0.05
        level = 0.74 if box.detail else 0.5  # a link may leave the box below it
        _text(axes, right, bottom + height * level, count, SMALL, QUIET, ha="left")


def _draw_sum(axes: Axes, middle: float, left: float, start: float, y: float) -> float:
    """A residual connection from `start` to a sum above y; returns the top of the sum."""
    centre, side = y + _BETWEEN / 2 + _SUM, left - 0.12
    axes.plot([middle, middle], [y, centre - _SUM], **_LINE)
    axes.plot([middle, side, side, middle - _SUM], [start, start, centre, centre], **_LINE)
    axes.plot(
        [middle], [centre], marker="o", markersize=2 * _SUM * 72, markerfacecolor="white",
        markeredgecolor=QUIET, markeredgewidth=0.8,
    )  # fmt: skip
    _text(axes, middle, centre, "+", LABEL, INK)
    return centre + _SUM


def _draw_frame(axes: Axes, left: float, bottom: float, top: float, repeats: int) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (left - _LEFT, bottom), _LEFT + _WIDTH + _RIGHT, top - bottom,
            boxstyle="round,pad=0,rounding_size=0.08", facecolor="none", edgecolor=QUIET,
            linewidth=0.8, linestyle=(0, (4, 2)),
        )
    )  # fmt: skip
    _text(axes, left - _LEFT - 0.06, top - 0.1, f"{repeats} ×", TITLE, INK, ha="right")


def _draw_link(
    axes: Axes,
    link: Link,
    places: dict[tuple[int, str], list[float]],
    left: float,
    raised: float,
) -> None:
    """Draw it to a stack that begins at `left`, so much above the middle of its box."""
    (start,), ends = places[0, link.start], places[1, link.end]
    turn, begin = left - _TURN - (0.0 if link.start else _LEFT), _WIDTH
    if not link.start:  # from the middle of the stack's top
        begin = _WIDTH / 2
        axes.plot([begin, begin], [start, start + _BETWEEN], **_LINE)
        start += _BETWEEN
    for end in ends:
        _draw_path(axes, [begin, turn, turn, left], [start, start, end + raised, end + raised])
    _text(axes, turn - 0.06, start - 0.09, link.label, SMALL, QUIET, ha="right")


def _draw_between(axes: Axes, between: Between, places: dict[tuple[int, str], list[float]]) -> None:
    """Draw the box of attention: keys and values come in, the query too; the context goes out."""
    (keys,), (asks,), (gives,) = (
        places[0, between.keys], places[1, between.asks], places[1, between.gives]
    )  # fmt: skip
    left = _WIDTH + _APART
    right, next_left = left + _WIDTH, left + _WIDTH + _APART
    _draw_box(axes, between.box, left, asks - _TALL / 2, _TALL, count_below=True)
    turn = (_WIDTH + left) / 2
    _draw_path(axes, [_WIDTH, turn, turn, left], [keys, keys, asks, asks])
    _text(axes, left - 0.1, asks - 0.09, "keys, values", SMALL, QUIET, ha="right")
    rises = gives > asks
    query, context = (asks - _STATE, asks) if rises else (asks, asks - _STATE)
    _draw_path(axes, [next_left, right], [query, query])
    level = query - 0.09 if rises else query + 0.08
    _text(axes, (right + next_left) / 2 - 0.1, level, between.query, SMALL, QUIET)
    end = gives - _STATE if rises else context
    turn = (right + next_left) / 2
    _draw_path(axes, [right, turn, turn, next_left], [context, context, end, end])
    level = context + 0.08 if rises else context - 0.09
    _text(axes, right + 0.08, level, "context", SMALL, QUIET, ha="left")


_TURN = 0.28  # from a box to the corner of what leads into it
_STATE = 0.15  # between two lines that lead to one box


def _draw_path(axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """A line with corners, and an arrow at its end."""
    axes.plot(x, y, **_LINE)
    step = 0.01 if x[-1] > x[-2] else -0.01
    axes.annotate("", (x[-1], y[-1]), (x[-1] - step, y[-1]), arrowprops=_ARROW)


_ARROW = {"arrowstyle": "-|>", "color": QUIET, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}


def _arrow(axes: Axes, x: float, bottom: float, top: float) -> None:
    axes.annotate("", (x, top), (x, bottom), arrowprops=_ARROW)


def _text(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    size: float,
    color: str,
    ha: str = "center",
    weight: str = "normal",
) -> None:
    axes.text(x, y, text, size=size, color=color, ha=ha, va="center", weight=weight)
