"""One session of a new user: `attlas look` of a Hugging Face folder, in a real browser.

A text is typed, the head that looks most at the previous token is found, compared and doubted, a
weight is set by hand, the page is saved as one file, the server is stopped, and the file is opened
with the network off.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.page_visits import SAVED, SAVED_TEXT, Reader
from support.small_models import saved
from support.webdriver import END, ENTER, HOME, RIGHT, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("browser"),
]


def test_a_new_user_finds_compares_doubts_and_keeps_a_head(tmp_path: Path, driver: Driver) -> None:
    pytest.importorskip("transformers")
    folder = saved(tmp_path / "model", "llama")
    command = [sys.executable, "-m", "attlas", "look", folder, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ}
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0]
            link = _walked(Reader(driver, address), tmp_path / "page.html")
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 130 or server.returncode == 0
    _reopened(driver, tmp_path / "page.html", link)


def _walked(reader: Reader, page: Path) -> str:
    """What the link says of the page that was saved."""
    driver = reader.driver
    driver.view(1400, 900)
    driver.prefer()
    driver.open(reader.url)
    driver.wait("page.querySelector('#sentence')", seconds=60)
    driver.run("page.querySelector('#sentence').value = ''")
    driver.type("#sentence", "the cat sat on the mat" + ENTER)
    driver.wait("page.querySelector('#source, #target')?.textContent.includes('mat')", seconds=60)

    # The head that looks most at the previous token stands first, and is opened by the keyboard.
    driver.wait("page.querySelector('#statistic')")
    reader.choose("#statistic", "previous_weight")
    driver.click("#sorted")
    driver.run("page.querySelector('#grid').focus()")
    driver.keys([RIGHT, HOME, ENTER])
    driver.wait("location.hash.includes('m=previous_weight&sort=1')")
    said = reader.text("#grid-readout")
    assert "share on the token before" in said
    found = f"{reader.text('#layer option:checked')}, head {_value(reader, '#head')}"
    assert said.startswith(found)

    # The next head is selected, too, and the two are compared.
    driver.click("#several")
    driver.run("page.querySelector('#grid').focus()")
    driver.keys([RIGHT, ENTER])
    driver.wait("location.hash.includes('sel=')")
    driver.click("#tab-compare")
    driver.wait("page.querySelectorAll('.small-map canvas').length >= 3")
    driver.click("#several")

    # It is doubted, and a weight is set by hand.
    driver.run("[...page.querySelectorAll('#target .token')].at(3).click()")
    driver.click("#tab-doubt")
    driver.wait("page.querySelectorAll('#effects tbody tr').length >= 4", seconds=60)
    driver.run("page.querySelector('#edited').focus()")
    driver.keys([END])
    driver.wait(
        "page.querySelector('[data-change=weight]')?.textContent.includes('→ 100 %')", seconds=60
    )

    driver.run(SAVED)
    driver.click("#tab-compare")
    driver.click("summary")
    driver.click("#export-html")
    driver.wait("window.saved.length === 1", seconds=60)
    text = driver.ask("POST", "/execute/async", {"script": SAVED_TEXT, "args": []})
    page.write_text(text, encoding="utf-8", newline="")
    return reader.link()


def _value(reader: Reader, selector: str) -> str:
    return str(reader.driver.run("return page.querySelector(arguments[0]).value", selector))


def _reopened(driver: Driver, page: Path, link: str) -> None:
    driver.devtools("Network.enable")
    online = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    driver.devtools("Network.emulateNetworkConditions", offline=True, **online)
    try:
        driver.open("about:blank")
        driver.open(page.as_uri())
        driver.wait("document.querySelector('.attlas-explorer')?.shadowRoot.querySelector('#map')")
        driver.wait("page.querySelector('#target')?.textContent.includes('mat')")
        for part in ("h=", "sel=", "l="):
            assert _part(driver.run("return location.hash"), part) == _part(link, part)
        driver.wait("page.querySelectorAll('.small-map canvas').length >= 3")
    finally:
        driver.devtools("Network.emulateNetworkConditions", offline=False, **online)


def _part(link: str, name: str) -> list[str]:
    return [part for part in link.split("&") if part.startswith(name)]
