"""The explorer as one file: the page, the maps and the tokens, opened from disk."""

import base64
import hashlib
import html
import json
import math
import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from attlas._files import write_durably
from attlas.errors import AttlasError, unwritable
from attlas.explorer.backends import (
    RepeatableProtocol,
    TranslationProtocol,
    TranslatorProtocol,
    facts,
    prompt_of,
    remarks_of,
    texts_of,
)
from attlas.explorer.maps import Layer, MapWindow, TextFacts, TextMaps, described
from attlas.explorer.notes import Note
from attlas.explorer.overview import SIDE, join_tiles, look_at_text, statistics_message
from attlas.explorer.tiles import pack
from attlas.recording import Trace

PAGE = Path(__file__).parent / "page"

Precision = Literal["display", "exact", "overview"]
_TILES: Mapping[str, tuple[int, str]] = {"display": (8, "root"), "exact": (16, "linear")}
VERSION = 1

_MOST_BYTES = 0.55  # of a weight with 8 bits; where deflating does not reach that, it is rounded
_HEADER = 32
_SMALL = 1 << 15  # weights of a layer that are never rounded
_STEPS = (2, 3, 4, 6, 8, 12, 16)  # in which levels are rounded

_MOST_WEIGHTS = 1 << 26  # that a file holds one by one: some 35 MB as a picture needs them
_OF_PAGE = re.compile("(?<=[#&])(?:text|row|fp|b)=[^&]*")
_WITHOUT_MODEL = "The views that run the model, Mechanism, Doubt and Beams, are not in this file."
_MOST_CELLS = 1 << 24  # of all pictures together; beyond them texts are left out
_MOST_PICTURED = 1 << 22  # cells of the pictures of one text whose weights are left out


# What a file holds: as the answers of the server, with all that they would be asked for.


@dataclass(frozen=True, slots=True)
class FileContent:
    """What the page is given: {"version", "model", "answers", "names"}, as JSON can hold it.

    A token list stands once in `names`, and layers name it by its place there. The images of an
    answer, as PNG, go by the layers that their layers name.
    """

    values: Mapping[str, Any]

    @classmethod
    def of_trace(cls, trace: Trace, name: str | None, precision: Precision) -> "FileContent":
        """Every text of a trace."""
        texts = [
            replace(TextMaps.of(trace, row, batch), facts=TextFacts(title))
            for title, row, batch in texts_of(trace)
        ]
        return _content({"name": name}, texts, precision)

    @classmethod
    def of_maps(
        cls,
        text_maps: TextMaps,
        known: Mapping[str, Any],
        precision: Precision,
        stop: threading.Event | None = None,
    ) -> "FileContent":
        """One text.

        Raises:
            PassCancelledError: Soon after `stop` is set.
        """
        return _content(known, [text_maps], precision, stop)

    @classmethod
    def of_reading(
        cls,
        text: str,
        read: TranslationProtocol,
        known: Mapping[str, Any],
        remarks: Sequence[str],
        precision: Precision,
    ) -> "FileContent":
        """One text, and what a model wrote.

        Raises:
            AttlasError: If the model has no attention to show.
        """
        if read.trace is None:
            raise AttlasError("a text whose attention can be shown", read.blank, "export another")
        said = TextFacts(text, read.text, tuple(remarks), prompt_of(read, known))
        maps = replace(TextMaps.of(read.trace), facts=said)
        if isinstance(read, RepeatableProtocol):
            maps = replace(maps, forward_pass=read.forward_pass)
        return cls.of_maps(maps, known, precision)

    def with_notes(self, notes: Sequence[Note]) -> "FileContent":
        """The same with a reader's notes."""
        return FileContent({**self.values, "notes": [asdict(note) for note in notes]})

    def with_link(self, link: str) -> "FileContent":
        """The same, opened as this link of the page says, without what only the page has: other
        texts, and other sources."""
        return FileContent({**self.values, "link": _OF_PAGE.sub("", link)})


class _Names:
    """Lists of tokens, each kept once."""

    def __init__(self) -> None:
        self.lists: dict[tuple[str, ...], int] = {}

    def place(self, tokens: tuple[str, ...]) -> int:
        return self.lists.setdefault(tokens, len(self.lists))


def _content(
    known: Mapping[str, Any],
    texts: Sequence[TextMaps],
    precision: Precision,
    stop: threading.Event | None = None,
) -> FileContent:
    if precision not in (*_TILES, "overview"):
        raise AttlasError(
            "a precision of display, exact or overview", repr(precision), "choose one of these"
        )
    names = _Names()
    answers: list[dict[str, Any]] = []
    weights = cells = 0
    for maps in texts:
        size = sum(math.prod(layer.attention_map.shape) for layer in maps.layers)
        whole = precision != "overview" and weights + size <= _MOST_WEIGHTS
        side = SIDE if whole or precision == "overview" else _largest_side(maps)
        cells += _cells(maps, side)
        if cells > _MOST_CELLS and answers:
            break
        weights += size if whole else 0
        answers.append(_answer(maps, side, precision if whole else "overview", names, stop))
    if len(answers) < len(texts):
        left_out = f"This file holds the first {len(answers):,} of {len(texts):,} texts."
        for kept in answers:
            kept["remarks"] = [*kept["remarks"], left_out]
    titles = [maps.facts.title for maps in texts[: len(answers)]]
    return FileContent(
        {
            "version": VERSION,
            "model": {"facts": dict(known), "texts": titles},
            "answers": answers,
            "names": [list(tokens) for tokens in names.lists],
        }
    )


def _largest_side(maps: TextMaps) -> int:
    """How large the pictures of a text are whose weights are left out."""
    sides = [side for side in (512, 256, 128) if _cells(maps, side) <= _MOST_PICTURED]
    return sides[0] if sides else SIDE


def _cells(maps: TextMaps, side: int) -> int:
    return sum(
        layer.heads * min(side, layer.queries) * min(side, layer.num_keys) for layer in maps.layers
    )


def _answer(
    maps: TextMaps,
    side: int,
    precision: Precision,
    names: _Names,
    stop: threading.Event | None,
) -> dict[str, Any]:
    overviews = look_at_text(maps, side, stop)
    whole = precision != "overview"
    tiles = [_tile(one, precision, stop) if whole else None for one in maps.layers]
    remarks = [*maps.facts.remarks, *_left_out(maps.layers, side, tiles)]
    if maps.forward_pass is not None:
        remarks.append(_WITHOUT_MODEL)
    layers = described(maps.layers)
    with_image = sorted({one["image"]["of"] for one in layers if "image" in one})
    images = {str(index): _base64(maps.layers[index].image()) for index in with_image}
    return {
        "text": maps.facts.written,
        "score": None,
        "blank": "",
        "remarks": remarks,
        "prompt": maps.facts.prompt,
        "layers": layers,
        "statistics": statistics_message(maps.layers, overviews),
        # Of whole maps the page makes the pictures itself.
        "overview": _base64(join_tiles([overview.tile() for overview in overviews]))
        if precision == "overview"
        else None,
        "tiles": [_base64(tile.content) if tile is not None else None for tile in tiles],
        "tokens": [
            [names.place(one.axes.queries), names.place(one.axes.keys)] for one in maps.layers
        ],
        **({"images": images} if images else {}),
    }


@dataclass(frozen=True, slots=True)
class _Tile:
    """All weights of a layer.

    Args:
        step: 1; more, where levels are rounded to multiples of it.
    """

    content: bytes
    step: int


def _tile(layer: Layer, precision: Precision, stop: threading.Event | None) -> _Tile:
    bits, curve = _TILES[precision]
    view = MapWindow(
        heads=(0, layer.heads),
        rows=(0, layer.queries),
        key_range=(0, layer.num_keys),
        height=layer.queries,
        width=layer.num_keys,
        bits=bits,
        curve=curve,
    )
    weights = view.of(layer, stop, hidden=-math.inf)
    most = _MOST_BYTES * weights.numel() + _HEADER * (1 + layer.heads)
    content = pack(weights, bits, curve=curve)
    if precision == "exact" or len(content) <= most or weights.numel() < _SMALL:
        return _Tile(content, 1)
    for step in _STEPS:
        content = pack(weights, bits, curve=curve, step=step)
        if len(content) <= most:
            break
    return _Tile(content, step)


def _left_out(layers: Sequence[Layer], side: int, tiles: Sequence[_Tile | None]) -> Iterable[str]:
    """What of a text the file does not hold, in sentences."""
    smaller = [
        layer
        for layer, tile in zip(layers, tiles, strict=True)
        if tile is None and max(layer.queries, layer.num_keys) > side
    ]
    if smaller:
        rows = max(layer.queries for layer in smaller)
        keys = max(layer.num_keys for layer in smaller)
        yield (
            f"This file holds a picture of at most {side} × {side} cells of each head. The single "
            f"weights were left out: a map has up to {rows:,} × {keys:,} of them."
        )
    step = max((tile.step for tile in tiles if tile is not None), default=1)
    if step > 1:
        root = step / 2 / (2**8 - 2)  # by which the root of a share of the largest may be off
        off = 100 * (2 * root + root**2)
        yield (
            "To keep this file small, weights are rounded; they are off by at most "
            f"{off:.1f} % of the largest weight of their head."
        )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


# The page with that inside.


_STYLE = re.compile(r'<link\b[^>]*\brel="stylesheet"[^>]*>')
_SCRIPT = re.compile(r'<script\b[^>]*\bsrc="[^"]*"[^>]*></script>')
_ADDRESS = re.compile(r'\b(?:href|src)="(?:\./|/)?([\w.-]+)"')
_TITLE = re.compile(r"<title>.*?</title>")


def page_with(content: FileContent) -> str:
    """The page as one text, whose data is no markup and no script: "<" is written as an escape.

    The same content gives the same text. Its policy forbids every request and every other script.
    """
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    script = (PAGE / "file.js").read_text(encoding="utf-8")
    script = re.sub("</(?=script)", r"<\\/", script, flags=re.IGNORECASE).replace("<!--", r"<\!--")
    styles = "".join(f"<style>{_beside(tag)}</style>" for tag in _STYLE.findall(page))
    digest = _base64(hashlib.sha256(script.encode()).digest())
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    # Of JSON in a page, only these could end its element or look like markup.
    data = json.dumps(content.values, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        data = data.replace(letter, f"\\u{ord(letter):04x}")
    name = content.values["model"]["facts"].get("name") or "attlas"
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}" />'
        f"<title>{html.escape(_written(str(name)))}</title>{styles}"
    )
    tail = (
        f'<script type="application/json" id="attlas-data">{data}</script>'
        f'<script type="module">{script}</script>'
    )
    page = _SCRIPT.sub("", _STYLE.sub("", page))
    page = _TITLE.sub(lambda _: head, page, count=1)
    before, body, after = page.rpartition("</body>")
    return f"{before}{tail}{body}{after}"


def _beside(tag: str) -> str:
    """The file beside the page that a tag names."""
    match = _ADDRESS.search(tag)
    assert match is not None, tag
    return (PAGE / match[1]).read_text(encoding="utf-8")


def _written(text: str) -> str:
    """A text that UTF-8 can hold: half of a surrogate pair becomes a question mark."""
    return text.encode("utf-8", errors="replace").decode()


def write(page: str, path: Path | str) -> None:
    """Write the page, whole or not at all: what stood there before stays until then.

    Raises:
        AttlasError: If the file cannot be written.
    """
    whole = Path(os.path.realpath(path))  # a link stays a link
    content = page.encode()
    try:
        if whole.exists() and not whole.is_file():  # a pipe or a device, and a folder, which fails
            whole.write_bytes(content)
        else:
            write_durably(whole, content)
    except OSError as error:
        raise unwritable(path, error) from None


def check_html(path: Path | str) -> None:
    """Check that a file is to be a page.

    Raises:
        AttlasError: For another suffix.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise AttlasError("a file name that ends in .html", str(path), "choose such a name")


# What a command exports, and a trace from Python and from a notebook.


def content_of(
    shown: TranslatorProtocol | Trace, text: str | None, name: str, precision: Precision
) -> FileContent:
    """A trace; or one text, read by a translator or by another model.

    Raises:
        AttlasError: For a text beside a trace, and for none, or an empty one, beside a model.
    """
    if isinstance(shown, Trace):
        if text is not None:
            raise AttlasError("a trace without a text", "a text beside it", "leave the text out")
        return FileContent.of_trace(shown, name, precision)
    if text is None or not text.strip():
        raise AttlasError(
            "a text to read", "none" if text is None else "an empty one", 'add --text "a text"'
        )
    read = shown(text)
    return FileContent.of_reading(text, read, asdict(facts(shown)), remarks_of(read), precision)


def trace_to_html(
    trace: Trace, path: Path | str, *, precision: Precision = "display", name: str | None = None
) -> None:
    """Write a trace as one page; see `Trace.to_html`."""
    check_html(path)
    write(page_with(FileContent.of_trace(trace, name, precision)), path)


def trace_in_frame(trace: Trace, *, height: int = 720) -> str:
    """A page of overviews inside a frame, as a notebook shows and keeps it."""
    page = page_with(FileContent.of_trace(trace, None, "overview"))
    return (
        f'<iframe title="attlas" sandbox="allow-scripts" width="100%" height="{height}" '
        f'style="border:0" srcdoc="{html.escape(page)}"></iframe>'
    )
