"""The sheet that a figure stands on: as large as what is drawn, measured and never guessed."""

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox, BboxBase

INK, QUIET = "#1a1a1a", "#6b6b6b"  # both readable on white
COLOURS = "Blues"  # light = little, dark = much; keeps its order in greyscale and to every eye
MARGIN = 0.08  # inches around everything
TITLE, LABEL, SMALL = 10.0, 9.0, 7.0  # points
DOTS = 200  # per inch, in a PNG


def sheet() -> Figure:
    """A blank figure that belongs to no window and no global state."""
    return Figure(figsize=(1.0, 1.0), dpi=DOTS, facecolor="white")


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
    above = (extent_of(axes).y1 - area.y1 + 0.1) / area.height
    axes.set_title(title, y=1 + above, pad=0, color=INK, **style)


def level_titles(row: Sequence[Axes]) -> None:
    """Raise the titles over axes that hang from one line to the highest among them."""
    heights = [area_of(axes).height for axes in row]
    above = max(
        (axes.title.get_position()[1] - 1) * height
        for axes, height in zip(row, heights, strict=True)
    )
    for axes, height in zip(row, heights, strict=True):
        axes.title.set_y(1 + above / height)


def move(axes: Axes, right: float = 0.0, up: float = 0.0) -> None:
    """Shift these axes by inches."""
    axes.set_position(_fraction(_figure(axes), area_of(axes).translated(right, up)))


def fit(figure: Figure) -> None:
    """Cut or grow the sheet to what stands on it; all axes keep their size in inches."""
    areas = [area_of(axes) for axes in figure.axes]
    whole = Bbox.union([extent_of(axes) for axes in figure.axes])
    figure.set_size_inches(whole.width + 2 * MARGIN, whole.height + 2 * MARGIN)
    for axes, area in zip(figure.axes, areas, strict=True):
        moved = area.translated(MARGIN - whole.x0, MARGIN - whole.y0)
        axes.set_position(_fraction(figure, moved))


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
