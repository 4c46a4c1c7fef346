"""What the page says of an output whose head looks elsewhere, in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from attlas.explorer import app
from attlas.inference import Translator
from attlas.inference.huggingface import HuggingFaceModel
from support.page_visits import Reader, serving, well_behaved
from support.small_models import model as small_model
from support.small_models import saved
from support.small_translators import small_translator
from support.webdriver import END, LEFT, RIGHT, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("browser"),
]

CROSS = "#text=the cat sat&v=1&l=0&h=1&tab=doubt"  # the layer of cross-attention stands first


def made() -> Translator:
    return small_translator(max_len_a=0, max_len_b=6, min_length=6)


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
    ready(reader)


def ready(reader: Reader) -> None:
    reader.driver.wait(
        "page.querySelector('#effects') && page.querySelector('.doubt [aria-busy=false]')"
    )


def table(reader: Reader) -> dict[str, list[str]]:
    """By the name of a change what its row says."""
    rows = reader.driver.run(
        "return [...page.querySelectorAll('#effects tbody tr')].map(row =>"
        " [row.dataset.change ?? 'as it is',"
        " ...[...row.children].map(cell => cell.textContent.replace(/[\\u2068\\u2069]/g, ''))])"
    )
    return {row[0]: row[1:] for row in rows}


def effects(url: str, query: str) -> dict[str, Any]:
    """What the server says of the same."""
    reported = httpx.post(f"{url}api/translate", json={"text": "the cat sat"}).json()
    answer: dict[str, Any] = httpx.get(f"{url}api/maps/{reported['map']}/0/doubt?{query}").json()
    return {effect["name"]: effect for effect in answer["changes"]} | {"all": answer}


def number(text: str) -> float:
    return float(text.split("±")[0].replace("−", "-"))


def test_each_change_is_a_row_with_what_the_server_measured(reader: Reader, url: str) -> None:
    enter(reader, f"{CROSS}&p=t2.4&wt=50")
    rows = table(reader)
    assert list(rows) == ["as it is", "uniform", "permuted", "off", "weight", "erased"]
    measured = effects(url, "head=1&output=2&row=2&key=4&weight=0.5&erased=4:5")
    for name in list(rows)[1:]:
        assert number(rows[name][1]) == pytest.approx(measured[name]["delta"], abs=0.0051)
        assert float(rows[name][2].strip("<% ")) == pytest.approx(
            100 * measured[name]["probability"], abs=0.11
        )
    assert f"± {measured['permuted']['spread']:.2f}" in rows["permuted"][1]
    assert rows["weight"][0].endswith("→ 50 %")
    gradients = reader.driver.run(
        "return [...page.querySelectorAll('#gradients .gradient')].map(line =>"
        " line.lastElementChild.textContent)"
    )
    assert [number(text) for text in gradients] == pytest.approx(
        measured["all"]["gradient"], abs=0.0051
    )


def test_the_output_the_weight_and_the_erased_word_are_chosen_with_keys_and_kept_by_the_link(
    reader: Reader,
) -> None:
    enter(reader, f"{CROSS}&p=t2.4")
    reader.choose("#doubted", "4")
    reader.choose("#erased", "1")
    ready(reader)
    before, steps = reader.link(), reader.driver.run("return history.length")
    of_model = int(reader.driver.run("return page.querySelector('#edited').value"))
    weight = of_model + 2
    reader.driver.run("page.querySelector('#edited').focus()")
    reader.driver.keys([RIGHT, RIGHT])
    edited = "page.querySelector('[data-change=weight]')?.textContent.includes(`→ ${args[0]} %`)"
    reader.driver.wait(edited, weight)
    ready(reader)
    said, link = table(reader), reader.link()
    assert all(part in link for part in ("out=4", f"wt={weight}", "er=1"))
    assert reader.driver.run("return history.length") == steps + 1  # however far a slider is moved
    reader.driver.run("history.back()")  # to where it was moved from
    reader.driver.wait("!location.hash.includes('wt=')")
    ready(reader)
    assert reader.link() == before
    slider = "Number(page.querySelector('#edited').value) === args[0]"
    reader.driver.wait(f"page.querySelector('#doubted').value === '4' && {slider}", of_model)
    assert "weight" not in table(reader)
    enter(reader, link)
    reader.driver.wait(edited, weight)
    assert table(reader) == said


def test_the_slider_begins_at_the_weight_of_the_model_and_begins_again_at_another_key(
    reader: Reader, url: str
) -> None:
    slider = "return Number(page.querySelector('#edited').value)"
    link = f"{CROSS}&p=t2.4"
    enter(reader, link)
    weights = effects(url, "head=1&output=2&row=2&key=4")["all"]["weights"]
    assert 1 < 100 * weights[4] < 99
    assert reader.driver.run(slider) == round(100 * weights[4])
    assert list(table(reader)) == ["as it is", "uniform", "permuted", "off", "erased"]
    reader.driver.run("page.querySelector('#edited').focus()")
    reader.driver.keys([END])
    reader.driver.wait(
        "page.querySelector('[data-change=weight]')?.textContent.includes('→ 100 %')"
    )
    assert "wt=100" in reader.link()
    reader.driver.run("page.querySelectorAll('#target .token')[3].click()")
    reader.driver.wait("!page.querySelector('[data-change=weight]')")
    ready(reader)
    other = effects(url, "head=1&output=3&row=3")["all"]
    assert reader.driver.run(slider) == round(100 * max(other["weights"]))
    assert "wt" not in reader.link()


def test_another_row_of_the_map_is_another_output(reader: Reader) -> None:
    enter(reader, CROSS)
    assert reader.driver.run("return page.querySelector('#doubted').value") == "0"
    reader.driver.run("page.querySelectorAll('#target .token')[3].click()")
    reader.driver.wait("page.querySelector('#doubted').value === '3'")


def test_other_weights_are_searched_for_on_request_and_the_search_can_be_stopped(
    reader: Reader,
) -> None:
    enter(reader, f"{CROSS}&p=t1.2")
    reader.driver.click("#adversary")
    reader.driver.wait("page.querySelector('.seek button')?.textContent === 'Stop'")
    reader.driver.click(".seek button")
    reader.driver.wait("page.querySelector('#adversary')")
    reader.driver.click("#adversary")
    share = "Number(/([1-9]\\d?) %/.exec(page.querySelector('.seek')?.textContent)?.[1])"
    reader.driver.wait(f"{share} > 0", seconds=60)  # and how far it is
    reader.driver.wait("page.querySelector('[data-change=adversary]')", seconds=200)
    assert "nats of at most" in reader.text(".seek")


def test_the_tab_is_reached_with_keys(reader: Reader) -> None:
    reader.enter(CROSS.removesuffix("&tab=doubt"))
    reader.driver.wait("page.querySelector('#tab-doubt')")
    reader.driver.run("page.querySelector('#tab-distribution').focus()")
    reader.driver.keys([END, LEFT])
    reader.driver.wait("page.activeElement?.id === 'tab-doubt'")
    ready(reader)
    assert "tab=doubt" in reader.link()


def test_what_is_wrong_stands_in_view(reader: Reader) -> None:
    reader.driver.view(1280, 800)
    enter(reader, CROSS)
    driver = reader.driver
    driver.run("window.fetch = () => Promise.reject(new TypeError('gone'))")
    reader.choose("#doubted", "4")
    driver.wait("page.querySelector('.doubt [role=alert]')?.checkVisibility()")
    bottom, room = driver.run(
        "const one = page.querySelector('.doubt [role=alert]').getBoundingClientRect();"
        " return [one.bottom, page.querySelector('.doubt .aside').getBoundingClientRect().bottom]"
    )
    assert bottom <= min(room, 800)


@pytest.mark.parametrize("width", [390, 1440])
def test_no_column_of_the_table_is_out_of_view(reader: Reader, width: int) -> None:
    reader.driver.view(width, 900)
    enter(reader, f"{CROSS}&p=t2.4&wt=50")
    room = "page.querySelector('.doubt .table-room')"
    assert reader.driver.run(f"return {room}.scrollWidth <= {room}.clientWidth")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing_to_mend_in_the_table(reader: Reader, width: int, scheme: str) -> None:
    reader.driver.view(width, 900)
    reader.driver.prefer(scheme)
    enter(reader, f"{CROSS}&p=t2.4")
    assert reader.driver.violations() == []


def test_of_an_encoder_that_gives_no_output_the_tab_says_why_there_is_nothing(
    driver: Driver, tmp_path: Path
) -> None:
    folder = saved(tmp_path / "bert", "bert")
    small_model("bert").base_model.save_pretrained(folder)  # without its head
    model = HuggingFaceModel(folder)
    with serving(app(model)) as address, well_behaved(driver, address):
        reader = Reader(driver, address)
        reader.enter("#text=the cat sat&v=1")
        driver.wait("page.querySelector('#tab-doubt')")
        driver.click("#tab-doubt")
        driver.wait("page.querySelector('#inspected .empty')")
        assert "no output whose probability could change" in reader.text("#inspected")
        assert driver.violations() == []


@pytest.mark.parametrize("width", [390, 1400])
def test_what_is_said_of_a_long_translation_stays_in_view(reader: Reader, width: int) -> None:
    driver = reader.driver
    driver.view(width, 900)
    enter(reader, CROSS)
    assert "did not end what it wrote" in reader.text("#remark")
    driver.run("page.querySelector('#translation').textContent = 'some words '.repeat(90)")
    top, bottom, room = driver.run(
        "const { top, bottom } = page.querySelector('#remark').getBoundingClientRect();"
        " return [top, bottom, page.querySelector('#looking').getBoundingClientRect().top]"
    )
    assert 0 < top < bottom <= room
    lines = driver.run(
        "const one = page.querySelector('#translation');"
        " return one.clientHeight / parseFloat(getComputedStyle(one).lineHeight)"
    )
    assert lines == pytest.approx(3, abs=0.01)
    assert driver.violations() == []
