"""Layout: the sheet of a figure, whose size is measured from what is drawn."""

import io
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox, BboxBase

from attlas.figures.fonts import TextLayout

INK, QUIET = "#1a1a1a", "#6b6b6b"  # both readable on white
MARGIN, GAP = 0.08, 0.25  # inches around everything, and between neighbours
HEADLINE, TITLE, LABEL, SMALL = 12.0, 10.0, 9.0, 7.0  # points
DOTS = 200  # per inch, in a PNG
_CSS = 96  # pixels per inch of a web page


class NotebookFigure(Figure):
    """A figure that a Jupyter notebook shows by itself, at its size in inches on any screen."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The PNG of `savefig`, and the size in CSS pixels at which it is shown."""
        image = io.BytesIO()
        self.savefig(image, format="png")
        width, height = self.get_size_inches()
        return image.getvalue(), {"width": round(width * _CSS), "height": round(height * _CSS)}


def sheet() -> Figure:
    """A blank figure that belongs to no window and no global state."""
    return NotebookFigure(figsize=(1.0, 1.0), dpi=DOTS, facecolor="white")


def axes_at(figure: Figure, area: Bbox) -> Axes:
    """Axes that draw in this rectangle, in inches from the sheet's first lower left corner."""
    axes = figure.add_axes(_fraction(figure, area))
    axes.tick_params(length=0, colors=INK)
    axes.spines[:].set(color=QUIET, linewidth=0.5)
    return axes


def area_of(axes: Axes) -> Bbox:
    """Where these axes draw, in inches."""
    return _in_inches(axes, axes.get_window_extent())


def extent_of(axes: Axes) -> Bbox:
    """Where these axes and all their labels are, in inches."""
    box = axes.get_tightbbox(_renderer(_figure(axes)))
    assert box is not None  # only what is invisible has none
    return _in_inches(axes, box)


def width_of(text: Text) -> float:
    """The width of a text as it stands, in inches."""
    figure = _figure(text)
    return text.get_window_extent(_renderer(figure)).width / figure.dpi


def put_title(axes: Axes, title: str, style: dict[str, Any]) -> None:
    """Write a title above everything that these axes hold so far."""
    area = area_of(axes)
    offset = (extent_of(axes).y1 - area.y1 + 0.1) / area.height
    axes.set_title(title, y=1 + offset, pad=0, color=INK, **style)


def level_titles(row: Sequence[Axes]) -> None:
    """Raise the titles over axes that hang from one line to the highest among them."""
    heights = [area_of(axes).height for axes in row]
    highest = max(
        (axes.title.get_position()[1] - 1) * height
        for axes, height in zip(row, heights, strict=True)
    )
    for axes, height in zip(row, heights, strict=True):
        axes.title.set_y(1 + highest / height)


def move_axes(axes: Axes, right: float = 0.0, up: float = 0.0) -> None:
    """Shift these axes by inches."""
    axes.set_position(_fraction(_figure(axes), area_of(axes).translated(right, up)))


def arrange(groups: Sequence[Sequence[Axes]], columns: int) -> None:
    """Move axes into rows of `columns` groups; nothing touches, and titles of a row are level.

    The first axes of each group hang from y = 0, and what belongs to them is drawn around them.
    """
    top = 0.0
    for start in range(0, len(groups), columns):
        row = groups[start : start + columns]
        level_titles([group[0] for group in row])
        left_edge = 0.0
        for group in row:
            extent = Bbox.union([extent_of(axes) for axes in group])
            for axes in group:
                move_axes(axes, right=left_edge - extent.x0)
            left_edge += extent.width + GAP
        all_axes = [axes for group in row for axes in group]
        highest = max(extent_of(axes).y1 for axes in all_axes)
        for axes in all_axes:
            move_axes(axes, up=top - highest)
        top = min(extent_of(axes).y0 for axes in all_axes) - GAP


def fit(figure: Figure, title: str = "", style: dict[str, Any] | None = None) -> None:
    """Resize the sheet to its content; all axes keep their size in inches.

    Args:
        title: The common title.
    """
    areas = [area_of(axes) for axes in figure.axes]
    extent = Bbox.union([extent_of(axes) for axes in figure.axes])
    middle, bottom = (extent.x0 + extent.x1) / 2, extent.y1 + GAP / 2
    over = None
    if title:
        over = figure.suptitle(title, color=INK, va="bottom", **(style or {}))
        box = _in_inches(over, over.get_window_extent(_renderer(figure)))
        half_width = box.width / 2
        title_box = Bbox.from_extents(
            middle - half_width, bottom, middle + half_width, bottom + box.height
        )
        extent = Bbox.union([extent, title_box])
    figure.set_size_inches(extent.width + 2 * MARGIN, extent.height + 2 * MARGIN)
    if over is not None:
        width, height = figure.get_size_inches()
        over.set_position(
            ((middle + MARGIN - extent.x0) / width, (bottom + MARGIN - extent.y0) / height)
        )
    for axes, area in zip(figure.axes, areas, strict=True):
        new_extent = area.translated(MARGIN - extent.x0, MARGIN - extent.y0)
        axes.set_position(_fraction(figure, new_extent))


def _fraction(figure: Figure, inches: Bbox) -> tuple[float, float, float, float]:
    width, height = figure.get_size_inches()
    return inches.x0 / width, inches.y0 / height, inches.width / width, inches.height / height


def _in_inches(artist: Artist, box: BboxBase) -> Bbox:
    return box.transformed(_figure(artist).dpi_scale_trans.inverted())


def _figure(artist: Artist) -> Figure:
    figure = artist.get_figure(root=True)
    assert figure is not None  # everything here stands on a sheet
    return figure


def _renderer(figure: Figure) -> RendererAgg:
    return FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-any-return, no-untyped-call]


# Tokens along an axis: all of them if they are readable, otherwise every n-th, with a remark.


_LINE = 1.3 / 72  # inches of a line of text for each point of its size
_SLANTED = 1.3  # a line at 45° needs this much more room along the axis, √2 less some white


def name_keys(
    axes: Axes,
    tokens: Sequence[str],
    width: float,
    text_layout: TextLayout,
    name: str,
    per_tick: int = 1,
) -> None:
    """Label the x axis, on the side where its ticks are; `width` is inches for each token.

    Labels are horizontal if they fit, else inclined if there is room, else vertical.
    """
    on_top = axes.xaxis.get_ticks_position() == "top"
    step, texts = _place_labels(
        axes.xaxis, tokens, width, width < LABEL * _LINE, text_layout, per_tick
    )
    _name(axes.xaxis, name, len(tokens), step, text_layout)
    widest = max(width_of(text) for text in texts)
    if widest + 0.04 <= width * step:
        style = {"rotation": 0, "ha": "center", "va": "bottom" if on_top else "top"}
    elif width * step >= LABEL * _LINE * _SLANTED:
        style = {"rotation": 45, "ha": "left" if on_top else "right", "va": "center"}
    else:
        style = {"rotation": 90, "ha": "left" if on_top else "right", "va": "center"}
    for text in texts:
        text.set(rotation_mode="anchor", **style)


def name_queries(
    axes: Axes,
    tokens: Sequence[str],
    height: float,
    text_layout: TextLayout,
    name: str,
    per_tick: int = 1,
) -> None:
    """Label the y axis; `height` is inches for each token."""
    step, _ = _place_labels(
        axes.yaxis, tokens, height, height < LABEL * _LINE, text_layout, per_tick
    )
    _name(axes.yaxis, name, len(tokens), step, text_layout)


def _place_labels(
    axis: Axis,
    tokens: Sequence[str],
    size_per_token: float,
    crowded: bool,
    text_layout: TextLayout,
    per_tick: int,
) -> tuple[int, list[Text]]:
    size = SMALL if crowded else LABEL
    step = _thinned(size * _LINE / size_per_token)
    labelled = range(0, len(tokens), step)
    # Token i is in the middle of its share of cell i // per_tick, whose own middle is an integer.
    positions = [(i + 0.5) / per_tick - 0.5 for i in labelled]
    axis.set_ticks(
        positions, [text_layout.label(tokens[i]) for i in labelled], **text_layout.style(size)
    )
    texts = axis.get_ticklabels()
    for text in texts:
        text.set_color(INK)
    return step, texts


def _name(axis: Axis, name: str, tokens: int, step: int, text_layout: TextLayout) -> None:
    thinned = f"every {_ordinal(step)} of {tokens:,} is named" if step > 1 else ""
    text = " · ".join(filter(None, (text_layout.line(name), thinned)))
    axis.set_label_text(text, color=QUIET, **text_layout.style(SMALL))


def _thinned(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, … that is at least this."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step >= least:
                return step
        power *= 10


def _ordinal(number: int) -> str:
    return {2: "2nd"}.get(number, f"{number}th")
