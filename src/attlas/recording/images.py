"""The images whose patches a model looks at: read, stored and encoded."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image, ImageOps  # which matplotlib needs, too
from torch import Tensor

from attlas.errors import AttlasError, CheckpointError, quoted
from attlas.recording.labels import ImagePatches
from attlas.recording.maps.base import AttentionMap

MOST_PIXELS = 1024
"""Of a side of an image in a trace; a larger one is reduced."""

_IMAGE = "an image of PIL, its path, or an array (height, width, 3) of uint8 or of floats 0–1"
_DEEP = ("I", "F")  # how PIL calls pixels of 16 and 32 bits, which it cuts off at 255
_SEEN = "pass the image before a processor makes pixel values of it"

# What a caller writes.


def read_patches(images: Any, grid: Any, first: Any) -> ImagePatches:
    """Images, or one of them, in this grid; see `Trace.label_image`.

    Raises:
        AttlasError: For what is no image, and for what is no grid.
    """
    if not (isinstance(grid, Sequence) and len(grid) == 2 and all(_is_count(n, 1) for n in grid)):
        raise AttlasError(
            "a grid of rows and columns, as two whole numbers",
            f"grid={quoted(grid)}",
            "divide the size of the image by that of a patch, such as grid=(14, 14)",
        )
    if not _is_count(first, 0):
        raise AttlasError(
            "the place of the first patch, as a whole number from 0",
            f"first={quoted(first)}",
            "count places from 0, such as first=1 behind [CLS]",
        )
    several = isinstance(images, Iterable) and not _is_one(images)
    read = tuple(map(_pixels, images if several else (images,)))
    return ImagePatches(read, (int(grid[0]), int(grid[1])), int(first))


def _is_count(number: Any, least: int) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= least


def _is_one(images: Any) -> bool:
    """Return True for one image: a text is a path, and an array of four axes is several."""
    alone = isinstance(images, str | Path | Image.Image | Mapping)
    return alone or getattr(images, "ndim", 4) < 4


def opened_image(path: str | Path) -> Image.Image:
    """The image of a file, upright, in RGB and in its own size.

    Raises:
        AttlasError: For what is no image, and for one of more than 8 bits a channel.
    """
    with _as_image(str(path)), Image.open(path) as opened:
        return _rgb(ImageOps.exif_transpose(opened))


def _pixels(image: Any) -> UInt8[Tensor, "_ _ 3"]:
    if isinstance(image, str | Path):
        return _reduced(opened_image(image))
    if not isinstance(image, Image.Image):
        image = Image.fromarray(_array(image))
    with _as_image("an image of PIL"):
        return _reduced(_rgb(image))


@contextmanager
def _as_image(name: str) -> Iterator[None]:
    """Say what is wrong with an image, which PIL often reads at its first use."""
    try:
        yield
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, AttlasError):
            raise
        raise AttlasError(
            "a whole image, such as PNG or JPEG",
            f"{name} ({type(error).__name__})",
            "check it with PIL.Image.open(…).load()",
        ) from None


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith(_DEEP):
        raise AttlasError(
            "an image of 8 bits a channel",
            f"one of mode {image.mode!r}",
            "pass an array of floats from 0 to 1 in its place",
        )
    image = image.convert("RGB")
    if not all(image.size):
        raise AttlasError(_IMAGE, "an image without pixels", _SEEN)
    return image


def _reduced(image: Image.Image) -> UInt8[Tensor, "_ _ 3"]:
    if max(image.size) > MOST_PIXELS:
        factor = MOST_PIXELS / max(image.size)
        width, height = (max(1, round(side * factor)) for side in image.size)  # also a thin one
        image = image.resize((width, height))
    return torch.from_numpy(np.array(image))


def _array(image: Any) -> np.ndarray:
    """An array of bytes, (height, width, 3)."""
    try:
        values = image.detach().cpu().numpy() if isinstance(image, Tensor) else np.asarray(image)
    except (TypeError, ValueError):  # lists of several lengths; torch's own floats of 16 bits
        values = np.asarray(None)
    shaped = values.ndim == 3 and values.shape[2] == 3
    if not shaped or not (values.dtype == np.uint8 or np.issubdtype(values.dtype, np.floating)):
        got = f"shape {values.shape} of {values.dtype}" if values.ndim else quoted(image)
        raise AttlasError(_IMAGE, got, _SEEN)
    if not values.size:
        raise AttlasError(_IMAGE, f"shape {values.shape}", _SEEN)
    if values.dtype == np.uint8:
        return values
    if not (values.min() >= 0 and values.max() <= 1):  # which NaN is not
        raise AttlasError(_IMAGE, f"numbers from {values.min():g} to {values.max():g}", _SEEN)
    return np.rint(values.astype(np.float64) * 255).astype(np.uint8)


def fitting_layers(
    patches: ImagePatches, calls: Mapping[str, Sequence[AttentionMap]], *, exactly: bool
) -> list[str]:
    """The layers whose keys have these patches.

    Args:
        exactly: Whether there are no other places behind them.

    Raises:
        AttlasError: If none has.
    """
    least, images = patches.stop, len(patches.images)
    shapes = {layer: [one.shape for one in maps] for layer, maps in calls.items()}
    fitting = {
        layer: {size[0] for size in sizes if _fits(size[3], least, exactly)}
        for layer, sizes in shapes.items()
    }
    found = [layer for layer, batches in fitting.items() if images in batches]
    if found:
        return found
    batches = sorted(set().union(*fitting.values()))
    if batches:
        rows = " or ".join(map(str, batches))
        raise AttlasError(f"an image for each of {rows} batch rows", f"{images}", "pass as many")
    keys = sorted({size[3] for sizes in shapes.values() for size in sizes})
    some = ", ".join(f"{count:,}" for count in keys[:5]) or "none"
    height, width = patches.grid
    raise AttlasError(
        f"a layer with {least:,} keys: {patches.first} and {height} × {width} patches",
        f"layers with {some}",
        "check grid and first; name layers=… that have other places behind the patches",
    )


def _fits(num_keys: int, least: int, exactly: bool) -> bool:
    return num_keys == least if exactly else num_keys >= least


# What a file holds, and what the page is sent.


def images_to_tensors(
    images: Mapping[str, ImagePatches],
) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The images, each once, and as facts the layers, the grid and the first place."""
    tensors: dict[str, Tensor] = {}
    described = []
    for patches in {id(one): one for one in images.values()}.values():
        names = [f"image.{len(tensors) + number}" for number in range(len(patches.images))]
        tensors |= dict(zip(names, patches.images, strict=True))
        layers = [layer for layer, one in images.items() if one is patches]
        described.append(
            {"layers": layers, "grid": patches.grid, "first": patches.first, "images": names}
        )
    return tensors, described


def images_from_tensors(
    tensors: Mapping[str, Tensor], described: Any, calls: Mapping[str, Sequence[AttentionMap]]
) -> dict[str, ImagePatches]:
    """What `images_to_tensors` gave.

    Raises:
        AttlasError: For what is no image, and for layers that have no such places.
        KeyError, TypeError: If something is missing, or of another kind.
    """
    found: dict[str, ImagePatches] = {}
    for facts in described:
        images = tuple(tensors[name] for name in facts["images"])
        for image in images:
            sound = image.ndim == 3 and image.dtype == torch.uint8 and image.shape[2] == 3
            if not sound or not 0 < min(image.shape[:2]) <= max(image.shape[:2]) <= MOST_PIXELS:
                raise CheckpointError(
                    f"an image of uint8 and at most {MOST_PIXELS:,} pixels a side",
                    f"shape {tuple(image.shape)} of {image.dtype}",
                    "save the trace again",
                )
        empty = read_patches((), facts["grid"], facts["first"])
        patches = ImagePatches(images, empty.grid, empty.first)
        own = {layer: calls[layer] for layer in facts["layers"]}
        found |= dict.fromkeys(fitting_layers(patches, own, exactly=False), patches)
    return found


def png(image: UInt8[Tensor, "_ _ 3"]) -> bytes:
    """An image as a PNG file."""
    file = io.BytesIO()
    Image.fromarray(image.cpu().numpy()).save(file, "png")
    return file.getvalue()
