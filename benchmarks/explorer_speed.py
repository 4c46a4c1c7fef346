"""How fast the explorer is in a real Chromium, beside its goals: `make bench-explorer`.

python benchmarks/explorer_speed.py                      some minutes; peers beside it
python benchmarks/explorer_speed.py --quick --peers      two of each in place of five, no peer
python benchmarks/explorer_speed.py --peers bertviz      one peer only
python benchmarks/explorer_speed.py --run runs/demo      the tab Doubt of this run, too
python benchmarks/explorer_speed.py --model FOLDER       nothing but a real encoder beside its peers
python benchmarks/explorer_speed.py --table              writes the table of the page anew

Traces such as a BERT leaves (`explorer_trace.py`) are served by `attlas look`, and the page is
timed by the browser's own clock (`explorer_visit.py`). Figures go to benchmarks/explorer.json, with
the machine and the commit, and from there into docs/benchmarks.md; those of --quick go nowhere.
Chromium has no GPU here, and the browser and the server share the cores.
"""

import argparse
import datetime
import gzip
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from checkout import warning
from explorer_peers import PEERS, compared, of_model
from explorer_table import PAGE, RECORD, reported, with_goals
from explorer_trace import trace
from explorer_visit import DOWN, RIGHT, ROOT, Driver, Visit, browser, installed, looking
from run import machine

from attlas.explorer.tiles import read_tile
from attlas.recording import Trace

LAYERS, HEADS = 12, 12
MAP = 512  # cells of the map across, at most
TEXT = (
    "The cat sat on the mat because it was tired, although the dog had slept there all morning. "
    "Nobody in the house had noticed that the window was open."
)
SCRIPT = ROOT / "src" / "attlas" / "explorer" / "page" / "explorer.js"

Figures = dict[str, list[float]]


def main() -> None:
    """Measure, write down, and tell in the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two of each; nothing is kept")
    parser.add_argument(
        "--peers", nargs="*", choices=PEERS, default=PEERS, help="measured beside it"
    )
    parser.add_argument("--run", type=Path, help="a run of the recipe demo, for the tab Doubt")
    parser.add_argument("--model", type=Path, help="an encoder of Hugging Face, shown by all")
    parser.add_argument("--text", default=TEXT, help="that it reads; by default two sentences")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if options.table:
        write_table()
        return
    if installed() is None:
        parser.error(
            "expected chromium and chromedriver; got a machine without; on Debian: "
            "apt-get install chromium chromium-driver"
        )
    print(warning(), end="", file=sys.stderr, flush=True)
    load = os.getloadavg()[0]
    if load > 1:
        print(f"this machine is busy (load {load:.1f}): all of this is slower", file=sys.stderr)
    where = machine()
    if options.model is not None:
        keep_model(options.model, options.text, options.peers, where, quick=options.quick)
        return
    times = 2 if options.quick else 5
    with tempfile.TemporaryDirectory() as folder:
        figures, agent = measured(Path(folder), times)
        if options.run is None:
            print("no --run: the tab Doubt is left out", file=sys.stderr)
        else:
            figures["doubt.answer"] = doubted(options.run, times)
        beside = compared(Path(folder), options.peers, 1 if options.quick else 3)
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": where,
        "browser": agent,
        "load": round(load, 1),
        "figures": {
            name: [float(f"{value:.6g}") for value in found] for name, found in figures.items()
        },
        "peers": beside,
    }
    if RECORD.is_file():
        record |= {"model": json.loads(RECORD.read_text(encoding="utf-8")).get("model")}
    print(reported(record))
    if not options.quick:
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        write_table()


def keep_model(model: Path, text: str, peers: list[str], where: Any, *, quick: bool) -> None:
    """Measure the maps of one model and text in all tools, and keep that beside the rest."""
    with tempfile.TemporaryDirectory() as folder:
        beside = compared(Path(folder), peers, 1 if quick else 3, of_model(model, text))
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    record["model"] = {
        "name": model.resolve().name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": where,
        "peers": beside,
    }
    print(reported(record))
    if not quick:
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        write_table()


def write_table() -> None:
    """The table of the figures that are kept, in the page."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    PAGE.write_text(with_goals(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


def measured(folder: Path, times: int) -> tuple[Figures, str]:
    """Every figure of the explorer by name, and which browser it was."""
    figures: Figures = {}

    def note(name: str, found: dict[str, float]) -> None:
        for part, value in found.items():
            figures.setdefault(f"{name}.{part}", []).append(float(value))

    figures["script.gzipped"] = [len(gzip.compress(SCRIPT.read_bytes(), 9))]
    with browser() as driver:
        agent = str(driver.devtools("Browser.getVersion")["product"])
        for layers, heads, length, look in (
            (LAYERS, HEADS, 512, _at_512),
            (LAYERS, HEADS, 1_024, _at_1024),
            (1, 2, 16_384, _nodes),
            (1, 1, 131_072, _long),
        ):
            print(f"{layers} × {heads} heads, {length:,} tokens", file=sys.stderr, flush=True)
            made = trace(layers, heads, length)
            # One more than there are visits: the first loads libraries, and each of the others is
            # to a trace of which the server knows nothing yet.
            files = [folder / f"{length}-{number}.safetensors" for number in range(1 + times)]
            made.save(files[0])
            for other in files[1:]:
                os.link(files[0], other)
            with looking(files) as url:
                visit = Visit(driver, url, layers * heads)
                try:
                    look(visit, made, times, note)
                finally:
                    visit.close()
            if length == 512:
                figures["look.listening"] = listening(files[0], times)
            if length == 131_072:
                _reopened(driver, files[0], times, note)
            for file in files:
                file.unlink()
    return figures, agent


def listening(file: Path, times: int) -> list[float]:
    """Milliseconds from the start of `attlas look` with a trace until it listens."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        with looking([file]):
            found.append(1000 * (time.perf_counter() - begun))
    return found


def doubted(run: Path, times: int) -> list[float]:
    """Milliseconds in which the server answers the tab Doubt, of one output after another."""
    found = []
    with looking([run]) as url:
        body = json.dumps({"text": "The cat is sleeping on the sofa."}).encode()
        header = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}api/translate", body, header)
        with urllib.request.urlopen(request) as answer:
            named = json.load(answer)["map"]
        for output in range(1 + times):  # the first one is not counted
            begun = time.perf_counter()
            address = f"{url}api/maps/{named}/0/doubt?head=0&output={output}&row={output}"
            with urllib.request.urlopen(address) as answer:
                answer.read()
            found.append(1000 * (time.perf_counter() - begun))
    return found[1:]


Note = Callable[[str, dict[str, float]], None]


def _first(visit: Visit, name: str, times: int, note: Note) -> Iterator[None]:
    """The first picture of all heads; after each visit there is time for more."""
    visit.open()
    found = visit.first_pictures()  # the server loads its libraries meanwhile
    note(f"{name}.after_start", {"total": found["total"]})
    visit.still()
    for source in range(1, 1 + times):
        visit.open(source=source)
        found = visit.first_pictures()
        note(f"{name}.first", found)
        note(f"{name}.exact", {"total": visit.exact_map(MAP)})
        visit.still()
        yield


def _at_512(visit: Visit, made: Trace, times: int, note: Note) -> None:
    for _ in _first(visit, "512", times, note):
        note("512.hover", visit.hover())
    for name, arrow in (("head", RIGHT), ("layer", DOWN)):
        for _ in range(times):
            note(f"512.{name}", visit.switch(arrow))
            visit.still()
    note("512.nodes", visit.nodes())
    visit.with_all_heads(MAP)
    note("512.tiles", tiles(visit, made))
    note("foreign", {"requests": len(visit.foreign())})


def _at_1024(visit: Visit, made: Trace, times: int, note: Note) -> None:
    for _ in _first(visit, "1024", times, note):
        note("1024.frames", {kind: visit.frames(kind) for kind in ("zoom", "pan")})
        visit.still()
    note("1024.nodes", visit.nodes())


def _nodes(visit: Visit, made: Trace, times: int, note: Note) -> None:
    visit.open("#v=1&row=0&l=0&h=0&q=0-499&k=0-499")  # with words
    visit.first_pictures()
    visit.exact_map(MAP)
    visit.still()
    note("16384.nodes", visit.nodes())


def _long(visit: Visit, made: Trace, times: int, note: Note) -> None:
    for source in range(1 + times):  # the first loads libraries, and is not counted
        visit.open(source=source)
        found = visit.first_pictures()
        visit.wait("page.querySelector('#coarse')?.textContent.startsWith('A sample')")
        if source > 0:
            note("131072.first", {"total": found["total"], "server": found["server"]})
        visit.driver.open("about:blank")  # for whom nothing is read any more


def _reopened(driver: Driver, file: Path, times: int, note: Note) -> None:
    """A long map that was read once: opened again by another server, and zoomed into."""
    with looking([file], cache=True) as url:
        visit = Visit(driver, url, 1)
        visit.open()
        visit.whole_map_read()
        visit.still()  # what was read is written down
        visit.close()
    for _ in range(times):
        with looking([file], cache=True) as url:
            visit = Visit(driver, url, 1)
            visit.open()
            note("131072.reopened", {"total": visit.exact_map(MAP)})
            visit.still()
            note("131072.zoom", {"shown": visit.zoom()})
            visit.close()


def tiles(visit: Visit, made: Trace) -> dict[str, float]:
    """Of the tiles that the page asked for: bytes a weight, and how far weights are off."""
    found: dict[str, float] = {}
    for one in visit.requests():
        address = one["name"]
        if "?" not in address or "/tokens" in address or "/api/maps/" not in address:
            continue
        with urllib.request.urlopen(address) as answer:
            packed = answer.read()
        weights = read_tile(packed).weights
        layer = int(address.partition("?")[0].rpartition("/")[2])
        rough = "bits=8" in address
        first = int(address.partition("heads=")[2].partition(":")[0] or 0)
        exact = made[list(made)[layer]].weights()[0, first : first + len(weights)]
        kind = "rough" if rough else "near"
        found[f"{kind}_bytes"] = len(packed) / weights.numel()
        off = float((weights - exact).abs().max())
        found[f"{kind}_error"] = max(found.get(f"{kind}_error", 0.0), off)
    return found


if __name__ == "__main__":
    main()
