"""A reader's visit at the explorer's page: what is served, and what a reader sees of it."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette

from support.webdriver import Driver

# Run in a page, it keeps what the page saves: its blobs, and the name of the newest.
SAVED = """
window.saved = [];
const create = URL.createObjectURL;
URL.createObjectURL = blob => { window.saved.push(blob); return create.call(URL, blob); };
HTMLAnchorElement.prototype.click = function () { window.named = this.download; };
"""
SAVED_TEXT = "const done = arguments[arguments.length - 1]; window.saved.at(-1).text().then(done)"


@contextlib.contextmanager
def serving(application: Starlette) -> Iterator[str]:
    """The address at which it is served."""
    server = uvicorn.Server(
        uvicorn.Config(application, port=0, log_level="warning", lifespan="off")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(timeout=30)


@dataclass(frozen=True)
class Reader:
    """A browser at the explorer's page."""

    driver: Driver
    url: str

    def enter(self, link: str = "") -> None:
        """The page anew, at what a link says."""
        self.driver.open("about:blank")
        self.driver.open(self.url + link)
        self.driver.wait(
            "page.querySelector('#facts span') && page.querySelector('#looking, #problem')"
        )

    def bars(self) -> list[tuple[str, float]]:
        """The words of the list of numbers, with their shares, as a reader sees them."""
        lines = self.driver.run(
            "return [...page.querySelectorAll('#bars .line')].map(line =>"
            " [line.querySelector('.word').textContent, line.querySelector('.number').textContent])"
        )
        return [(word, float(share.strip("<% ")) / 100) for word, share in lines]

    def words(self, row: str) -> list[str]:
        """The tokens of #source or #target."""
        found: list[str] = self.driver.run(
            "return [...page.querySelectorAll(`#${arguments[0]} bdi`)].map(e => e.textContent)",
            row,
        )
        return found

    def text(self, selector: str) -> str:
        said = self.driver.run("return page.querySelector(arguments[0]).textContent", selector)
        return str(said).replace("\u2068", "").replace("\u2069", "")

    def hidden(self, selector: str) -> bool:
        return not self.driver.run(
            "return page.querySelector(arguments[0])?.checkVisibility() ?? false", selector
        )

    def link(self) -> str:
        """What the address says of the page."""
        return str(self.driver.run("return location.hash"))

    def choose(self, selector: str, value: str) -> None:
        """Another of a list."""
        self.driver.run(
            "const s = page.querySelector(arguments[0]); s.value = arguments[1];"
            " s.dispatchEvent(new Event('change'))",
            selector,
            value,
        )


def page_requests(driver: Driver, url: str = "") -> list[str]:
    """What documents whose address begins so have asked for since the last time."""
    noted = [json.loads(entry["message"])["message"] for entry in driver.log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in noted
        if event["method"] == "Network.requestWillBeSent"
        and event["params"]["documentURL"].startswith(url)  # not the browser's own first page
    ]


@contextlib.contextmanager
def well_behaved(driver: Driver, url: str) -> Iterator[None]:
    """A visit, after which the page must have kept to its own server and complained of nothing."""
    driver.log("browser")
    driver.log("performance")
    driver.view(1200, 900)
    driver.prefer()
    yield
    complaints = [
        entry["message"]
        for entry in driver.log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]
    assert [said for said in complaints if "status of 400" not in said] == []
    requests = page_requests(driver, url)
    assert requests
    assert [one for one in requests if not one.startswith((url, "data:"))] == []
