"""Fifty hostile tokens in every tab: shown as text, none of it run, nothing fetched elsewhere."""

from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.analysis import Reference
from attlas.data import Vocabularies
from attlas.data.vocabulary import Words
from attlas.decoding import DecodingConfig
from attlas.explorer import app
from attlas.explorer.notes import NotesFile
from attlas.inference import Translator
from attlas.models import TransformerConfig, build
from attlas.patterns import everywhere
from attlas.recording import FactoredAttentionMap, Trace
from support.hostile_tokens import HOSTILE, LABELS
from support.page_visits import Reader, page_requests, serving, well_behaved
from support.webdriver import Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("browser"),
]

NAME = "</title><script>window.attacked=1</script>"
PINNED = "#v=1&row=0&l=0&h=1&p=t3.2&sel=0.0&x=1"


def made() -> Trace:
    """A decoder that looks at a source; both have these tokens."""
    generator = torch.Generator().manual_seed(2)
    size = len(HOSTILE)
    query, keys = 2 * torch.randn(2, 1, 2, size, 8, generator=generator)
    trace = Trace()
    trace.record("decoder.0", FactoredAttentionMap(query, keys, 8**-0.5, everywhere, None))
    trace.set_kind("decoder.0", cross_attention=True)
    trace.label([HOSTILE], [HOSTILE[::-1]])
    return trace


def noted(path: Path) -> Path:
    """A file with each token as a note; the last one is longer than a note may be."""
    notes = NotesFile(path)
    for token in HOSTILE[:-1]:
        notes.add(f"a note: {token}", PINNED)
    return path


def units(text: str) -> list[int]:
    """The code units of UTF-16, which a half of a surrogate pair has too."""
    coded = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(coded[n : n + 2], "little") for n in range(0, len(coded), 2)]


def labels(driver: Driver, row: str) -> list[list[int]]:
    found: list[list[int]] = driver.run(
        "return [...page.querySelectorAll(`#${arguments[0]} bdi`)].map(one =>"
        " Array.from({length: one.textContent.length}, (_, n) => one.textContent.charCodeAt(n)))",
        row,
    )
    return found


def harmless(driver: Driver) -> None:
    """Nothing was run, and no token has become an element, an attribute or a rule."""
    assert driver.run("return window.attacked ?? null") is None
    elements = driver.run(
        """
        const found = [];
        const look = (root) => {
          for (const one of root.querySelectorAll('*')) {
            if (one.shadowRoot) look(one.shadowRoot);
            const bad = ['img', 'iframe', 'object', 'embed', 'base', 'video', 'template', 'math',
              'details[ontoggle]', '[onload]', '[onerror]', '[onfocus]', '[onmouseover]',
              '[srcdoc]', '[http-equiv=refresh]', '[action*=evil]', 'b > b'];
            if (one.matches(bad.join())) found.push(one.outerHTML.slice(0, 200));
            for (const { name, value } of one.attributes)
              if (['src', 'href', 'data', 'style'].includes(name)
                  && /evil|^javascript:|^data:text/.test(value))
                found.push(`${one.tagName} ${name}=${value}`.slice(0, 200));
          }
        };
        look(document);
        return found;"""
    )
    assert [one for one in elements if "#text=" not in one] == []


def tabs(driver: Driver) -> list[str]:
    found: list[str] = driver.run(
        "return [...page.querySelectorAll('[role=tab]')].map(one => one.id.slice(4))"
    )
    return found


def each_tab(driver: Driver, expected: set[str]) -> None:
    """Open every tab that there is, and point about in it."""
    assert set(tabs(driver)) == expected
    for tab in tabs(driver):
        driver.click(f"#tab-{tab}")
        driver.wait(
            "page.querySelector(`#tab-${args[0]}[aria-selected=true]`)"
            " && page.querySelector('#inspected').textContent.length > 20"
            " && !page.querySelector('#inspected :is([aria-busy=true], [role=status].empty)')",
            tab,
        )
        driver.hover("#map", 20, 20)
        driver.hover("#map", -30, 10)
        driver.hover("#inspected")
        assert not driver.run("return page.querySelector('#problem')?.checkVisibility() ?? false")
        harmless(driver)


def test_the_list_has_fifty_different_tokens() -> None:
    assert len(set(HOSTILE)) == 50


def test_hostile_tokens_of_a_trace_are_text_in_every_tab(driver: Driver, tmp_path: Path) -> None:
    gold = [Reference(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))]
    served = app(made(), name=NAME, gold=gold, notes=noted(tmp_path / "notes.json"))
    with serving(served) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter(PINNED)
        driver.wait("page.querySelectorAll('#target .token').length > 0")
        shown = [units(label) for label in LABELS.values()]
        assert labels(driver, "source") == shown
        assert labels(driver, "target") == shown[::-1]
        assert reader.text("#facts") == NAME
        given = {"distribution", "lines", "mechanism", "statistics", "compare"}
        each_tab(driver, {*given, "alignment", "notes"})
        driver.click("#tab-notes")
        driver.wait("page.querySelectorAll('#notes li p').length === 49")
        written = driver.run("return page.querySelector('#notes li p').textContent")
        assert written == f"a note: {HOSTILE[0]}"
        harmless(driver)


def test_hostile_tokens_of_a_file_are_text_in_every_tab(driver: Driver, tmp_path: Path) -> None:
    made().to_html(tmp_path / "x.html", name=NAME)
    address = (tmp_path / "x.html").as_uri()
    driver.view(1200, 900)
    driver.log("browser")
    driver.log("performance")
    driver.open("about:blank")
    driver.open(address + PINNED)
    driver.wait("page.querySelectorAll('#target .token').length > 0")
    expected = list(LABELS.values())
    assert len(labels(driver, "source")) == len(expected)
    assert [units(label) for label in expected] == labels(driver, "source")
    each_tab(driver, {"distribution", "lines", "statistics", "compare"})
    complaints = [one for one in driver.log("browser") if one["level"] in ("SEVERE", "WARNING")]
    assert complaints == []
    asked = [one for one in page_requests(driver) if not one.startswith("chrome:")]
    assert address in [one.partition("#")[0] for one in asked]
    assert [one for one in asked if not one.startswith((address, "data:", "about:"))] == []


def test_hostile_tokens_that_a_model_reads_and_writes_are_text_in_every_tab(
    driver: Driver,
) -> None:
    words = [token for token in HOSTILE if token == "".join(token.split()) and len(token) < 50]
    words = [token for token in words if token.isprintable()]
    assert len(words) > 20
    with serving(app(hostile_translator(words), name=NAME)) as url, well_behaved(driver, url):
        reader = Reader(driver, url)
        reader.enter()
        driver.run(
            "const field = page.querySelector('#sentence'); field.value = arguments[0];"
            " field.dispatchEvent(new Event('input', {bubbles: true}))",
            " ".join(words),
        )
        driver.click("#translate")
        driver.wait("page.querySelectorAll('#source .token').length > 20")
        harmless(driver)
        assert units(LABELS[words[0]]) in labels(driver, "source")
        given = {"distribution", "lines", "mechanism", "statistics", "compare"}
        each_tab(driver, {*given, "doubt", "beams"})


def hostile_translator(words: list[str]) -> Translator:
    """A Transformer with random weights, whose words are these."""
    torch.manual_seed(3)
    vocabulary = Words(words)
    sizes: dict[str, Any] = {"embed_dim": 16, "num_heads": 2, "ffn_dim": 8}
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    config = TransformerConfig.read({**sizes, **layers}, "a test")
    search = {"max_len_a": 0, "max_len_b": 8, "min_length": 8, "unknown": "forbid"}
    model = build(config, len(vocabulary), len(vocabulary))
    vocabularies = Vocabularies(vocabulary, vocabulary)
    return Translator.of(model, vocabularies, DecodingConfig.read(search, "a test"))
