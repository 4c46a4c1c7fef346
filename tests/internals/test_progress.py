"""How far some work is: counted by all who do it, and shown to whoever waits."""

import io
import pickle
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from attlas import _output
from attlas._output import Bar
from attlas._parallel import POSSIBLE, ForkPool, WorkCounter
from attlas.data import Vocabularies, Words
from attlas.decoding import DecodingConfig
from attlas.inference import Translator
from support.table_model import LookingTable


def test_all_threads_count_together() -> None:
    counter = WorkCounter()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(counter.add, [1] * 2000))
    assert counter.total == 2000


@pytest.mark.skipif(not POSSIBLE, reason="children are only used on Linux")
def test_children_count_into_the_counter_of_their_parent() -> None:
    counter, other = WorkCounter(), WorkCounter()
    counter.add(5)
    with ForkPool(counter.add, 3) as forks:
        forks.map(range(10))
    assert (counter.total, other.total) == (50, 0)


def test_a_copy_by_pickle_begins_anew() -> None:
    counter = WorkCounter()
    counter.add(1)
    copied = pickle.loads(pickle.dumps(counter))
    assert (counter.total, copied.total) == (1, 0)


TEXTS = ["a b", "", "c", "d e f"] * 5


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.usefixtures("two_threads")
def test_a_translator_counts_the_texts_whose_search_has_ended(method: str, forked: bool) -> None:
    vocabularies = Vocabularies(Words(list("abcdefgh")), Words(["x", "y"]))
    config = DecodingConfig(method=method)  # type: ignore[arg-type]
    translator = Translator.of(LookingTable(0), vocabularies, config)
    assert translator.num_ended == 0
    with translator.forked() if forked else nullcontext(translator) as faster:
        list(faster.stream(TEXTS, rows=4))
    assert translator.num_ended == faster.num_ended == 15  # of an empty text there is no search
    translator("a")  # of one text nobody asks how many are done
    assert translator.num_ended == 15


class Terminal(io.StringIO):
    """A standard error that is a terminal, or is none."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def terminal(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> Terminal:
    """Where progress is shown, at once. For the body of a test: pytest sets its own before."""
    stderr = Terminal(is_terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("_GLANCE", "_DRAWN_AFTER", "_FIRST"):
        monkeypatch.setattr(_output, name, 0.01)
    return stderr


def shown(stderr: Terminal, text: str) -> str:
    """What is shown, once this is in it."""
    end = time.monotonic() + 20.0  # only a failure waits so long
    while text not in (now := stderr.getvalue()) and time.monotonic() < end:
        time.sleep(0.01)
    assert text in now
    return now


def test_a_file_gets_a_line_of_progress_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch, False)
    monkeypatch.setattr(_output, "_PATIENCE", 0.05)
    done = 0
    with Bar("translating", 2000, 500) as bar:
        shown(stderr, "attlas: translating: 500 of 2,000 lines, 0 s so far\n")
        with bar.counting(lambda: 70 + done):
            done = 300
            shown(stderr, "attlas: translating: 800 of 2,000 lines, ")
        bar.update(1800)
        shown(stderr, "attlas: translating: 1,800 of 2,000 lines, ")
        with bar.counting(lambda: 10 * done + int(time.monotonic() * 1e6)):
            shown(stderr, "attlas: translating: 2,000 of 2,000 lines, ")  # no more than there are
    counts = [
        int(count.replace(",", "")) for count in re.findall(r": ([\d,]+) of", stderr.getvalue())
    ]
    assert counts == sorted(counts)


def test_a_line_of_progress_names_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch, False)
    with Bar("classifying", 2000, counted="text"):
        shown(stderr, "attlas: classifying: 0 of 2,000 texts, ")


def test_a_terminal_gets_a_bar_that_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal(monkeypatch, True)
    with Bar("lines 1 to 9", 9) as bar:
        assert "0/9" in shown(stderr, "lines 1 to 9")
        bar.update(4)
        shown(stderr, "4/9")
    assert "attlas:" not in stderr.getvalue()
    assert stderr.getvalue().endswith("\x1b[2K")  # the line is cleared


@pytest.mark.parametrize("is_terminal", [False, True])
def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    stderr = terminal(monkeypatch, is_terminal)
    for name in ("_DRAWN_AFTER", "_FIRST"):
        monkeypatch.setattr(_output, name, 60.0)
    with Bar("translating", 3) as bar:
        time.sleep(0.05)
        bar.update(3)
    assert stderr.getvalue() == ""


def test_a_bar_ends_with_what_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_output, "_GLANCE", 0.01)
    with pytest.raises(ZeroDivisionError), Bar("translating", 3) as bar:
        print(1 / 0)
    assert not bar._thread.is_alive()
