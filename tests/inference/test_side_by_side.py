"""Batches in threads of their own: the same translations, and everybody heard."""

import threading

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attlas.decoding import DecodingConfig, decode
from attlas.errors import AttlasError
from attlas.inference.translator import num_parallel, parallel_map
from attlas.ops.linear import bf16_matmul
from attlas.recording import observe
from support.table_model import LookingTable, TableModel, sources


@pytest.mark.usefixtures("two_threads")
def test_batches_side_by_side_are_those_one_after_the_other() -> None:
    model = TableModel(3)
    batches = [sources(3, 5, 2, seed=seed) for seed in range(7)]

    def work(batch: tuple[torch.Tensor, torch.Tensor]) -> list[list[object]]:
        return [list(one) for one in decode(model, *batch, DecodingConfig(num_beams=3, n_best=2))]

    assert parallel_map(work, batches, model) == [work(batch) for batch in batches]


@pytest.mark.usefixtures("two_threads")
def test_each_has_one_of_torchs_threads_and_the_caller_keeps_its_own() -> None:
    both = threading.Barrier(2, timeout=60)

    def work(item: int) -> tuple[int, int]:
        both.wait()  # passed only where two are at work
        return torch.get_num_threads(), threading.get_ident()

    (one, first), (other, second) = parallel_map(work, [0, 1], TableModel())
    assert (one, other) == (1, 1)
    assert first != second
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_one_item_has_all_threads() -> None:
    assert parallel_map(lambda item: torch.get_num_threads(), [0], TableModel()) == [2]


@pytest.mark.usefixtures("two_threads")
def test_a_model_that_is_listened_to_has_one_batch_in_work_at_a_time() -> None:
    model = LookingTable()
    assert num_parallel(model) == 2
    with observe(model):
        model.decode(torch.tensor([[2, 4]]), model.encode(*sources(3)))
        assert num_parallel(model) == 1


@pytest.mark.usefixtures("two_threads")
def test_who_listens_hears_every_batch_in_order() -> None:
    model = LookingTable()
    batches = [sources(size, seed=size) for size in (4, 2, 3)]

    def work(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        model.decode(torch.tensor([[2, 4]]), model.encode(*batch))

    with observe(model) as trace:
        parallel_map(work, batches, model)
    assert [attention_map.shape[3] for attention_map in trace.calls("look")] == [4, 2, 3]


@pytest.mark.usefixtures("two_threads")
def test_a_mistake_in_one_batch_reaches_the_caller() -> None:
    def work(item: int) -> int:
        if item == 3:
            raise AttlasError("an even number", "3", "double it")
        return item

    with pytest.raises(AttlasError, match="an even number; got 3"):
        parallel_map(work, range(8), TableModel())
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_what_holds_in_the_callers_thread_holds_for_all_batches() -> None:
    model = LookingTable()
    with bf16_matmul():
        assert num_parallel(model) == 1
    with FlopCounterMode(display=False):
        assert num_parallel(model) == 1
    assert num_parallel(model) == 2
