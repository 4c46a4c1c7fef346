"""A trace in a real browser: every layer of any model, and the parts of a map of any length."""

import re
from collections.abc import Iterator

import pytest
import torch

from attlas.explorer import app
from attlas.patterns import everywhere
from attlas.recording import FactoredAttentionMap, Trace
from support.page_visits import Reader, serving, well_behaved
from support.webdriver import DOWN, ENTER, RIGHT, SHIFT, TAB, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

LENGTH = 3_000
WORDS = [["the", "cat", "sat", "down"], ["a", "dog", "ran", "off"]]


def made() -> Trace:
    """Two texts of four words, and a layer that has seen three thousand of each."""
    generator = torch.Generator().manual_seed(2)
    trace = Trace()
    for name, batch, heads, size in (
        ("short.0", 2, 2, 4),
        ("short.1", 2, 2, 4),
        ("long", 2, 3, LENGTH),
    ):
        query, keys = 2 * torch.randn(2, batch, heads, size, 8, generator=generator)
        trace.record(name, FactoredAttentionMap(query, keys, 8**-0.5, everywhere, 0))
    for name in ("short.0", "short.1"):
        trace.label_layer(name, WORDS, WORDS)
    numbered = [[f"w{place}" for place in range(LENGTH)]] * 2
    trace.label_layer("long", numbered, numbered)
    return trace


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Trace]]:
    trace = made()
    with serving(app(trace, name="seen.safetensors")) as url:
        yield url, trace


@pytest.fixture
def reader(served: tuple[str, Trace], driver: Driver) -> Iterator[Reader]:
    with well_behaved(driver, served[0]):
        opened = Reader(driver, served[0])
        opened.enter("#v=1&row=0&l=0&h=mean")
        opened.driver.wait("page.querySelectorAll('#target .token').length === 4")
        yield opened


def shown(reader: Reader) -> tuple[int, ...]:
    """The part in view, as its numbers say it: first and last of rows and of keys, from 0."""
    ids = ("rows-first", "rows-last", "keys-first", "keys-last")
    return tuple(
        int(reader.driver.run("return page.getElementById(arguments[0]).value", one)) for one in ids
    )


def to_the_long_one(reader: Reader) -> None:
    reader.choose("#layer", "2")
    reader.driver.wait("!page.querySelector('#coarse').hidden")
    reader.driver.click("#part")
    reader.driver.wait("page.querySelector('#rows-first')")


def looking_at(reader: Reader, *numbers: int) -> None:
    """Ask for a part by its numbers."""
    for one, number in zip(
        ("rows-first", "rows-last", "keys-first", "keys-last"), numbers, strict=True
    ):
        reader.driver.type(f"#{one}", str(number))
    reader.driver.click("#frame button[type=submit]")


def weights(trace: Trace, layer: str, head: int, row: int = 0) -> torch.Tensor:
    return trace[layer].rows(0, trace[layer].shape[2])[row, head]


def mean_of_heads(trace: Trace, layer: str, row: int) -> torch.Tensor:
    return trace[layer].weights()[row].mean(0)


def test_a_trace_shows_its_first_text_without_a_field_for_sentences(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    assert reader.text("#facts") == "seen.safetensors"
    assert reader.hidden("#ask")
    assert reader.hidden("#result")
    assert reader.words("target") == WORDS[0]  # once, as it looks at itself
    assert reader.hidden("#source")
    mean = mean_of_heads(served[1], "short.0", 0)
    assert [share for _, share in reader.bars()] == pytest.approx(mean[0].tolist(), abs=0.00101)


def test_another_text_is_chosen_by_how_it_begins(reader: Reader, served: tuple[str, Trace]) -> None:
    listed = reader.driver.run("return [...page.querySelector('#text').options].map(o => o.text)")
    assert listed == ["0: the cat sat down", "1: a dog ran off"]
    reader.choose("#text", "1")
    reader.driver.wait("page.querySelector('#target bdi').textContent === 'a'")
    assert reader.words("target") == WORDS[1]
    mean = mean_of_heads(served[1], "short.0", 1)
    assert [share for _, share in reader.bars()] == pytest.approx(mean[0].tolist(), abs=0.00101)


def test_a_long_map_is_seen_whole_by_its_largest_weights(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    to_the_long_one(reader)
    assert shown(reader) == (0, LENGTH - 1, 0, LENGTH - 1)
    assert "largest weight of up to 6 × 6" in reader.text("#coarse")
    assert reader.hidden("#rows")
    assert reader.hidden("#distribution")
    heads = reader.driver.run("return [...page.querySelector('#head').options].map(o => o.text)")
    assert heads == ["0", "1", "2"]  # as `maps_of` has them
    assert reader.text("#rows-most") == reader.text("#keys-most") == "0–2,999"
    reader.driver.hover("#map", 20, 30)
    reader.driver.wait("page.querySelector('#readout').textContent !== ''")
    rows, keys, share = re.fullmatch(r"(.+) → (.+): (.+)", reader.text("#readout")).groups()  # type: ignore[union-attr]
    (top, bottom), (left, right) = (map(int, span.split("–")) for span in (rows, keys))
    largest = float(weights(served[1], "long", 0)[top : bottom + 1, left : right + 1].max())
    assert share == ("<1 %" if largest < 0.01 else f"{largest * 100:.0f} %")


def test_a_click_comes_closer_until_single_weights_are_seen(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    to_the_long_one(reader)
    reader.driver.press("#map", (20, 30))
    reader.driver.wait("page.querySelector('#coarse').hidden")
    top, bottom, left, right = shown(reader)
    # An eighth of 3,000, and what is half in view.
    assert {bottom - top + 1, right - left + 1} <= {375, 376}
    # Of so many words, some are there at a time, and the others are counted.
    words = reader.words("target")
    assert len(words) < bottom - top
    assert words == [f"w{place}" for place in range(top, top + len(words))]
    assert f"{bottom - top + 1 - len(words)} more" in reader.text("#target")
    reader.driver.hover("#target .token:nth-child(1)")
    reader.driver.wait("page.querySelector('#target .token:nth-child(1).active')")
    bars = reader.bars()
    assert len(bars) < right - left
    assert reader.driver.run("return page.querySelector('#head').value") == "0"
    row = weights(served[1], "long", 0)[top, left : right + 1]
    for word, share in bars:
        assert share == pytest.approx(float(row[int(word[1:]) - left]), abs=0.00101)
    assert max(bars, key=lambda bar: bar[1])[0] == f"w{left + int(row.argmax())}"
    assert f"together {float(row.sum()) * 100:.0f} %" in reader.text("#distribution-note")


def test_a_part_is_chosen_by_drawing_a_frame_and_left_by_a_button(reader: Reader) -> None:
    to_the_long_one(reader)
    with reader.driver.held(SHIFT):
        reader.driver.press("#map", (0, 0), (10, 10), (60, 40))
    reader.driver.wait("page.querySelector('#rows-first').value !== '0'")
    top, bottom, left, right = shown(reader)
    assert 0 < bottom - top < right - left < LENGTH / 4
    reader.driver.click("#farther")
    reader.driver.wait("page.querySelector('#rows-first').value !== args[0]", str(top))
    reader.driver.click("#whole")
    reader.driver.wait("page.querySelector('#whole').disabled")
    assert shown(reader) == (0, LENGTH - 1, 0, LENGTH - 1)


def test_the_map_is_moved_by_dragging_it_and_zoomed_by_the_wheel(reader: Reader) -> None:
    to_the_long_one(reader)
    reader.driver.wheel("#map", -1_500)
    reader.driver.wait("page.querySelector('#rows-first').value !== '0'")
    top, bottom, left, right = shown(reader)
    assert bottom - top < LENGTH / 4
    reader.driver.press("#map", (0, 0), (-40, -20), (-80, -40))
    reader.driver.wait("page.querySelector('#rows-first').value !== args[0]", str(top))
    below, end, beside, last = shown(reader)
    assert below > top
    assert beside > left
    assert abs((end - below) - (bottom - top)) <= 1
    assert abs((last - beside) - (right - left)) <= 1
    assert f"q={below}-{end}&k={beside}-{last}" in reader.link()


def test_the_map_is_reached_and_moved_with_keys_alone(reader: Reader) -> None:
    reader.driver.run("page.querySelector('#map').focus()")
    reader.driver.keys([DOWN, RIGHT, RIGHT])
    assert reader.text("#readout").startswith("cat → sat: ")
    reader.driver.keys([ENTER])
    assert "p=t1.2" in reader.link()
    to_the_long_one(reader)
    reader.driver.run("page.querySelector('#map').focus()")
    reader.driver.keys(["+", "+"])
    reader.driver.wait("page.querySelector('#rows-first').value !== '0'")
    reader.driver.keys(["0"])
    reader.driver.wait("page.querySelector('#whole').disabled")


def test_several_words_are_kept_with_shift_by_mouse_and_by_keys(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    mean = mean_of_heads(served[1], "short.0", 0)
    reader.driver.click("#target .token:nth-child(2)")
    with reader.driver.held(SHIFT):
        reader.driver.click("#target .token:nth-child(4)")
    reader.driver.wait("page.querySelectorAll('#target [aria-pressed=true]').length === 2")
    reader.driver.wait("page.querySelector('#distribution-note').textContent.includes('mean')")
    assert reader.text("#distribution-title") == "Where “cat”, “down” looked"
    expected = mean[[1, 3]].mean(0).tolist()
    assert [share for _, share in reader.bars()] == pytest.approx(expected, abs=0.00101)
    assert "p=t3_1" in reader.link()
    reader.driver.click("#side label:last-of-type")
    reader.driver.wait("page.querySelector('#distribution-note').textContent.includes('together')")
    assert "p=s3_1" in reader.link()
    reader.driver.click("#side label:first-of-type")
    reader.driver.wait("page.querySelector('#distribution-note').textContent.includes('mean')")
    reader.driver.run("page.querySelector('#target .token:nth-child(4)').focus()")
    with reader.driver.held(SHIFT):
        reader.driver.keys([ENTER])
    reader.driver.wait("page.querySelectorAll('#target [aria-pressed=true]').length === 1")
    assert "p=t1" in reader.link()


def test_what_looks_at_several_words_is_their_sum_and_a_link_keeps_them(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    reader.enter("#v=1&row=0&l=0&h=mean&p=s0_2&d=s")
    reader.driver.wait("page.querySelectorAll('#target [aria-pressed=true]').length === 2")
    assert reader.text("#distribution-title") == "Which tokens looked at “the”, “sat”"
    assert "went to these together" in reader.text("#distribution-note")
    mean = mean_of_heads(served[1], "short.0", 0)
    expected = mean[:, [0, 2]].sum(1).tolist()
    assert [share for _, share in reader.bars()] == pytest.approx(expected, abs=0.00101)


@pytest.mark.parametrize("link", ["#v=1&row=0&l=2&h=0", "#v=1&row=0&l=2&h=0&q=0-499&k=0-499"])
def test_a_long_map_needs_few_elements_and_one_screen(reader: Reader, link: str) -> None:
    reader.enter(link)
    reader.driver.wait("page.querySelector('#map')?.clientHeight > 100")
    assert reader.driver.run("return page.querySelectorAll('*').length") <= 1_500
    assert reader.driver.run("return page.querySelector('#map').clientHeight") <= 900


def test_a_part_is_chosen_with_keys_alone(reader: Reader) -> None:
    to_the_long_one(reader)
    reader.driver.run("page.querySelector('#rows-first').focus()")
    for number in (2_000, 2_002, 4, 8):
        reader.driver.run("page.activeElement.select()")
        reader.driver.keys([*str(number), TAB])
    assert reader.driver.run("return page.activeElement.textContent") == "Show"
    reader.driver.keys([ENTER])
    reader.driver.wait("page.querySelectorAll('#target .token').length === 3")
    assert reader.words("target") == ["w2000", "w2001", "w2002"]
    assert reader.words("source") == ["w4", "w5", "w6", "w7", "w8"]


@pytest.mark.parametrize("numbers", [(10, 5, 0, 8), (-1, 5, 0, 8), (0, LENGTH, 0, 8)])
def test_a_part_that_is_not_there_is_not_asked_for(
    reader: Reader, numbers: tuple[int, ...]
) -> None:
    to_the_long_one(reader)
    looking_at(reader, *numbers)
    assert reader.driver.run("return page.querySelector('#frame').checkValidity()") is False
    assert reader.hidden("#rows")


def test_the_same_part_of_another_head_comes_when_it_is_chosen(
    reader: Reader, served: tuple[str, Trace]
) -> None:
    to_the_long_one(reader)
    reader.choose("#scale", "map")
    legend = reader.text("#ticks span:last-child")
    largest = [float(weights(served[1], "long", head).max()) for head in range(3)]
    assert legend == f"{largest[0] * 100:.0f} %, the largest here"
    reader.choose("#head", "2")
    reader.driver.wait(
        "page.querySelector('#ticks span:last-child').textContent === args[0]",
        f"{largest[2] * 100:.0f} %, the largest here",
    )
    assert shown(reader) == (0, LENGTH - 1, 0, LENGTH - 1)


@pytest.mark.parametrize("width", [320, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_long_map_fits_the_page(reader: Reader, width: int, scheme: str) -> None:
    reader.driver.view(width, 900)
    reader.driver.prefer(scheme)
    to_the_long_one(reader)
    assert reader.driver.run("return document.documentElement.scrollWidth") <= width
    map_width = reader.driver.run("return page.querySelector('#map').clientWidth")
    assert map_width >= 256
