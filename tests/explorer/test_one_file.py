"""The explorer as one file: what it holds, how large it is, and that its data is never markup."""

import base64
import json
import math
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch

import attlas
from attlas.errors import AttlasError
from attlas.explorer import one_file
from attlas.explorer.overview import split_tiles
from attlas.explorer.tiles import read_tile
from attlas.patterns import everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from support.hostile_tokens import HOSTILE


def made(
    heads: int = 2, size: int = 9, layers: int = 2, texts: int = 1, spread: float = 2.0
) -> Trace:
    generator = torch.Generator().manual_seed(3)
    trace = Trace()
    for layer in range(layers):
        query, keys = spread * torch.randn(2, texts, heads, size, 8, generator=generator)
        trace.record(f"encoder.{layer}", FactoredAttentionMap(query, keys, 8**-0.5, everywhere, 0))
    return trace


class Page(HTMLParser):
    """Every element of a page and every text in a script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.lasttag == "script":
            self.scripts[-1] += data


def held(path: Path) -> dict[str, Any]:
    """What a file holds, as a browser would find it."""
    page = Page(path.read_text(encoding="utf-8"))
    data = [n for n, (tag, attrs) in enumerate(page.tags) if attrs.get("id") == "attlas-data"]
    assert len(data) == 1
    scripts = [tag for tag, _ in page.tags].count("script")
    assert scripts == 2
    found: dict[str, Any] = json.loads(page.scripts[0])
    return found


@pytest.mark.parametrize(("precision", "off"), [("display", 0.004), ("exact", 1e-5)])
def test_a_file_holds_every_weight_of_every_text(
    tmp_path: Path, precision: Any, off: float
) -> None:
    trace = made(texts=2)
    words = [[f"w{n}" for n in range(9)], [f"v{n}" for n in range(9)]]
    trace.label(words, words)
    trace.to_html(tmp_path / "x.html", precision=precision, name="mine")
    found = held(tmp_path / "x.html")
    assert found["version"] == 1
    assert found["model"]["facts"] == {"name": "mine"}
    assert [text[:8] for text in found["model"]["texts"]] == ["w0 w1 w2", "v0 v1 v2"]
    for row, answer in enumerate(found["answers"]):
        assert (answer["text"], answer["remarks"], answer["blank"]) == (None, [], "")
        for index, layer in enumerate(trace):
            tile = read_tile(base64.b64decode(answer["tiles"][index]))
            expected = trace[layer].weights()[row]
            torch.testing.assert_close(tile.weights, expected, atol=off, rtol=0)
            rows, keys = answer["tokens"][index]
            assert found["names"][rows] == found["names"][keys] == words[row]
        assert answer["overview"] is None  # the page pools the tiles
        assert len(answer["statistics"]["layers"]) == 2


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        made().to_html(tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_hostile_tokens_are_data_and_add_no_element(tmp_path: Path) -> None:
    size = len(HOSTILE)
    plain, hostile = made(size=size), made(size=size)
    plain.label([["w"] * size], [["w"] * size])
    hostile.label([HOSTILE], [HOSTILE])
    plain.to_html(tmp_path / "plain.html", name="plain")
    hostile.to_html(tmp_path / "hostile.html", name="</title><script>alert(1)</script>")
    tags = [
        Page((tmp_path / name).read_text("utf-8")).tags for name in ("plain.html", "hostile.html")
    ]
    assert [tag for tag, _ in tags[0]] == [tag for tag, _ in tags[1]]
    found = held(tmp_path / "hostile.html")
    assert found["names"][found["answers"][0]["tokens"][0][0]] == HOSTILE
    # Line separators, which old scripts do not allow in a string, are escapes too.
    assert not re.search("[\u2028\u2029]", (tmp_path / "hostile.html").read_text("utf-8"))


def test_a_page_allows_its_own_script_alone_and_asks_for_nothing(tmp_path: Path) -> None:
    made().to_html(tmp_path / "x.html")
    page = Page((tmp_path / "x.html").read_text(encoding="utf-8"))
    policies = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv")]
    assert len(policies) == 1
    assert policies[0] is not None
    assert policies[0].startswith("default-src 'none'; script-src 'sha256-")
    named = [attrs.get("src") or attrs.get("href") for _, attrs in page.tags]
    assert [one for one in named if one and not one.startswith("data:")] == []


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0, 2.0])
def test_a_file_for_144_heads_of_128_tokens_has_at_most_2_mb(tmp_path: Path, spread: float) -> None:
    trace = made(heads=12, size=128, layers=12, spread=spread)
    trace.to_html(tmp_path / "x.html")
    assert os.path.getsize(tmp_path / "x.html") <= 2_000_000
    (answer,) = held(tmp_path / "x.html")["answers"]
    tiles = [base64.b64decode(tile) for tile in answer["tiles"]]
    assert sum(map(len, tiles)) / (144 * 128 * 128) <= 0.55
    off = re.findall(r"off by at most ([\d.]+) % of the largest", " ".join(answer["remarks"]))
    share = float(off[0]) / 100 if off else 0.004  # what is rounded is said
    for tile, layer in zip(tiles, trace, strict=True):
        expected = trace[layer].weights()[0]
        allowed = share * expected.amax(dim=(1, 2), keepdim=True) + 1e-6
        assert bool(((read_tile(tile).weights - expected).abs() <= allowed).all())


def test_maps_that_are_too_long_are_pictures_and_the_file_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_file, "_MOST_WEIGHTS", 2 * 2 * 100 * 100)
    trace = made(size=100, texts=2)
    trace.to_html(tmp_path / "x.html")
    whole, pictured = held(tmp_path / "x.html")["answers"]
    assert (whole["remarks"], None in whole["tiles"]) == ([], False)
    assert pictured["tiles"] == [None, None]
    tiles = [read_tile(tile) for tile in split_tiles(base64.b64decode(pictured["overview"]))]
    assert [tile.weights.shape for tile in tiles] == [(2, 100, 100)] * 2  # a larger picture


def test_a_picture_alone_says_what_it_leaves_out(tmp_path: Path) -> None:
    made(size=100).to_html(tmp_path / "x.html", precision="overview")
    (answer,) = held(tmp_path / "x.html")["answers"]
    assert answer["tiles"] == [None, None]
    assert answer["remarks"] == [
        "This file holds a picture of at most 64 × 64 cells of each head. The single weights were "
        "left out: a map has up to 100 × 100 of them."
    ]


def test_texts_beyond_what_a_file_has_room_for_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_file, "_MOST_CELLS", 2 * 2 * 9 * 9 * 3)
    made(texts=5).to_html(tmp_path / "x.html")
    found = held(tmp_path / "x.html")
    assert (len(found["answers"]), len(found["model"]["texts"])) == (3, 3)
    for answer in found["answers"]:
        assert answer["remarks"] == ["This file holds the first 3 of 5 texts."]


def test_where_no_query_may_look_is_kept_apart_from_zero(tmp_path: Path) -> None:
    allowed = torch.ones(1, 1, 3, 3, dtype=torch.bool).tril()
    weights = allowed / allowed.sum(-1, keepdim=True)
    trace = Trace()
    trace.record("decoder", DenseAttentionMap(weights, allowed, query_offset=0))
    trace.to_html(tmp_path / "x.html")
    (answer,) = held(tmp_path / "x.html")["answers"]
    assert torch.equal(read_tile(base64.b64decode(answer["tiles"][0])).hidden, ~allowed[0])


@pytest.mark.parametrize("name", ["x.txt", "x", "x.html.gz"])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AttlasError, match=r"ends in \.html"):
        made().to_html(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttlasError, match="a trace with attention maps; got an empty one"):
        Trace().to_html(tmp_path / "x.html")
    assert Trace()._repr_html_() is None  # a notebook shows its text then


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("before", encoding="utf-8")
    made().to_html(tmp_path / "x.html")  # takes its place, as figures and traces do
    assert list(tmp_path.iterdir()) == [tmp_path / "x.html"]
    with pytest.raises(AttlasError, match="to write"):
        made().to_html(tmp_path / "nowhere" / "x.html")


def test_a_notebook_gets_a_frame_that_holds_the_whole_page() -> None:
    frame = Page(made()._repr_html_())
    ((tag, attributes),) = frame.tags
    assert tag == "iframe"
    assert (
        attributes["sandbox"] == "allow-scripts"
    )  # no storage, no address, no way to its notebook
    inside = Page(str(attributes["srcdoc"]))
    assert [tag for tag, _ in inside.tags].count("script") == 2


def test_a_layer_of_our_own_is_kept_as_it_was_observed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 5, 8)
    with attlas.observe(layer) as trace:
        layer(x, x, x)
    trace.to_html(tmp_path / "x.html", precision="exact")
    (answer,) = held(tmp_path / "x.html")["answers"]
    tile = read_tile(base64.b64decode(answer["tiles"][0])).weights
    expected = layer(x, x, x, average_attn_weights=False)[1][0]
    torch.testing.assert_close(tile, expected, atol=1e-5, rtol=0)
    assert math.isfinite(answer["statistics"]["layers"][0]["distance"][0])


def test_the_page_of_a_file_has_a_policy_that_lets_nothing_be_fetched() -> None:
    trace = Trace()
    trace.record("layer.0", DenseAttentionMap(torch.eye(2)[None, None]))
    page = trace._repr_html_()
    assert "Content-Security-Policy" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
