"""A decoder that goes on with a prompt, in a real browser: what is the prompt, and what is not."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from attlas.explorer import app
from attlas.inference.huggingface import HuggingFaceModel
from support.page_visits import Reader, serving, well_behaved
from support.small_models import saved
from support.webdriver import Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

LINK = "#text=the cat sat&v=1&l=0&h=1"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = saved(tmp_path_factory.mktemp("gpt2"), "gpt2")
    with serving(app(HuggingFaceModel(folder, max_new_tokens=4))) as address:
        yield address


@pytest.fixture
def reader(url: str, driver: Driver) -> Iterator[Reader]:
    with well_behaved(driver, url):
        yield Reader(driver, url)


def test_the_prompt_is_marked_off_from_what_was_written(reader: Reader, url: str) -> None:
    reported = httpx.post(f"{url}api/translate", json={"text": "the cat sat"}).json()
    reader.enter(LINK)
    reader.driver.wait("page.querySelector('#target .token')")
    given = reader.driver.run(
        "return [...page.querySelectorAll('#target .token')].map(token =>"
        " getComputedStyle(token.querySelector('bdi')).textDecorationLine === 'underline')"
    )
    assert given == [True] * reported["prompt"] + [False] * len(reported["target"])
    assert reported["prompt"] == len(reported["source"]) > 0
    assert "Underlined: the prompt." in reader.text("#rows")
    assert reader.driver.violations() == []


def test_an_exported_file_marks_the_prompt_off_too(
    driver: Driver, url: str, tmp_path: Path
) -> None:
    reported = httpx.post(f"{url}api/translate", json={"text": "the cat sat"}).json()
    page = tmp_path / "page.html"
    page.write_bytes(httpx.get(f"{url}api/maps/{reported['map']}/file").content)
    driver.open(page.as_uri())
    shadow = "document.querySelector('.attlas-explorer')?.shadowRoot"
    driver.wait(f"{shadow}?.querySelector('#target .token')")
    given = driver.run(
        f"return [...{shadow}.querySelectorAll('#target .token')].map(token =>"
        " getComputedStyle(token.querySelector('bdi')).textDecorationLine === 'underline')"
    )
    assert given == [True] * reported["prompt"] + [False] * len(reported["target"])
    assert "Underlined: the prompt." in driver.run(
        f"return {shadow}.querySelector('#rows').innerText"
    )


def test_the_limit_is_named_with_its_number_and_with_what_to_do(reader: Reader) -> None:
    reader.enter(LINK)
    reader.driver.wait("page.querySelector('#remark')?.textContent !== ''")
    assert reader.text("#remark") == (
        "The model did not end what it wrote: it was cut off at 4 new tokens. "
        "Start with --max-new-tokens for another limit."
    )


def test_outputs_are_counted_as_the_tokens_of_the_map(reader: Reader) -> None:
    reader.enter(f"{LINK}&tab=doubt")
    reader.driver.wait("page.querySelector('#doubted')")
    tokens = reader.words("target")
    names = reader.driver.run(
        "return [...page.querySelector('#doubted').options].map(one => one.textContent)"
    )
    said = [name.replace("\u2068", "").replace("\u2069", "") for name in names]
    assert said[:-1] == [f"{place}: {token}" for place, token in enumerate(tokens)][1:]
    assert said[-1] == f"{len(tokens)}: (next token)"
