import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas._text import as_one_line


@pytest.mark.parametrize(
    "spelling",
    ["<br>", "<br/>", "<br />", "<BR />", "</br>", "< br >", '<br clear="all">', "<br\n/>"],
)
def test_a_break_in_any_spelling_is_white_space(spelling):
    assert as_one_line(f"good{spelling}{spelling}bad") == "good bad"
    assert as_one_line(f"{spelling} good\n\tbad {spelling}") == "good bad"


@pytest.mark.parametrize("other", ["<b>", "<broken>", "a < b", "br />", "<br", "<i>br</i>"])
def test_what_is_no_break_stays(other):
    assert as_one_line(f"x {other} y") == f"x {other} y"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("odd", ["<" + " " * 100_000, "< " * 50_000, "<br" * 30_000, "</" * 50_000])
def test_an_odd_line_takes_no_longer_for_being_long(odd):
    assert as_one_line(f"{odd}x") == " ".join(f"{odd}x".split())


@given(st.text())
def test_a_line_has_single_spaces_and_stays_as_it_is(text):
    line = as_one_line(text)
    assert line == " ".join(line.split())
    assert "\n" not in line


@given(st.text(alphabet=st.characters(blacklist_characters="<>")))
def test_no_word_is_lost(text):
    assert as_one_line(text).split() == text.split()
