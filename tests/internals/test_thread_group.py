"""Threads that share an update."""

import threading

import pytest
import torch

from attlas._parallel import ThreadGroup, open_thread_group

CPU = torch.device("cpu")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_what_was_made_of_each_part_comes_in_the_order_of_the_parts(size: int) -> None:
    thread_group = ThreadGroup(size)
    assert thread_group.map(lambda part: part * part, [3, 1, 2, 5]) == [9, 1, 4, 25]
    thread_group.close()


def test_the_parts_are_under_way_at_the_same_time() -> None:
    thread_group, meeting = ThreadGroup(3), threading.Barrier(3, timeout=60)
    places = thread_group.map(
        lambda part: meeting.wait(), [1, 2, 3]
    )  # one alone would wait in vain
    assert sorted(places) == [0, 1, 2]
    thread_group.close()


@pytest.mark.parametrize("size", [1, 2])
def test_an_error_in_a_part_is_the_callers_once_all_parts_are_done(size: int) -> None:
    done: list[int] = []

    def work(part: int) -> None:
        if part == 1:
            raise ValueError("the first of the errors")
        done.append(part)

    thread_group = ThreadGroup(size)
    with pytest.raises(ValueError, match="the first of the errors"):
        thread_group.map(work, [0, 1, 2])
    assert 0 in done
    thread_group.close()


def test_kernels_use_one_thread_while_a_thread_group_works_and_as_many_as_before_behind_it() -> (
    None
):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with open_thread_group(2, CPU, torch.nn.Linear(1, 1)) as thread_group:
            assert thread_group.size == 2
            assert torch.get_num_threads() == 1
            assert thread_group.map(lambda _: torch.get_num_threads(), [0, 1]) == [1, 1]
        assert torch.get_num_threads() == 3
        with open_thread_group(None, CPU, torch.nn.Linear(1, 1)) as thread_group:
            assert thread_group.size == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("cores", "size", "each"), [(1, 1, 1), (3, 3, 1), (4, 4, 1), (9, 4, 2)])
def test_many_cores_are_shared_between_thread_group_and_kernels(
    cores: int, size: int, each: int
) -> None:
    with open_thread_group(cores, CPU, torch.nn.Linear(1, 1)) as thread_group:
        assert thread_group.size == size
        assert torch.get_num_threads() == each


def test_while_a_thread_group_rests_others_have_its_cores() -> None:
    with open_thread_group(6, CPU, torch.nn.Linear(1, 1)) as thread_group:
        with thread_group.resting():
            assert torch.get_num_threads() == 6
        assert torch.get_num_threads() == 1


def test_a_model_that_draws_by_itself_is_left_to_one_thread_of_python() -> None:
    before = torch.get_num_threads()
    deep = torch.nn.Sequential(torch.nn.GRU(2, 2, num_layers=2, dropout=0.5))
    with open_thread_group(2, CPU, deep) as thread_group:
        assert thread_group.size == 1
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before
    with open_thread_group(2, CPU, torch.nn.GRU(2, 2, num_layers=2)) as thread_group:
        assert thread_group.size == 2
