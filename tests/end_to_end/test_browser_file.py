"""An exported page in a real browser: opened from disk, with no network."""

import base64
import io
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.explorer import app, backends
from attlas.explorer.notes import NotesFile
from attlas.patterns import everywhere
from attlas.recording import FactoredAttentionMap, Trace
from support.page_visits import SAVED, SAVED_TEXT, Reader, page_requests, serving, well_behaved
from support.webdriver import Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]


def made(size: int) -> Trace:
    generator = torch.Generator().manual_seed(2)
    query, keys = 2 * torch.randn(2, 1, 3, size, 8, generator=generator)
    trace = Trace()
    trace.record("encoder.0", FactoredAttentionMap(query, keys, 8**-0.5, everywhere, 0))
    return trace


def opened(driver: Driver, path: Path) -> None:
    """The page of a file, once it shows a map, with the network switched off."""
    driver.log("browser")
    driver.log("performance")
    driver.devtools("Network.enable")
    driver.devtools(
        "Network.emulateNetworkConditions",
        offline=True, latency=0, downloadThroughput=0, uploadThroughput=0,
    )  # fmt: skip
    driver.open(path.as_uri())
    driver.wait("document.querySelector('.attlas-explorer')?.shadowRoot.querySelector('#map')")


def network_again(driver: Driver) -> None:
    driver.devtools(
        "Network.emulateNetworkConditions",
        offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1,
    )  # fmt: skip


def complaints(driver: Driver) -> list[str]:
    return [
        entry["message"]
        for entry in driver.log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]


def weights_in_page(driver: Driver, layer: int, size: int) -> Any:
    """The weights that the door of the page gives, head by head."""
    return driver.ask(
        "POST",
        "/execute/async",
        {
            "script": """
                const [layer, size, done] = arguments;
                const span = {from: 0, to: size};
                const door = window.attlas.door;
                const part = {excerpt: {rows: span, keys: span}, head: null};
                door.tile("0", layer, part, new AbortController().signal).then((tile) => {
                  const cells = tile.rows * tile.keys;
                  done([...tile.levels].map((level, index) => level === tile.most + 1 ? 0 :
                    tile.scales[Math.floor(index / cells)] * (level / tile.most) ** tile.power));
                });""",
            "args": [layer, size],
        },
    )


@pytest.mark.parametrize(("precision", "off"), [("display", 0.004), ("exact", 1e-5)])
def test_a_file_opened_from_disk_shows_the_weights_of_the_trace(
    driver: Driver, tmp_path: Path, precision: Any, off: float
) -> None:
    trace = made(7)
    words = [f"word{n}" for n in range(7)]
    trace.label([words], [words])
    trace.to_html(tmp_path / "x.html", precision=precision)
    try:
        opened(driver, tmp_path / "x.html")
        found = torch.tensor(weights_in_page(driver, 0, 7)).view(3, 7, 7)
        torch.testing.assert_close(
            found, trace["encoder.0"].weights()[0], atol=off, rtol=0, check_dtype=False
        )
        body = driver.run(
            "return document.querySelector('.attlas-explorer').shadowRoot.textContent"
        )
        assert "word3" in body
        assert complaints(driver) == []
        assert [
            url
            for url in page_requests(driver)
            if not url.startswith(("file:", "data:", "chrome:"))
        ] == []
    finally:
        network_again(driver)


def test_the_file_that_the_menu_saves_opens_from_disk_with_what_was_on_screen(
    driver: Driver, tmp_path: Path
) -> None:
    trace = made(7)
    words = [f"word{n}" for n in range(7)]
    trace.label([words], [words])
    notes = tmp_path / "notes.json"
    NotesFile(notes).add("of the file", "#v=1&row=0&l=0&h=2")
    with serving(app(trace, name="a trace", notes=notes)) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter("#v=1&row=0&l=0&h=1&p=t3.2&sel=0.2&tab=compare")
        driver.wait("page.querySelector('#map')")
        driver.run(SAVED)
        driver.click("summary")
        assert "attlas look … --export x.html --exact" in reader.text(".menu-items")
        assert driver.violations() == []
        driver.click("#export-html")
        driver.wait("window.saved.length === 1 && page.querySelector('#notice').checkVisibility()")
        assert reader.text("#notice") == "Saved as attlas-a-trace.html"
        page = driver.ask("POST", "/execute/async", {"script": SAVED_TEXT, "args": []})
        assert driver.run("return window.named") == "attlas-a-trace.html"
    (tmp_path / "x.html").write_text(page, encoding="utf-8", newline="")
    try:
        opened(driver, tmp_path / "x.html")
        driver.wait("page.querySelector('#tab-compare[aria-selected=true]')")
        link = driver.run("return location.hash")
        assert all(part in link.split("&") for part in ("h=1", "p=t3.2", "sel=0.2", "tab=compare"))
        found = torch.tensor(weights_in_page(driver, 0, 7)).view(3, 7, 7)
        torch.testing.assert_close(
            found, trace["encoder.0"].weights()[0], atol=0.004, rtol=0, check_dtype=False
        )
        driver.click("#tab-notes")
        driver.wait("page.querySelector('#notes li p')?.textContent === 'of the file'")
        driver.click("summary")
        assert driver.run("return page.querySelector('#export-html')") is None
        assert "--export" not in driver.run("return page.querySelector('.menu-items').textContent")
        assert complaints(driver) == []
    finally:
        network_again(driver)


def test_the_numbers_on_screen_are_saved_in_parquet_where_it_is_there(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_table = pytest.importorskip("pyarrow.parquet").read_table
    trace = made(7)
    with serving(app(trace, name="numbers")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter("#v=1&row=0&l=0&h=2&q=1-3&k=2-6")
        driver.wait("page.querySelector('#map')")
        driver.run(SAVED)
        driver.run("page.querySelector('#export-parquet').click()")
        driver.wait("window.saved.length === 1")
        script = """
            const done = arguments[arguments.length - 1];
            window.saved[0].arrayBuffer().then(content =>
                done(btoa(String.fromCharCode(...new Uint8Array(content)))))"""
        content = driver.ask("POST", "/execute/async", {"script": script, "args": []})
        assert driver.run("return window.named").endswith("-rows-1-3-keys-2-6.parquet")
    found = read_table(io.BytesIO(base64.b64decode(content))).to_pydict()
    weights = trace["encoder.0"].weights()[0, 2, 1:4, 2:7].flatten().tolist()
    assert found["weight"] == pytest.approx(weights, abs=1e-6)
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    with serving(app(trace, name="numbers")) as url, well_behaved(driver, url):
        Reader(driver, url).enter()
        driver.wait("page.querySelector('#export-html')")
        assert driver.run("return page.querySelector('#export-parquet')") is None


def test_what_goes_wrong_with_the_file_is_said(driver: Driver) -> None:
    with serving(app(made(3), name="gone")) as url:
        driver.view(1200, 900)
        reader = Reader(driver, url)
        reader.enter()
        driver.wait("page.querySelector('#map')")
    driver.run("page.querySelector('#export-html').click()")
    driver.wait("page.querySelector('#problem').checkVisibility()")
    assert "no connection to it" in reader.text("#problem")
    driver.log("browser")
