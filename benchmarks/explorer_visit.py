"""A visit at the explorer's page in a real browser, timed by the browser's own clock.

A script that the browser runs before the page's own wraps `drawImage`, and notes when pictures are
drawn, and when the frame was on screen that shows them. Nothing waits by sleeping, and the page
knows nothing of it.
"""

import contextlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from support.webdriver import DOWN, ENTER, RIGHT, Driver, browser, installed  # noqa: E402

__all__ = ["DOWN", "RIGHT", "ROOT", "Driver", "Visit", "browser", "installed", "looking"]

WIDTH, HEIGHT = 1440, 900
_PATIENCE = 55  # seconds, for what takes longest; the driver itself waits for 60
_LONG_READING = 10  # times as long, for a map of 131,072 tokens

# `probe.pictures`: when all heads (or the one there is) were drawn, and the frame that showed them.
# `probe.map`: each picture that was drawn for the first time in the map, and the frame that showed
# it. `probe.moves`: from when the browser had a movement of the pointer until the frame that
# answered it.
PICTURE = 64  # cells across, of the first picture of a head
# Whether a larger picture was drawn after the weights of one head had come, none of them pooled.
EXACT = """
window.probe.map.find(one => one.width > args[0] && one.shown && performance
  .getEntriesByType('resource')
  .some(({ name, responseEnd }) => responseEnd > 0 && responseEnd <= one.drawn
    && name.includes(`&shape=${args[1]},${args[1]}&heads=`)))
"""
PROBE = """
(() => {
  const probe = window.probe = { pictures: null, map: [], moves: [], drawn: 0, pressed: 0 };
  const shown = (then) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => then(performance.now());
    port2.postMessage(null);
  });
  const known = new WeakSet();
  const { drawImage } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.drawImage = function (image, ...where) {
    drawImage.call(this, image, ...where);
    if (this.canvas.id === "grid" && probe.pictures === null && ++probe.drawn === HEADS) {
      const one = { drawn: performance.now(), shown: null };
      probe.pictures = one;
      shown((now) => { one.shown = now; });
    }
    if (this.canvas.id === "map" && !known.has(image)) {
      known.add(image);
      const one = { width: image.width, drawn: performance.now(), shown: null };
      probe.map.push(one);
      if (HEADS === 1) probe.pictures ??= one; // there is no grid
      shown((now) => { one.shown = now; });
    }
  };
  // A pointer that a script made cannot be captured, and the drag goes on without.
  const { setPointerCapture } = Element.prototype;
  Element.prototype.setPointerCapture = function (id) {
    try { setPointerCapture.call(this, id); } catch { /* of a script */ }
  };
  addEventListener("pointermove", (event) => {
    if (event.isTrusted) shown((now) => probe.moves.push(now - event.timeStamp));
  }, true);
  addEventListener("keydown", (event) => { probe.pressed = event.timeStamp; }, true);
})();
"""

# Frames of the browser, each with one event of the hand: a wheel that comes closer and goes away,
# or a drag to and fro.
FRAMES = """
const [canvas, kind, count, done] = [page.querySelector('#map'), ...arguments];
const box = canvas.getBoundingClientRect();
const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
const at = [];
const pointer = (type, dx) => canvas.dispatchEvent(new PointerEvent(type, {
  bubbles: true, composed: true, pointerId: 7, pointerType: 'mouse', buttons: 1,
  button: type === 'pointermove' ? -1 : 0, clientX: x + dx, clientY: y + dx / 2 }));
if (kind === 'pan') pointer('pointerdown', 0);
const step = (now) => {
  at.push(now);
  const turn = at.length;
  if (turn > count) {
    if (kind === 'pan') pointer('pointerup', 0);
    return done(at);
  }
  if (kind === 'pan') pointer('pointermove', 120 * Math.sin(turn / 8));
  else canvas.dispatchEvent(new WheelEvent('wheel', {
    bubbles: true, composed: true, cancelable: true,
    clientX: x + 40 * Math.sin(turn / 9), clientY: y, deltaY: Math.floor(turn / 30) % 2 ? 60 : -60,
  }));
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""

NODES = """
let [elements, all] = [0, 0];
const count = (root) => {
  for (const walker = document.createTreeWalker(root); walker.nextNode();) {
    const node = walker.currentNode;
    all += 1;
    if (node.nodeType !== 1) continue;
    elements += 1;
    if (node.shadowRoot) count(node.shadowRoot);
  }
};
count(document);
return { elements, all };
"""


@contextlib.contextmanager
def looking(shown: Sequence[Path], *, cache: bool = False) -> Iterator[str]:
    """`attlas look` with these traces or this run, on all cores; where it listens.

    Without a cache it keeps nothing on disk. Of a trace that no page has asked for yet, nothing is
    read or pooled.
    """
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    look = [sys.executable, "-m", "attlas", "look", *map(str, shown)]
    command = [*look, "--port", "0", "--no-browser", *([] if cache else ["--no-cache"])]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        said = []
        try:
            for line in server.stdout:
                said.append(line)
                if found := re.search(r"http://\S+/", line):
                    yield found[0]
                    break
            else:
                raise SystemExit(f"expected the explorer's address; got {''.join(said)}")
        finally:
            server.terminate()
            server.wait(timeout=60)


class Visit:
    """A browser's window at the page of the explorer, which shows so many heads."""

    def __init__(self, driver: Driver, url: str, heads: int) -> None:
        self.driver, self.url = driver, url
        driver.ask("POST", "/timeouts", {"script": 1000 * _PATIENCE})
        driver.view(WIDTH, HEIGHT)
        driver.devtools("Performance.enable", timeDomain="threadTicks")
        driver.devtools("Network.enable")
        driver.devtools("Network.setCacheDisabled", cacheDisabled=True)
        script = PROBE.replace("HEADS", str(heads))
        added = driver.devtools("Page.addScriptToEvaluateOnNewDocument", source=script)
        self._script = added["identifier"]

    def close(self) -> None:
        """Take the probe out of the pages that come."""
        self.driver.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=self._script)

    def open(self, link: str = "", source: int = 0) -> None:
        """The page anew, with nothing of it kept; of this trace."""
        self.driver.open("about:blank")
        self.driver.log("performance")
        self.driver.open(f"{self.url}?s={source}{link}")

    def wait(self, condition: str, *arguments: object) -> Any:
        """Until this is true of the page."""
        return self.driver.wait(condition, *arguments, seconds=_PATIENCE)

    def probe(self) -> dict[str, Any]:
        """What was noted."""
        found: dict[str, Any] = self.driver.run("return window.probe")
        return found

    def first_pictures(self) -> dict[str, float]:
        """Milliseconds until all heads are on screen, those in which an answer of the server was
        waited for, and the bytes of these answers. The map of one head comes next, and is left
        out."""
        self.wait("window.probe?.pictures?.shown")
        end = float(self.probe()["pictures"]["shown"])
        entries = self.requests()
        came = next(one["responseEnd"] for one in entries if one["name"].endswith("/overview"))
        # What was asked before they came, and which way their words run.
        needed = [one for one in entries if one["startTime"] < came or "rows=0:1&" in one["name"]]
        waited = _union([(one["requestStart"], one["responseStart"]) for one in needed])
        return {
            "total": end,
            "server": waited,
            "browser": end - waited,
            "bytes": sum(one["transferSize"] for one in needed),
        }

    def exact_map(self, cells: int) -> float:
        """Milliseconds until the weights of a head, so many cells across, have come and are on
        screen: with more pixels than its first picture."""
        return float(self.wait(EXACT, PICTURE, cells)["shown"])

    def whole_map_read(self) -> None:
        """Until the sample of a long map has given way to the largest weights of all of it."""
        condition = "page.querySelector('#coarse')?.textContent.startsWith('Each cell shows')"
        for _ in range(_LONG_READING):
            with contextlib.suppress(AssertionError):
                self.wait(condition)
                return
        raise SystemExit("expected a long map to be read within some minutes; it was not")

    def zoom(self) -> float:
        """Milliseconds from "+" on the map until something new of the closer part is on screen."""
        self.driver.run("page.querySelector('#map').focus(); window.probe.map.length = 0")
        self.driver.keys(["+"])
        self.wait("window.probe.map[0]?.shown")
        found = self.probe()
        return float(found["map"][0]["shown"] - found["pressed"])

    def with_all_heads(self, cells: int) -> None:
        """The page anew, where it asks for all heads of a layer: what is set aside of each is known
        only from its weights."""
        self.open("#v=1&row=0&tab=statistics&x=1")
        self.exact_map(cells)
        self.wait(
            "performance.getEntriesByType('resource').some(one => one.name.includes('&bits=8'))"
        )

    def requests(self) -> list[dict[str, Any]]:
        """The page itself and all that it asked for."""
        found: list[dict[str, Any]] = self.driver.run(
            "return [...performance.getEntriesByType('navigation'),"
            " ...performance.getEntriesByType('resource')].map(one => one.toJSON())"
        )
        return found

    def still(self) -> None:
        """Wait until nothing is on its way: no request, and no long work for half a second."""
        self.driver.ask("POST", "/execute/async", {"script": _STILL, "args": []})

    def nodes(self) -> dict[str, int]:
        """Elements, and nodes of every kind, shadow roots among them."""
        found: dict[str, int] = self.driver.run(NODES)
        return found

    def frames(self, kind: str, count: int = 120) -> float:
        """Frames a second while the map is moved ("pan") or zoomed ("zoom")."""
        script = "const page = document.querySelector('.attlas-explorer').shadowRoot;" + FRAMES
        body = {"script": script, "args": [kind, count]}
        at = self.driver.ask("POST", "/execute/async", body)
        return 1000 * (len(at) - 1) / (at[-1] - at[0])

    def seconds(self) -> dict[str, float]:
        """What has been worked, by DevTools: by the main thread, of it by scripts, and by the whole
        process."""
        metrics = self.driver.devtools("Performance.getMetrics")["metrics"]
        named = {one["name"]: float(one["value"]) for one in metrics}
        return {
            "main": named["ThreadTime"],
            "script": named["ScriptDuration"],  # of the thread's time too: see `timeDomain`
            "process": named["ProcessTime"],
        }

    def hover(self, events: int = 240) -> dict[str, float]:
        """Milliseconds of work, by thread, for each movement of the pointer over the map; from a
        movement to the frame that answers it, the median and the time within which 95 % are."""
        box = self.driver.run(
            "const b = page.querySelector('#map').getBoundingClientRect();"
            " return [b.left, b.top, b.width, b.height]"
        )
        self.driver.run("window.probe.moves.length = 0")
        before = self.seconds()
        for turn in range(events):
            angle = 2 * math.pi * turn / events
            self.driver.devtools(
                "Input.dispatchMouseEvent",
                type="mouseMoved",
                x=box[0] + box[2] * (0.5 + 0.3 * math.sin(angle)),
                y=box[1] + box[3] * (0.5 + 0.3 * math.sin(2 * angle)),
            )
        self.wait("window.probe.moves.length >= args[0]", events)
        after = self.seconds()
        moves = sorted(self.probe()["moves"])
        return {
            **{name: 1000 * (after[name] - before[name]) / events for name in before},
            "frame": moves[len(moves) // 2],
            "frame_p95": moves[int(0.95 * (len(moves) - 1))],
        }

    def switch(self, arrow: str) -> dict[str, float]:
        """Milliseconds from Enter on another head's picture (one step of an arrow key away) until
        its first picture is drawn in the map, until that is on screen, and until the map is on
        screen with more cells than that."""
        self.driver.run("page.querySelector('#grid').focus()")
        self.driver.keys([arrow])
        self.still()
        self.driver.run("window.probe.map.length = 0")
        before = self.driver.run("return location.hash")
        self.driver.keys([ENTER])
        self.wait(
            "location.hash !== args[0] && window.probe.map.some("
            "one => one.width > args[1] && one.shown)",
            before,
            PICTURE,
        )
        found = self.probe()
        exact = next(one for one in found["map"] if one["width"] > PICTURE)
        return {
            "drawn": found["map"][0]["drawn"] - found["pressed"],
            "shown": found["map"][0]["shown"] - found["pressed"],
            "exact_drawn": exact["drawn"] - found["pressed"],
            "exact": exact["shown"] - found["pressed"],
        }

    def foreign(self) -> list[str]:
        """What was asked of anybody but the page's own server."""
        noted = [json.loads(one["message"])["message"] for one in self.driver.log("performance")]
        requested = [
            one["params"]["request"]["url"]
            for one in noted
            if one["method"] == "Network.requestWillBeSent"
        ]
        return [one for one in requested if not one.startswith((self.url, "data:", "about:"))]


_STILL = """
const done = arguments[arguments.length - 1];
let last = performance.now();
const busy = new PerformanceObserver(() => { last = performance.now(); });
busy.observe({ entryTypes: ['resource', 'longtask'] });
(function look() {
  if (performance.now() - last < 500) return setTimeout(look, 50);
  busy.disconnect();
  done();
})();
"""


def _union(spans: list[tuple[float, float]]) -> float:
    """How long at least one of these lasted."""
    total, end = 0.0, 0.0
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total
