"""The tab Image in a real browser: the weights over the image, patch by patch."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from attlas.explorer import app
from attlas.recording import DenseAttentionMap, Trace
from support.page_visits import Reader, serving, well_behaved
from support.webdriver import DOWN, ENTER, RIGHT, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

GRID = (3, 4)
FIRST, COUNT = 1, 12


def made() -> Trace:
    """Place 0 looks at patch 1,2; each patch at the next place; three words look at patch 0,3."""
    image = np.full((30, 40, 3), 128, np.uint8)
    size = FIRST + COUNT
    vision = torch.full((1, 2, size, size), 0.3 / (size - 1))
    vision[0, :, 0, FIRST + 6] = 0.7
    for place in range(1, size):
        vision[0, :, place, (place + 1) % size] = 0.7
    text = torch.full((1, 2, 3, size), 0.4 / (size - 1))
    text[..., FIRST + 3] = 0.6
    trace = Trace()
    for name, weights in (("encoder.0", vision), ("decoder.0", text), ("decoder.1", text[..., :3])):
        trace.record(name, DenseAttentionMap(weights, query_offset=None))
        trace.set_kind(name, cross_attention=name == "decoder.0")
    words = ["a", "red", "house"]
    trace.label_layer("decoder.0", [[]], [words])
    trace.label_layer("decoder.1", [words], [words])
    trace.label_image(image, GRID, first=FIRST)
    return trace


def opened(reader: Reader, layer: int, tail: str = "") -> None:
    reader.enter(f"#v=1&row=0&l={layer}&h=0&tab=image{tail}")
    reader.driver.wait("page.querySelector('#image')?.style.width")


@pytest.fixture
def reader(driver: Driver) -> Iterator[Reader]:
    with serving(app(made(), name="seen")) as url, well_behaved(driver, url):
        yield Reader(driver, url)


# Layers across come first: layer 0 is the cross-attention, 1 that of the patches, 2 of the words.
ACROSS, PATCHES, WORDS = 0, 1, 2


def darkest(driver: Driver) -> tuple[int, int]:
    """The patch whose middle is darkest."""
    found: list[int] = driver.run(
        """
        const [rows, columns] = arguments, canvas = page.querySelector('#image');
        const copy = document.createElement('canvas'); // which the browser expects to be read
        [copy.width, copy.height] = [canvas.width, canvas.height];
        const pen = copy.getContext('2d', {willReadFrequently: true});
        pen.drawImage(canvas, 0, 0);
        const light = [];
        for (let patch = 0; patch < rows * columns; patch++) {
          const x = ((patch % columns) + 0.5) / columns;
          const y = (Math.floor(patch / columns) + 0.5) / rows;
          const [r, g, b] = pen.getImageData(x * copy.width, y * copy.height, 1, 1).data;
          light.push(r + g + b);
        }
        return light.map((_, index) => index).sort((a, b) => light[a] - light[b]);""",
        *GRID,
    )
    return divmod(found[0], GRID[1])


def middle(driver: Driver, row: int, column: int) -> tuple[int, int]:
    """How far the middle of a patch is from that of the image."""
    width, height = driver.run(
        "const box = page.querySelector('#image').getBoundingClientRect();"
        " return [box.width, box.height]"
    )
    across = ((column + 0.5) / GRID[1] - 0.5) * width
    down = ((row + 0.5) / GRID[0] - 0.5) * height
    return round(across), round(down)


def point(driver: Driver, row: int, column: int) -> None:
    driver.hover("#image", *middle(driver, row, column))


def wait_for(reader: Reader, selector: str, text: str) -> None:
    plain = f"page.querySelector('{selector}')?.textContent.replace(/[\\u2068\\u2069]/g, '')"
    reader.driver.wait(f"{plain} === {json.dumps(text)}")


def test_the_weights_of_the_place_in_view_lie_on_their_patches(reader: Reader) -> None:
    opened(reader, PATCHES)
    wait_for(reader, "#inspected h3", "Where “0” looked")
    assert darkest(reader.driver) == (1, 2)
    assert "together 98 %" in reader.text("#inspected .note")
    assert reader.text("#patch") == ""
    opened(reader, PATCHES, "&p=t1")  # patch 0,0
    wait_for(reader, "#inspected h3", "Where “patch 0,0” looked")
    assert darkest(reader.driver) == (0, 1)
    reader.choose("#scale", "uniform")
    assert darkest(reader.driver) == (0, 1)


def test_pointing_at_a_patch_points_at_its_place_in_the_map(reader: Reader) -> None:
    opened(reader, PATCHES)
    point(reader.driver, 1, 2)
    for selector in ("#patch", "#readout"):
        wait_for(reader, selector, "0 → patch 1,2: 70 %")
    point(reader.driver, 2, 3)
    wait_for(reader, "#patch", "0 → patch 2,3: 3 %")
    # A patch that is chosen looks itself, and the link has it.
    reader.driver.press("#image", middle(reader.driver, 1, 2))
    wait_for(reader, "#inspected h3", "Where “patch 1,2” looked")
    assert "&p=t7" in reader.link()
    assert darkest(reader.driver) == (1, 3)
    # While it is kept, others can be pointed at.
    point(reader.driver, 1, 3)
    wait_for(reader, "#patch", "patch 1,2 → patch 1,3: 70 %")


def test_a_place_that_is_looked_at_has_the_weights_of_those_that_look(reader: Reader) -> None:
    opened(reader, PATCHES, "&p=t3")
    reader.driver.run("page.querySelector('#side input[value=source]').click()")
    wait_for(reader, "#inspected h3", "Which tokens looked at “patch 0,2”")
    assert darkest(reader.driver) == (0, 1)


def test_the_keyboard_goes_from_patch_to_patch(reader: Reader) -> None:
    opened(reader, PATCHES)
    driver = reader.driver
    driver.run("page.querySelector('#image').focus()")
    for key, patch in ((RIGHT, "0,0"), (RIGHT, "0,1"), (DOWN, "1,1")):
        driver.keys([key])
        wait_for(reader, "#spoken", f"0 → patch {patch}: 3 %")
    driver.keys([RIGHT])
    wait_for(reader, "#spoken", "0 → patch 1,2: 70 %")
    wait_for(reader, "#patch", "0 → patch 1,2: 70 %")
    driver.keys([DOWN, DOWN, DOWN])  # not beyond the last row
    wait_for(reader, "#spoken", "0 → patch 2,2: 3 %")
    driver.keys([ENTER])
    wait_for(reader, "#inspected h3", "Where “patch 2,2” looked")
    assert driver.run("return page.activeElement.id") == "image"
    assert "&p=t11" in reader.link()


def test_words_that_look_at_an_image_are_no_patches(reader: Reader) -> None:
    opened(reader, ACROSS, "&p=t1")
    wait_for(reader, "#inspected h3", "Where “red” looked")
    assert darkest(reader.driver) == (0, 3)
    reader.driver.run("page.querySelector('#image').focus()")
    reader.driver.keys([RIGHT, RIGHT, ENTER])
    wait_for(reader, "#readout", "red → patch 0,1: 3 %")  # the cell is kept
    reader.choose("#layer", str(WORDS))
    reader.driver.wait("!page.querySelector('#image')")
    assert "no patches of an image" in reader.text("#inspected")


def test_the_image_is_what_is_seen_first_of_a_layer_of_patches(reader: Reader) -> None:
    driver = reader.driver
    reader.enter(f"#v=1&row=0&l={PATCHES}&h=0")
    driver.wait("page.querySelector('#image')?.style.width")
    assert "tab=" not in reader.link()
    driver.click("#tab-distribution")
    driver.wait("page.querySelector('#tab-distribution[aria-selected=true]')")
    assert "tab=distribution" in reader.link()
    driver.click("#tab-image")
    driver.wait("page.querySelector('#image')?.style.width")
    assert "tab=" not in reader.link()
    reader.choose("#layer", str(WORDS))
    driver.wait("page.querySelector('#tab-distribution[aria-selected=true]')")


def test_a_trace_without_images_has_no_such_tab(driver: Driver) -> None:
    trace = Trace()
    trace.record("a", DenseAttentionMap(torch.full((1, 1, 3, 3), 1 / 3), query_offset=None))
    with serving(app(trace, name="plain")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter("#v=1&row=0&l=0&h=0&tab=image")
        driver.wait("page.querySelector('#tab-distribution[aria-selected=true]')")
        assert driver.run("return page.querySelector('#tab-image')") is None


def test_a_map_that_is_pooled_says_when_its_image_comes(driver: Driver) -> None:
    trace = Trace()
    trace.record("a", DenseAttentionMap(torch.full((1, 1, 600, 600), 1 / 600), query_offset=None))
    trace.label_image(np.zeros((20, 30, 3), np.uint8), (20, 30))
    with serving(app(trace, name="large")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter("#v=1&row=0&l=0&h=0&tab=image")
        driver.wait("page.querySelector('#inspected')?.textContent.includes('near enough')")
        reader.enter("#v=1&row=0&l=0&h=0&tab=image&q=0-9&k=0-99")
        driver.wait("page.querySelector('#image')?.style.width")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing_to_mend_and_nothing_is_wider_than_the_page(
    reader: Reader, width: int, scheme: str
) -> None:
    reader.driver.view(width, 900)
    reader.driver.prefer(scheme)
    opened(reader, PATCHES, "&p=t3")
    assert reader.driver.violations() == []
    assert reader.driver.run("return document.documentElement.scrollWidth") <= width


def test_a_file_shows_the_image_without_a_network(driver: Driver, tmp_path: Path) -> None:
    made().to_html(tmp_path / "x.html")
    driver.log("browser")
    driver.view(1200, 900)
    driver.prefer()
    offline = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    driver.devtools("Network.enable")
    driver.devtools("Network.emulateNetworkConditions", offline=True, **offline)
    try:
        driver.open((tmp_path / "x.html").as_uri() + f"#v=1&row=0&l={PATCHES}&h=0&tab=image")
        driver.wait("page.querySelector('#image')?.style.width")
        assert darkest(driver) == (1, 2)
        complaints = [one for one in driver.log("browser") if one["level"] in ("SEVERE", "WARNING")]
        assert complaints == []
    finally:
        again = {
            name: -1 if value == 0 and name != "latency" else 0 for name, value in offline.items()
        }
        driver.devtools("Network.emulateNetworkConditions", offline=False, **again)
