"""Processes that train together, on one machine or on many."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import IntEnum

import torch
import torch.distributed as dist

from attlas.data.amount import amount
from attlas.errors import AttlasError

_PATIENCE = timedelta(days=1)  # the others wait while the first one validates


class Word(IntEnum):
    """What the first process tells the others to do next."""

    UPDATE = 0
    GATHER_WEIGHTS = 1
    GATHER_ALL = 2
    FINISHED = 3
    INTERRUPTED = 4


class Fleet:
    """The processes that torchrun has started, seen from one of them; alone, one of one.

    The first one leads: it keeps the folder of the run, measures, tells and decides. The others
    know the same recipe, data and checkpoint, compute their share of every update, and do what
    they hear.
    """

    def __init__(self, rank: int = 0, size: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.size = rank, size
        self._device = device or torch.device("cpu")

    @property
    def leads(self) -> bool:
        """Whether this is the first process."""
        return self.rank == 0

    def say(self, word: Word) -> None:
        """Tell all others, who `hear` it."""
        self._shared(int(word))

    def hear(self) -> Word:
        """Wait for what the first process says."""
        return Word(self._shared(0))

    def agreed(self, number: int) -> int:
        """The first process's number, in all of them."""
        return self._shared(number)

    def total(self, value: float | int) -> float:
        """The sum over all processes, the same in each; whole numbers exactly."""
        if self.size == 1:
            return float(value)
        sum_ = torch.tensor(value, dtype=torch.float64, device=self._device)
        dist.all_reduce(sum_)
        return sum_.item()

    def _shared(self, number: int) -> int:
        if self.size == 1:
            return number
        told = torch.tensor(number, device=self._device)
        dist.broadcast(told, src=0)
        return int(told.item())


def launched() -> bool:
    """Whether torchrun, or whoever sets the same variables, started this process with others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def leading() -> bool:
    """Whether this process is the first of those, or alone."""
    return not launched() or os.environ.get("RANK") == "0"


@contextmanager
def fleet_of(device: torch.device) -> Iterator[Fleet]:
    """The processes that were started together: gloo between CPUs, NCCL between GPUs.

    Errors: `AttlasError` where this torch cannot do it, or the others cannot be reached.
    """
    if not launched():
        yield Fleet()
        return
    try:
        # Not at the top: a torch that was built without them trains alone.
        from torch.distributed.distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous
    except ImportError as error:
        raise AttlasError(
            f"a torch that {os.environ['WORLD_SIZE']} processes can train with together",
            f"torch {torch.__version__} without torch.distributed ({error})",
            "install another build of torch, or train with one process",
        ) from None
    backend = "nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)  # FSDP2 and NCCL take the one that is set
    try:
        store, rank, size = next(rendezvous("env://"))
        if os.environ.get("GROUP_WORLD_SIZE") == "1":
            # On one machine torchrun starts again with the store of before, which still holds the
            # addresses of the dead. Between machines it makes a new one, and counts for itself.
            attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            store = PrefixStore(f"attempt {attempt}", store)
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise AttlasError(
            f"{os.environ['WORLD_SIZE']} processes that reach each other by {backend}",
            str(error).splitlines()[0],
            "start them with torchrun, e.g. torchrun --nproc-per-node 2 -m attlas train …",
        ) from None
    try:
        yield Fleet(rank, size, device)
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and backend not in str(error).lower():
            raise
        raise AttlasError(
            "every process of this training at work",
            f"one that is gone ({str(error).splitlines()[0]})",
            "see what the others say, then run the same command again: it goes on from the last "
            "checkpoint",
        ) from None
    finally:
        # What averages gradients has to be gone before the group is: if it outlives it, it ends
        # gloo's thread while it holds Python's lock, for which that thread may wait: for ever.
        gc.collect()
        dist.destroy_process_group()


def device_of_rank(device: torch.device) -> torch.device:
    """Of several GPUs of a machine, the one that is this process's own.

    Errors: `AttlasError` where there are more processes than GPUs, or one GPU is named for several.
    """
    if device.type != "cuda" or not torch.cuda.is_available():
        return device
    size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if device.index is not None:
        if size > 1:
            raise AttlasError(
                "a GPU for each process on this machine",
                f"training.device = '{device}' for all {size} of them",
                "set training.device = 'cuda', by which each takes its own",
            )
        return device
    rank, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if rank >= count:
        raise AttlasError(
            "a GPU for each process on this machine",
            f"{os.environ.get('LOCAL_WORLD_SIZE', f'at least {rank + 1}')} processes and "
            f"{amount(count, 'GPU')}",
            f"start {count} of them on each machine (torchrun --nproc-per-node {count} …), or set "
            "training.device = 'cpu'",
        )
    return torch.device("cuda", rank)
