"""A real browser by the W3C WebDriver protocol: HTTP and JSON, which is all that a test needs."""

import base64
import contextlib
import http.client
import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

AXE = Path(__file__).resolve().parents[2] / "explorer-ui/node_modules/axe-core/axe.min.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)

ENTER, ESCAPE, TAB = "\ue007", "\ue00c", "\ue004"
SHIFT, DOWN = "\ue008", "\ue015"
LEFT, RIGHT, HOME, END = "\ue012", "\ue014", "\ue011", "\ue010"

# What is searched for elements: the explorer, whose elements are in a shadow root, or the document.
PAGE = "const page = document.querySelector('.attlas-explorer')?.shadowRoot ?? document;\n"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def installed() -> tuple[str, str] | None:
    """Where the driver and the browser are, or None where one of them is missing."""
    driver = shutil.which("chromedriver")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    return (driver, browser) if driver and browser else None


class Driver:
    """One window of a browser."""

    def __init__(self, port: int, session: str) -> None:
        self._port, self._path = port, f"/session/{session}"

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One command of the protocol; its errors are raised as they are worded there."""
        return _ask(self._port, method, self._path + path, body)

    def open(self, url: str) -> None:
        self.ask("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """Run a function body in the page; what it returns. `page` has the explorer's elements."""
        return self.ask("POST", "/execute/sync", {"script": PAGE + script, "args": list(arguments)})

    def wait(self, condition: str, *arguments: object, seconds: float = 15) -> Any:
        """Wait until a JavaScript expression is true, looked at anew at each frame."""
        script = f"""
            const [done, args] = [arguments[arguments.length - 1], arguments];
            const end = performance.now() + {seconds * 1000};
            (function look() {{
                {PAGE}
                const value = (() => ({condition})).apply(null);
                if (value || performance.now() > end) done(value || null);
                else setTimeout(look, 25);
            }})();"""
        value = self.ask("POST", "/execute/async", {"script": script, "args": list(arguments)})
        if not value:
            text = "return (page.querySelector('.explorer') ?? document.body).innerText"
            raise AssertionError(f"never true: {condition}\n{self.run(text)}")
        return value

    def find(self, selector: str) -> str:
        found = self.run("return page.querySelector(arguments[0])", selector)
        assert found is not None, f"no such element: {selector}"
        return str(found[_ELEMENT])

    def type(self, selector: str, text: str) -> None:
        """Replace what is in a field."""
        element = self.find(selector)
        self.ask("POST", f"/element/{element}/clear", {})
        self.ask("POST", f"/element/{element}/value", {"text": text})

    def click(self, selector: str) -> None:
        self.ask("POST", f"/element/{self.find(selector)}/click", {})

    def keys(self, keys: Sequence[str]) -> None:
        """Press and release keys, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keys", "actions": actions}
        self.ask("POST", "/actions", {"actions": [source]})

    @contextlib.contextmanager
    def held(self, key: str) -> Iterator[None]:
        """A key that is held meanwhile."""

        def act(kind: str) -> None:
            source = {"type": "key", "id": "keys", "actions": [{"type": kind, "value": key}]}
            self.ask("POST", "/actions", {"actions": [source]})

        act("keyDown")
        try:
            yield
        finally:
            act("keyUp")

    def wheel(self, selector: str, pixels: int) -> None:
        """Turn the wheel over the middle of an element."""
        where = {_ELEMENT: self.find(selector)}
        self.run("arguments[0].scrollIntoView({block: 'center'})", where)
        turned = {"type": "scroll", "x": 0, "y": 0, "deltaX": 0, "deltaY": pixels, "origin": where}
        source = {"type": "wheel", "id": "wheel", "actions": [turned]}
        self.ask("POST", "/actions", {"actions": [source]})

    def hover(self, selector: str, x: int = 0, y: int = 0) -> None:
        """Move the pointer to the middle of an element, or so far from its middle."""
        self._mouse(selector, [(x, y)])

    def press(self, selector: str, *places: tuple[int, int]) -> None:
        """Press the mouse at the first of these places, let go at the last."""
        self._mouse(selector, places, pressed=True)

    def _mouse(
        self, selector: str, places: Sequence[tuple[int, int]], *, pressed: bool = False
    ) -> None:
        where = {_ELEMENT: self.find(selector)}
        self.run("arguments[0].scrollIntoView({block: 'center'})", where)
        actions: list[dict[str, Any]] = [
            {"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": where}
            for x, y in places
        ]
        if pressed:
            actions.insert(1, {"type": "pointerDown", "button": 0})
            actions.append({"type": "pointerUp", "button": 0})
        source = {
            "type": "pointer",
            "id": "mouse",
            "parameters": {"pointerType": "mouse"},
            "actions": actions,
        }
        self.ask("POST", "/actions", {"actions": [source]})

    def devtools(self, command: str, **parameters: object) -> Any:
        body = {"cmd": command, "params": parameters}
        return self.ask("POST", "/goog/cdp/execute", body)

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What was noted since the last time: "browser" (the console) or "performance"."""
        entries: list[dict[str, Any]] = self.ask("POST", "/se/log", {"type": kind})
        return entries

    def view(self, width: int, height: int) -> None:
        """The size of the window in CSS pixels."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str = "light", motion: str = "reduce") -> None:
        """What the reader prefers: "light" or "dark"; "reduce" or "no-preference"."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def violations(self) -> list[str]:
        """What axe-core finds in the document that is open: the rule, its elements and why."""
        if not AXE.is_file():
            pytest.skip("axe-core is not installed: run `npm ci` in explorer-ui")
        self.run(AXE.read_text(encoding="utf-8"))
        script = """
            const done = arguments[arguments.length - 1]
            const told = node => [...node.target.flat(), ...node.any.map(one => one.message)]
            axe.run(document, {resultTypes: ['violations']}).then(result => done(
                result.violations.map(one => `${one.id}: ${one.help} `
                    + one.nodes.map(node => told(node).join(' ')).join(' | '))
            ))
        """
        found: list[str] = self.ask("POST", "/execute/async", {"script": script, "args": []})
        return found

    def screenshot(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self.ask("GET", "/screenshot"))


@contextlib.contextmanager
def browser() -> Iterator[Driver]:
    """A browser with a profile of its own, that notes its console and every request."""
    found = installed()
    assert found is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process, port = _started(found[0])
        try:
            expected = {
                "browserName": "chrome",
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                "goog:chromeOptions": {
                    "binary": found[1],
                    "args": [*FLAGS, f"--user-data-dir={profile}"],
                },
            }
            body = {"capabilities": {"alwaysMatch": expected}}
            session = _ask(port, "POST", "/session", body)["sessionId"]
            driver = Driver(port, session)
            try:
                yield driver
            finally:
                driver.ask("DELETE", "")
        finally:
            process.terminate()
            process.wait(timeout=20)


def _started(driver: str) -> tuple[subprocess.Popen[str], int]:
    """A running chromedriver and its port.

    It asks for one port on both IPv4 and IPv6, and ends where the port that it was given on the
    one is taken on the other; another start gets another port.
    """
    said: list[str] = []
    for _ in range(5):
        process = subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            match = re.search(r"started successfully on port (\d+)", line)
            if match:
                # Whoever writes into a full pipe waits, the browser too.
                threading.Thread(target=_emptied, args=(process.stdout,), daemon=True).start()
                return process, int(match[1])
        said.append(f"exit code {process.wait()}\n")
        process.stdout.close()
    raise AssertionError(f"chromedriver did not start:\n{''.join(said)}")


def _emptied(pipe: IO[str]) -> None:
    with pipe:
        pipe.read()


def _ask(port: int, method: str, path: str, body: dict[str, Any] | None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())["value"]
    finally:
        connection.close()
    if isinstance(answer, dict) and "error" in answer:
        raise AssertionError(f"{method} {path}: {answer['error']}: {answer['message']}")
    return answer
