"""The learner: updates of a model, each a function of the state before it and of its number."""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from attlas._parallel import ThreadGroup
from attlas.errors import AttlasError
from attlas.monitoring import Reading, Watch, read_history
from attlas.ops.dropout import dropout_generator
from attlas.runs import Checkpoint, load_weights
from attlas.runs.checkpoints import under
from attlas.training.averaging import MovingAveraging, update_average
from attlas.training.config import TrainingConfig
from attlas.training.distributed import (
    Command,
    DistributedModel,
    Loss,
    MaskedBatch,
    Objective,
    ProcessGroup,
    TrainingBatch,
    batch_weight,
)
from attlas.training.optimizers import Parallelism, load_optimizer_state, optimizer_state
from attlas.training.precision import Precision

# Seeds: every draw of a training is a function of (seed, purpose, number) alone.


def derive_seed(seed: int, purpose: str, number: int = 0) -> int:
    """A seed of 63 bits for one purpose at one update: nearby inputs give unrelated seeds.

    Nothing random is carried from update to update, so a resumed run draws what an undisturbed
    one draws.
    """
    digest = hashlib.sha256(f"{seed} {purpose} {number}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


# The result of an update.


class NotFiniteError(AttlasError):
    """A loss or a gradient is infinite, or not a number."""


@dataclass(frozen=True, slots=True)
class Update:
    """The summed loss in nats, of so many target tokens.

    Args:
        weight: What the loss is averaged over, the tokens where they all weigh 1.
        reading: The attention of this update, if it was read.
        grad_norm: Of the gradient before clipping; it may be infinite under float16, whose scaler
            then skips the step.
    """

    loss: float
    tokens: int
    learning_rate: float
    grad_norm: float
    weight: float
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class PendingUpdate:
    """An update that has begun. Its numbers may be on their way from the device.

    Args:
        result: Waits for them. It raises what `Learner.update` raises.
        done: The result, where it is there already.
    """

    result: Callable[[], Update]
    done: Update | None = None

    @classmethod
    def of(cls, update: Update) -> "PendingUpdate":
        """One that is done."""
        return cls(lambda: update, update)


_OPTIMIZER, AVERAGE = "optimizer/", "average/"

M = TypeVar("M", bound=nn.Module)
B = TypeVar("B", bound=TrainingBatch)

Gradient = list[Tensor | None]
"""Of every parameter; None: it had no part."""


class Learner(Generic[M, B]):
    """Model, optimizer, and everything else that changes from update to update.

    Args:
        loss: That of the task.
        thread_group: The threads that share an update.
        process_group: The processes that share it. If there are several, all of them call `update`
            and `restore`. The first one makes a `checkpoint`, for which the others call
            `gather_all`; it is measured `as_whole`, for which they call `gather_weights`.
    """

    def __init__(
        self,
        model: M,
        settings: TrainingConfig,
        seed: int,
        device: torch.device,
        loss: Loss[M, B],
        thread_group: ThreadGroup | None = None,
        process_group: ProcessGroup | None = None,
    ) -> None:
        self.model = model.to(device)
        self.settings, self.seed, self.device, self.loss = settings, seed, device, loss
        self.thread_group, self.process_group = (
            thread_group or ThreadGroup(),
            process_group or ProcessGroup(),
        )
        self.precision = Precision.settled(settings.autocast, device, self.process_group)
        self._distributed: DistributedModel | None = None
        if self.process_group.size > 1:
            objective = Objective(self.model, loss)
            self._distributed = DistributedModel(
                objective, settings.distribution, self.process_group
            )
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        parallelism = Parallelism(self.thread_group.map, self._whole, self._part)
        self.optimizer = settings.optimizer.build(self.model, self._optimizer_rate(), parallelism)
        self._watch: Watch | None = None
        self.average: dict[str, Tensor] | None = None
        if isinstance(settings.averaging, MovingAveraging):
            self.average = {n: t.detach().clone() for n, t in self.model.state_dict().items()}

    def update(self, shares: Sequence[Sequence[B | None]], number: int) -> Update:
        """One step on the batches of all shares together; `number` counts updates from 1.

        The thread group works on the shares of this process side by side, the process group on its
        own; None stands for a batch that is too small for everybody to get a part. The gradient is
        that of the mean loss over the tokens of all batches, each with its weight: the one that a
        single big batch would give. Sums are made in the order of the shares, whoever is ready
        first.

        Raises:
            AttlasError: If the loss or its gradient is not finite; the weights are then as they
                were.
        """
        settings, scaler = self.settings, self.precision.scaler
        rate = settings.learning_rate * settings.schedule.factor(number)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed(derive_seed(self.seed, f"update {self.process_group.rank}", number))
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        own_batches = [batch for share in shares for batch in share if batch is not None]
        tokens = int(self.process_group.all_reduce(sum(batch.tokens for batch in own_batches)))
        weight = self.process_group.all_reduce(sum(map(batch_weight, own_batches)))
        if self._distributed is not None:
            loss = self._in_processes(self._distributed, shares[0], number, weight)
        else:
            loss = self._in_threads(shares, number, weight)
        self._finite(loss, "loss", number)
        scaler.unscale_(self.optimizer)
        clipped = torch.nn.utils.clip_grad_norm_(
            self.parameters, settings.max_grad_norm or float("inf")
        )
        norm = self._whole(clipped).item()
        if not scaler.is_enabled():  # the scaler skips such a step, and tries a smaller scale
            self._finite(norm, "gradient", number)
        scaler.step(self.optimizer)
        scaler.update()
        if self.average is not None and isinstance(settings.averaging, MovingAveraging):
            update_average(self.average, self.model, settings.averaging.share(number))
        reading = None if self._watch is None else self._watch.step()
        return Update(
            loss=loss,
            tokens=tokens,
            learning_rate=rate,
            grad_norm=norm,
            weight=weight,
            reading=reading,
        )

    def submit(self, shares: Sequence[Sequence[B | None]], number: int) -> PendingUpdate:
        """`update`, of which a learner may give the result later."""
        return PendingUpdate.of(self.update(shares, number))

    @property
    def reads_next(self) -> bool:
        """Return True if the attention of the next update is read."""
        return self._watch is not None and self._watch.reads_next

    def watch_from(self, update: int, path: Path | None = None) -> None:
        """Watch the attention of the updates after this one, if the settings say so.

        Args:
            path: The file of the readings so far, from which alarms go on.
        """
        settings = self.settings.watch
        if settings.every is None:
            return
        self._watch = Watch(
            self.model, every=settings.every, thresholds=settings, step=update, on_alarm=None
        )
        if path is not None and path.exists():
            self._watch.resume(read_history(path))

    @contextmanager
    def _watched(self, batch: B | None, number: int, order: tuple[int, int]) -> Iterator[None]:
        """Read the attention of a batch, if this update is read; sums are made in this order."""
        if self._watch is None or not self._watch.reads_next:
            yield
            return
        mask = batch.expected_mask if isinstance(batch, MaskedBatch) else None
        if mask is not None and self.settings.rdrop_alpha_at(number):
            mask = mask.repeat(2, 1)  # each batch is read twice
        with self._watch.forward(mask, order):
            yield

    def as_whole(self, fresh: Callable[[], M]) -> M:
        """The model, to be measured: itself where this process holds all of it, else a fresh one
        with its weights.
        """
        if self._distributed is None or not self._distributed.parted:
            return self.model
        self.process_group.send(Command.GATHER_WEIGHTS)
        model = fresh()
        load_weights(model, self.gather_weights(), Path())
        return model.to(self.device)

    def gather_weights(self) -> dict[str, Tensor]:
        """All weights by name, whole: in the first process; the others give their parts for it."""
        return self._wholes(self.model.state_dict())

    def gather_all(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The same, and what else changes from update to update."""
        training = {
            f"{_OPTIMIZER}{n}": t for n, t in optimizer_state(self.optimizer, self.model).items()
        }
        training |= {f"{AVERAGE}{n}": t for n, t in (self.average or {}).items()}
        return self.gather_weights(), self._wholes(training)

    def _in_threads(
        self, shares: Sequence[Sequence[B | None]], number: int, weight: float
    ) -> float:
        """The summed loss of this process's shares, whose gradient is now the parameters'."""

        def work(share_number: int) -> tuple[float, Gradient]:
            gradient: Gradient = [None] * len(self.parameters)
            total = 0.0
            with self._chance(share_number, number) as chance:
                for index, batch in enumerate(shares[share_number]):
                    if batch is None:
                        continue
                    reading = self._watched(batch, number, (share_number, index))
                    with reading, self.precision.autocast():
                        loss = self.loss(
                            self.model, batch.to(self.device), number, self._scale(weight), chance,
                            self.parameters,
                        )  # fmt: skip
                    new = torch.autograd.grad(
                        self.precision.scaler.scale(loss / weight),
                        self.parameters,
                        allow_unused=True,
                    )
                    total += loss.item()  # a GPU is waited for once it has all of its work
                    if not math.isfinite(total):
                        break
                    gradient = [_sum(pair) for pair in zip(gradient, new, strict=True)]
            return total, gradient

        results = self.thread_group.map(work, range(len(shares)))
        seen_ids: set[int] = set()
        for parameter, *parts in zip(
            self.parameters, *(gradients for _, gradients in results), strict=True
        ):
            parameter.grad = _owned_gradient(_sum(parts), parameter, seen_ids)
        return sum(loss for loss, _ in results)

    def _in_processes(
        self, distributed: DistributedModel, batches: Sequence[B | None], number: int, weight: float
    ) -> float:
        """The same of the shares of all processes, each of which has one."""
        total = 0.0
        with self._chance(self.process_group.rank, number) as chance:
            for part_number, batch in enumerate(batches, 1):
                with distributed.joined(part_number == len(batches)) as objective:
                    reading = self._watched(batch, number, (0, part_number))
                    with reading, self.precision.autocast():
                        device_batch = None if batch is None else batch.to(self.device)
                        loss = objective(device_batch, number, self._scale(weight), chance)
                    # What comes back is the mean over the processes.
                    part = loss * (self.process_group.size / weight)
                    torch.autograd.backward(self.precision.scaler.scale(part))
                    total += loss.item()  # a GPU is waited for once it has all of its work
        return self.process_group.all_reduce(total)

    def _wholes(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """One is put together at a time, and kept on the CPU of the first process alone."""
        if self._distributed is None or not self._distributed.parted:
            return dict(tensors)
        state: dict[str, Tensor] = {}
        for name in sorted(tensors):  # every process has to ask for the same one
            tensor = self._distributed.whole(tensors[name])
            if self.process_group.is_main:
                state[name] = tensor.cpu()
            del tensor  # before there is the next one
        return state

    def _whole(self, tensor: Tensor) -> Tensor:
        return tensor if self._distributed is None else self._distributed.whole(tensor)

    def _part(self, tensor: Tensor, like: Tensor) -> Tensor:
        return tensor if self._distributed is None else self._distributed.part(tensor, like)

    def _scale(self, weight: float) -> float:
        scaler = self.precision.scaler
        # Without a scaler not even by 1 / weight: the numbers stay those of a plain loss.
        return scaler.get_scale() / weight if scaler.is_enabled() else 1.0

    @contextmanager
    def _chance(self, share_number: int, number: int) -> Iterator[torch.Generator]:
        """All that is drawn for one share of an update, in whichever thread or process."""
        device, host = (
            torch.Generator(on).manual_seed(
                derive_seed(self.seed, f"{purpose} {share_number}", number)
            )
            for purpose, on in (("feeding", self.device), ("dropout", torch.device("cpu")))
        )
        with torch.enable_grad(), dropout_generator(host):
            yield device

    def checkpoint(self, facts: Mapping[str, Any]) -> Checkpoint:
        """Everything from which `restore` goes on, beside these facts; the others of a process
        group, who hear of it, `gather_all`.
        """
        self.process_group.send(Command.GATHER_ALL)
        scaler, numbers = self.precision.scaler.state_dict(), self.precision.numbers
        return Checkpoint(*self.gather_all(), {**facts, "scaler": scaler, "numbers": numbers})

    def restore(self, checkpoint: Checkpoint, location: Path) -> None:
        """Be as when this checkpoint was made; `location` names the run in errors."""
        current = self.model.state_dict()
        weights = {
            n: self._part(t, current[n]) if n in current else t for n, t in checkpoint.model.items()
        }
        load_weights(self.model, weights, location)
        load_optimizer_state(
            self.optimizer, self.model, under(_OPTIMIZER, checkpoint.training), self._part
        )
        # Checkpoints of before they were noted have none of their own.
        numbers = checkpoint.facts.get("numbers", self.precision.numbers)
        self.precision = self.precision.of(numbers)
        self.precision.scaler.load_state_dict(checkpoint.facts["scaler"])
        if self.average is not None:
            for name, tensor in under(AVERAGE, checkpoint.training).items():
                self.average[name].copy_(self._part(tensor, self.average[name]))

    def _optimizer_rate(self) -> float | Tensor:
        """The learning rate that the optimizer begins with."""
        return self.settings.learning_rate

    def _finite(self, value: float, name: str, number: int) -> float:
        if not math.isfinite(value):
            raise NotFiniteError(
                f"a finite {name} at update {number}",
                str(value),
                "train in another folder (--out) with a lower training.learning_rate, a "
                "longer "
                "training.schedule.warmup or a smaller training.max_grad_norm above 0",
            )
        return value


def _sum(parts: Sequence[Tensor | None]) -> Tensor | None:
    """In their order; None where none of them is there."""
    total: Tensor | None = None
    for part in parts:
        total = part if total is None else total if part is None else total + part
    return total


def _owned_gradient(
    gradient: Tensor | None, parameter: Tensor, seen_ids: set[int]
) -> Tensor | None:
    """As its parameter lies in memory, and alone there.

    `torch.autograd.grad` gives what the last operation made: of `torch.cat` a part of a wider
    tensor, whose rows torch's fused Adam reads as if nothing were between them, and of a sum the
    same tensor twice, which clipping would shrink twice.

    Args:
        seen_ids: Where others lie.
    """
    if gradient is None:
        return None
    memory = gradient.untyped_storage()
    owns_memory = memory.nbytes() == gradient.nbytes and memory.data_ptr() not in seen_ids
    if gradient.stride() != parameter.stride() or not owns_memory:
        gradient = torch.empty_like(parameter).copy_(gradient)
    seen_ids.add(gradient.data_ptr())
    return gradient
