"""Processes that train together, on one machine or on many."""

import gc
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from enum import IntEnum
from functools import _lru_cache_wrapper
from importlib import import_module
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from attlas._text import count_noun
from attlas.errors import AttlasError, ConfigError, UnsupportedError
from attlas.training.config import Distribution

_PATIENCE = timedelta(days=1)  # the others wait while the first one validates


class Command(IntEnum):
    """What the first process sends to the others: what to do next."""

    UPDATE = 0
    GATHER_WEIGHTS = 1
    GATHER_ALL = 2
    FINISHED = 3
    INTERRUPTED = 4


class ProcessGroup:
    """The processes that torchrun has started, seen from one of them; or a single process.

    The first one leads: it writes the folder of the run, validates, reports and decides. The others
    have the same recipe, data and checkpoint, compute their share of every update, and follow
    its commands.
    """

    def __init__(self, rank: int = 0, size: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.size = rank, size
        self._device = device or torch.device("cpu")

    @property
    def is_main(self) -> bool:
        """Return True if this is the first process."""
        return self.rank == 0

    def send(self, command: Command) -> None:
        """Tell all others, who `receive` it."""
        self._shared(int(command))

    def receive(self) -> Command:
        """Wait for what the first process says."""
        return Command(self._shared(0))

    def broadcast(self, number: int) -> int:
        """The first process's number, in all of them."""
        return self._shared(number)

    def all_reduce(self, value: float | int) -> float:
        """The sum over all processes, the same in each; whole numbers exactly."""
        if self.size == 1:
            return float(value)
        sum_ = torch.tensor(value, dtype=torch.float64, device=self._device)
        dist.all_reduce(sum_)
        return sum_.item()

    def _shared(self, number: int) -> int:
        if self.size == 1:
            return number
        tensor = torch.tensor(number, device=self._device)
        dist.broadcast(tensor, src=0)
        return int(tensor.item())


def is_launched() -> bool:
    """Return True if torchrun, or whoever sets the same variables, started this process with
    others.
    """
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_main_process() -> bool:
    """Return True if this process is the first of those, or alone."""
    return not is_launched() or os.environ.get("RANK") == "0"


# Modules of torch that have the group of all processes as the default of an argument. Imported
# while there is a group, they keep it, and with it gloo's threads, until Python ends. A thread that
# waits for Python's lock then ends the process with SIGABRT.
_KEEPERS: dict[Distribution, tuple[str, ...]] = {
    "ddp": ("torch.distributed.nn",),
    "fsdp": ("torch.distributed.nn", "torch.distributed.fsdp"),
}


@contextmanager
def open_process_group(
    device: torch.device, distribution: Distribution = "ddp"
) -> Iterator[ProcessGroup]:
    """The processes that were started together: gloo between CPUs, NCCL between GPUs.

    At the end of the block no thread of the group is left, provided that nothing outside the block
    refers to what was made in it.

    Args:
        device: What this process computes on.
        distribution: How the model will be spread over the processes.

    Raises:
        AttlasError: If this torch cannot do it, or the others cannot be reached.
    """
    if not is_launched():
        yield ProcessGroup()
        return
    try:
        # Not at the top: a torch that was built without them trains alone.
        from torch.distributed.distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous
    except ImportError as error:
        raise UnsupportedError(
            f"a torch that {os.environ['WORLD_SIZE']} processes can train with together",
            f"torch {torch.__version__} without torch.distributed ({error})",
            "install another build of torch, or train with one process",
        ) from None
    backend = "nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)  # FSDP2 and NCCL take the one that is set
    for name in _KEEPERS[distribution]:
        import_module(name)
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
        yield ProcessGroup(rank, size, device)
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
        _clear_frames(sys.exception())
        if distribution == "fsdp":
            _clear_caches()
        gc.collect()
        dist.destroy_process_group()


def _clear_frames(error: BaseException | None) -> None:
    """Forget the local variables of the calls that an error has ended, a learner among them."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _clear_caches() -> None:
    """Let torch forget how it spread tensors over these processes, and the processes with it."""
    for cache in gc.get_objects():
        if type(cache) is _lru_cache_wrapper and _of_torch_distributed(cache):
            cache.cache_clear()
    # Each release of torch has other caches.
    with suppress(ImportError):
        from torch.distributed.tensor._redistribute import clear_redistribute_planner_cache

        clear_redistribute_planner_cache()
    with suppress(AttributeError):
        torch._C._clear_DTensor_sharding_propagator_cache()


def _of_torch_distributed(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("torch.distributed.")


def device_of_rank(device: torch.device) -> torch.device:
    """Of several GPUs of a machine, the one that is this process's own.

    Raises:
        AttlasError: If there are more processes than GPUs, or one GPU is named for several.
    """
    if device.type != "cuda" or not torch.cuda.is_available():
        return device
    size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if device.index is not None:
        if size > 1:
            raise ConfigError(
                "a GPU for each process on this machine",
                f"training.device = '{device}' for all {size} of them",
                "set training.device = 'cuda', by which each takes its own",
            )
        return device
    rank, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if rank >= count:
        raise ConfigError(
            "a GPU for each process on this machine",
            f"{os.environ.get('LOCAL_WORLD_SIZE', f'at least {rank + 1}')} processes and "
            f"{count_noun(count, 'GPU')}",
            f"start {count} of them on each machine (torchrun --nproc-per-node {count} …), or set "
            "training.device = 'cpu'",
        )
    return torch.device("cuda", rank)


# Batches of a learner.


@runtime_checkable
class TrainingBatch(Protocol):
    """What a model trains on at once."""

    @property
    def tokens(self) -> int:
        """How many predictions its loss is the sum of."""

    def to(self, device: torch.device | str) -> Self:
        """The same on another device."""


@runtime_checkable
class WeightedBatch(Protocol):
    """A batch with weights for its predictions."""

    @property
    def weight(self) -> float:
        """The sum of the weights of its predictions, over which the loss is averaged."""


@runtime_checkable
class MaskedBatch(Protocol):
    """A batch whose predictions stand beside padding."""

    @property
    def expected_mask(self) -> Bool[Tensor, "batch queries"]:
        """True where a token is predicted."""


def batch_weight(batch: TrainingBatch) -> float:
    """The weights of its predictions, summed: how many they are, where all weigh 1."""
    return batch.weight if isinstance(batch, WeightedBatch) else float(batch.tokens)


# The loss, as a function and as a module.


_M = TypeVar("_M", bound=nn.Module, contravariant=True)
_B = TypeVar("_B", bound=TrainingBatch, contravariant=True)


@runtime_checkable
class Loss(Protocol[_M, _B]):
    """The loss of a task."""

    def __call__(
        self,
        model: _M,
        batch: _B,
        number: int,
        scale: float,
        generator: torch.Generator,
        parameters: list[nn.Parameter],
    ) -> Float[Tensor, ""]:
        """The loss at update `number`, summed over the predictions of a batch.

        Its gradient will be multiplied by `scale`, see `sequence_loss`, and is wanted for these
        parameters.

        Args:
            generator: The chance of this update, on the model's device.
        """


class Objective(nn.Module):
    """The loss as a forward pass: that is where DDP and FSDP join in."""

    def __init__(self, model: nn.Module, loss: Any) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(
        self, batch: Any, number: int, scale: float, generator: torch.Generator
    ) -> Float[Tensor, ""]:
        """The summed loss; None in place of a batch: 0, with gradients of 0."""
        # FSDP's parameters are whole in here and nowhere else.
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        if batch is None:
            return torch.stack([p.sum() for p in parameters]).sum() * 0.0
        loss: Tensor = self._loss(self.model, batch, number, scale, generator, parameters)
        return loss


# How a model is spread over the processes of a process group.


class DistributedModel:
    """One model in all processes of a process group, each of which has the loss of its own batches.

    "ddp": every process holds the model, and gradients are averaged on the way back
    (`DistributedDataParallel`; Li et al., 2020). "fsdp": every process holds its part of each
    parameter, of its gradient and of its moments, and they come together for the forward and
    backward pass alone (FSDP2's `fully_shard`; Zhao et al., 2023).
    """

    def __init__(
        self, objective: Objective, how: Distribution, process_group: ProcessGroup
    ) -> None:
        self.parted = how == "fsdp"
        self.objective: nn.Module = objective
        if not self.parted:
            self.objective = DistributedDataParallel(objective)
        else:
            # Imported where they are used: they take seconds, and few need them.
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            device = next(objective.parameters()).device.type
            fully_shard(objective, mesh=init_device_mesh(device, (process_group.size,)))

    @contextmanager
    def joined(self, as_one: bool) -> Iterator[nn.Module]:
        """The objective; `as_one`: whether this backward pass ends with everybody's gradient."""
        if isinstance(self.objective, DistributedDataParallel):
            if as_one:
                yield self.objective
            else:
                with self.objective.no_sync():
                    yield self.objective
        else:
            self.objective.set_requires_gradient_sync(as_one)  # type: ignore[operator]
            yield self.objective

    def whole(self, tensor: Tensor) -> Tensor:
        """All of a tensor of which this process may hold a part; every process has to ask."""
        if not self.parted:
            return tensor
        from torch.distributed.tensor import DTensor

        return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """This process's part of a whole tensor, where it holds a part of one like it."""
        if not self.parted:
            return tensor
        from torch.distributed.tensor import DTensor, distribute_tensor

        if not isinstance(like, DTensor):
            return tensor
        # Every process has the whole one: nothing has to be sent.
        return distribute_tensor(
            tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None
        )
