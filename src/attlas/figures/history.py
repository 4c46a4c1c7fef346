"""The heads of a training over time: a watch file as a picture."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.figure import Figure

from attlas.errors import AttlasError, join_names, quoted
from attlas.monitoring.statistics import FIGURES

_ROW, _WIDTH, _AROUND = 0.16, 7.0, 1.1  # inches
_UNKNOWN = "0.8"  # grey


def plot_history(
    records: Sequence[Mapping[str, Any]], statistic: str = "max_logit", *, layer: str | None = None
) -> Figure:
    """Heads × steps: a statistic of every head at every step that was read, as a colour.

    A circle marks an alarm of the head at the step where it began. A grey cell has no finite value.

    Args:
        records: Those of `attlas.monitoring.read_history` or of `watch.history`.
        statistic: A statistic of `attlas.monitoring.HeadStatistics`.
        layer: Only layers whose path begins with this.

    Raises:
        AttlasError: For an unknown statistic, and if there is nothing to draw.

    Example:
        >>> import torch, attlas
        >>> model = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True)
        >>> watch = attlas.watch(model)
        >>> _ = model(torch.randn(2, 5, 16))
        >>> _ = watch.step()
        >>> figure = attlas.figures.plot_history(watch.history, "entropy")
    """
    if statistic not in FIGURES:
        raise AttlasError(
            f"a statistic among {list(FIGURES)}", quoted(statistic), "choose one of these"
        )
    if not isinstance(records, Sequence) or isinstance(records, str):
        raise AttlasError(
            "the records of a watched training",
            f"a {type(records).__name__}",
            "pass watch.history, or attlas.monitoring.read_history(path)",
        )
    steps = [record["step"] for record in records]
    names, values = _table(records, statistic, layer)
    if not np.isfinite(values).any():
        layers = dict.fromkeys(head["layer"] for record in records for head in record["heads"])
        raise AttlasError(
            f"readings with a known {statistic}"
            + ("" if layer is None else f" of layers that begin with {layer!r}"),
            f"readings of {join_names(layers)}" if layers else "no reading",
            "choose another statistic or layer",
        )
    height = _AROUND + _ROW * len(names)
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["viridis"].with_extremes(bad=_UNKNOWN)
    image = axes.imshow(
        np.ma.masked_invalid(values), cmap=colours, aspect="auto", interpolation="nearest"
    )
    _mark_alarms(axes, records, names)
    axes.set_yticks(range(len(names)), [f"{path} · {head}" for path, head in names], fontsize=6)
    shown = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), 9)).round().astype(int))
    axes.set_xticks(shown, [f"{steps[index]:,}" for index in shown], fontsize=7)
    axes.set_xlabel("step", fontsize=8)
    bar = figure.colorbar(image, ax=axes, pad=0.01)
    bar.set_label(statistic, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _table(
    records: Sequence[Mapping[str, Any]], statistic: str, layer: str | None
) -> tuple[list[tuple[str, int]], Float[np.ndarray, "heads steps"]]:
    """The heads, in the order in which layers were called, and their values; NaN = not known."""
    cells: dict[tuple[str, int], dict[int, float]] = {}
    for column, record in enumerate(records):
        for head in record["heads"]:
            if layer is None or head["layer"].startswith(layer):
                value = head.get(statistic)  # an older file has fewer
                row = cells.setdefault((head["layer"], head["head"]), {})
                row[column] = math.nan if value is None else value
    values = np.full((len(cells), len(records)), np.nan)
    for number, row in enumerate(cells.values()):
        for column, value in row.items():
            values[number, column] = value
    return list(cells), values


def _mark_alarms(
    axes: Any, records: Sequence[Mapping[str, Any]], names: Sequence[tuple[str, int]]
) -> None:
    places = {
        (column, row)
        for column, record in enumerate(records)
        for alarm in record["alarms"]
        for row, (path, head) in enumerate(names)
        if path == alarm["layer"] and alarm["head"] in (head, None)
    }
    if places:
        columns, rows = zip(*sorted(places), strict=True)
        axes.scatter(columns, rows, s=14, facecolors="none", edgecolors="red", linewidths=0.9)
