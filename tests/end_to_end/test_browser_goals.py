"""The explorer's goals that hold on any machine: bytes, nodes, and the work of its script."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attlas.explorer import app
from attlas.recording import Trace
from support.page_visits import serving
from support.webdriver import RIGHT, Driver

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from explorer_speed import MAP, tiles
from explorer_trace import trace
from explorer_visit import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

MOST_NODES = 1_500


@pytest.fixture(scope="module")
def seen() -> Trace:
    return trace(12, 12, 512)


@pytest.fixture
def visit(seen: Trace, driver: Driver) -> Iterator[Visit]:
    with serving(app(seen, name="goals")) as url:
        opened = Visit(driver, url, 144)
        opened.open()
        yield opened
        assert opened.foreign() == []
        opened.close()


def test_144_heads_of_512_tokens_are_seen_after_half_a_megabyte(visit: Visit) -> None:
    first = visit.first_pictures()
    assert 100_000 < first["bytes"] <= 500_000
    visit.exact_map(MAP)
    assert visit.nodes()["all"] <= MOST_NODES


def test_weights_are_exact_on_screen_and_take_half_a_byte_beside_it(
    visit: Visit, seen: Trace
) -> None:
    visit.exact_map(MAP)
    visit.still()
    found = tiles(visit, seen)
    assert found["near_error"] <= 1e-5
    assert found["rough_bytes"] <= 0.55
    # By its root, in 254 levels: off by half a level.
    assert found["rough_error"] <= 1 / 254


def test_another_head_is_there_before_its_weights_are_and_then_exact(
    visit: Visit, seen: Trace
) -> None:
    visit.exact_map(MAP)
    visit.still()
    visit.switch(RIGHT, MAP)
    visit.still()
    drawn = [one["width"] for one in visit.probe()["map"]]
    assert drawn.count(MAP) == 2  # as it was there already, and as it came
    assert sum("heads=" in one["name"] for one in visit.requests()) == 2
    assert tiles(visit, seen)["near_error"] <= 1e-5


def test_pointing_at_512_tokens_is_little_work_for_the_page(visit: Visit) -> None:
    visit.exact_map(MAP)
    visit.still()
    assert visit.hover(120)["script"] <= 4  # ms of the processor's time


@pytest.mark.parametrize("link", ["", "#v=1&row=0&l=0&h=0&q=0-499&k=0-499"])
def test_16384_tokens_need_as_few_nodes(driver: Driver, link: str) -> None:
    with serving(app(trace(1, 2, 16_384), name="goals")) as url:
        visit = Visit(driver, url, 2)
        visit.open(link)
        visit.exact_map(MAP)
        visit.still()
        nodes = visit.nodes()["all"]
        visit.close()
    assert 300 < nodes <= MOST_NODES
