"""Several traces in one page, and long maps of which a part is known, in a real browser."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from attlas.explorer import app, overview
from attlas.explorer.api import api
from attlas.explorer.maps import Layer, MapWindow
from attlas.explorer.site import site
from attlas.patterns import everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from attlas.recording.maps.reductions import PassCancelledError
from support.page_visits import Reader, serving, well_behaved
from support.small_translators import small_translator
from support.webdriver import Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

WORDS = ["the", "cat", "sat", "down"]
NAMES = ["before", "after", "shorter"]


def made(shift: int, words: list[str] = WORDS) -> Trace:
    """One layer of two heads, each of which looks at one token a query."""
    size = len(words)
    weights = torch.stack([torch.eye(size).roll(shift + head, 1) for head in range(2)])
    trace = Trace()
    trace.record("layer.0", DenseAttentionMap(weights.unsqueeze(0)))
    trace.label([words])
    return trace


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    traces = [made(0), made(1), made(0, WORDS[:3])]
    apis = [api(trace, name=name, sources=NAMES) for trace, name in zip(traces, NAMES, strict=True)]
    with serving(site(apis)) as url:
        yield url


@pytest.fixture
def reader(served: str, driver: Driver) -> Iterator[Reader]:
    with well_behaved(driver, served):
        yield Reader(driver, served)


def compared(reader: Reader) -> list[str]:
    """The titles of the maps that are compared."""
    found: list[str] = reader.driver.run(
        "return [...page.querySelectorAll('.compare figcaption')].map(e => e.textContent)"
    )
    return found


def test_another_trace_is_chosen_and_shown_with_the_same_view(reader: Reader) -> None:
    reader.enter("#v=1&row=0&l=0&h=1")
    options = "return [...page.querySelector('#subject').options].map(o => o.text)"
    assert reader.driver.run(options) == NAMES
    assert reader.text("#facts") == "before"
    reader.choose("#subject", "1")
    reader.driver.wait("page.querySelector('#facts')?.textContent === 'after'")
    reader.driver.wait("page.querySelector('#head')?.value === '1'")
    assert reader.driver.run("return location.search") == "?s=1"
    assert reader.driver.run("return page.querySelector('#subject').value") == "1"


def test_two_traces_are_compared_head_by_head(reader: Reader) -> None:
    reader.enter("#v=1&row=0&l=0&h=0&tab=compare")
    reader.driver.wait("page.querySelector('#beside')")
    listed = "return [...page.querySelector('#beside').options].map(o => o.text)"
    assert reader.driver.run(listed) == ["a selected head", "after", "shorter"]
    reader.choose("#beside", "1")
    reader.driver.wait("page.querySelector('#compared')")
    assert compared(reader) == [
        "before: layer 0, head 0",
        "after: layer 0, head 0",
        "the first − the second",
    ]
    assert "On average 100 %" in reader.text("#compared")  # each looks elsewhere
    assert "&b=1" in reader.link()
    # Head 1 of the first looks where head 0 of the second does.
    reader.choose("#head", "1")
    reader.driver.wait("page.querySelector('.compare figcaption')?.textContent.endsWith('head 1')")
    assert compared(reader)[1] == "after: layer 0, head 1"


def test_a_link_says_what_is_compared(reader: Reader) -> None:
    reader.enter("?s=1#v=1&row=0&l=0&h=0&tab=compare&b=0")
    reader.driver.wait("page.querySelector('#compared')")
    assert compared(reader)[:2] == ["after: layer 0, head 0", "before: layer 0, head 0"]


def test_a_trace_with_another_text_is_reported_in_a_sentence(reader: Reader) -> None:
    reader.enter("#v=1&row=0&l=0&h=0&tab=compare&b=2")
    reader.driver.wait("page.querySelector('.compare .empty')?.textContent.includes('Expected')")
    assert "a map with other rows and keys" in reader.text(".compare .empty")


def test_of_two_translations_the_decoder_is_not_compared_and_the_encoder_is(
    driver: Driver,
) -> None:
    search = {"max_len_a": 0, "max_len_b": 6, "min_length": 6}
    models = [small_translator(seed=seed, **search) for seed in (4, 5)]
    assert models[0]("the cat sat").text != models[1]("the cat sat").text
    names = ["one", "two"]
    apis = [api(model, name=name, sources=names) for model, name in zip(models, names, strict=True)]
    with serving(site(apis)) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        for layer in (0, 2):  # cross-attention, and the decoder's; both texts have as many tokens
            reader.enter(f"#text=the cat sat&v=1&l={layer}&h=0&tab=compare&b=1")
            driver.wait("page.querySelector('.compare .empty')?.textContent.includes('Expected')")
            assert reader.text(".compare .empty").endswith(
                "They wrote other texts: compare encoder layers."
            )
        reader.enter("#text=the cat sat&v=1&l=1&h=0&tab=compare&b=1")
        driver.wait("page.querySelector('#compared')")


# A long map.


def long_trace() -> Trace:
    query, keys = torch.randn(2, 1, 1, 8_500, 4, generator=torch.Generator().manual_seed(6))
    trace = Trace()
    trace.record("a", FactoredAttentionMap(query, keys, 0.5, everywhere, 0))
    return trace


def test_the_reading_of_a_long_map_says_how_far_it_is_and_can_be_stopped(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def slowly(window: MapWindow, layer: Layer, stop: threading.Event, reported: Any) -> Any:
        reported(0.37)
        if stop.wait(60):
            ended.set()
        raise PassCancelledError

    monkeypatch.setattr(MapWindow, "pyramid", slowly)
    monkeypatch.setattr(overview, "_MOST_READ", 1 << 20)
    with serving(app(long_trace(), name="long")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter()
        driver.wait("page.querySelector('#progress')?.textContent.includes('37 %')")
        assert reader.text("#progress").startswith("Reading the weights: 37 %")
        assert reader.text("#coarse").startswith("A sample")
        driver.click("#stop")
        assert ended.wait(20)
        driver.wait("page.querySelector('#progress').hidden")
        assert reader.text("#coarse").startswith("A sample")
        assert reader.hidden("#problem")


def test_who_looks_closer_sees_at_once_what_the_reading_of_the_whole_map_knows(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, closer = MapWindow.of, threading.Event()

    def of(window: MapWindow, layer: Layer, *requested: Any, **how: Any) -> torch.Tensor:
        closer.wait(60)
        return whole(window, layer, *requested, **how)

    monkeypatch.setattr(MapWindow, "of", of)
    with serving(app(long_trace(), name="long")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter()
        driver.wait("page.querySelector('#coarse')?.textContent.includes('17 × 17')", seconds=60)
        driver.click("#part")
        driver.wait("page.querySelector('#rows-first')")
        for name, number in (("rows-last", 4_249), ("keys-last", 4_249)):
            driver.type(f"#{name}", str(number))
        driver.click("#frame button[type=submit]")
        driver.wait("page.querySelector('#coarse').textContent.includes('9 × 9')")
        driver.wait("!page.querySelector('#progress').hidden")  # the exact one is under way
        closer.set()
        driver.wait("page.querySelector('#progress').hidden", seconds=60)
        assert "9 × 9" in reader.text("#coarse")
