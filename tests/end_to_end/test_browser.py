"""The explorer in a real browser: what a reader sees, reaches with keys, and is protected from."""

import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

from attlas.explorer import app
from attlas.recording import DenseAttentionMap, Trace
from support.page_visits import Reader, serving, well_behaved
from support.webdriver import END, ENTER, ESCAPE, HOME, LEFT, RIGHT, TAB, Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]

MARKUP = "<img/src=x/onerror=alert(1)>"


@dataclass(frozen=True)
class Watched:
    text: str
    source_tokens: tuple[str, ...]
    tokens: tuple[str, ...]
    trace: Trace | None
    score: float = -0.5
    finished: bool = True
    cut: int = 0
    known: bool = True
    blank: str = ""


class Shouting:
    """Says every word loudly; each looked at a word that depends on the sentence alone."""

    def __init__(self) -> None:
        self.facts: dict[str, str | int | float | None] = {"parameters": 1_234_567}
        self.reported: dict[str, Watched] = {}
        self.wait = threading.Event()

    def __call__(self, text: str, prefix: str = "") -> Watched:
        if text.startswith("slowly"):
            self.wait.wait(20)
        source = (*(f"▁{word}" for word in text.split()), "</s>")
        target = (*(f"▁{word.upper()}" for word in text.split()), "</s>")
        if text.startswith("blind"):
            reported = Watched(
                text.upper(), source, target, None, blank="the model has no attention"
            )
        else:
            trace = Trace()
            generator = torch.Generator().manual_seed(len(text))
            heads = 2 if text.startswith("heads") else 1
            scores = 3 * torch.randn(1, heads, len(target), len(source), generator=generator)
            for layer in range(heads):
                trace.record(
                    f"layer.{layer}", DenseAttentionMap(scores.roll(layer, -1).softmax(-1))
                )
            trace.label([source], [target])
            reported = Watched(text.upper(), source, target, trace)
        self.reported[text] = reported
        return reported


@dataclass(frozen=True)
class Visit(Reader):
    """A reader, and what stands behind the page."""

    translator: Shouting

    def open(self, sentence: str = "") -> None:
        """The page anew, with this sentence translated."""
        self.enter()
        if sentence:
            self.translate(sentence)

    def translate(self, sentence: str) -> None:
        self.driver.type("#sentence", sentence + ENTER)
        shown = "page.querySelector('#translation').textContent"
        self.driver.wait(f"{shown} === args[0]", sentence.upper())
        words = len(sentence.split()) + 1  # with the end; a long text has those in view alone
        if words <= 20:  # its map may come some frames after its translation
            self.driver.wait(
                "page.querySelectorAll('#target .token').length === args[0]"
                " || page.textContent.includes('the model has no attention')",
                words,
            )

    def weights(self, sentence: str, layer: str = "layer.0") -> torch.Tensor:
        trace = self.translator.reported[sentence].trace
        assert trace is not None
        return trace[layer].weights()[0]

    def focused(self) -> str:
        """The word in focus, and whether it is kept."""
        return str(
            self.driver.run(
                "const e = page.activeElement; return e.parentElement.id + ' ' +"
                " (e.querySelector('bdi')?.textContent ?? '') + ' ' + e.ariaPressed"
            )
        )


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Shouting]]:
    translator = Shouting()
    with serving(app(translator)) as url:
        yield url, translator
        translator.wait.set()


@pytest.fixture
def visit(served: tuple[str, Shouting], driver: Driver) -> Iterator[Visit]:
    with well_behaved(driver, served[0]):
        yield Visit(driver, *served)


def test_a_sentence_becomes_a_translation(visit: Visit) -> None:
    visit.open("a red house")
    assert visit.text("#translation") == "A RED HOUSE"
    assert visit.text("#facts") == "1.2 million parameters"


def test_pointing_at_a_word_shows_where_it_looked(visit: Visit) -> None:
    sentence = "the quick brown fox jumps over it"
    visit.open(sentence)
    weights = visit.weights(sentence)[0]
    words = [*sentence.split(), "⟨end⟩"]
    for query in (1, 4, 7):
        visit.driver.hover(f"#target .token:nth-child({query + 1})")
        visit.driver.wait(
            "page.querySelector('#distribution-title').textContent.includes(args[0])",
            [*(word.upper() for word in sentence.split()), "⟨end⟩"][query],
        )
        bars = visit.bars()
        assert [word for word, _ in bars] == words
        top = max(bars, key=lambda bar: bar[1])[0]
        assert top == words[int(weights[query].argmax())]
        assert visit.text("#bars .top .word") == top
        for (_, share), weight in zip(bars, weights[query].tolist(), strict=True):
            assert share == pytest.approx(weight, abs=0.00101)


def test_the_shade_of_a_source_word_is_darkest_where_the_weight_is_largest(visit: Visit) -> None:
    sentence = "one two three four five"
    visit.open(sentence)
    visit.driver.hover("#target .token:nth-child(3)")
    visit.driver.wait("page.querySelector('#target .token:nth-child(3).active')")
    shades = visit.driver.run(
        "return [...page.querySelectorAll('#source .token')].map(token => {"
        " const [r, g, b] = token.style.backgroundColor.match(/\\d+/g).map(Number);"
        " return 0.2126 * r + 0.7152 * g + 0.0722 * b; })"
    )
    row = visit.weights(sentence)[0, 2].tolist()
    ranked = [shades[i] for i in sorted(range(6), key=lambda i: -row[i])]
    assert ranked == sorted(ranked)  # small weights may share a shade
    assert ranked[0] < ranked[-1] - 30


def test_pointing_at_a_source_word_shows_who_looked_at_it(visit: Visit) -> None:
    sentence = "the quick brown fox"
    visit.open(sentence)
    visit.driver.hover("#source .token:nth-child(2)")
    visit.driver.wait("page.querySelector('#source .token:nth-child(2).active')")
    assert "looked at “quick”" in visit.text("#distribution-title")
    column = visit.weights(sentence)[0, :, 1].tolist()
    bars = visit.bars()
    assert [word for word, _ in bars] == ["THE", "QUICK", "BROWN", "FOX", "⟨end⟩"]
    for (_, share), weight in zip(bars, column, strict=True):
        assert share == pytest.approx(weight, abs=0.00101)


def test_pointing_at_a_cell_of_the_map_names_both_words_and_the_weight(visit: Visit) -> None:
    sentence = "the quick brown fox"
    visit.open(sentence)
    visit.driver.hover("#map", 0, 30)
    visit.driver.wait("page.querySelector('#readout').textContent !== ''")
    said = visit.text("#readout")
    target, source = said.split(":")[0].split(" → ")
    words = [*sentence.split(), "⟨end⟩"]
    spoken = [*sentence.upper().split(), "⟨end⟩"]
    weight = float(visit.weights(sentence)[0, spoken.index(target), words.index(source)])
    share = said.split(": ")[1]
    assert share == ("<1 %" if weight < 0.01 else f"{weight * 100:.0f} %")
    assert visit.text("#target .active bdi") == target
    assert visit.text("#source .partner bdi") == source


def test_the_map_is_drawn(visit: Visit) -> None:
    visit.open("the quick brown fox")
    colours = visit.driver.run(
        "const c = page.querySelector('#map'), d = c.getContext('2d')"
        " .getImageData(0, 0, c.width, c.height).data, seen = new Set();"
        " for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255)"
        " seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size"
    )
    assert colours > 20


def said(visit: Visit, title: str) -> None:
    """Wait until the distribution is of this word: a busy machine draws it some frames later."""
    visit.driver.wait(
        "page.querySelector('#distribution-title')?.textContent"
        ".replace(/[\u2068\u2069]/g, '') === args[0]",
        title,
    )


def test_everything_can_be_done_with_keys(visit: Visit) -> None:
    visit.open()
    visit.translate("the quick brown fox")
    visit.driver.keys([TAB])
    assert visit.driver.run("return page.activeElement.id") == "translate"
    reached = []
    for _ in range(14):
        visit.driver.keys([TAB])
        reached.append(visit.driver.run("return page.activeElement.id"))
        if visit.focused() == "source the false":
            break
    assert [one for one in reached if one in ("help", "part")] == ["help", "part"]
    assert "map" in reached
    assert visit.focused() == "source the false"
    visit.driver.keys([TAB])
    assert visit.focused() == "target FOX false"  # the row that is shown first
    visit.driver.keys([HOME])
    assert visit.focused() == "target THE false"
    visit.driver.keys([RIGHT, RIGHT])
    assert visit.focused() == "target BROWN false"
    said(visit, "Where “BROWN” looked")
    visit.driver.keys([ENTER])
    assert visit.focused() == "target BROWN true"
    visit.driver.keys([LEFT])
    assert visit.focused() == "target QUICK false"
    said(visit, "Where “BROWN” looked")
    visit.driver.keys([ESCAPE])
    said(visit, "Where “QUICK” looked")
    visit.driver.keys([END, RIGHT])
    assert visit.focused() == "target ⟨end⟩ false"


def test_the_focus_can_be_seen(visit: Visit) -> None:
    visit.open("the quick brown fox")
    for _ in range(12):
        visit.driver.keys([TAB])
        outline = visit.driver.run("return getComputedStyle(page.activeElement).outline")
        assert "solid 3px" in outline


def test_what_is_pointed_at_is_said_to_a_screen_reader(visit: Visit) -> None:
    sentence = "the quick brown fox"
    visit.open(sentence)
    row = visit.weights(sentence)[0, 1].tolist()
    top = max(range(5), key=lambda i: row[i])
    word = [*sentence.split(), "⟨end⟩"][top]
    label = visit.driver.run("return page.querySelectorAll('#target .token')[1].ariaLabel")
    label = label.replace("\u2068", "").replace("\u2069", "")
    assert label.startswith(f"QUICK: looked at {word} {row[top] * 100:.0f} %")
    assert visit.driver.run("return page.querySelector('#translation').role") == "status"


def test_markup_is_shown_as_text(visit: Visit) -> None:
    sentence = f"hello {MARKUP} <b>world</b>"
    visit.open(sentence)
    assert visit.text("#source .token:nth-child(2) bdi") == MARKUP
    assert visit.text("#translation") == sentence.upper()
    visit.driver.hover("#target .token:nth-child(2)")
    visit.driver.wait("page.querySelector('#target .token:nth-child(2).active')")
    assert MARKUP.upper() in visit.text("#distribution-title")
    assert (
        visit.driver.run(
            "return page.querySelectorAll('main :is(img, script), #target b, #source b').length"
        )
        == 0
    )


def test_arabic_runs_from_right_to_left_and_its_arrow_keys_with_it(visit: Visit) -> None:
    visit.open("مرحبا يا عالم")
    first, second, *_ = visit.driver.run(
        "return [...page.querySelectorAll('#target .token')]"
        ".map(token => token.getBoundingClientRect().x)"
    )
    assert first > second
    visit.driver.run("page.querySelector('#target [tabindex=\"0\"]').focus()")
    visit.driver.keys([HOME, LEFT])
    assert visit.focused().startswith("target يا")


def test_the_words_of_another_sentence_are_coloured_at_once(visit: Visit) -> None:
    coloured = (
        "[...page.querySelectorAll('#source .token')]"
        ".every(token => token.style.backgroundColor !== '')"
    )
    visit.open("red house")
    visit.driver.wait(coloured)
    for sentence in ("a small green garden", "old boat", "a b c d e f g"):
        visit.translate(sentence)
        assert visit.driver.run(f"return {coloured}"), sentence


def test_an_empty_sentence_is_answered_kindly(visit: Visit) -> None:
    visit.open("red house")
    visit.driver.type("#sentence", "  " + ENTER)
    visit.driver.wait("!page.querySelector('#problem').hidden")
    assert visit.text("#problem") == "Expected a text; got an empty one. Type a few words."
    assert visit.text("#translation") == "RED HOUSE"
    visit.translate("blue house")
    assert visit.driver.run("return page.querySelector('#problem').hidden") is True


def test_a_sentence_too_long_is_answered_with_what_to_do(visit: Visit) -> None:
    visit.open()
    visit.driver.run("page.querySelector('#sentence').value = 'x'.repeat(70000)")
    visit.driver.click("#translate")
    visit.driver.wait("!page.querySelector('#problem').hidden")
    assert "a request of at most 65,536 bytes" in visit.text("#problem")


def test_a_newer_sentence_takes_the_place_of_a_slow_one(visit: Visit) -> None:
    visit.translator.wait.clear()
    visit.open("red house")
    top = "return page.querySelector('#looking').getBoundingClientRect().top"
    before = visit.driver.run(top)
    visit.driver.type("#sentence", "slowly now" + ENTER)
    visit.driver.wait("page.querySelector('#progress').textContent === 'Translating…'")
    assert visit.driver.run(top) == before  # what says so moves nothing
    visit.driver.type("#sentence", "quickly now" + ENTER)
    visit.translator.wait.set()
    visit.driver.wait("page.querySelector('#translation').textContent === 'QUICKLY NOW'")
    assert visit.driver.run("return page.querySelector('#progress').hidden") is True
    assert visit.driver.run("return page.querySelector('#problem').hidden") is True


def test_a_model_without_attention_says_so(visit: Visit) -> None:
    visit.open("blind man")
    assert "the model has no attention" in visit.text("#remark")
    assert visit.driver.run("return page.querySelector('#looking').hidden") is True
    visit.translate("seeing man")
    assert visit.driver.run("return page.querySelector('#looking').hidden") is False


def test_layers_and_heads_can_be_chosen_where_there_are_several(visit: Visit) -> None:
    sentence = "heads look apart"
    visit.open(sentence)
    assert visit.driver.run("return page.querySelector('#choices').hidden") is False
    visit.driver.run("page.querySelector('#target .token').focus()")  # row 0

    def shares() -> list[float]:
        return [share for _, share in visit.bars()]

    visit.choose("#layer", "0")
    visit.choose("#head", "")
    first = visit.weights(sentence)
    visit.driver.wait(
        "page.querySelector('#bars .number').textContent === args[0]",
        f"{float(first.mean(0)[0, 0]) * 100:.1f} %",
    )
    assert shares() == pytest.approx(first.mean(0)[0].tolist(), abs=0.00101)
    visit.choose("#head", "1")
    assert shares() == pytest.approx(first[1, 0].tolist(), abs=0.00101)
    before = shares()
    visit.choose("#layer", "1")
    visit.driver.wait(
        "page.querySelector('#bars .number').textContent !== args[0]",
        f"{before[0] * 100:.1f} %",
    )
    second = visit.weights(sentence, "layer.1")
    assert shares() == pytest.approx(second[1, 0].tolist(), abs=0.00101)
    visit.translate("one head")
    assert visit.driver.run("return page.querySelector('#choices').hidden") is True


def test_the_address_keeps_the_sentence_and_back_restores_it(visit: Visit) -> None:
    visit.open("first one")
    visit.translate("second % one")
    address = visit.driver.run("return location.href")
    visit.driver.run("history.back()")
    visit.driver.wait("page.querySelector('#translation').textContent === 'FIRST ONE'")
    visit.driver.open("about:blank")
    visit.driver.open(address)
    visit.driver.wait("page.querySelector('#translation').textContent === 'SECOND % ONE'")


def test_the_list_can_be_ordered_by_weight(visit: Visit) -> None:
    visit.open("one two three four five")
    visit.driver.click("#order input[value=weight]")
    shares = [share for _, share in visit.bars()]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("width", [320, 480, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_can_be_read(visit: Visit, width: int, scheme: str) -> None:
    visit.driver.view(width, 900)
    visit.driver.prefer(scheme)
    visit.open("a young man in a blue shirt is climbing up the side of a rock face")
    assert visit.driver.run("return document.documentElement.scrollWidth") <= width
    shot = visit.driver.screenshot()
    assert shot[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", shot[16:24]) == (width, 900)
    luminance, contrast = visit.driver.run(CONTRAST)
    assert (luminance < 0.1) == (scheme == "dark")
    assert contrast >= 4.5


# The luminance of the page, and the least contrast of any text on what lies behind it (WCAG 2).
CONTRAST = """
const linear = p => p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4;
const parts = c => c.match(/[\\d.]+/g).map(Number);
const light = c => { const [r, g, b] = parts(c).map(p => linear(p / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const solid = c => { const p = parts(c); return p.length === 3 || p[3] === 1; };
const behind = e => { for (; e; e = e.parentElement) {
  const c = getComputedStyle(e).backgroundColor; if (c.startsWith('rgb') && solid(c)) return c; }
  return 'rgb(255, 255, 255)'; };
let least = 21;
for (const e of page.querySelectorAll('*')) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!own || !e.checkVisibility() || e.closest('.unseen, noscript, option, legend')) continue;
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
  least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
}
return [light(getComputedStyle(document.body).backgroundColor), least];
"""


def test_who_prefers_less_motion_gets_none(visit: Visit) -> None:
    moving = (
        "return [...page.querySelectorAll('*')].filter(e =>"
        " getComputedStyle(e).transitionDuration.split(', ').some(t => parseFloat(t) > 0)).length"
    )
    visit.open("a red house")
    visit.driver.prefer(motion="no-preference")
    assert visit.driver.run(moving) > 0
    visit.driver.prefer(motion="reduce")
    assert visit.driver.run(moving) == 0
