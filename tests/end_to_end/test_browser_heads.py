"""All heads in a real browser: seen at once, reached by mouse and keys, and kept by a link."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.explorer import app, overview
from attlas.explorer.maps import Layer, MapWindow
from attlas.explorer.readings import Pyramid
from attlas.patterns import everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from support.page_visits import Reader, serving, well_behaved
from support.webdriver import END, ENTER, HOME, LEFT, RIGHT, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

SOURCE = ["שלום", "<img/src=x/onerror=alert(1)>", "עולם", "\u202eabc", "</s>"]
TARGET = ["hello", "world", "javascript:alert(1)", "</s>"]
HEADS = {"encoder.0": 2, "encoder.1": 4, "decoder.0": 3}


def made() -> Trace:
    """Layers of unequal width; the decoder's second row may look at nothing."""
    generator = torch.Generator().manual_seed(3)
    trace = Trace()
    for name, heads in HEADS.items():
        across = name.startswith("decoder")
        rows = len(TARGET) if across else len(SOURCE)
        weights = (3 * torch.randn(1, heads, rows, len(SOURCE), generator=generator)).softmax(-1)
        allowed = torch.ones(1, 1, rows, len(SOURCE), dtype=torch.bool)
        if across:
            allowed[..., 1, :] = False
        trace.record(name, DenseAttentionMap(weights * allowed, allowed))
        trace.set_kind(name, cross_attention=across)
    trace.label([SOURCE], [TARGET])
    for name in HEADS:
        if name.startswith("encoder"):
            trace.label_layer(name, [SOURCE], [SOURCE])
    return trace


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Trace]]:
    trace = made()
    with serving(app(trace, name="heads")) as url:
        yield url, trace


@pytest.fixture
def reader(served: tuple[str, Trace], driver: Driver) -> Iterator[Reader]:
    with well_behaved(driver, served[0]):
        opened = Reader(driver, served[0])
        enter(opened, "")
        yield opened


def enter(reader: Reader, link: str) -> None:
    reader.enter(link)
    reader.driver.wait("page.querySelectorAll('#target .token').length > 0")


def head_shown(reader: Reader) -> tuple[str, str]:
    """The chosen layer by its name in the list, and the head."""
    layer, head = reader.driver.run(
        "return [page.querySelector('#layer').selectedOptions[0].text,"
        " page.querySelector('#head').value]"
    )
    return str(layer), str(head)


def row_shown(reader: Reader) -> int:
    """The row that is pointed at."""
    row = reader.driver.run(
        "return [...page.querySelectorAll('#target .token')]"
        ".findIndex(token => token.classList.contains('active'))"
    )
    return int(row)


def weights_shown(reader: Reader, trace: Trace, layer: str, head: int) -> None:
    """The list of numbers is the row of this head in view."""
    row = trace[layer].weights()[0, head, row_shown(reader)].tolist()
    assert [share for _, share in reader.bars()] == pytest.approx(row, abs=0.00101)


def test_the_first_head_is_the_one_that_the_server_finds_most_worth_seeing(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    with TestClient(app(served[1]), base_url="http://localhost") as client:
        text = client.get("/api/texts/0").json()
        statistics = client.get(f"/api/maps/{text['map']}/statistics").json()
    first = statistics["first"]
    assert head_shown(reader) == ("decoder 0 · cross", str(first["head"]))
    assert row_shown(reader) == statistics["layers"][first["layer"]]["row"][first["head"]] > 0
    weights_shown(reader, served[1], "decoder.0", first["head"])
    assert reader.text("#grid-readout") == (
        f"decoder 0 · cross, head {first['head']}. {first['why']}"
    )
    assert first["why"].startswith(
        "Shown first: of the heads that look at the source, its rows differ most"
    )


def test_a_head_is_reached_with_the_arrow_keys_and_kept_by_the_link(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    before = reader.link()
    reader.driver.run("page.querySelector('#grid').focus()")
    reader.driver.keys([END])
    assert reader.text("#grid-readout") == "encoder 1 · self, head 3"
    reader.driver.keys([LEFT, ENTER])
    reader.driver.wait("page.querySelector('#layer').selectedIndex === 2")
    assert head_shown(reader) == ("encoder 1 · self", "2")
    weights_shown(reader, served[1], "encoder.1", 2)
    link = reader.link()
    assert "l=2&h=2" in link
    reader.driver.run("history.back()")
    reader.driver.wait("page.querySelector('#layer').selectedIndex === 0")
    assert reader.link() == before
    enter(reader, link)
    assert head_shown(reader) == ("encoder 1 · self", "2")
    weights_shown(reader, served[1], "encoder.1", 2)


def test_a_click_on_a_picture_shows_its_head(reader: Reader, served: tuple[str, Trace]) -> None:
    width = reader.driver.run("return page.querySelector('#grid').clientWidth")
    height = reader.driver.run("return page.querySelector('#grid').clientHeight")
    # The last line has the four heads of encoder 1: its last picture is in the lower right corner.
    reader.driver.press("#grid", (width // 2 - 12, height // 2 - 16))
    reader.driver.wait("page.querySelector('#layer').selectedIndex === 2")
    assert head_shown(reader) == ("encoder 1 · self", "3")


def test_heads_are_sorted_by_a_statistic_and_the_first_is_its_largest(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    reader.choose("#statistic", "max_weight")
    reader.driver.click("#sorted")
    reader.driver.run("page.querySelector('#grid').focus()")
    reader.driver.keys([RIGHT, HOME])
    largest = {}
    for name, heads in HEADS.items():
        weights = served[1][name].weights()[0]
        seen = weights[:, weights.sum(-1)[0] > 0]
        for head in range(heads):
            largest[name, head] = float(seen[head].amax(-1).mean())
    (name, head) = max(largest, key=lambda one: largest[one])
    stack, number = name.split(".")
    said = reader.text("#grid-readout")
    assert said.startswith(f"{stack} {number} ·")
    assert f", head {head}: largest weight {largest[name, head] * 100:.0f} %" in said
    assert "m=max_weight&sort=1" in reader.link()


def test_heads_that_look_across_are_sorted_by_monotonicity(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    reader.choose("#statistic", "diagonal")
    reader.driver.click("#sorted")
    weights = served[1]["decoder.0"].weights()[0].double()
    rows, keys = torch.meshgrid(torch.arange(4.0), torch.arange(5.0), indexing="ij")
    places = torch.stack((rows.reshape(-1), keys.reshape(-1))).double()
    found = []
    for head in weights:
        covariance = torch.cov(places, aweights=head.reshape(-1), correction=0)
        found.append(float(covariance[0, 1] / (covariance[0, 0] * covariance[1, 1]).sqrt()))
    assert min(found) < 0 < max(found)
    reader.driver.run("page.querySelector('#grid').focus()")
    reader.driver.keys([RIGHT, HOME])
    for value in sorted(found, reverse=True):
        said = f"{value:.2f}".replace("-", "−")
        assert f", head {found.index(value)}: monotonicity (ρ) {said}" in reader.text(
            "#grid-readout"
        )
        reader.driver.keys([RIGHT])
    # Heads of self-attention come after them, without a number.
    assert reader.text("#grid-readout").startswith("encoder")
    assert "monotonicity" not in reader.text("#grid-readout")


def test_a_part_a_scale_and_a_sorted_grid_come_back_by_their_link(reader: Reader) -> None:
    link = "#v=1&row=0&l=1&h=1&q=1-3&k=0-2&p=t2.1&o=weight&s=uniform&m=max_weight&sort=1"
    enter(reader, link)
    reader.driver.wait("page.querySelector('#target [aria-pressed=true]')")
    assert reader.link() == link
    reader.driver.click("#part")
    reader.driver.wait("page.querySelector('#rows-first')")
    state = reader.driver.run(
        "const value = s => page.querySelector(s).value; return ["
        " value('#rows-first'), value('#rows-last'), value('#keys-first'), value('#keys-last'),"
        " value('#scale'), value('#statistic'), page.querySelector('#sorted').checked,"
        " page.querySelector('#order input[value=weight]').checked]"
    )
    assert state == ["1", "3", "0", "2", "uniform", "max_weight", True, True]
    assert reader.words("target") == [*SOURCE[1:3], "⟨right-to-left override⟩abc"]


def test_a_damaged_link_is_reported_and_the_page_shows_what_it_would_without(
    reader: Reader,
) -> None:
    reader.enter("#v=1&row=0&l=x")
    reader.driver.wait("!page.querySelector('#problem').hidden")
    assert "a whole link to this page; got a damaged one (l=x)" in reader.text("#problem")
    assert head_shown(reader)[0] == "decoder 0 · cross"


def test_markup_in_tokens_stays_text(reader: Reader) -> None:
    assert reader.words("source") == [*SOURCE[:3], "⟨right-to-left override⟩abc", "⟨end⟩"]
    assert reader.driver.run("return page.querySelectorAll('img').length") == 0


def test_a_map_of_words_that_run_to_the_left_runs_as_they_do(reader: Reader) -> None:
    reader.enter("#v=1&row=0&l=1&h=0&q=0-4&k=0-4")
    reader.driver.wait("page.querySelector('#target')?.dir === 'rtl'")
    row = SOURCE[row_shown(reader)].replace("\u202e", "⟨right-to-left override⟩")
    reader.driver.run("page.querySelector('#map').focus()")
    reader.driver.keys([LEFT])  # onward
    reader.driver.wait("page.querySelector('#readout').textContent !== ''")
    assert reader.text("#readout").startswith(f"{row} → {SOURCE[1]}: ")


def test_a_long_map_is_shown_at_once_by_a_sample_and_then_whole(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    length, read = 8_500, threading.Event()
    query, keys = torch.randn(2, 1, 1, length, 4, generator=torch.Generator().manual_seed(6))
    trace = Trace()
    trace.record("a", FactoredAttentionMap(query, keys, 0.5, everywhere, 0))
    whole = MapWindow.pyramid

    def slowly(window: MapWindow, *requested: Any) -> Pyramid:
        read.wait(60)
        return whole(window, *requested)

    monkeypatch.setattr(MapWindow, "pyramid", slowly)
    monkeypatch.setattr(overview, "_MOST_READ", 1 << 20)
    with serving(app(trace)) as url, well_behaved(driver, url):
        driver.open(url)
        driver.wait("page.querySelector('#coarse')?.textContent.startsWith('A sample')")
        driver.wait("page.querySelector('#map').width > 300")
        read.set()
        driver.wait("page.querySelector('#coarse').textContent.includes('17 × 17')", seconds=60)


def test_who_leaves_the_page_is_worked_for_no_longer_and_who_comes_back_is(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, keys = torch.randn(2, 1, 1, 8_500, 4, generator=torch.Generator().manual_seed(6))
    trace = Trace()
    trace.record("a", FactoredAttentionMap(query, keys, 0.5, everywhere, 0))
    begun: list[threading.Event] = []
    whole = MapWindow.pyramid

    def waiting(window: MapWindow, layer: Layer, stop: threading.Event, reported: Any) -> Pyramid:
        begun.append(stop)
        if len(begun) == 1:
            stop.wait(60)
        return whole(window, layer, stop, reported)

    monkeypatch.setattr(MapWindow, "pyramid", waiting)
    monkeypatch.setattr(overview, "_MOST_READ", 1 << 20)
    with serving(app(trace)) as url, well_behaved(driver, url):
        driver.open(url)
        driver.wait("page.querySelector('#coarse')?.textContent.startsWith('A sample')")
        driver.open("about:blank")
        assert begun[0].wait(20)
        driver.run("history.back()")
        driver.wait("page.querySelector('#coarse')?.textContent.includes('17 × 17')", seconds=60)


@pytest.mark.parametrize("width", [320, 390, 1000, 1440])
def test_every_statistic_stands_whole_in_the_closed_list(reader: Reader, width: int) -> None:
    reader.driver.view(width, 900)
    enter(reader, "")
    # Of as many pixels as the list alone would take beside one option, and of those that it has.
    wanted = reader.driver.run(
        """
        const list = page.querySelector('#statistic');
        return [...list.options].map(({ text }) => {
          const alone = list.cloneNode();
          alone.add(new Option(text));
          alone.style.cssText = 'position: absolute; max-width: none; width: max-content';
          list.after(alone);
          const { width } = alone.getBoundingClientRect();
          alone.remove();
          return [text, width];
        });"""
    )
    there = reader.driver.run(
        "return page.querySelector('#statistic').getBoundingClientRect().width"
    )
    assert len(wanted) > 8
    assert [text for text, width in wanted if width > there + 0.5] == []
    assert reader.driver.run("return document.documentElement.scrollWidth") <= width


def test_sorted_heads_have_their_names_under_them(reader: Reader) -> None:
    reader.choose("#statistic", "max_weight")
    reader.driver.run(
        """
        window.written = [];
        const own = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
          if (this.canvas.id === 'grid') window.written.push(text);
          return own.call(this, text, ...place);
        };"""
    )
    reader.driver.click("#sorted")
    reader.driver.wait("window.written.length > 0")
    written = reader.driver.run("return window.written")
    names = [text for text in written if "." in text]
    assert sorted(names) == sorted(
        f"{'dc' if layer == 'decoder.0' else 'es'} {layer[-1]}.{head}"
        for layer, heads in HEADS.items()
        for head in range(heads)
    )
    assert set(written) - set(names) == {"dc: decoder · cross", "es: encoder · self"}
    reader.driver.run("page.querySelector('#grid').focus()")
    reader.driver.keys([HOME])
    said = reader.text("#grid-readout")  # of the first: "encoder 1 · self, head 3: …"
    stack, number = said.split(" ")[:2]
    head = said.split("head ")[1].split(":")[0]
    assert names[0] == f"{'dc' if stack == 'decoder' else 'es'} {number}.{head}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1200])
def test_the_grid_fits_the_page(reader: Reader, width: int, scheme: str) -> None:
    reader.driver.view(width, 900)
    reader.driver.prefer(scheme)
    enter(reader, "")
    assert reader.driver.run("return document.documentElement.scrollWidth") <= width
    painted = reader.driver.run(
        "const c = page.querySelector('#grid');"
        " return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    )
    assert painted > 8


def named(reader: Reader) -> list[str]:
    """The heads that the grid's keys reach, from the first to the last."""
    reader.driver.run("page.querySelector('#grid').focus()")
    reader.driver.keys([HOME])
    found = [reader.text("#grid-readout")]
    for _ in range(sum(HEADS.values())):
        reader.driver.keys([RIGHT])
        if (here := reader.text("#grid-readout")) == found[-1]:
            break
        found.append(here)
    return found


def test_only_heads_with_so_much_of_a_statistic_are_shown(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    with TestClient(app(served[1]), base_url="http://localhost") as client:
        name = client.get("/api/texts/0").json()["map"]
        statistics = client.get(f"/api/maps/{name}/statistics").json()["layers"]
    values = [value for layer in statistics for value in layer["max_weight"]]
    least = sorted(values)[len(values) // 2] / max(values)
    hundredths = int(100 * least)
    expected = sum(100 * value >= hundredths * max(values) for value in values)
    assert 0 < expected < len(values)
    assert reader.hidden("#least")
    assert len(named(reader)) == len(values)
    reader.choose("#statistic", "max_weight")
    reader.driver.wait("page.querySelector('#least').checkVisibility()")
    before = reader.link()
    reader.driver.type("#least", str(hundredths))
    reader.driver.wait("location.hash.includes(`mf=${args[0]}`)", hundredths)
    assert len(named(reader)) == expected
    reader.driver.run("history.back()")  # one step, however many digits were typed
    reader.driver.wait("!location.hash.includes('mf=')")
    assert reader.link() == before
    reader.driver.run("history.forward()")
    reader.driver.wait("location.hash.includes(`mf=${args[0]}`)", hundredths)
    enter(reader, reader.link())
    assert len(named(reader)) == expected
    reader.choose("#statistic", "")
    reader.driver.wait("!page.querySelector('#least').checkVisibility()")
    assert len(named(reader)) == len(values)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_forced_colours_words_and_drawings_have_the_colours_of_the_reader(
    reader: Reader, scheme: str
) -> None:
    features = [
        {"name": "forced-colors", "value": "active"},
        {"name": "prefers-color-scheme", "value": scheme},
    ]
    reader.driver.devtools("Emulation.setEmulatedMedia", features=features)
    try:
        enter(reader, "#v=1&row=0&l=1&h=0")
        found = reader.driver.run(
            """
            const style = (one) => getComputedStyle(page.querySelector(one));
            const probe = document.createElement('canvas').getContext('2d');
            probe.fillStyle = style('.explorer').getPropertyValue('--ink').trim();
            document.body.style.color = 'CanvasText';
            return [style('.explorer').getPropertyValue('--ink').trim(), style('.token').color,
              style('h2').color, getComputedStyle(document.body).color, probe.fillStyle];"""
        )
    finally:
        reader.driver.prefer()
    ink, token, heading, canvas_text, drawn = found
    assert ink == "CanvasText"
    assert heading == canvas_text
    assert drawn.startswith("#")
    assert token in (canvas_text, "rgb(0, 0, 0)", "rgb(255, 255, 255)")  # on the colour of a weight
