"""The pictures of the tour of the explorer, taken in Chromium.

python scripts/explorer_pictures.py MODEL RUN

MODEL is a folder of Hugging Face with all-MiniLM-L6-v2, RUN a run of the recipe `demo`. The trace
with an image is that of docs/how_to/images.md. The pictures go to docs/explorer_tour/, one for each
view. Chromium and its driver must be installed (`make browser`).
"""

import argparse
import contextlib
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from starlette.applications import Starlette

from attlas.analysis.alignment import parse_reference
from attlas.explorer import app
from attlas.explorer.notes import NotesFile
from attlas.inference import Translator
from attlas.inference.huggingface import HuggingFaceModel
from attlas.recording import Trace

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "explorer_tour"
WIDTH, HEIGHT = 1280, 800
SETTLED = 4.0  # seconds until a view has sharpened

CAT = "text=The cat sat on the mat because it was tired.&v=1"
SOFA = "text=The cat is sleeping on the sofa.&v=1"
# By the name of the picture: whether the run is shown (else the model), and the link of the view.
VIEWS: dict[str, tuple[bool, str]] = {
    "heads": (False, f"{CAT}&l=2&h=11&m=previous_weight&sort=1"),
    "distribution": (False, f"{CAT}&l=3&h=6&p=t8"),
    "lines": (False, f"{CAT}&l=2&h=11&sel=2.7_1.3&tab=lines"),
    "statistics": (False, f"{CAT}&l=2&h=11&tab=statistics"),
    "compare": (False, f"{CAT}&l=2&h=11&sel=2.7&tab=compare"),
    "mechanism": (False, f"{CAT}&l=3&h=6&p=t8&tab=mechanism"),
    "doubt": (True, f"{SOFA}&p=t3&wt=0&tab=doubt"),
    "beams": (True, f"{SOFA}&tab=beams&n=4"),
}


# Of the trace of one translation, with links that a person gave it.
KITCHEN = "I am reading a book in the kitchen."
GERMAN = r"Ich (\w+) ein Buch in der Küche\."  # the tense differs from training to training
LINKS = "0-0 1p1 2-1 3-2 4-3 5-4 6-5 7-6"
NOTES = (
    ("“{verb}” looks at “reading”, not at “am”.", "#v=1&row=0&p=t1.2"),
    ("“Küche” looks at “kitchen”.", "#v=1&row=0&p=t6.7"),
)
OF_TRACE = {"alignment": "v=1&row=0&tab=alignment", "notes": "v=1&row=0&p=t1.2&tab=notes"}

IMAGE = {"image": "v=1&row=0&l=1&h=1&p=t0&tab=image"}


def seen() -> Trace:
    """The trace that the guide to images makes first."""
    guide = (ROOT / "docs" / "how_to" / "images.md").read_text(encoding="utf-8")
    match = re.search("^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert match is not None
    names: dict[str, Trace] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(match[1], names)
    return names["trace"]


def translated(run: Translator) -> tuple[Trace, str]:
    """The trace of a translation that the links are of, and its verb."""
    translation = run(KITCHEN)
    match = re.fullmatch(GERMAN, translation.text)
    if match is None or translation.trace is None:
        raise SystemExit(
            f"expected a run that translates “{KITCHEN}” into “{GERMAN}”, whose links are known; "
            f"got “{translation.text}”; train the recipe `demo` for longer"
        )
    return translation.trace, match[1]


def take(shown: Starlette, views: dict[str, str]) -> None:
    """Take the pictures of these views of what one server shows."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.page_visits import serving
    from support.webdriver import browser

    with serving(shown) as address, browser() as driver:
        driver.view(WIDTH, HEIGHT)
        driver.prefer("light")
        for name, link in views.items():
            driver.open("about:blank")
            driver.open(f"{address}#{link}")
            time.sleep(SETTLED)
            (OUT / f"{name}.png").write_bytes(driver.screenshot())
            print(f"{OUT.relative_to(ROOT)}/{name}.png", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Take all pictures. Return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("run", type=Path)
    options = parser.parse_args(arguments)
    OUT.mkdir(exist_ok=True)
    model, run = HuggingFaceModel(options.model), Translator(options.run)
    take(app(seen()), IMAGE)
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes.json"
        trace, verb = translated(run)
        for text, link in NOTES:
            NotesFile(notes).add(text.format(verb=verb), link)
        gold = [parse_reference(LINKS, first=0)]
        take(app(trace, name="translation.safetensors", gold=gold, notes=notes), OF_TRACE)
    take(app(model), {name: link for name, (of_run, link) in VIEWS.items() if not of_run})
    take(app(run), {name: link for name, (of_run, link) in VIEWS.items() if of_run})
    return 0


if __name__ == "__main__":
    sys.exit(main())
