"""What else a model could have written, in a real browser."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from attlas.explorer import app
from attlas.inference import Translator
from support.page_visits import Reader, serving, well_behaved
from support.small_translators import small_translator
from support.webdriver import END, ENTER, HOME, RIGHT, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("browser"),
]

TEXT = "the cat sat"
BEAMS = f"#text={TEXT}&v=1&l=0&h=1&tab=beams"


def made(length: int = 6) -> Translator:
    search = {"max_len_a": 0, "max_len_b": length, "min_length": length, "unknown": "forbid"}
    return small_translator(seed=4, **search)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(app(made())) as address:
        yield address


@pytest.fixture
def reader(url: str, driver: Driver) -> Iterator[Reader]:
    with well_behaved(driver, url):
        yield Reader(driver, url)


READY = (
    "page.querySelector('.beams .table-room[aria-busy=false]')"
    " && page.querySelector('#alternatives')"
)


def enter(reader: Reader, link: str) -> None:
    reader.enter(link)
    reader.driver.wait(READY)


def beams(url: str, prefix: list[int] | None = None) -> dict[str, Any]:
    """What the server says of the same."""
    body = {"text": TEXT, **({"prefix": prefix} if prefix else {})}
    reported = httpx.post(f"{url}api/translate", json=body).json()
    found: dict[str, Any] = httpx.get(f"{url}api/maps/{reported['map']}/beams").json()
    return found


def written(reader: Reader) -> list[str]:
    found: list[str] = reader.driver.run(
        "return [...page.querySelectorAll('#alternatives tbody th bdi')].map(e => e.textContent)"
    )
    return found


def test_the_tree_has_each_hypothesis_once_with_its_numbers(reader: Reader, url: str) -> None:
    enter(reader, BEAMS)
    found = beams(url)
    leaves = reader.driver.run(
        "return [...page.querySelectorAll('[data-hypothesis]')].map(e =>"
        " [Number(e.dataset.hypothesis), e.textContent])"
    )
    assert sorted(place for place, _ in leaves) == list(range(len(found["hypotheses"])))
    for place, text in leaves:
        one = found["hypotheses"][place]
        assert f"score {one['score']:.2f}".replace("-", "−") in text
        assert f"log p {one['log_probability']:.2f}".replace("-", "−") in text
    texts = reader.driver.run(
        "return [...page.querySelectorAll('[data-hypothesis]')].map(e => { let text = '';"
        " for (let li = e.closest('li'); li; li = li.parentElement.closest('li'))"
        " text = `${li.querySelector('bdi').textContent} ${text}`.trim();"
        " return [Number(e.dataset.hypothesis), text]; })"
    )
    for place, text in texts:
        tokens = found["hypotheses"][place]["tokens"]
        assert text.split() == [{"</s>": "⟨end⟩"}.get(token, token) for token in tokens]


def test_a_token_that_is_chosen_begins_another_translation_and_back_undoes_it(
    reader: Reader, url: str
) -> None:
    enter(reader, BEAMS)
    before, found = written(reader), beams(url)
    outputs = found["outputs"]
    other = next(one for one in outputs[1]["top"][1:] if one["open"])
    place = outputs[1]["top"].index(other)
    button = f"[data-output='1'] .five > :nth-child({place + 1})"
    assert reader.driver.run(f'return page.querySelector("{button}").tagName') == "BUTTON"
    reader.driver.click(button)
    reader.driver.wait("page.querySelector('#free')")
    reader.driver.wait(READY)
    after = written(reader)
    again = beams(url, [outputs[0]["id"], other["id"]])
    assert after == [one["token"] for one in again["outputs"]]
    assert after[:2] == [before[0], other["token"]]
    link = reader.link()
    assert "&fp=" in link
    assert reader.driver.run("return page.activeElement.getAttribute('aria-label')") == (
        "Alternatives"
    )
    enter(reader, link)
    assert written(reader) == after
    reader.driver.click("#free")
    reader.driver.wait("!page.querySelector('#free')")
    reader.driver.wait(READY)
    assert written(reader) == before
    reader.driver.run("history.back()")
    reader.driver.wait("page.querySelector('#free')")
    reader.driver.wait(READY)
    assert written(reader) == after
    assert reader.link() == link


def test_a_token_is_chosen_with_the_keyboard_and_another_text_begins_freely(
    reader: Reader,
) -> None:
    reader.enter(BEAMS.removesuffix("&tab=beams"))
    reader.driver.wait("page.querySelector('#tab-beams')")
    reader.driver.run("page.querySelector('#tab-distribution').focus()")
    reader.driver.keys([END])
    reader.driver.wait("page.activeElement?.id === 'tab-beams'")
    reader.driver.wait(READY)
    reader.driver.run("page.querySelector('#alternatives button').focus()")
    reader.driver.keys([ENTER])
    reader.driver.wait("page.querySelector('#free')")
    reader.driver.type("#sentence", "the cat")
    reader.driver.click("#translate")
    reader.driver.wait("!page.querySelector('#free')")
    assert "fp=" not in reader.link()


def test_who_types_while_a_chosen_token_is_translated_keeps_the_focus_and_the_text(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed, translate = threading.Event(), Translator.__call__

    def late(self: Translator, text: str, prefix: Any = "", **settings: Any) -> Any:
        if prefix:
            assert typed.wait(30)
        return translate(self, text, prefix, **settings)

    enter(reader, BEAMS)
    monkeypatch.setattr(Translator, "__call__", late)
    reader.driver.run("page.querySelector('#alternatives button').focus()")
    reader.driver.keys([ENTER])
    assert reader.driver.run("return page.activeElement.getAttribute('aria-label')") == (
        "Alternatives"
    )
    reader.driver.type("#sentence", "the cat")
    typed.set()
    reader.driver.wait("page.querySelector('#free')")
    reader.driver.wait(READY)
    assert reader.driver.run("return page.activeElement.id") == "sentence"
    assert reader.driver.run("return page.querySelector('#sentence').value") == "the cat"


def light(reader: Reader) -> list[float]:
    """How light each row of the map is, from 0 to 1, at its last key."""
    found: list[float] = reader.driver.run(
        """
        const canvas = page.querySelector('#map'), marks = page.querySelector('.crosshair').style;
        const copy = document.createElement('canvas'); // which the browser expects to be read
        [copy.width, copy.height] = [canvas.width, canvas.height];
        const pen = copy.getContext('2d', {willReadFrequently: true});
        pen.drawImage(canvas, 0, 0);
        const scale = canvas.width / parseFloat(canvas.style.width);
        const [left, top, wide, high] = ['left', 'top', 'width', 'height'].map(name =>
          parseFloat(marks[name]) * scale);
        const rows = page.querySelectorAll('#target .token').length;
        return Array.from({length: rows}, (_, row) => {
          const [y, tall] = [Math.round(top + row * high / rows), Math.floor(high / rows)];
          const {data} = pen.getImageData(left, y, wide, tall);
          return data.reduce((sum, part) => sum + part, 0) / data.length / 255;
        });"""
    )
    return found


def test_the_map_grows_word_by_word_and_the_link_keeps_it(reader: Reader) -> None:
    driver = reader.driver
    enter(reader, BEAMS)
    whole = light(reader)
    driver.run("page.querySelector('#grown').focus()")
    driver.keys([HOME])
    driver.wait("page.querySelector('.beams output').textContent.startsWith('1 of 6')")
    assert "n=1" in reader.link()
    one = light(reader)
    assert one[0] == pytest.approx(whole[0], abs=0.002)
    assert all(now > before + 0.02 for now, before in zip(one[1:], whole[1:], strict=True))
    driver.keys([RIGHT, RIGHT])
    driver.wait("page.querySelector('.beams output').textContent.startsWith('3 of 6')")
    three = light(reader)
    assert three[:3] == pytest.approx(whole[:3], abs=0.002)
    assert three[3:] == pytest.approx(one[3:], abs=0.002)
    link = reader.link()
    assert "n=3" in link
    enter(reader, link)
    assert light(reader) == pytest.approx(three, abs=0.002)
    # The map of another tab is whole, and so is one after its last word.
    driver.click("#tab-distribution")
    driver.wait("!page.querySelector('#grown')")
    assert light(reader) == pytest.approx(whole, abs=0.002)
    driver.click("#tab-beams")
    driver.wait("page.querySelector('#grown')")
    driver.run("page.querySelector('#grown').focus()")
    driver.keys([END])
    driver.wait("page.querySelector('.beams output').textContent.startsWith('6 of 6')")
    assert "n=" not in reader.link()
    assert light(reader) == pytest.approx(whole, abs=0.002)


def test_rows_that_are_not_the_translation_do_not_grow(reader: Reader) -> None:
    reader.enter(f"#text={TEXT}&v=1&l=1&h=1&tab=beams&n=2")
    reader.driver.wait(READY)
    assert "Choose a layer whose rows are the translation" in reader.text(".beams .aside")
    assert reader.driver.run("return page.querySelector('#grown')") is None


def test_of_a_long_translation_twenty_outputs_are_listed_at_a_time(driver: Driver) -> None:
    with serving(app(made(50))) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        enter(reader, BEAMS)
        assert len(written(reader)) == 20
        first = "return Number(page.querySelector('#alternatives tbody tr').dataset.output)"
        driver.click(".beams .buttons button:nth-child(2)")
        driver.wait("page.querySelector('#alternatives tbody tr').dataset.output === '20'")
        driver.run("page.querySelectorAll('#target .token')[45].click()")
        driver.wait("page.querySelector('#alternatives .partner')?.dataset.output === '45'")
        assert driver.run(first) == 40
        assert driver.run("return page.querySelectorAll('*').length") <= 1_500


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1440])
def test_axe_finds_nothing_to_mend_and_nothing_is_wider_than_the_page(
    reader: Reader, width: int, scheme: str
) -> None:
    reader.driver.view(width, 900)
    reader.driver.prefer(scheme)
    enter(reader, f"{BEAMS}&p=t3.1&n=4")
    reader.driver.run("page.querySelector('#alternatives button').click()")
    reader.driver.wait("page.querySelector('#free')")
    reader.driver.wait(READY)
    assert reader.driver.violations() == []
    assert reader.driver.run("return document.documentElement.scrollWidth") <= width
    assert reader.driver.run(
        "const room = page.querySelector('#inspected > *');"
        " return room.scrollWidth <= room.clientWidth"
    )
