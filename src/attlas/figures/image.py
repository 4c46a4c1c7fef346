"""Weights laid over the image whose patches are looked at."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike
from torch import Tensor

from attlas.errors import AttlasError, join_paths, quoted
from attlas.figures.arguments import check_strings
from attlas.figures.fonts import TextLayout
from attlas.figures.heatmap import Grid, draw_scale, scale_label
from attlas.figures.layout import HEADLINE, arrange, axes_at, fit, sheet
from attlas.figures.scale import Ramp, Scale
from attlas.recording import AttentionMap, Trace
from attlas.recording.trace import axes_of

_SIDE = 3.2  # inches of the longer side of the image
_OPACITY = 0.75  # of the cells, through which the image is seen in grey
_GREY = np.array([0.2126, 0.7152, 0.0722])  # luminance of red, green and blue


def plot_image(
    trace: Trace,
    query: int = 0,
    *,
    layer: str | None = None,
    head: int | None = None,
    row: int = 0,
    call: int = 0,
    weights: Tensor | ArrayLike | None = None,
    title: str | None = None,
    cmap: Ramp | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
) -> Figure:
    """The image of a batch row, and beside it the weights of a query over it, patch by patch.

    The trace has images from `Trace.label_image`. Keys that are no patches, such as [CLS], are left
    out; the title says which share of the attention the patches have.

    Args:
        query, head, row, call: Which weights, from 0; head None = the mean of all heads.
        layer: The path of a layer with an image; None = the last one.
        weights: A number for each key, such as a row of a rollout, in place of the query's.
        title: None = what is shown.
        cmap, vmin, vmax: As `Scale.of`.

    Raises:
        AttlasError: For a trace without an image, for a query, head, row or call that is not
            there, and for weights of another shape.
    """
    if not isinstance(trace, Trace):
        raise AttlasError("a trace", f"a {type(trace).__name__}", "pass one of attlas.observe")
    check_strings(title=title)
    layer = _layer_with_image(trace, layer)
    attention_map: AttentionMap = trace.calls(layer)[_choice("call", call, len(trace.calls(layer)))]
    batch, heads, queries, num_keys = attention_map.shape
    row, query = _choice("row", row, batch), _choice("query", query, queries)
    axes = axes_of(trace, layer, row, batch, queries, num_keys)
    patches = axes.patches
    if patches is None:
        raise AttlasError(
            "a call whose keys are the patches of an image",
            f"call {call} of layer {layer!r} with {batch} rows and {num_keys:,} keys",
            "choose another call, or label its image",
        )
    looked = "mean of all heads" if head is None else f"head {_choice('head', head, heads)}"
    asking = axes.queries[query] if axes.queries else str(query)
    if weights is None:
        chosen = slice(None) if head is None else slice(head, head + 1)
        of_key = attention_map.at(row).rows(query, query + 1)[0, chosen, 0].detach().double()
        of_key = of_key.mean(0).cpu()
    else:
        looked, of_key = "weights of your own", _numbers(weights, num_keys)
        asking = ""
    cells = of_key[patches.first : patches.stop].reshape(patches.grid).numpy()
    if title is None:
        share = f"{float(cells.sum() / of_key.sum()):.0%} on patches" if of_key.sum() > 0 else ""
        parts = (layer or "model", looked, f"query {asking}" if asking else "", share)
        title = ", ".join(part for part in parts if part)
    grid = Grid(cells)
    scale = Scale.of(grid.min_weight, grid.max_weight, cmap, vmin, vmax)
    figure = sheet()
    text_layout = TextLayout.of([title])
    image = patches.images[0].numpy()
    plain, over = (_panel(figure, image.shape) for _ in range(2))
    plain.imshow(image, aspect="auto", interpolation="nearest")
    shown: dict[str, Any] = {
        "aspect": "auto",
        "interpolation": "nearest",
        "extent": (0, image.shape[1], image.shape[0], 0),
    }
    over.imshow(image @ _GREY, cmap="gray", vmin=0, vmax=255, **shown)
    over.imshow(cells, cmap=scale.cmap, norm=scale.norm, alpha=_OPACITY, **shown)
    groups = [[plain], [over, draw_scale(figure, scale, [over], scale_label([grid]), text_layout)]]
    arrange(groups, 2)
    fit(figure, text_layout.line(title), text_layout.style(HEADLINE))
    return figure


def _layer_with_image(trace: Trace, layer: str | None) -> str:
    known = [path for path in trace if trace.image_patches(path) is not None]
    if not known:
        raise AttlasError(
            "a trace whose keys are patches of an image",
            "a trace without images",
            "label it: trace.label_image(images, grid=(14, 14), first=1)",
        )
    if layer is not None and layer not in known:
        raise AttlasError(
            f"one of the layers with an image, {join_paths(known)}",
            quoted(layer),
            "choose one of these",
        )
    return known[-1] if layer is None else layer


def _choice(name: str, number: Any, count: int) -> int:
    if type(number) is not int or not 0 <= number < count:
        raise AttlasError(f"a {name} from 0 to {count - 1}", quoted(number), "count from 0")
    return number


def _numbers(weights: Any, num_keys: int) -> Float[Tensor, " keys"]:
    try:
        numbers = torch.as_tensor(weights).detach().cpu().double()
    except (TypeError, ValueError, RuntimeError):
        numbers = torch.empty(0)
    if numbers.shape != (num_keys,) or not bool(numbers.isfinite().all()):
        raise AttlasError(
            f"a finite number for each of {num_keys:,} keys",
            f"shape {tuple(numbers.shape)}, or another number",
            "pass one row, such as rollout[0]",
        )
    return numbers


def _panel(figure: Figure, shape: tuple[int, ...]) -> Axes:
    inches = _SIDE / max(shape[:2])
    axes = axes_at(figure, Bbox.from_extents(0, -shape[0] * inches, shape[1] * inches, 0))
    axes.set_xticks([])
    axes.set_yticks([])
    return axes
