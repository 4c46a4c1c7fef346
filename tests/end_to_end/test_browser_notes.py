"""Notes of a reader, in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import attlas
from attlas.explorer import app
from attlas.explorer.notes import NotesFile
from attlas.explorer.one_file import content_of, page_with, write
from support.page_visits import Reader, serving, well_behaved
from support.webdriver import ENTER, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("browser"),
]


def made() -> attlas.Trace:
    torch.manual_seed(4)
    attention = torch.nn.MultiheadAttention(8, 4, batch_first=True)
    source = torch.randn(1, 3, 8)
    with attlas.observe(attention) as trace:
        attention(source, source, source)
    trace.label(source=[["the", "cat", "sat"]], target=[["the", "cat", "sat"]])
    return trace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.json"


@pytest.fixture
def reader(path: Path, driver: Driver) -> Iterator[Reader]:
    with serving(app(made(), name="a trace", notes=path)) as url, well_behaved(driver, url):
        yield Reader(driver, url)


def opened(reader: Reader, link: str) -> None:
    reader.enter(link)
    reader.driver.wait("page.querySelector('#notes li')")


def test_a_note_keeps_its_view_and_is_there_after_a_reload(reader: Reader, path: Path) -> None:
    driver = reader.driver
    opened(reader, "#v=1&row=0&l=0&h=2&tab=notes")
    assert "No notes yet" in reader.text("#notes")
    hostile = "<b>odd</b> head of “cat”"
    driver.run("page.querySelector('#note').focus()")
    driver.type("#note", hostile)
    driver.click(".notes button[type=submit]")
    driver.wait("page.querySelector('#notes li a')")
    (note,) = NotesFile(path).read()
    assert (note.text, "h=2" in note.link) == (hostile, True)
    assert driver.run("return page.querySelector('#note').value") == ""
    opened(reader, "#v=1&row=0&l=0&h=1&tab=notes")
    assert reader.text("#notes li p") == hostile
    driver.run("page.querySelector('#notes a').focus()")
    driver.keys([ENTER])
    driver.wait("location.hash.includes('h=2')")
    driver.run("page.querySelector('#notes button').focus()")
    driver.keys([ENTER])
    driver.wait("page.querySelector('#notes li').textContent.includes('No notes yet')")
    assert NotesFile(path).read() == ()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1440])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_page(
    reader: Reader, path: Path, width: int, scheme: str
) -> None:
    NotesFile(path).add("a note " + "x" * 200, "#v=1&row=0&l=0&h=2")
    reader.driver.view(width, 900)
    reader.driver.prefer(scheme)
    opened(reader, "#v=1&row=0&l=0&h=2&tab=notes")
    assert reader.driver.violations() == []
    assert reader.driver.run("return document.documentElement.scrollWidth") <= width


def test_a_file_shows_the_notes_that_it_holds(driver: Driver, tmp_path: Path, path: Path) -> None:
    file, notes = tmp_path / "x.html", NotesFile(path).add("of the file", "#v=1&row=0&l=0&h=3")
    write(page_with(content_of(made(), None, "x", "display").with_notes(notes)), file)
    driver.open(f"{file.as_uri()}#v=1&row=0&l=0&h=1&tab=notes")
    driver.wait("page.querySelector('#notes li p')")
    assert driver.run("return page.querySelector('#notes li p').textContent") == "of the file"
    assert driver.run("return page.querySelector('#note') === null")
    assert driver.run("return page.querySelector('#notes button') === null")
