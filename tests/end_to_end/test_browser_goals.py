"""The explorer's goals that hold on any machine: bytes, nodes, and the work of its script."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attlas.explorer import app
from attlas.recording import Trace
from support.page_visits import serving
from support.webdriver import DOWN, RIGHT, Driver

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from explorer_speed import MAP, tiles
from explorer_trace import trace
from explorer_visit import PICTURE, Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

MOST_NODES = 1_500

# `counts`: how often each canvas was drawn on, by its id and the method. `changes()`: what of the
# page's elements has changed since `watch()`.
COUNTING = """
window.counts = {};
for (const method of ['drawImage', 'fillText', 'clearRect', 'putImageData']) {
  const own = CanvasRenderingContext2D.prototype[method];
  CanvasRenderingContext2D.prototype[method] = function (...all) {
    const name = `${this.canvas.id} ${method}`;
    window.counts[name] = (window.counts[name] ?? 0) + 1;
    return own.apply(this, all);
  };
}
window.watch = (page) => {
  const seen = { added: 0, words: 0, written: 0 };
  new MutationObserver((records) => {
    for (const { type, target, addedNodes } of records) {
      seen.written += 1;
      if (type !== 'childList') continue;
      const elements = [...addedNodes].filter((node) => node.nodeType === 1);
      seen.added += elements.length;
      if (target.matches('.tokens')) seen.words += elements.length;
    }
  }).observe(page, { subtree: true, childList: true, attributes: true, characterData: true });
  window.changes = () => seen;
};
"""


@pytest.fixture(scope="module")
def seen() -> Trace:
    return trace(12, 12, 512)


@pytest.fixture
def visit(seen: Trace, driver: Driver) -> Iterator[Visit]:
    with serving(app(seen, name="goals")) as url:
        opened = Visit(driver, url, 144)
        counting = driver.devtools("Page.addScriptToEvaluateOnNewDocument", source=COUNTING)
        opened.open()
        yield opened
        assert opened.foreign() == []
        driver.devtools("Page.removeScriptToEvaluateOnNewDocument", **counting)
        opened.close()


def counts(visit: Visit) -> dict[str, int]:
    found: dict[str, int] = visit.driver.run("return window.counts")
    return found


def watch(visit: Visit) -> None:
    """Count what changes from now on."""
    visit.driver.run("window.counts = {}; window.watch(page)")


def changes(visit: Visit) -> dict[str, int]:
    found: dict[str, int] = visit.driver.run("return window.changes()")
    return found


def test_144_heads_of_512_tokens_are_seen_after_half_a_megabyte(visit: Visit) -> None:
    first = visit.first_pictures()
    assert 100_000 < first["bytes"] <= 500_000
    visit.exact_map(MAP)
    assert visit.nodes()["all"] <= MOST_NODES


def test_each_head_is_painted_once_for_the_first_picture(visit: Visit) -> None:
    visit.exact_map(MAP)
    visit.still()
    found = counts(visit)
    assert found["grid drawImage"] == 144
    # One picture for the heads of each layer; of the map: all of it pooled, the small picture that
    # is shown meanwhile, and the weights.
    assert found[" putImageData"] <= 12 + 4


def test_weights_are_exact_on_screen_and_take_half_a_byte_beside_it(
    visit: Visit, seen: Trace
) -> None:
    visit.with_all_heads(MAP)
    found = tiles(visit, seen)
    assert found["near_error"] <= 1e-5
    assert found["rough_bytes"] <= 0.55
    # By its root, in 254 levels: off by half a level.
    assert found["rough_error"] <= 1 / 254


def test_a_head_that_was_pointed_at_is_drawn_once_and_exactly(visit: Visit, seen: Trace) -> None:
    visit.exact_map(MAP)
    visit.still()
    requested = [one["name"] for one in visit.requests()]
    watch(visit)
    visit.switch(RIGHT)
    visit.still()
    assert sum(one["width"] > PICTURE for one in visit.probe()["map"]) == 1
    new = [one["name"] for one in visit.requests() if one["name"] not in requested]
    assert len(new) == 1  # its weights, and no tokens
    assert "heads=" in new[0]
    assert changes(visit)["words"] == 0
    assert counts(visit)["map drawImage"] <= 2  # what is pooled, and the weights
    assert tiles(visit, seen)["near_error"] <= 1e-5


def test_a_head_of_another_layer_that_was_pointed_at_is_drawn_once(visit: Visit) -> None:
    visit.exact_map(MAP)
    visit.still()
    watch(visit)
    visit.switch(DOWN)
    visit.still()
    assert sum(one["width"] > PICTURE for one in visit.probe()["map"]) == 1
    assert changes(visit)["words"] == 0  # the text is the same


def test_pointing_at_512_tokens_is_little_work_for_the_page(visit: Visit) -> None:
    visit.exact_map(MAP)
    visit.still()
    assert visit.hover(120)["script"] <= 4  # ms of the processor's time


def test_pointing_draws_no_map_and_writes_only_what_changes(visit: Visit) -> None:
    visit.exact_map(MAP)
    visit.still()
    watch(visit)
    visit.hover(120)
    assert not [name for name in counts(visit) if name.startswith("map ")]
    found = changes(visit)
    assert found["words"] <= 12 * 120  # those that come into reach, not all 120 each time
    assert found["added"] <= 30 * 120
    visit.still()
    before = changes(visit)["written"]
    assert before > 0
    visit.driver.hover("#map", 40, 40)
    visit.still()
    between = changes(visit)["written"]
    assert between > before
    visit.driver.hover("#map", 40, 40)
    visit.still()
    assert changes(visit)["written"] == between


@pytest.mark.sampled(1)
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
