"""One screen in a real browser: the inspector, several heads, words, and what is exported."""

import base64
import csv
import io
import re
import zlib
from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch
from PIL import Image

from attlas.explorer import app
from attlas.patterns import everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from support.page_visits import SAVED, SAVED_TEXT, Reader, serving, well_behaved
from support.webdriver import DOWN, END, ENTER, ESCAPE, HOME, LEFT, RIGHT, SHIFT, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

WORDS = ["[CLS]", "un", "##believ", "##able", "=cat", 'a,"b"', "[SEP]"]
HEADS, LAYERS = 4, 3


def made() -> Trace:
    generator = torch.Generator().manual_seed(5)
    trace = Trace()
    for layer in range(LAYERS):
        scores = 2 * torch.randn(1, HEADS, len(WORDS), len(WORDS), generator=generator)
        name = f"encoder.{layer}"
        trace.record(name, DenseAttentionMap(scores.softmax(-1)))
        trace.label_layer(name, [WORDS], [WORDS])
    return trace


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Trace]]:
    trace = made()
    with serving(app(trace, name="heads")) as url:
        yield url, trace


@pytest.fixture
def reader(served: tuple[str, Trace], driver: Driver) -> Iterator[Reader]:
    with well_behaved(driver, served[0]):
        yield Reader(driver, served[0])


def enter(reader: Reader, link: str) -> None:
    reader.enter(link)
    reader.driver.wait("page.querySelectorAll('#target .token').length > 0")


def weights(trace: Trace, layer: int, head: int) -> torch.Tensor:
    return trace[f"encoder.{layer}"].weights()[0, head]


@pytest.mark.parametrize("width", [1000, 1440])
def test_all_is_on_one_screen_and_the_document_does_not_scroll(reader: Reader, width: int) -> None:
    reader.driver.view(width, 900)
    enter(reader, "#v=1&row=0&l=1&h=2")
    size = reader.driver.run(
        "const e = document.documentElement; return [e.scrollWidth, e.scrollHeight]"
    )
    assert size == [width, 900]
    boxes = reader.driver.run(
        "return [...page.querySelectorAll('.pane')].map(pane => {"
        " const b = pane.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"
    )
    heads, map_, words, inspector = boxes
    assert heads[2] <= map_[0] < map_[2] <= words[0]
    assert max(heads[3], map_[3], words[3]) <= inspector[1]
    assert (words[2], inspector[3]) == (width, 900)


def test_a_separator_moves_with_the_arrow_keys(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    width = "page.querySelector('.pane.heads').getBoundingClientRect().width"
    before = reader.driver.run(f"return {width}")
    reader.driver.run("page.querySelector('#left').focus()")
    reader.driver.keys([RIGHT, RIGHT])
    after = reader.driver.run(f"return {width}")
    assert after == pytest.approx(before + 48, abs=2)
    assert reader.driver.run("return page.querySelector('#left').ariaValueNow") == str(round(after))
    reader.driver.keys([HOME])
    assert reader.driver.run(f"return {width}") == 150


def test_on_a_phone_three_panes_are_swiped_and_reached_by_their_tabs(reader: Reader) -> None:
    reader.driver.view(390, 844)
    enter(reader, "#v=1&row=0&l=1&h=2")
    assert reader.driver.run("return document.documentElement.scrollWidth") <= 390
    in_view = (
        "Math.abs(page.querySelector(`.pane.${args[0]}`).getBoundingClientRect().left) < 2"
        " && page.querySelector('.pane-tabs [aria-pressed=true]').textContent.toLowerCase()"
        " === args[0]"
    )
    reader.driver.wait(in_view, "map")
    for tab, pane in ((3, "words"), (1, "heads"), (2, "map")):
        reader.driver.click(f".pane-tabs button:nth-child({tab})")
        reader.driver.wait(in_view, pane)


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_the_tabs_of_the_inspector_are_in_view_below_every_pane(
    reader: Reader, width: int
) -> None:
    reader.driver.view(width, 844)
    enter(reader, "#v=1&row=0&l=1&h=2")
    reader.driver.wait("page.querySelector('.pane-tabs [aria-pressed=true]').textContent === 'Map'")
    in_view = (
        "(({ left, right, top, bottom }) => left >= 0 && right <= innerWidth && top >= 0"
        " && bottom <= innerHeight)(page.querySelector(args[0]).getBoundingClientRect())"
    )
    pressed = "page.querySelector(`.pane-tabs button:nth-child(${args[0]})`)"
    for pane, tab in ((1, "lines"), (2, "statistics"), (3, "compare")):
        reader.driver.click(f".pane-tabs button:nth-child({pane})")
        reader.driver.wait(f"{pressed}.ariaPressed === 'true'", pane)
        reader.driver.wait(in_view, ".tabs")
        reader.driver.click(f"#tab-{tab}")
        reader.driver.wait(f"page.querySelector('#inspected > .{tab}')")
        reader.driver.wait(in_view, "#inspected")
        assert f"tab={tab}" in reader.link()
        assert reader.driver.run("return document.documentElement.scrollWidth") <= width


def test_where_tabs_are_out_of_view_the_edge_is_darker(reader: Reader) -> None:
    reader.driver.view(320, 844)
    enter(reader, "#v=1&row=0&l=1&h=2")
    reader.driver.wait("page.querySelector('.tabs').scrollWidth > 320")

    def edges() -> tuple[int, int]:
        """How bright the strip is at its left and at its right end, above its letters."""
        top = reader.driver.run("return page.querySelector('.tabs').getBoundingClientRect().top")
        with Image.open(io.BytesIO(reader.driver.screenshot())) as image:
            pixels = image.convert("L").resize((320, 844))
        left, right = (pixels.getpixel((x, round(top) + 5)) for x in (1, 318))
        return int(left), int(right)  # type: ignore[arg-type]

    left, right = edges()
    assert right < left - 20
    reader.driver.run("page.querySelector('.tabs').scrollLeft = 999")
    left, right = edges()
    assert left < right - 20


def test_tabs_of_the_inspector_are_reached_with_keys_and_kept_by_the_link(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    reader.driver.run("page.querySelector('#tab-distribution').focus()")
    for tab in ("lines", "mechanism", "statistics", "compare"):
        reader.driver.keys([RIGHT])
        reader.driver.wait("page.activeElement?.id === args[0]", f"tab-{tab}")
        assert f"tab={tab}" in reader.link()
    enter(reader, reader.link())
    assert (
        reader.driver.run("return page.querySelector('[role=tab][aria-selected=true]').id")
        == "tab-compare"
    )
    assert not reader.driver.run("return page.querySelector('#tab-doubt')")  # a trace has no model


def test_a_second_head_is_selected_with_space_or_shift_and_compared(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&tab=compare")
    assert "Select a second head" in reader.text("#inspected")
    reader.driver.run("page.querySelector('#grid').focus()")
    reader.driver.keys([RIGHT, " "])
    reader.driver.wait("page.querySelector('#compared')")
    assert "sel=1.3" in reader.link()
    a, b = weights(served[1], 1, 2), weights(served[1], 1, 3)
    moved = float((a - b).abs().sum(-1).mean() / 2)
    correlation = float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])
    said = reader.text("#compared").replace("\u2212", "-")
    share, alike = re.findall(r"(\d+) %|correlate by (-?[\d.]+)\.", said)
    assert int(share[0]) == pytest.approx(100 * moved, abs=1)
    assert float(alike[1]) == pytest.approx(correlation, abs=0.02)
    reader.driver.keys([" "])  # lets it go
    reader.driver.wait("!page.querySelector('#compared')")
    with reader.driver.held(SHIFT):
        reader.driver.press("#grid", (30, -30))
    reader.driver.wait("page.querySelector('.heads-legend li:nth-child(2)')")
    assert "sel=" in reader.link()


def test_maps_that_are_compared_have_axes_and_keep_a_cell_together(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&tab=compare&sel=1.3")
    reader.driver.wait("page.querySelectorAll('.small-map').length === 3")
    # What is written of tokens stands on the left of the cells, as in the large map.
    reader.driver.wait(
        "[...page.querySelectorAll('.small-room .stack > canvas')].every(canvas => {"
        " const { data } = canvas.getContext('2d').getImageData(0, 0, 20, canvas.height);"
        " return data.filter((value, at) => at % 4 === 3 && value > 0).length > 10; })"
    )
    reader.driver.press(".small-map canvas", (0, 20))
    reader.driver.wait("/&p=t\\d+\\.\\d+/.test(location.hash)")
    assert reader.driver.run("return page.querySelectorAll('.crosshair.kept').length") == 4
    assert reader.driver.violations() == []


def test_on_a_phone_a_second_head_is_selected_with_a_box_and_compared(reader: Reader) -> None:
    reader.driver.view(390, 844)
    enter(reader, "#v=1&row=0&l=1&h=2&tab=compare")
    reader.driver.click(".pane-tabs button")
    reader.driver.wait("page.querySelector('#looking').scrollLeft === 0")
    reader.driver.click("#several")
    reader.driver.press("#grid", (-10, -30))
    reader.driver.wait("page.querySelector('#compared')")
    assert "&h=2" in reader.link()  # the head that is shown stays
    assert "sel=" in reader.link()
    reader.driver.click("#several")
    reader.driver.press("#grid", (-10, -30))
    reader.driver.wait("!location.hash.includes('h=2&')")


@pytest.mark.parametrize("height", [844, 500])
def test_on_a_phone_help_opens_at_its_beginning_with_its_button_in_view(
    reader: Reader, height: int
) -> None:
    reader.driver.view(390, height)
    enter(reader, "#v=1&row=0&l=1&h=2")
    reader.driver.click("#help")
    reader.driver.wait("page.querySelector('#help-dialog').open")
    script = """
        const dialog = page.querySelector('#help-dialog');
        const button = dialog.querySelector('.main');
        const { bottom } = button.getBoundingClientRect();
        return [dialog.scrollTop, bottom, page.activeElement === button];
    """
    top, bottom, focused = reader.driver.run(script)
    assert (top, focused) == (0, True)
    assert bottom <= height
    reader.driver.keys([ENTER])
    reader.driver.wait("!page.querySelector('#help-dialog').open")


def test_a_cell_that_is_kept_looks_other_than_one_that_is_pointed_at(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    reader.driver.hover("#map", 20, 20)
    reader.driver.wait("page.querySelector('#readout').textContent !== ''")
    look = "return getComputedStyle(page.querySelector('.crosshair > :nth-child(3)')).boxShadow"
    pointed = reader.driver.run(look)
    reader.driver.press("#map", (20, 20))
    reader.driver.wait("page.querySelector('.crosshair.kept')")
    assert reader.driver.run(look) != pointed
    word = "getComputedStyle(page.querySelector('.token[aria-pressed=true]')).boxShadow"
    assert reader.driver.run(f"return {word}") != "none"
    reader.driver.keys([ESCAPE])
    reader.driver.wait("!page.querySelector('.crosshair.kept')")
    assert reader.driver.run(look) == pointed


def test_numbers_under_words_stand_on_one_line_and_move_no_word(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    sizes = "return [...page.querySelectorAll('#target .token')].map(one => {"
    sizes += " const { width, height } = one.getBoundingClientRect(); return [width, height]; })"
    numbers = "[...page.querySelectorAll('.share')].filter(one => one.dataset.share !== '').length"
    reader.driver.wait(f"{numbers} > 0")
    before = reader.driver.run(sizes)
    assert len({round(height, 1) for _, height in before}) == 1
    reader.driver.run(
        "page.querySelectorAll('.share').forEach(one => { one.dataset.share = '100'; })"
    )
    after = reader.driver.run(sizes)
    assert [*map(tuple, after)] == [pytest.approx(size, abs=0.02) for size in before]


@pytest.mark.parametrize("number", ["7", "88", "100"])
def test_no_number_under_a_word_is_cut_into_another_one(driver: Driver, number: str) -> None:
    words = ["i", "##l", "##i", "a", ".", "##'", "cat", "l"]
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(torch.eye(len(words)).expand(1, 1, -1, -1)))
    trace.label_layer("encoder.0", [words], [words])
    with serving(app(trace, name="narrow")) as url, well_behaved(driver, url):
        enter(Reader(driver, url), "#v=1&row=0&l=0&h=0")
        beyond = driver.run(
            """
            const pen = document.createElement('canvas').getContext('2d');
            return [...page.querySelectorAll('#target .share')].map(one => {
              one.dataset.share = arguments[0];
              const style = getComputedStyle(one);
              pen.font = `${style.fontSize} ${style.fontFamily}`;
              return pen.measureText(arguments[0]).width - one.getBoundingClientRect().width;
            });""",
            number,
        )
    assert len(beyond) == len(words)
    assert max(beyond) <= 0


def test_the_numbers_of_the_heads_stand_above_them(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    written = """
        window.written = [];
        const own = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
          if (this.canvas.id === 'grid') window.written.push([text, ...place]);
          return own.call(this, text, ...place);
        };
        const box = page.querySelector('#statistic');
        box.value = box.options[1].value;
        box.dispatchEvent(new Event('change'));
    """
    reader.driver.run(written)
    reader.driver.wait("window.written.length > 0")
    found = reader.driver.run("return window.written")
    first = min(y for _, _, y, *_ in found)
    heads = [(text, x) for text, x, y, *_ in found if y - first < 30 and text.isdigit()]
    assert [text for text, _ in heads][:HEADS] == [str(head) for head in range(HEADS)]
    gaps = {round(b[1] - a[1]) for a, b in pairwise(heads[:HEADS])}
    assert len(gaps) == 1  # as far apart as the pictures


def test_a_head_of_another_layer_is_fetched_to_be_compared(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&tab=compare&sel=0.1")
    reader.driver.wait("page.querySelector('#compared')")
    moved = float((weights(served[1], 1, 2) - weights(served[1], 0, 1)).abs().sum(-1).mean() / 2)
    said = re.search(r"(\d+) %", reader.text("#compared"))
    assert said is not None
    assert int(said[1]) == pytest.approx(100 * moved, abs=1)


def test_lines_are_drawn_in_the_colour_of_each_head_and_follow_the_slider(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&tab=lines&sel=1.3")
    painted = (
        "const c = page.querySelector('#lines canvas');"
        " const copy = Object.assign(document.createElement('canvas'),"
        " {width: c.width, height: c.height});"
        " const pen = copy.getContext('2d', {willReadFrequently: true}); pen.drawImage(c, 0, 0);"
        " const d = pen.getImageData(0, 0, c.width, c.height).data; let blue = 0, red = 0;"
        " for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 60) {"
        "   if (d[i + 2] > d[i] + 40) blue++; if (d[i] > d[i + 2] + 40) red++; }"
        " return [blue, red]"
    )
    blue, red = reader.driver.run(painted)
    assert blue > 100
    assert red > 100
    reader.driver.run("page.querySelector('#threshold').focus()")
    reader.driver.keys([END])
    reader.driver.wait("page.querySelector('.slider output').textContent === '100 %'")
    assert reader.driver.run(painted) == [0, 0]
    assert "t=100" in reader.link()


def test_the_numbers_of_each_head_are_those_of_the_server_and_lead_to_it(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&tab=statistics")
    shown = reader.driver.run(
        "return [...page.querySelectorAll('.statistics tbody tr')]"
        ".map(row => row.children[2].textContent)"
    )
    largest = [float(weights(served[1], 1, head).amax(-1).mean()) for head in range(HEADS)]
    assert shown == [f"{value * 100:.0f} %" for value in largest]
    reader.driver.click(".statistics tbody tr:nth-child(1) button")
    reader.driver.wait("page.querySelector('#head').value === '0'")
    assert "l=1&h=0" in reader.link()


def test_of_a_part_of_a_map_the_numbers_are_those_of_the_whole(driver: Driver) -> None:
    generator = torch.Generator().manual_seed(7)
    rows = (3 * torch.randn(1, 2, 600, 600, generator=generator)).softmax(-1)
    rows[..., 0] += 2  # the first token, which the part leaves out
    rows /= rows.sum(-1, keepdim=True)
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(rows))
    tokens = ["[CLS]", *(f"w{place}" for place in range(1, 600))]
    trace.label_layer("encoder.0", [tokens], [tokens])
    with serving(app(trace, name="long")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        enter(reader, "#v=1&row=0&l=0&h=1&q=300-330&k=300-330&tab=statistics")
        most, first = (float(w.mean()) for w in (rows[0, 1].amax(-1), rows[0, 1, :, 0]))
        said = driver.run(
            "return [...page.querySelectorAll('#interpretation p')].map(e => e.textContent)"
        )
        assert f"its largest weight is {100 * most:.0f} % on average" in said[0]
        assert said[1:] == [
            f"It looks mostly at the first token: {100 * first:.0f} % of its attention.",
            "A part of the map is in view; numbers here are of all of it.",
        ]
        assert driver.run("return page.querySelector('#apart').disabled")
        assert driver.run("return page.querySelector('.places') === null")
        # What is set aside elsewhere is not here.
        enter(reader, "#v=1&row=0&l=0&h=1&q=300-330&k=300-330&tab=statistics&x=1")
        shown = reader.text(".statistics tr.shown td:nth-child(3)")
        assert shown == f"{100 * most:.0f} %"
        assert "Left out" not in reader.text("#inspected")
        # The whole map, of which cells are drawn in place of weights.
        reader.enter("#v=1&row=0&l=0&h=1&tab=statistics")  # no words beside so many tokens
        driver.wait("page.querySelector('#interpretation p')")
        whole = "The map is too long to be read here; numbers here are of all of it."
        assert reader.text("#interpretation p:last-child") == whole


def test_sinks_and_special_tokens_are_set_aside(reader: Reader, served: tuple[str, Trace]) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&tab=statistics&x=1")
    rows = weights(served[1], 1, 2)
    received = rows.sum(0)
    least = max(0.25, 4 / len(WORDS)) * received.sum()
    kept = [
        key
        for key in range(len(WORDS))
        if WORDS[key] not in ("[CLS]", "[SEP]") and received[key] < least
    ]
    rest = rows[:, kept] / rows[:, kept].sum(-1, keepdim=True)
    shown = reader.text(".statistics tr.shown td:nth-child(3)")
    assert shown == f"{float(rest.amax(-1).mean()) * 100:.0f} %"
    assert "[CLS], [SEP]" in reader.text("#inspected")


def test_pieces_are_joined_to_words_by_sums_over_keys_and_means_over_queries(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&p=t2&w=1")
    assert reader.words("target") == ["[CLS]", "unbelievable", "=cat", 'a,"b"', "[SEP]"]
    rows = weights(served[1], 1, 2)[1:4].mean(0)
    joined = [rows[0], rows[1:4].sum(), rows[4], rows[5], rows[6]]
    bars = reader.bars()
    assert [word for word, _ in bars] == reader.words("target")
    assert [share for _, share in bars] == pytest.approx([float(w) for w in joined], abs=0.00101)
    assert "weights are summed" in reader.text("#rows")


def test_the_other_direction_is_chosen_and_kept_by_the_link(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    reader.driver.run("page.querySelector('#side input[value=source]').click()")
    reader.driver.run("page.querySelectorAll('#target .token')[4].click()")
    reader.driver.wait("page.querySelector('#distribution-title').textContent.includes('=cat')")
    column = weights(served[1], 1, 2)[:, 4].tolist()
    assert [share for _, share in reader.bars()] == pytest.approx(column, abs=0.00101)
    assert "p=s4&d=s" in reader.link()


def test_what_is_exported_is_what_is_on_screen(reader: Reader, served: tuple[str, Trace]) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&q=1-4&k=2-5")
    reader.driver.run(SAVED)
    reader.driver.run("page.querySelector('#export-csv').click()")
    reader.driver.wait("window.saved.length === 1")
    text = reader.driver.ask("POST", "/execute/async", {"script": SAVED_TEXT, "args": []})
    lines = list(csv.DictReader(io.StringIO(text)))
    rows = weights(served[1], 1, 2)
    assert [(int(line["row"]), int(line["key"])) for line in lines] == [
        (i, j) for i in range(1, 5) for j in range(2, 6)
    ]
    for line in lines:
        weight = float(rows[int(line["row"]), int(line["key"])])
        assert float(line["weight"]) == pytest.approx(weight, abs=0.006)
    assert lines[-1]["key_token"] == WORDS[5]
    reader.driver.run("page.querySelector('#export-svg').click()")
    reader.driver.wait("window.saved.length === 2")
    svg = reader.driver.ask("POST", "/execute/async", {"script": SAVED_TEXT, "args": []})
    assert svg.startswith("<svg ")
    assert "rows 1–4 × keys 2–5" in svg
    assert "0–100 %, by the root" in svg
    well_formed = "return new DOMParser().parseFromString(arguments[0], 'image/svg+xml')"
    assert reader.driver.run(f"{well_formed}.querySelector('parsererror')", svg) is None
    cells = reader.driver.run(
        f"{well_formed}.querySelectorAll('rect[shape-rendering=crispEdges]').length", svg
    )
    assert cells >= 16
    reader.driver.run("page.querySelector('#export-png').click()")
    reader.driver.wait("window.saved.length === 3 && window.saved[2].size > 1000")
    assert reader.driver.run("return window.named") == (
        "attlas-encoder-1-head-2-rows-1-4-keys-2-5.png"
    )


LONG = 403  # tokens, more than the maps have pixels


def longer() -> Trace:
    """A diagonal and one beside it."""
    weights = torch.zeros(1, 2, LONG, LONG)
    weights[0, 0] = torch.eye(LONG)
    weights[0, 1] = torch.eye(LONG).roll(-1, 1)
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(weights))
    words = [f"w{index}" for index in range(LONG)]
    trace.label_layer("encoder.0", [words], [words])
    return trace


@pytest.mark.parametrize(("view", "every"), [("&q=0-29&k=0-29", 1), ("", 2)])
def test_an_exported_picture_has_words_at_both_axes_as_many_as_fit(
    driver: Driver, view: str, every: int
) -> None:
    with serving(app(longer(), name="long")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        driver.view(700, 420)  # where the screen has room for numbers alone
        enter(reader, f"#v=1&row=0&l=0&h=0{view}")
        driver.run(SAVED)
        driver.run("page.querySelector('#export-svg').click()")
        driver.wait("window.saved.length === 1")
        svg = driver.ask("POST", "/execute/async", {"script": SAVED_TEXT, "args": []})
        named = [int(number) for number in re.findall(r">w(\d+)</text>", svg)]
        rows = named[: len(named) // 2]
        assert named == rows * 2
        step = rows[1] - rows[0]
        assert rows == list(range(0, rows[-1] + 1, step))
        assert step >= every
        assert rows[-1] + step > (29 if view else LONG - 1)
        places = re.findall(r'translate\(([\d.]+) ([\d.]+)\)">\s*<text[^>]*>w\d+<', svg)
        apart = [float(b[1]) - float(a[1]) for a, b in pairwise(places)]
        assert min(apart) >= 10.9  # px, so that no two lie on one another
        assert svg.count('rotate(-90)">') == len(rows)


SHOWN = """
const canvas = page.querySelector(arguments[0]);
const { width, height } = canvas;
const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
const seen = new Set();
for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
  const at = 4 * (y * width + x);
  if (data[at + 3] === 255 && data[at] + data[at + 1] + data[at + 2] < 300) seen.add(y);
}
return [seen.size, height];
"""


def test_in_a_map_of_more_cells_than_pixels_no_diagonal_vanishes(driver: Driver) -> None:
    with serving(app(longer(), name="long")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        driver.view(1280, 800)
        reader.enter("#v=1&row=0&l=0&h=0&sel=0.1&tab=compare")
        driver.wait("page.querySelectorAll('.small-map').length === 3")
        for index in (1, 2):
            small = f".small-map:nth-of-type({index}) .small-room canvas"
            driver.wait(f"page.querySelector('{small}').style.width !== ''")
            rows, height = driver.run(SHOWN, small)
            assert height < LONG
            assert rows >= height - 32  # the map has its axes above it
        rows, height = driver.run(SHOWN, "#map")
        assert rows > height / 2  # the map has its axes above it


def test_a_picture_says_how_many_tokens_are_named_where_not_all_are(driver: Driver) -> None:
    with serving(app(longer(), name="long")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        for part, named in (("", "1 of "), ("&q=0-9&k=0-9", None)):
            reader.enter(f"#v=1&row=0&l=0&h=0{part}")
            driver.wait("page.querySelector('#target .token')")  # exact weights
            driver.run(SAVED)
            driver.run("page.querySelector('#export-svg').click()")
            driver.wait("window.saved.length === 1")
            svg = driver.ask("POST", "/execute/async", {"script": SAVED_TEXT, "args": []})
            assert (re.search(r"Colours: [^<]* · 1 of \d+ tokens is named<", svg) is not None) == (
                named is not None
            )


def test_no_rule_of_the_style_sheet_is_lost_where_it_is_written_again(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    lost = reader.driver.run(
        "const found = [], walk = rule => rule.cssRules?.length && !rule.style"
        " ? [...rule.cssRules].forEach(walk) : found.push(rule.cssText);"
        "[...document.styleSheets].forEach(sheet => [...sheet.cssRules].forEach(walk));"
        "return found.filter(text => / (?!--)[a-z-]+:\\s*;/.test(text))"
    )
    assert lost == []
    size = "return getComputedStyle(page.querySelector('.share')).fontSize"
    assert reader.driver.run(size) == "11px"


def test_pdf_is_one_printed_page_with_the_map_alone_as_lines_and_letters(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2&q=1-4&k=2-5")
    reader.driver.run("window.print = () => { window.asked = true; }")
    reader.driver.run("page.querySelector('#export-pdf').click()")
    reader.driver.wait("window.asked && document.querySelector('body > .printed').complete")
    printed = base64.b64decode(reader.driver.ask("POST", "/print", {"background": True}))
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") == 1
    drawn = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", printed, re.DOTALL)
    assert any(content.count(b" re\n") >= 16 for content in map(inflated, drawn))  # the cells
    assert b"/Font" in printed
    reader.driver.run("dispatchEvent(new Event('afterprint'))")
    assert reader.driver.run("return document.querySelector('.printed')") is None


def inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def test_help_opens_with_a_question_mark_and_closes_with_escape(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    reader.driver.keys(["?"])
    reader.driver.wait("page.querySelector('#help-dialog').open")
    reader.driver.keys([ESCAPE])
    reader.driver.wait("!page.querySelector('#help-dialog').open")


def test_the_crosshair_moved_by_keys_is_spoken(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    reader.driver.run("page.querySelector('#target .token').focus()")  # row 0
    reader.driver.run("page.querySelector('#map').focus()")
    reader.driver.keys([DOWN, RIGHT, RIGHT, LEFT])
    reader.driver.wait("page.querySelector('#spoken').textContent !== ''")
    assert reader.text("#spoken").startswith("un → un: ")
    assert reader.text("#spoken") == reader.text("#readout")
    reader.driver.keys([ENTER])
    assert "p=t1.1" in reader.link()


def test_a_server_that_has_gone_is_reported_and_the_old_answer_stays_dimmed(driver: Driver) -> None:
    with serving(app(made(), name="heads")) as url:
        reader = Reader(driver, url)
        driver.view(1200, 900)
        enter(reader, "#v=1&row=0&l=1&h=2")
    reader.choose("#layer", "2")
    driver.wait("!page.querySelector('#problem').hidden")
    assert "no connection to it" in reader.text("#problem")
    assert driver.run("return page.querySelector('#problem button') !== null")
    opacity = "return getComputedStyle(page.querySelector(arguments[0])).opacity"
    for pane in ("heads", "map", "words", "inspector"):
        assert float(driver.run(opacity, f".pane.{pane} > *")) < 0.6
    assert len(reader.words("target")) == len(WORDS)
    driver.log("browser")


def test_the_explorer_gives_the_document_no_ids(reader: Reader) -> None:
    enter(reader, "#v=1&row=0&l=1&h=2")
    assert reader.driver.run("return document.querySelectorAll('[id]').length") == 0
    assert reader.driver.run("return document.querySelectorAll('.attlas-explorer').length") == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing_to_mend(reader: Reader, width: int, scheme: str) -> None:
    reader.driver.view(width, 900)
    reader.driver.prefer(scheme)
    found = []
    for tab in ("distribution", "lines", "mechanism", "statistics", "compare"):
        enter(reader, f"#v=1&row=0&l=1&h=2&sel=1.3&tab={tab}")
        reader.driver.run("page.querySelector('#part').click()")
        found += reader.driver.violations()
    assert found == []


MOVES = """
const [count, done] = arguments, page = document.querySelector('.attlas-explorer').shadowRoot;
const map = page.querySelector('#map'), box = map.getBoundingClientRect();
(function move(i) {
  if (i === count) return done();
  map.dispatchEvent(new PointerEvent('pointermove', {pointerId: 1, bubbles: true,
    clientX: box.left + 80 + 3 * i, clientY: box.top + 60 + 4 * i}));
  requestAnimationFrame(() => setTimeout(() => move(i + 1), 20));
})(0);
"""


def test_pointing_at_512_tokens_costs_one_layout(driver: Driver) -> None:
    length = 512
    words = [f"w{place}" for place in range(length)]
    generator = torch.Generator().manual_seed(2)
    trace = Trace()
    query, keys = 2 * torch.randn(2, 1, 12, length, 8, generator=generator)
    trace.record("encoder.0", FactoredAttentionMap(query, keys, 8**-0.5, everywhere, 0))
    trace.label_layer("encoder.0", [words], [words])
    with serving(app(trace, name="long")) as url:
        reader = Reader(driver, url)
        driver.view(1440, 900)
        enter(reader, "#v=1&row=0&l=0&h=3")
        driver.devtools("Performance.enable")

        def counted() -> dict[str, float]:
            metrics = driver.devtools("Performance.getMetrics")["metrics"]
            return {one["name"]: float(one["value"]) for one in metrics}

        before, events = counted(), 60
        driver.ask("POST", "/execute/async", {"script": MOVES, "args": [events]})
        after = counted()
        # One layout for each picture of the browser, none that a script asks for.
        assert (after["LayoutCount"] - before["LayoutCount"]) / events <= 1.5
        assert (after["RecalcStyleCount"] - before["RecalcStyleCount"]) / events <= 2.5
        assert driver.run("return page.querySelectorAll('*').length") <= 1_500
