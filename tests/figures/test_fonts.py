"""No letter of a figure is a box."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.text import Text

from attlas import figures
from attlas.errors import AttlasError
from attlas.figures.fonts import LONGEST, TextLayout


def drawn(source: list[str], target: list[str]) -> Figure:
    """Warnings are errors here, matplotlib's "Glyph … missing" among them."""
    figure = figures.heatmap(np.ones((len(target), len(source))) / len(source), source, target)
    figure.canvas.draw()
    return figure


def texts(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


@pytest.mark.usefixtures("machine_with_cjk")
@pytest.mark.parametrize(
    "tokens",
    [
        ["私", "は", "毎日", "学校", "へ", "行き", "ます", "。"],
        ["这", "是", "简体", "中文", "，"],
        ["這", "是", "繁體", "中文"],
        ["나는", "학교에", "간다", "."],
        ["カタカナ", "ｶﾅ", "「", "」", "〜", "ー"],
    ],
    ids=["Japanese", "simplified", "traditional", "Korean", "katakana"],
)
def test_no_glyph_of_chinese_japanese_or_korean_is_missing(tokens: list[str]) -> None:
    assert set(tokens) <= texts(drawn(tokens, ["I", "go"]))


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize(
    "tokens",
    [
        ["أنا", "أذهب", "إلى", "المدرسة"],
        ["אני", "הולך"],
        ["Я", "иду", "в", "школу", "ё"],
        ["Πηγαίνω", "ᾧ"],
        ["ŝĉ", "ø", "ß", "ı", "e\u0301", "Đ", "ệ"],
        ["😀", "❤\ufe0f", "→", "“", "½"],
        ["$x_1$", "\\frac", "50%", "a_b^c", "{", "&amp;", "<b>", "#"],
    ],
    ids=["Arabic", "Hebrew", "Russian", "Greek", "Latin", "emoji", "signs"],
)
def test_no_glyph_is_missing_with_matplotlibs_own_fonts(tokens: list[str]) -> None:
    assert set(tokens) <= texts(drawn(tokens, ["a"]))


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize("token", ["日本", "한국", "あ", "、", "ア", "ㄅ", "，", "「"])
def test_a_machine_without_a_font_for_it_says_which_command_brings_one(token: str) -> None:
    with pytest.raises(AttlasError) as error:
        drawn([token, "a"], ["b"])
    assert str(error.value).startswith(f"expected a font that has {min(token)} (U+")
    assert "run: pip install 'attlas[cjk]'" in str(error.value)


@pytest.mark.usefixtures("bare_machine")
def test_a_letter_that_no_font_has_is_shown_as_its_code_point_and_reported() -> None:
    with pytest.warns(figures.MissingGlyphs, match=r"no installed font has .*U\+0928.*U\+1F44D"):
        figure = figures.heatmap([[1.0, 0.0]], ["न", "👍"], ["a"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    assert {"‹U+0928›", "‹U+1F44D›"} <= texts(figure)


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("\u2581the", "·the"),
        ("\u2581", "·"),
        ("a b", "a·b"),
        ("\u00a0", "·"),
        ("", "“”"),
        ("\n", "⏎"),
        ("\u2028", "⏎"),
        ("\t", "⇥"),
        ("\x07", "‹U+0007›"),
        ("\ud800", "‹U+D800›"),
        ("\u200b", "‹U+200B›"),
        ("\u200b\ufeff", "‹U+200B›‹U+FEFF›"),
        ("<0xE2>", "<0xE2>"),
    ],
)
def test_what_cannot_be_seen_is_shown(token: str, label: str) -> None:
    figure = drawn([token, "x"], ["y"])
    assert label in texts(figure)


def test_a_token_that_is_very_long_loses_its_middle_visibly() -> None:
    token = "".join(chr(ord("a") + i % 26) for i in range(200))
    label = TextLayout.of([token]).label(token)
    assert len(label) <= LONGEST
    before, mark, after = label.partition("…")
    assert mark
    assert token.startswith(before)
    assert token.endswith(after)


@pytest.mark.usefixtures("machine_with_cjk")
def test_no_command_is_named_that_would_not_help() -> None:
    rare = "\U00031350"  # a CJK ideograph of extension H, which the extra does not have
    with pytest.warns(figures.MissingGlyphs, match=r"U\+31350"):
        figure = figures.heatmap([[1.0]], [rare], ["a"])
    assert "‹U+31350›" in texts(figure)


@pytest.mark.usefixtures("bare_machine")
def test_a_code_point_is_never_cut_in_two() -> None:
    with pytest.warns(figures.MissingGlyphs):
        label = TextLayout.of(["न" * 30]).label("न" * 30)
    assert label == "‹U+0928›…‹U+0928›"


@pytest.mark.usefixtures("machine_with_cjk")
def test_a_font_that_is_not_needed_is_not_used() -> None:
    fonts = {name for text in drawn(["abc"], ["d"]).findobj(Text) for name in text.get_fontfamily()}
    assert not any("CJK" in name for name in fonts)


@pytest.mark.usefixtures("machine_with_cjk")
def test_a_font_is_added_once_however_many_figures_are_drawn() -> None:
    counts = []
    for _ in range(3):
        drawn(["猫"], ["d"])
        counts.append(len(fontManager.ttflist))
    assert counts[0] == counts[1] == counts[2]
