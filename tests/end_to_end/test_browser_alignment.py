"""Gold links over the map in a real browser, and how well each head finds them."""

from collections.abc import Iterator

import pytest
import torch

from attlas.analysis import Reference
from attlas.explorer import app
from attlas.recording import DenseAttentionMap, Trace
from support.page_visits import Reader, serving, well_behaved
from support.webdriver import Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

SOURCE = ["▁die", "▁Kat", "ze", "▁schläft", "</s>"]
TARGET = ["▁the", "▁cat", "▁sleep", "s", "</s>"]
GOLD = Reference(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 2), (0, 1)}))


def made() -> Trace:
    """Of the two heads of the decoder, the first looks where the gold links are."""
    weights = torch.full((1, 2, 5, 5), 0.05)
    for row, key in enumerate([0, 2, 3, 3, 4]):
        weights[0, 0, row, key] = 0.8
    weights[0, 1, :, 0] = 0.8
    trace = Trace()
    for name, across in (("decoder.0", True), ("encoder.0", False)):
        seen = DenseAttentionMap(weights, torch.ones(1, 1, 5, 5, dtype=torch.bool))
        trace.record(name, seen)
        trace.set_kind(name, cross_attention=across)
    trace.label([SOURCE], [TARGET])
    trace.label_layer("encoder.0", [SOURCE], [SOURCE])
    return trace


@pytest.fixture
def reader(driver: Driver) -> Iterator[Reader]:
    with (
        serving(app(made(), name="aligned", gold=[GOLD])) as url,
        well_behaved(driver, url),
    ):
        opened = Reader(driver, url)
        opened.enter("#v=1&row=0&l=0&h=0&tab=alignment")
        opened.driver.wait("page.querySelector('#alignment td')")
        yield opened


def numbers(reader: Reader) -> list[str]:
    found: list[str] = reader.driver.run(
        "return [...page.querySelectorAll('#alignment td')].map(one => one.textContent)"
    )
    return found


def frames(reader: Reader) -> int:
    """How many frames are drawn over the map, by the strokes of a picture drawn anew."""
    script = """
        let count = 0;
        const own = CanvasRenderingContext2D.prototype.strokeRect;
        CanvasRenderingContext2D.prototype.strokeRect = function (...place) {
          if (this.canvas.id === 'map') count += 1;
          return own.apply(this, place);
        };
        page.querySelector('.tools button').click();
        CanvasRenderingContext2D.prototype.strokeRect = own;
        return count;"""
    return int(reader.driver.run(script))


def test_a_head_has_its_numbers_and_the_links_are_on_the_map(reader: Reader) -> None:
    assert numbers(reader) == ["100 %", "100 %", "0 %"]
    assert "2 sure ones, and 2 possible ones" in reader.text("#inspected .note")
    assert frames(reader) == 2 * 4  # each on a halo
    reader.choose("#head", "1")
    reader.driver.wait("page.querySelector('#alignment td')?.textContent === '67 %'")
    assert numbers(reader) == ["67 %", "50 %", "40 %"]


def test_links_are_there_while_the_tab_is_and_for_a_layer_that_has_some(reader: Reader) -> None:
    reader.driver.click("#tab-distribution")
    reader.driver.wait("page.querySelector('#bars .line')")
    reader.driver.wait("!page.querySelector('#alignment')")
    assert frames(reader) == 0
    reader.driver.click("#tab-alignment")
    reader.driver.wait("page.querySelector('#alignment td')")
    reader.choose("#layer", "1")
    reader.driver.wait("!page.querySelector('#alignment')")
    assert "Choose a layer that looks from the target" in reader.text("#inspected")
    assert frames(reader) == 0


def test_a_trace_without_gold_links_has_no_such_tab(driver: Driver) -> None:
    with serving(app(made(), name="plain")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter("#v=1&row=0&l=0&h=0")
        reader.driver.wait("page.querySelector('#tab-distribution')")
        assert reader.driver.run("return page.querySelector('#tab-alignment')") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_tab_has_no_fault_that_axe_knows(reader: Reader, scheme: str) -> None:
    reader.driver.prefer(scheme)
    assert reader.driver.violations() == []
