"""Lines in windows, as they come in."""

from collections.abc import Iterator
from queue import Queue
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.jobs.translate_stream import windows

PATIENCE = 60.0  # seconds; only a failure waits so long


@given(
    lines=st.lists(st.text(max_size=3), max_size=30), most=st.integers(1, 40), full=st.booleans()
)
def test_every_line_is_in_one_window_in_its_place(lines: list[str], most: int, full: bool) -> None:
    found = list(windows(iter(lines), most, full=full))
    assert [line for window in found for line in window] == lines
    assert all(1 <= len(window) <= most for window in found)
    if full:
        assert all(len(window) == most for window in found[:-1])


def test_a_window_does_not_wait_for_the_next_line() -> None:
    coming: Queue[str] = Queue()
    found = windows(iter(lambda: coming.get(timeout=PATIENCE), "end"), 100, full=False)
    for line in ("one", "two"):
        coming.put(line)
        assert next(found) == [line]
    coming.put("end")
    assert list(found) == []


def test_a_mistake_comes_after_the_lines_before_it() -> None:
    def lines() -> Iterator[str]:
        yield from ("one", "two", "three")
        raise AttlasError("a fourth", "none", "write it")

    found = windows(lines(), 2, full=True)
    assert [next(found), next(found)] == [["one", "two"], ["three"]]
    with pytest.raises(AttlasError, match="expected a fourth"):
        next(found)


def test_what_nobody_takes_is_not_read() -> None:
    ended, read = Event(), []

    def lines() -> Iterator[str]:
        try:
            for number in range(1000):
                read.append(number)
                yield str(number)
        finally:
            ended.set()

    found = windows(lines(), 3, full=True)
    next(found)
    found.close()
    assert ended.wait(PATIENCE)
    assert len(read) < 20
