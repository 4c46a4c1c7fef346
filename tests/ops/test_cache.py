"""Memories that grow: values that never change, and no copy for every key."""

import copy
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import MultiheadAttention
from attlas.ops.cache import KeyValueCache
from attlas.patterns import causal


def memory(slots: int, rows: int = 2) -> KeyValueCache:
    return KeyValueCache(torch.randn(rows, 3, slots, 4), torch.randn(rows, 3, slots, 5))


@given(
    first=st.integers(0, 20),
    parts=st.lists(st.integers(0, 20), min_size=1, max_size=8),
    reordered=st.booleans(),
    gradients=st.booleans(),
)
def test_growing_is_joining(first: int, parts: list[int], reordered: bool, gradients: bool) -> None:
    kept = [memory(slots) for slots in (first, *parts)]
    grown = kept[0]
    with torch.set_grad_enabled(gradients):
        for part in kept[1:]:
            grown = grown.append(part)
            if reordered:
                rows = torch.tensor([1, 0])
                grown = grown.select(rows).select(rows)
    assert torch.equal(grown.keys, torch.cat([part.keys for part in kept], dim=2))
    assert torch.equal(grown.values, torch.cat([part.values for part in kept], dim=2))


@pytest.mark.parametrize("gradients", [False, True])
def test_a_memory_of_inference_mode_grows_outside_of_it(gradients: bool) -> None:
    with torch.inference_mode():
        past = memory(3).append(memory(1))
    more = memory(1)
    with torch.set_grad_enabled(gradients):
        grown = past.append(more)
    assert torch.equal(grown.keys, torch.cat([past.keys, more.keys], dim=2))
    assert past.num_keys == 4


@torch.no_grad()
def test_two_futures_of_one_memory_do_not_meet() -> None:
    past = memory(3).append(memory(1))
    left, right = memory(1), memory(1)
    one, other = past.append(left), past.append(right)
    further = one.append(right)
    assert torch.equal(one.keys[:, :, 4:], left.keys)
    assert torch.equal(other.keys[:, :, 4:], right.keys)
    assert torch.equal(further.keys, torch.cat([past.keys, left.keys, right.keys], dim=2))
    assert past.num_keys == 4


@torch.no_grad()
def test_rows_are_of_the_memory_though_another_thread_adds_to_its_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    past = memory(3).append(memory(1))
    rows = torch.arange(len(past.keys)).flip(0)
    really = Tensor.index_select

    def select(one: Tensor, *given: Any) -> Tensor:
        if one.shape[2] > past.num_keys:  # the whole room: torch copies without Python's lock
            past.append(memory(1))
        return really(one, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Tensor, "index_select", select)
        chosen = past.select(rows)
    assert torch.equal(chosen.keys, past.keys[rows])
    assert torch.equal(chosen.values, past.values[rows])


@pytest.mark.parametrize("gradients", [False, True])
def test_slots_of_other_rows_heads_or_widths_are_refused(gradients: bool) -> None:
    past = memory(3)
    narrow = KeyValueCache(past.keys[..., :1], past.values[..., :1])
    for other in (
        past.select(torch.tensor([0])),
        KeyValueCache(past.keys[:, :1], past.values[:, :1]),
        narrow,
    ):
        with (
            torch.set_grad_enabled(gradients),
            pytest.raises(AttlasError, match="new positions of"),
        ):
            past.append(other)


@torch.no_grad()
def test_a_memory_does_not_change_when_it_is_extended() -> None:
    past = memory(1).append(memory(1))
    before = past.keys.clone(), past.values.clone()
    past.append(memory(2)).append(memory(40))
    assert torch.equal(past.keys, before[0])
    assert torch.equal(past.values, before[1])


@torch.no_grad()
def test_a_hundred_slots_are_written_and_not_copied_a_hundred_times() -> None:
    grown, places = memory(1), set()
    for _ in range(100):
        grown = grown.append(memory(1))
        places.add(grown.keys.data_ptr())
    assert len(places) < 10


def test_chosen_slots_are_those_of_each_row() -> None:
    kept = memory(4)
    chosen = kept.gather_keys(torch.tensor([[3, 0], [1, 1]]))
    assert torch.equal(chosen.keys[0], kept.keys[0][:, [3, 0]])
    assert torch.equal(chosen.values[1], kept.values[1][:, [1, 1]])


def test_the_slots_of_neighbouring_rows_become_one_memory() -> None:
    kept = memory(1, rows=6)
    joined = kept.merge_rows(2)
    assert joined.keys.shape == (2, 3, 3, 4)
    for row in range(6):
        assert torch.equal(joined.keys[row // 3, :, row % 3], kept.keys[row, :, 0])
        assert torch.equal(joined.values[row // 3, :, row % 3], kept.values[row, :, 0])


def test_a_gradient_finds_its_way_back_through_every_slot() -> None:
    parts = [torch.randn(1, 1, 1, 2, requires_grad=True) for _ in range(3)]
    grown = KeyValueCache(parts[0], parts[0])
    for part in parts[1:]:
        grown = grown.append(KeyValueCache(part, part))
    (grown.keys * torch.arange(6.0).view(1, 1, 3, 2)).sum().backward()
    assert [part.grad.flatten().tolist() for part in parts] == [[0, 1], [2, 3], [4, 5]]


def test_learned_queries_step_by_step_over_frozen_keys_have_the_gradient_of_all_at_once() -> None:
    torch.manual_seed(0)
    attention = MultiheadAttention(8, 2, pattern=causal).double()
    attention.k_proj.requires_grad_(False)
    attention.v_proj.requires_grad_(False)
    source = torch.randn(2, 9, 8, dtype=torch.float64)
    past, steps = None, []
    for new in source.split(1, dim=1):
        memory = attention.project_kv(new)
        past = memory if past is None else past.append(memory)
        steps.append(attention(new, past))
    at_once = attention.attend(source, attention.project_kv(source))
    learned = [parameter for parameter in attention.parameters() if parameter.requires_grad]
    by_steps, expected = (
        torch.autograd.grad(context.sin().sum(), learned)
        for context in (torch.cat(steps, dim=1), at_once)
    )
    torch.testing.assert_close(by_steps, expected)


def test_a_memory_that_grows_without_gradients_leaves_those_of_an_earlier_read_alone() -> None:
    query = torch.randn(2, 3, 1, 4, requires_grad=True)
    with torch.no_grad():
        past = memory(3).append(memory(1))  # which has free keys behind it
    alone = KeyValueCache(past.keys.clone(), past.values.clone())
    reads = [(query @ kept.keys.mT).softmax(-1) @ kept.values for kept in (past, alone)]
    with torch.no_grad():
        grown = past.append(memory(1))
    assert grown.keys.data_ptr() == past.keys.data_ptr()  # it was written, not copied
    by_past, by_alone = (torch.autograd.grad(read.sin().sum(), query)[0] for read in reads)
    assert torch.equal(by_past, by_alone)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_memory_that_has_grown_can_be_copied_and_both_grow_on(copied) -> None:
    with torch.no_grad():
        grown = memory(3).append(memory(1))
        other, more = copied(grown), [memory(1), memory(2)]
        longer, another = grown.append(more[0]), other.append(more[1])
    assert torch.equal(other.keys, grown.keys)
    assert torch.equal(longer.keys, torch.cat([grown.keys, more[0].keys], dim=2))
    assert torch.equal(another.keys, torch.cat([grown.keys, more[1].keys], dim=2))
