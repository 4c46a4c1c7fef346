"""Child processes: the same answers, and nobody left behind."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas import _parallel
from attlas._files import held
from attlas._parallel import POSSIBLE, ForkPool, ThreadPool
from attlas.errors import AttlasError

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="children are only used on Linux")


def own_id(_: int) -> int:
    return os.getpid()


def alive(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


@pytest.mark.slow
@given(st.lists(st.integers()), st.integers(1, 3))
@settings(deadline=None, max_examples=20)
def test_a_map_is_the_work_on_each_item_in_order(items: list[int], count: int) -> None:
    def work(item: int) -> int:
        return 3 * item

    with ForkPool(work, count) as forks:
        assert forks.map(items) == [3 * item for item in items]
        assert forks.map(items[::-1]) == [3 * item for item in items[::-1]]


def test_the_children_are_other_processes_with_one_thread_each() -> None:
    def work(item: int) -> tuple[int, int]:
        time.sleep(0.2)
        return os.getpid(), torch.get_num_threads()

    with ForkPool(work, 2) as forks:
        found = forks.map(range(4))
    children = {child for child, _ in found}
    assert len(children) == 2
    assert os.getpid() not in children
    assert {threads for _, threads in found} == {1}


@pytest.mark.parametrize("hung", [1, 2, 100])
def test_a_child_that_hangs_at_its_start_is_forked_again_and_no_map_waits_for_it(
    hung: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked: list[int] = []
    fork = os.fork

    def counted() -> int:
        forked.append(0)
        child = fork()
        if child:
            forked[-1] = child
        return child

    def hang() -> None:
        while len(forked) <= hung:
            time.sleep(0.1)

    monkeypatch.setattr(os, "fork", counted)
    monkeypatch.setattr(_parallel, "_take_locks", hang)
    monkeypatch.setattr(_parallel, "_SECONDS_TO_START", 0.5)
    with ForkPool(own_id, 2) as forks:
        assert len(forks) == (0 if hung == 100 else 2)
        assert len(forked) == 2 + (min(hung, 2))
        found = set(forks.map(range(4)))
        assert found <= {os.getpid()} if hung == 100 else found <= set(forked)
    assert not any(map(alive, forked))


@pytest.mark.parametrize("size", [256, 300])
def test_a_child_never_waits_for_a_lock_of_threads_that_have_just_ended(size: int) -> None:
    def product(_: int) -> float:
        matrix = torch.ones(size, size)
        return float((matrix @ matrix)[0, 0])

    for _ in range(20):
        with ThreadPool(2, "products", torch.set_num_threads, (1,)) as threads:
            assert list(threads.map(product, range(4))) == [size] * 4
        assert not any(Path(f"/proc/self/task/{one}").exists() for one in threads._native_ids)
        with ForkPool(product, 1) as forks:
            assert len(forks) == 1
            assert forks.map([0, 1]) == [size] * 2


def test_a_child_sees_what_its_parent_held_and_changes_nothing_of_it() -> None:
    held = torch.zeros(2)

    def work(item: int) -> float:
        held[0] += item
        return float(held.sum())

    with ForkPool(work, 1) as forks:
        assert forks.map([1, 2]) == [1.0, 3.0]
    assert held.sum() == 0


def test_threads_that_map_at_once_get_their_own_answers() -> None:
    def work(item: int) -> int:
        time.sleep(0.001)
        return 2 * item

    with ForkPool(work, 2) as forks, ThreadPoolExecutor(4) as pool:
        requested = [list(range(n, n + 9)) for n in range(30)]
        assert list(pool.map(forks.map, requested)) == [
            [2 * i for i in items] for items in requested
        ]


def test_where_no_process_can_be_had_the_parent_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    with ForkPool(own_id, 2) as forks:
        assert len(forks) == 0
        assert forks.map([1, 2]) == [os.getpid()] * 2


def test_a_child_holds_no_lock_that_is_taken_later(tmp_path: Path) -> None:
    with ForkPool(own_id, 2) as forks:
        with held(tmp_path / "lock"):
            forks.map([1, 2])
        with held(tmp_path / "lock", wait=False) as ours:
            assert ours


def test_ctrl_c_at_the_moment_of_a_fork_stops_the_parent_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = os.fork

    def fork_and_press() -> int:
        child = plain()
        if not child:
            os.kill(os.getpid(), signal.SIGINT)
        return child

    monkeypatch.setattr(os, "fork", fork_and_press)
    with ForkPool(own_id, 2) as forks:
        found = set(forks.map(range(6)))
    assert found
    assert os.getpid() not in found


def test_no_child_is_left_when_the_work_is_done() -> None:
    with ForkPool(own_id, 2) as forks:
        children = set(forks.map(range(4)))
        assert all(map(alive, children))
    assert not any(map(alive, children))


def test_a_mistake_of_the_caller_is_raised_as_it_is_and_the_parent_does_the_rest() -> None:
    def work(item: int) -> int:
        if item == 3:
            raise AttlasError("a number", "3", "take another")
        return item

    with ForkPool(work, 2) as forks:
        with pytest.raises(AttlasError, match="expected a number; got 3; take another"):
            forks.map([3, 1, 2, 4])
        assert forks.map([1, 2, 4]) == [1, 2, 4]


def test_an_exception_that_cannot_travel_is_reported_in_words() -> None:
    class LocalError(Exception):
        pass

    def work(item: int) -> int:
        raise LocalError("what went wrong")

    with ForkPool(work, 2) as forks, pytest.raises(RuntimeError, match="what went wrong"):
        forks.map([1, 2])


def test_a_killed_child_is_reported_and_the_others_end() -> None:
    def work(item: int) -> int:
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    with ForkPool(work, 2) as forks:
        children = set(forks.map([2, 3]))
        with pytest.raises(AttlasError, match="killed"):
            forks.map([0, 1, 2, 3])
    assert not any(map(alive, children))


def test_children_end_after_their_parent_was_killed() -> None:
    program = (
        "import os\n"
        "from attlas._parallel import ForkPool\n"
        "with ForkPool(lambda item: os.getpid(), 2) as forks:\n"
        "    print(*forks.map(range(8)), flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    children = set(map(int, done.stdout.split()))
    until = time.monotonic() + 60
    while any(map(alive, children)) and time.monotonic() < until:
        time.sleep(0.05)
    assert children
    assert not any(map(alive, children))


def test_ctrl_c_is_the_parents_to_answer() -> None:
    def work(item: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return item

    with ForkPool(work, 2) as forks:
        assert forks.map([1, 2, 3]) == [1, 2, 3]
