"""How the weights of a row came about, in a real browser."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import torch

from attlas.explorer import app
from attlas.inference import Translator
from attlas.patterns import everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from support.page_visits import Reader, serving, well_behaved
from support.small_translators import small_translator
from support.webdriver import ENTER, HOME, LEFT, RIGHT, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("browser"),
]

SELF = "#text=the cat sat&v=1&l=2&h=1&tab=mechanism"  # of the decoder, where a mask hides keys


def made() -> Translator:
    return small_translator(seed=4, max_len_a=0, max_len_b=6, min_length=6)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(app(made())) as address:
        yield address


@pytest.fixture
def reader(url: str, driver: Driver) -> Iterator[Reader]:
    with well_behaved(driver, url):
        yield Reader(driver, url)


def enter(reader: Reader, link: str) -> None:
    reader.enter(link)
    reader.driver.wait("page.querySelector('.mechanism [aria-busy=false] #scores')")


def table(reader: Reader) -> list[list[str]]:
    """What the row of each key says."""
    rows: list[list[str]] = reader.driver.run(
        "return [...page.querySelectorAll('#scores tbody tr')].map(row =>"
        " [...row.children].map(cell => cell.textContent.trim()))"
    )
    return rows


def reported(url: str, query: str, layer: int = 2) -> dict[str, Any]:
    """What the server says of the same."""
    answer = httpx.post(f"{url}api/translate", json={"text": "the cat sat"}).json()
    found: dict[str, Any] = httpx.get(
        f"{url}api/maps/{answer['map']}/{layer}/mechanism?{query}"
    ).json()
    return found


def number(text: str) -> float:
    return float(text.replace("−", "-").strip("<% "))


def test_each_key_has_its_product_its_score_and_its_weight(reader: Reader, url: str) -> None:
    enter(reader, f"{SELF}&p=t3.1")
    keys = reported(url, "head=1&row=3&key=1")["keys"]
    rows = table(reader)
    assert len(rows) == 6
    for place, row in enumerate(rows):
        assert number(row[1]) == pytest.approx(keys["product"][place], abs=0.0051)
        assert number(row[2]) == pytest.approx(keys["score"][place], abs=0.0051)
        if place <= 3:
            assert number(row[3]) == pytest.approx(100 * keys["weight"][place], abs=0.051)
        else:
            assert row[3] == "hidden: causal"
    assert "score = 0.354 × q · k, where 0.354 = 1 / √8" in reader.text(".formula")
    assert f"{100 * keys['weight'][1]:.1f} %" in reader.text("#worked")
    assert reader.driver.run("return page.querySelectorAll('.strip').length") == 5


def test_the_slider_sharpens_the_weights_and_is_kept_by_the_link(reader: Reader, url: str) -> None:
    enter(reader, f"{SELF}&p=t3.1")
    keys = reported(url, "head=1&row=3")["keys"]
    reader.driver.run("page.querySelector('#factor').focus()")
    reader.driver.keys([RIGHT] * 11 + [LEFT])
    reader.driver.wait("page.querySelector('.slider output').textContent === '× 2'")
    scores = 2 * torch.tensor(keys["score"][:4], dtype=torch.float64)
    shown = [number(row[3]) for row in table(reader)[:4]]
    assert shown == pytest.approx((100 * scores.softmax(0)).tolist(), abs=0.051)
    assert "f=50" in reader.link()
    entropy = torch.distributions.Categorical(logits=scores).entropy()
    assert f"Entropy {entropy:.2f} of at most 1.39 nats" in reader.text("#entropy")
    enter(reader, reader.link())
    assert [number(row[3]) for row in table(reader)[:4]] == shown
    reader.driver.click("#unscaled")
    reader.driver.wait("page.querySelector('.slider output').textContent === '× 2.83'")
    reader.driver.click(".mechanism .buttons button")
    reader.driver.wait("page.querySelector('.slider output').textContent === 'as in the model'")
    assert "f=" not in reader.link()


def test_without_the_mask_every_key_gets_a_weight(reader: Reader, url: str) -> None:
    enter(reader, f"{SELF}&p=t3.1")
    keys = reported(url, "head=1&row=3")["keys"]
    reader.driver.run("page.querySelector('#unmasked').focus()")
    reader.driver.keys([" "])
    reader.driver.wait("!page.querySelector('#scores .impossible')")
    weights = torch.tensor(keys["score"], dtype=torch.float64).softmax(0)
    shown = [number(row[3]) for row in table(reader)]
    assert shown == pytest.approx((100 * weights).tolist(), abs=0.051)
    assert "u=1" in reader.link()


def test_a_key_is_pinned_with_the_keyboard_and_its_vectors_are_shown(reader: Reader) -> None:
    enter(reader, f"{SELF}&p=t3.1")
    reader.driver.run("page.querySelectorAll('#scores .link')[2].focus()")
    reader.driver.wait("page.querySelector('#scores .partner').dataset.key === '2'")
    assert "p=t3.1" in reader.link()
    reader.driver.keys([ENTER])
    reader.driver.wait("location.hash.includes('p=t3.2')")
    reader.driver.hover("#scores tbody tr:nth-child(1)")
    reader.driver.wait("page.querySelector('#scores .partner').dataset.key === '0'")
    reader.driver.hover(".strip:nth-of-type(2) canvas")
    reader.driver.wait("/^\\d: /.test(page.querySelectorAll('.strip small')[1].textContent)")
    reader.driver.run("page.querySelector('.vectors').focus()")
    reader.driver.keys([HOME, RIGHT])
    reader.driver.wait("page.querySelector('#spoken').textContent.startsWith('number 1: q ')")
    numbers = reader.driver.run(
        "return [...page.querySelectorAll('.strip small')].map(e => e.textContent)"
    )
    assert [text.split(":")[0] for text in numbers] == ["1"] * 5
    query, key, together = (number(text.split(":")[1]) for text in numbers[:3])
    assert together == pytest.approx(query * key, abs=0.02)


def test_another_row_of_the_map_is_explained_when_it_is_pointed_at(reader: Reader) -> None:
    enter(reader, SELF)
    reader.driver.run("page.querySelectorAll('#target .token')[4].click()")
    reader.driver.wait("page.querySelectorAll('#scores .impossible').length === 1")


def test_a_trace_has_the_formula_and_no_values_and_weights_alone_have_none(driver: Driver) -> None:
    trace = Trace()
    words = ["שלום", "a", "<img src=x onerror=alert(1)>"]
    query, keys = torch.randn(2, 1, 2, 3, 4, generator=torch.Generator().manual_seed(1))
    trace.record("layer.0", FactoredAttentionMap(query, keys, 0.5, everywhere, 0))
    trace.record("layer.1", DenseAttentionMap(torch.eye(3).expand(1, 2, 3, 3)))
    for layer in trace:
        trace.label_layer(layer, [words], [words])
    with serving(app(trace, name="both")) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        enter(reader, "#v=1&row=0&l=0&h=0&tab=mechanism")
        assert [row[0] for row in table(reader)] == words
        assert "the map holds queries and keys, no values" in reader.text(".vectors")
        assert "Positions stay: queries and keys were recorded" in reader.text(".mechanism .aside")
        assert driver.run("return page.querySelector('#unplaced')") is None
        reader.choose("#layer", "1")
        driver.wait("page.querySelector('#inspected').textContent.includes('weights alone')")
        reader.choose("#layer", "0")
        reader.choose("#head", "")
        driver.wait("page.querySelector('#inspected').textContent.includes('Choose a head')")


def test_the_products_without_positions_are_those_of_the_model(reader: Reader, url: str) -> None:
    enter(reader, f"{SELF}&p=t3.1")
    before = table(reader)
    reader.driver.run("page.querySelector('#unplaced').focus()")
    reader.driver.keys([" "])
    reader.driver.wait("page.querySelector('.vectors')?.textContent.includes('its positions')")
    keys = reported(url, "head=1&row=3&key=1&positions=0")["keys"]
    after = table(reader)
    assert after != before
    for place, row in enumerate(after):
        assert number(row[3]) == pytest.approx(keys["product"][place], abs=0.0051)
        if place <= 3:
            assert number(row[5]) == pytest.approx(100 * keys["weight"][place], abs=0.051)
    # Beside it the row with positions, as it stood before.
    assert [row[1:3] for row in after[:4]] == [row[2:4] for row in before[:4]]
    assert {number(row[2]) for row in after[4:]} == {0}
    bars = reader.driver.run(
        "return [...page.querySelectorAll('#scores tr:nth-child(1) .bar')].map(e => e.style.width)"
    )
    weights = [100 * keys["weight"][0], number(before[0][3])]
    assert [float(bar.strip("%")) for bar in bars] == pytest.approx(weights, abs=0.051)
    with_positions = reported(url, "head=1&row=3")["keys"]["weight"][:4]
    entropy = torch.distributions.Categorical(torch.tensor(with_positions)).entropy()
    assert f"with positions {entropy:.2f}, of at most 1.39" in reader.text("#entropy")
    # The slider and the mask change both.
    reader.driver.run("page.querySelector('#unmasked').focus()")
    reader.driver.keys([" "])
    reader.driver.wait("!page.querySelector('#scores .impossible')")
    scores = torch.tensor(reported(url, "head=1&row=3")["keys"]["score"], dtype=torch.float64)
    shown = [number(row[2]) for row in table(reader)]
    assert shown == pytest.approx((100 * scores.softmax(0)).tolist(), abs=0.051)
    reader.driver.keys([" "])
    reader.driver.wait("page.querySelector('#scores .impossible')")
    link = reader.link()
    assert "&np=1" in link
    enter(reader, link)
    reader.driver.wait("page.querySelector('.vectors')?.textContent.includes('its positions')")
    assert table(reader) == after
    assert "run without positions in its input" in reader.text(".mechanism .aside")
    reader.driver.click("#unplaced")
    reader.driver.wait("!page.querySelector('.vectors')?.textContent.includes('its positions')")
    assert table(reader) == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1440])
def test_axe_finds_nothing_to_mend_and_nothing_is_wider_than_the_page(
    reader: Reader, width: int, scheme: str
) -> None:
    reader.driver.view(width, 900)
    reader.driver.prefer(scheme)
    enter(reader, f"{SELF}&p=t3.1&f=50&np=1")
    assert reader.driver.violations() == []
    assert reader.driver.run("return document.documentElement.scrollWidth") <= width
    assert reader.driver.run(
        "const room = page.querySelector('#inspected > *');"
        " return room.scrollWidth <= room.clientWidth"
    )
