"""Several threads ask one attention map at the same time."""

import threading
from collections.abc import Callable, Iterator
from itertools import permutations

import pytest
import torch

from attlas import _parallel as threads
from attlas.patterns import causal, everywhere, window
from attlas.recording import AttentionMap, DenseAttentionMap, FactoredAttentionMap
from attlas.recording.maps import reductions as gathering
from attlas.recording.maps.blocks import Block, blocks_of
from attlas.recording.maps.reductions import (
    PoolReduction,
    ReceivedReduction,
    Reduction,
    RowReduction,
    reduce_map,
)
from attlas.recording.maps.statistics import NAMES

READINGS = {
    "everywhere": lambda q, k: FactoredAttentionMap(q, k, 0.5, everywhere, 0),
    "causal": lambda q, k: FactoredAttentionMap(q, k, 0.5, causal, 0),
    "window": lambda q, k: FactoredAttentionMap(q, k, 0.5, window(4), 0),
    "double": lambda q, k: FactoredAttentionMap(q.double(), k.double(), 0.5, causal, 0),
    "dense": lambda q, k: DenseAttentionMap((q @ k.mT).softmax(-1)),
}


@pytest.fixture(params=READINGS)
def attention_map(request: pytest.FixtureRequest) -> AttentionMap:
    torch.manual_seed(3)
    query, keys = torch.randn(2, 3, 90, 8), torch.randn(2, 3, 90, 8)
    return READINGS[request.param](query, keys)


@pytest.fixture(params=[2, 3])
def several(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So many threads, and blocks so small that each has some."""
    monkeypatch.setattr(gathering, "AT_ONCE", 4_000)
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    assert torch.get_num_threads() == request.param  # as it was
    torch.set_num_threads(before)


def answers(attention_map: AttentionMap) -> dict[str, torch.Tensor]:
    """What an attention map can be asked that threads share, of the same blocks by whoever takes
    them."""
    summary = attention_map.summary(*NAMES)
    groups = torch.arange(attention_map.shape[3]) % 5
    return {
        **{name: getattr(summary, name) for name in NAMES},
        "topk": attention_map.topk(3)[0],
        "top keys": attention_map.topk(3)[1],
        "mass": attention_map.mass(groups),
        "sums": attention_map.pool((5, 80), (3, 70), (9, 11)),
        "greatest": attention_map.pool((5, 80), (3, 70), (9, 11), how="max"),
        "means": attention_map.pool(shape=(4, 4), how="mean"),
    }


@pytest.mark.usefixtures("several")
def test_they_find_what_one_thread_finds(attention_map: AttentionMap) -> None:
    found = answers(attention_map)
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = answers(attention_map)
    torch.set_num_threads(count)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        torch.testing.assert_close(found[name], values, rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.usefixtures("several")
def test_they_find_the_same_each_time(attention_map: AttentionMap) -> None:
    first, second = answers(attention_map), answers(attention_map)
    differ = {
        name: (values.double() - second[name].double()).abs().max()
        for name, values in first.items()
        if not torch.equal(values, second[name])
    }
    assert not differ


@pytest.mark.parametrize(
    "kind", [ReceivedReduction, lambda r: PoolReduction(r, (0, 90), (0, 90), (7, 7), "sum")]
)
def test_it_is_no_matter_which_of_them_comes_first(
    kind: Callable[[AttentionMap], Reduction],
) -> None:
    torch.manual_seed(3)
    query, keys = torch.randn(2, 2, 3, 90, 8, dtype=torch.float64)
    attention_map = FactoredAttentionMap(query, keys, 0.5, causal, 0)
    results = []
    for order in permutations(range(3)):
        whole = kind(attention_map)
        parts = {number: whole.for_thread(number) for number in order}
        for place, block in enumerate(blocks_of(attention_map, at_once=4_000)):
            parts[place % 3].update(block)
        results.append(whole.result)
    assert all(torch.equal(one, results[0]) for one in results)


@pytest.mark.usefixtures("several")
def test_each_of_them_is_at_work_with_kernels_of_one_thread() -> None:
    attention_map = READINGS["causal"](torch.randn(1, 1, 300, 8), torch.randn(1, 1, 300, 8))
    count = torch.get_num_threads()
    together = threading.Barrier(count, timeout=60)
    seen: dict[int, int] = {}

    def of_row(block: Block) -> torch.Tensor:
        if threading.get_ident() not in seen:
            seen[threading.get_ident()] = torch.get_num_threads()
            together.wait()  # none of them goes on before all are here
        return block.max_weight

    reduce_map(attention_map, {"max_weight": RowReduction(attention_map, of_row)})
    assert list(seen.values()) == [1] * count
    assert threading.get_ident() not in seen


@pytest.mark.usefixtures("several")
def test_an_error_of_one_of_them_ends_all_and_is_raised() -> None:
    attention_map = READINGS["causal"](torch.randn(1, 1, 2000, 8), torch.randn(1, 1, 2000, 8))
    blocks: list[int] = []

    def of_row(block: Block) -> torch.Tensor:
        blocks.append(block.start)
        if block.start == 0:
            raise ZeroDivisionError
        return block.max_weight

    with pytest.raises(ZeroDivisionError):
        reduce_map(attention_map, {"max_weight": RowReduction(attention_map, of_row)})
    assert not [one for one in threading.enumerate() if one.name.startswith("attlas-blocks")]


def test_two_who_ask_at_the_same_time_leave_the_number_of_threads_as_it_was() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    inside, leave = threading.Barrier(5, timeout=60), [threading.Event() for _ in range(2)]
    left: list[int] = []

    def ask(number: int) -> None:
        def work(place: int, count: int, stop: threading.Event) -> None:
            assert (count, torch.get_num_threads()) == (2, 1)
            inside.wait()
            assert leave[number].wait(60)

        torch.set_num_threads(2)
        threads.run_threads(work)
        left.append(torch.get_num_threads())

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for one in asking:
        one.start()
    inside.wait()
    for one, event in zip(asking, leave, strict=True):  # who began first leaves first
        event.set()
        one.join()
    assert left == [2, 2]
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


@pytest.mark.usefixtures("several")
def test_a_reading_is_asked_in_inference_mode_as_elsewhere(attention_map: AttentionMap) -> None:
    elsewhere = answers(attention_map)
    with torch.inference_mode():
        within = answers(attention_map)
    for name, numbers in elsewhere.items():
        assert torch.equal(numbers, within[name]), name
