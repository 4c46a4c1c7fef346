"""Each part of the state that a link holds comes back in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import torch

from attlas.explorer import app
from attlas.explorer.api import api
from attlas.explorer.site import site
from attlas.recording import DenseAttentionMap, Trace
from support.page_visits import Reader, serving, well_behaved
from support.small_translators import small_translator
from support.webdriver import LEFT, RIGHT, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("browser"),
]

ADDRESS = Path(__file__).resolve().parents[2] / "explorer-ui/src/address.ts"

# What a link says beside the text, and what the page then shows. Layer 0 is cross-attention, layer
# 2 the self-attention of the decoder.
PARTS = {
    "l=2&h=mean": "value('#layer') === '2' && value('#head') === ''",
    "l=1&h=1": "value('#layer') === '1' && value('#head') === '1'",
    "l=2&h=1&q=1-3&k=0-2": "words('#target').length === 3",
    "l=0&h=1&p=t2.1": "words('#target')[2]?.ariaPressed === 'true'",
    "l=0&h=1&p=s1": "words('#source')[1]?.ariaPressed === 'true'",
    "l=2&h=1&o=weight": "page.querySelector('#order input[value=weight]')?.checked",
    "l=2&h=1&s=uniform": "value('#scale') === 'uniform'",
    "l=2&h=1&m=max_weight&sort=1&mf=40": (
        "value('#statistic') === 'max_weight' && on('#sorted') && value('#least') === '40'"
    ),
    "l=2&h=1&sel=2.0&tab=compare": (
        "on('#tab-compare') && page.querySelector('#compared')"
        " && page.querySelector('.small-map figcaption')?.textContent.includes('head 1')"
        " && page.querySelectorAll('.small-map figcaption')[1]?.textContent.includes('head 0')"
    ),
    "l=2&h=1&w=1": "on('#joined')",
    "l=2&h=1&tab=lines&t=12": "on('#tab-lines') && value('#threshold') === '12'",
    "l=2&h=1&tab=statistics&x=1": "on('#tab-statistics') && on('#apart')",
    "l=0&h=1&tab=doubt&out=1&wt=30&er=0": (
        "on('#tab-doubt') && value('#doubted') === '1' && value('#edited') === '30'"
        " && value('#erased') === '0'"
    ),
    "l=2&h=1&p=t3.1&tab=mechanism&f=50&u=1&np=1": (
        "on('#tab-mechanism') && value('#factor') === '50' && on('#unmasked') && on('#unplaced')"
    ),
    "l=0&h=1&tab=beams&n=2": "on('#tab-beams') && value('#grown') === '2'",
    "l=2&h=1&tab=compare&b=1": "value('#beside') === '1' && page.querySelector('#compared')",
}
# Of a trace, of one text that looks at itself.
OF_A_TRACE = {
    "row=1&l=0&h=1": "words('#target')[0]?.textContent === 'd'",
    "row=0&l=0&h=1&d=s": "page.querySelector('input[value=source]')?.checked",
}
WORDS = """
const value = (one) => page.querySelector(one)?.value;
const on = (one) =>
  page.querySelector(one)?.checked || page.querySelector(one)?.ariaSelected === 'true';
const words = (row) => page.querySelectorAll(`${row} .token`);
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    search = {"max_len_a": 0, "max_len_b": 6, "min_length": 6, "unknown": "forbid"}
    names = ["one", "two"]
    models = [small_translator(seed=4, **search) for _ in names]
    apis = [api(model, name=name, sources=names) for model, name in zip(models, names, strict=True)]
    with serving(site(apis)) as address:
        yield address


@pytest.fixture
def reader(url: str, driver: Driver) -> Iterator[Reader]:
    with well_behaved(driver, url):
        yield Reader(driver, url)


def comes_back(reader: Reader, link: str, shown: str) -> None:
    """The page shows what the link says, and still says it once something else has changed."""
    reader.enter(link)
    reader.driver.wait(f"(() => {{ {WORDS} return {shown}; }})()")
    assert reader.link() == link
    scale = "uniform" if "s=uniform" in link else "row"
    reader.choose("#scale", scale)
    reader.driver.wait(f"location.hash.includes('s={scale}')")
    assert re.sub(r"&s=\w+", "", reader.link()) == re.sub(r"&s=\w+", "", link)


@pytest.mark.parametrize("parts", PARTS)
def test_what_a_link_says_is_shown_and_said_again(reader: Reader, parts: str) -> None:
    comes_back(reader, f"#text=the%20cat%20sat&v=1&{parts}", PARTS[parts])
    assert reader.driver.run("return page.querySelector('#sentence').value") == "the cat sat"


@pytest.mark.parametrize(
    ("tab", "slider", "part"),
    [
        ("mechanism&p=t3.1", "#factor", "&f="),
        ("lines", "#threshold", "&t="),
        ("beams", "#grown", "&n="),
    ],
)
def test_back_after_a_slider_leads_to_where_it_was_moved_from(
    reader: Reader, tab: str, slider: str, part: str
) -> None:
    layer = 0 if tab == "beams" else 2
    reader.enter(f"#text=the%20cat%20sat&v=1&l={layer}&h=1&tab={tab}")
    driver = reader.driver
    driver.wait("page.querySelector(args[0])?.disabled === false", slider)
    reader.choose("#scale", "row")
    driver.wait("location.hash.includes('s=row')")
    before = reader.link()
    driver.run("page.querySelector(arguments[0]).focus()", slider)
    driver.keys([LEFT if part == "&n=" else RIGHT] * 3)
    driver.wait("location.hash.includes(args[0])", part)
    driver.run("history.back()")  # one step, however far it was moved
    driver.wait("!location.hash.includes(args[0])", part)
    assert reader.link() == before


def test_a_translation_that_begins_with_chosen_tokens_comes_back(reader: Reader, url: str) -> None:
    answer = httpx.post(f"{url}api/translate", json={"text": "the cat sat"}).json()
    output = httpx.get(f"{url}api/maps/{answer['map']}/beams").json()["outputs"][0]
    other = next(one["id"] for one in output["top"] if one["open"] and one["id"] != output["id"])
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    forced = digits[other] if other < 36 else digits[other // 36] + digits[other % 36]
    link = f"#text=the%20cat%20sat&fp={forced}&v=1&l=0&h=1&tab=beams"
    comes_back(reader, link, "page.querySelector('#free')")


@pytest.mark.parametrize("parts", OF_A_TRACE)
def test_what_a_link_says_of_a_trace_comes_back(driver: Driver, parts: str) -> None:
    trace = Trace()
    trace.record("encoder.0", DenseAttentionMap(torch.eye(3).expand(2, 2, 3, 3)))
    texts = [["a", "b", "c"], ["d", "e", "f"]]
    trace.label_layer("encoder.0", texts, texts)
    with serving(app(trace, name="two")) as url, well_behaved(driver, url):
        comes_back(Reader(driver, url), f"#v=1&{parts}", OF_A_TRACE[parts])


def test_no_part_of_a_link_is_left_out_here() -> None:
    text = ADDRESS.read_text(encoding="utf-8")
    fields = text[text.index("const FIELDS") : text.index("const ENTRIES")]
    letters = set(re.findall(r'^  \w+: \["(\w+)"', fields, re.M))
    assert len(letters) > 20
    tried = {part.partition("=")[0] for parts in [*PARTS, *OF_A_TRACE] for part in parts.split("&")}
    assert letters == tried | {"text", "fp"}
