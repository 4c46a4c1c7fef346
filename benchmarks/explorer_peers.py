"""The same maps in the explorer and in its peers, each as one HTML file that a browser opens.

bertviz loads require.js, jQuery and d3 from another server. Here they come from npm, at the
versions that it names (jQuery 2.1.0 for 2.0.0, which npm lacks), and its file asks this machine.
"""

import contextlib
import functools
import http.server
import json
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from environments import ENVIRONMENTS, HERE, environment, reason
from explorer_trace import trace, words
from explorer_visit import NODES, Driver, browser

import attlas
from attlas.recording import Trace

PEERS = ("bertviz", "circuitsvis", "inspectus")
LAYERS, HEADS, TOKENS = 12, 12, 82
_LONGEST = 300  # seconds until a page is given up
_QUIET = 3000  # ms without a change, after which a page is drawn

# Where bertviz asks for scripts, the package and file of npm that stand in for it, and what it
# calls them: require.js adds ".js" to what it is told.
_ELSEWHERE = "https://cdnjs.cloudflare.com/ajax/libs/"
_SCRIPTS = (
    ("require.js/2.3.6/require.min.js", "requirejs@2.3.6", "require.js", "require.js"),
    ("d3/5.7.0/d3.min", "d3@5.7.0", "dist/d3.min.js", "d3.min"),
    ("jquery/2.0.0/jquery.min", "jquery@2.1.0", "dist/jquery.min.js", "jquery.min"),
)  # fmt: skip

_CHANGES = """
window.changes = { last: 0 };
let asked = false; // one frame shows all that changed before it
const shown = () => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { window.changes.last = performance.now(); };
    port2.postMessage(null);
  });
};
new MutationObserver(shown).observe(document, { childList: true, subtree: true, attributes: true });
const { drawImage, fillRect, putImageData } = CanvasRenderingContext2D.prototype;
for (const draw of [drawImage, fillRect, putImageData]) {
  CanvasRenderingContext2D.prototype[draw.name] = function (...given) {
    draw.apply(this, given);
    shown();
  };
}
"""


def synthetic() -> tuple[Trace, list[str]]:
    """Maps such as a BERT has, and their tokens."""
    return trace(LAYERS, HEADS, TOKENS), words(TOKENS)


def of_model(model: Path, text: str) -> tuple[Trace, list[str]]:
    """The maps of an encoder of Hugging Face with this text, and its tokens."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, encoder = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model)
    inputs = tokenizer(text, return_tensors="pt")
    with torch.inference_mode(), attlas.observe(encoder.eval()) as made:
        encoder(**inputs)
    made.label(tokenizer, inputs["input_ids"])
    return made, tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])


def compared(
    folder: Path, peers: Sequence[str], times: int, shown: tuple[Trace, list[str]] | None = None
) -> list[dict[str, Any]]:
    """The explorer's file first, then each view of each peer; one that does not run says why.

    Args:
        shown: The maps and the tokens; None = synthetic ones.
    """
    if not peers:
        return []
    made, tokens = shown or synthetic()
    made.to_html(folder / "attlas.html", precision="exact")
    maps = np.stack([made[layer].weights()[0].numpy() for layer in made])
    np.save(folder / "maps.npy", maps)
    (folder / "tokens.json").write_text(json.dumps(tokens), encoding="utf-8")
    common = {"heads": maps.shape[0] * maps.shape[1], "tokens": len(tokens)}
    found = []
    with _served(folder) as url:
        found.append(common | {"name": "attlas"} | _drawn(folder, url, "attlas", times))
        for peer in peers:
            made_in = environment(peer)
            if made_in.python is None:
                found.append(common | {"name": peer, "lost": made_in.trouble})
                continue
            name = {"name": peer, "version": made_in.versions.get(peer)}
            before = set(folder.glob("*.html"))
            script = [made_in.python, str(HERE / "contenders" / "views.py"), peer, str(folder)]
            done = subprocess.run(script, capture_output=True, text=True, check=False)
            if done.returncode:
                found.append(common | name | {"lost": reason(done.stderr) or "it failed"})
                continue
            trouble = _own_scripts(folder) if peer == "bertviz" else None
            for file in sorted(set(folder.glob("*.html")) - before):
                view = name | {"name": f"{peer}, {file.stem.replace('_', ' ')}"}
                size = file.stat().st_size
                if trouble is not None:
                    found.append(common | view | {"lost": trouble})
                    continue
                found.append(
                    common | view | _drawn(folder, url, file.stem, times) | {"bytes": size}
                )
    return found


def _drawn(folder: Path, url: str, name: str, times: int) -> dict[str, Any]:
    """Bytes of the file, nodes of its page, and seconds until nothing of it changes any more."""
    seconds = []
    nodes = 0
    for _ in range(times):
        with browser() as driver:  # a peer's page may leave a browser busy
            driver.view(1440, 900)
            driver.devtools("Page.addScriptToEvaluateOnNewDocument", source=_CHANGES)
            with contextlib.suppress(TimeoutError):  # a page of 40 MB; it goes on loading
                driver.devtools("Page.navigate", url=f"{url}{name}.html")
            end = _patiently(driver, time.monotonic() + _LONGEST)
            if end is None:
                return {"lost": f"not drawn in {_LONGEST} s", "bytes": _size(folder, name)}
            seconds.append(end / 1000)
            nodes = int(driver.run(NODES)["all"])
        if seconds[-1] > 20:
            break  # once says enough
    return {
        "bytes": _size(folder, name),
        "nodes": nodes,
        "seconds": [round(one, 3) for one in seconds],
    }


def _size(folder: Path, name: str) -> int:
    return (folder / f"{name}.html").stat().st_size


def _patiently(driver: Driver, until: float) -> float | None:
    """When the last change was on screen; a page that is busy does not answer meanwhile."""
    while time.monotonic() < until:
        with contextlib.suppress(TimeoutError, AssertionError):
            last, now = driver.run("return [window.changes?.last ?? 0, performance.now()]")
            if last > 0 and now - last > _QUIET:
                return float(last)
        time.sleep(0.5)
    return None


def _own_scripts(folder: Path) -> str | None:
    """Put bertviz's scripts beside its files, which then ask for these; why that fails, or None."""
    if shutil.which("npm") is None:
        return (
            "its scripts are on another server, and without Node there is no npm to get them from"
        )
    kept = ENVIRONMENTS / "scripts"
    kept.mkdir(parents=True, exist_ok=True)
    for address, package, path, name in _SCRIPTS:
        archive = kept / f"{package.replace('@', '-')}.tgz"
        if not archive.is_file():
            done = subprocess.run(
                ["npm", "pack", "--silent", package],
                cwd=kept,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                return f"its scripts do not come from npm: {reason(done.stderr)}"
        with tarfile.open(archive) as opened:
            content = opened.extractfile(f"package/{path}")
            assert content is not None
            suffix = "" if name.endswith(".js") else ".js"
            (folder / f"{name}{suffix}").write_bytes(content.read())
        for view in ("head_view", "model_view"):
            file = folder / f"{view}.html"
            own = name if name.endswith(".js") else f"./{name}"
            file.write_text(
                file.read_text(encoding="utf-8").replace(_ELSEWHERE + address, own),
                encoding="utf-8",
            )
    return None


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The address at which this folder's files are."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
