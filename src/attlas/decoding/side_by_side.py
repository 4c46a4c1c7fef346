"""Batches that are decoded side by side."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import nn

from attlas.layers.half_products import halved
from attlas.layers.linear import overseen
from attlas.recording.tap import listened_to

Item = TypeVar("Item")
Found = TypeVar("Found")


def at_a_time(model: nn.Module) -> int:
    """How many items `side_by_side` has in work at once with this model, if there are so many."""
    device = next((p.device.type for p in model.parameters()), "cpu")
    alone = listened_to(model) or torch.is_autocast_enabled("cpu") or halved() or overseen()
    if device != "cpu" or alone:
        return 1
    return torch.get_num_threads()


def side_by_side(
    work: Callable[[Item], Found], items: Sequence[Item], model: nn.Module
) -> list[Found]:
    """[work(item) for item in items], on a CPU with as many threads as torch may use.

    The products of a decoder's step are too small to be divided: two threads that share each of
    them are hardly faster than one, and may be slower. So each item has one thread of its own, and
    torch lets go of Python's lock while it computes. Begun in the order of the items; what comes
    out is the same as one after the other, which is how it is done where there is one thread or
    one item, where somebody listens to the model (listeners belong to their thread, and so do
    autocast and modes that see every operator), and on other devices.
    """
    threads = min(at_a_time(model), len(items))
    if threads < 2:
        return [work(item) for item in items]
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, items))
    finally:
        torch.set_num_threads(before)  # that of a thread is also what later ones begin with
