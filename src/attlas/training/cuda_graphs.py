"""Updates as CUDA graphs: batches of few shapes, and a step that is captured once for each.

The updates of a small model wait for the launches of their kernels. A CUDA graph launches all
kernels of a step at once. It replays exactly what was captured, on the same memory. So batches are
copied into fixed tensors, everything that changes from update to update (batch, learning rate,
weight of the loss) is a number on the device, and nothing on the way asks the device for one.

On a CPU the same steps are called in place of the graphs: `ops.cuda_graphs.Twin`. All but the
capture itself is tested there.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attlas._hardware import capturable
from attlas.data import Batch, BatchingConfig
from attlas.errors import ConfigError, UnsupportedError
from attlas.models import TransformerConfig
from attlas.monitoring import Reading
from attlas.ops.cuda_graphs import Capture, Numbers, Replayable, padded_length
from attlas.runs import Checkpoint
from attlas.training.averaging import MovingAveraging, update_average
from attlas.training.config import TrainingConfig
from attlas.training.distributed import Loss, ProcessGroup
from attlas.training.learner import Learner, PendingUpdate, Update, derive_seed
from attlas.training.recipe import Recipe
from attlas.training.scheduled_sampling import ConstantSampling

M = TypeVar("M", bound=nn.Module)

# Whether a training can be captured.


def check_capturable(recipe: Recipe, device: torch.device, process_group: ProcessGroup) -> None:
    """Check that the updates of a recipe can run as CUDA graphs here.

    Raises:
        AttlasError: That names what they cannot have.
    """
    setting = "training.cuda_graphs = true"
    if device.type != "cuda":
        raise UnsupportedError(
            f"a CUDA device for {setting}",
            f"device {str(device)!r}",
            "leave training.cuda_graphs out",
        )
    if process_group.size > 1:
        raise UnsupportedError(
            f"one process for {setting}",
            f"{process_group.size} processes",
            "leave training.cuda_graphs out, or train with one process",
        )
    check_recipe_capturable(recipe)


def check_recipe_capturable(recipe: Recipe) -> None:
    """Check that every update of a recipe is the same work.

    Raises:
        ConfigError: That names the setting with which it is not.
    """
    training, model = recipe.training, recipe.model
    feeding = training.scheduled_sampling
    is_forced = isinstance(feeding, ConstantSampling) and feeding.p == 1.0
    kind = getattr(model, "kind", "")
    refused = (
        ("model.kind = 'transformer'", not isinstance(model, TransformerConfig), f"{kind!r}"),
        (
            "training.scheduled_sampling of p = 1",
            not is_forced,
            f"kind = {getattr(feeding, 'kind', '')!r} with other numbers",
        ),
        (
            "training.rdrop_alpha = 0",
            training.rdrop_alpha > 0.0,
            f"{training.rdrop_alpha:g}",
        ),
        (
            "training.autocast = 'none', 'bf16' or 'auto'",
            training.autocast == "fp16",
            "'fp16', whose scale depends on the gradients",
        ),
    )
    for expected, is_refused, got in refused:
        if is_refused:
            raise ConfigError(
                f"{expected} beside training.cuda_graphs = true", got, "change one of the two"
            )


# Few shapes.


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Of a batch: rows, tokens of a source, and tokens of a target with BEGIN and END."""

    rows: int
    source: int
    target: int


class BatchShapes:
    """To which shapes the batches of a training are padded: few, so that few graphs are captured.

    Lengths of a source, and of what the decoder reads, are rounded up to 4, 8, …, 32, 40, …, 64,
    80, …: four in an octave. Rows are as many as `batching` allows of the shortest batch of a
    shape. So a shape is a function of lengths alone.

    Args:
        max_positions: The most tokens that the model can read on a side. None = any number.
    """

    def __init__(self, batching: BatchingConfig, max_positions: int | None = None) -> None:
        self._batching, self._most = batching, max_positions

    def of(self, batch: Batch) -> BatchShape:
        """The shape that a batch is padded to."""
        source = padded_length(batch.source.shape[1])
        queries = padded_length(batch.target.shape[1] - 1)
        width = max(_shortest(source), _shortest(queries) + 1)
        rows = max(1, self._batching.max_tokens // width)
        if self._batching.rows is not None:
            rows = min(rows, self._batching.rows)
        if self._most is not None:
            source, queries = min(source, self._most), min(queries, self._most)
        return BatchShape(rows, source, queries + 1)

    def pad(self, batch: Batch) -> Batch:
        """The batch in its shape."""
        shape = self.of(batch)
        return batch.padded_to(shape.rows, shape.source, shape.target)


@cache
def _shortest(padded: int) -> int:
    """The least length that is padded to this one."""
    return next(length for length in range(1, padded + 1) if padded_length(length) == padded)


# The updates.


class GraphLearner(Learner[M, Batch]):
    """A learner whose updates are replayed.

    The numbers of an update are read later, see `submit`. Until then its weights may have taken a
    bad step: whoever saves or measures them has to ask for the result of every update first.

    Args:
        shapes: Batches are padded to these.
    """

    def __init__(
        self,
        model: M,
        settings: TrainingConfig,
        seed: int,
        device: torch.device,
        loss: Loss[M, Batch],
        shapes: BatchShapes,
    ) -> None:
        super().__init__(model, settings, seed, device, loss)
        self.shapes = shapes
        self._graphs = UpdateGraphs(self)

    def update(self, shares: Sequence[Sequence[Batch | None]], number: int) -> Update:
        """One step, and its result."""
        return self.submit(shares, number).result()

    def submit(self, shares: Sequence[Sequence[Batch | None]], number: int) -> PendingUpdate:
        """One step, whose numbers are read when its result is asked for.

        An update whose attention is watched is not replayed but called, and its numbers are read
        at once.
        """
        (share,) = shares
        batches = [self.shapes.pad(batch) for batch in share if batch is not None]
        tokens, averaging = sum(batch.tokens for batch in batches), self.settings.averaging
        rate = self.settings.learning_rate * self.settings.schedule.factor(number)
        newest = averaging.share(number) if isinstance(averaging, MovingAveraging) else 0.0
        is_read = self.reads_next
        self.model.train()
        self._graphs.prepare(batches)
        torch.manual_seed(derive_seed(self.seed, f"update {self.process_group.rank}", number))
        with self._chance(0, number):
            self._graphs.begin(rate, float(tokens), newest)
            for index, batch in enumerate(batches):
                with self._watched(batch, number, (0, index)):
                    self._graphs.add(batch, replay=not is_read)
            numbers = self._graphs.finish()

        def result(reading: Reading | None = None) -> Update:
            loss, norm = numbers.read()
            self._finite(loss, "loss", number)
            self._finite(norm, "gradient", number)
            return Update(loss, tokens, rate, norm, float(tokens), reading)

        if not is_read:
            if self._watch is not None:
                self._watch.step()
            return PendingUpdate(result)
        result()  # an error comes before an alarm
        assert self._watch is not None
        return PendingUpdate.of(result(self._watch.step()))

    def restore(self, checkpoint: Checkpoint, location: Path) -> None:
        """As of every learner; what was captured has other tensors than the optimizer now."""
        super().restore(checkpoint, location)
        if self.precision.name == "fp16":
            raise UnsupportedError(
                "a training that began in float32 or bfloat16 for training.cuda_graphs = true",
                f"one that began in {self.precision.numbers}",
                "leave training.cuda_graphs out",
            )
        self._graphs = UpdateGraphs(self)

    def _optimizer_rate(self) -> Tensor:
        # torch's fused Adam reads float32 on a GPU.
        return torch.tensor(self.settings.learning_rate, dtype=torch.float32, device=self.device)


class UpdateGraphs:
    """The graphs of a learner, and the tensors that last from one replay to the next.

    A graph for each shape of a batch adds to the gradient, and one makes the step of the
    optimizer: so an update may have several batches.

    Args:
        learner: Its optimizer has the tensors that the graphs write to, as long as they are used.
    """

    def __init__(self, learner: Learner[Any, Batch]) -> None:
        self._learner, device = learner, learner.device
        self._capture = Capture(device, "an update", "training.cuda_graphs")
        self._generator = torch.Generator(device)  # nothing is drawn where the right tokens are fed
        self._batches: dict[tuple[torch.Size, torch.Size], _Captured] = {}
        self._step: Replayable | None = None
        self._gradients = [torch.zeros_like(parameter) for parameter in learner.parameters]
        self._loss, self._newest = (
            torch.zeros((), dtype=torch.float64, device=device) for _ in range(2)
        )
        self._weight = torch.ones((), dtype=torch.float64, device=device)
        self._numbers = torch.zeros(2, dtype=torch.float64, device=device)

    def prepare(self, batches: Sequence[Batch]) -> None:
        """Capture what these batches need and is not captured yet; no number changes by it."""
        for batch in batches:
            if _sizes(batch) not in self._batches:
                held = _like(batch, self._learner.device)
                _copy(batch, held)
                work = partial(self._add, held)
                with self._unchanged():
                    self._batches[_sizes(batch)] = _Captured(held, work, self._capture(work))
        if self._step is None:  # behind the batches, which say which parameters have a gradient
            with self._unchanged():
                self._step = self._capture(self._make_step)

    def begin(self, rate: float, weight: float, newest: float) -> None:
        """Set the numbers of an update: the learning rate, what its loss is divided by, and how
        much the newest weights count in a moving average.
        """
        for group in self._learner.optimizer.param_groups:
            group["lr"].fill_(rate)
        self._weight.fill_(weight)
        self._newest.fill_(newest)

    def add(self, batch: Batch, *, replay: bool) -> None:
        """Add the gradient of a batch; `replay`: by its graph, else by a call."""
        captured = self._batches[_sizes(batch)]
        _copy(batch, captured.batch)
        if replay:
            captured.graph.replay()
        else:
            self._capture.call(captured.work)

    def finish(self) -> Numbers:
        """Make the step. Return the summed loss and the norm of the gradient."""
        assert self._step is not None
        self._step.replay()
        return Numbers(self._numbers)

    # What is captured.

    def _add(self, batch: Batch) -> None:
        learner = self._learner
        with torch.enable_grad(), capturable():
            with learner.precision.autocast(cached=False):
                loss = learner.loss(
                    learner.model, batch, 1, 1.0, self._generator, learner.parameters
                )
            found = torch.autograd.grad(loss / self._weight, learner.parameters, allow_unused=True)
        sums, new = [], []
        for parameter, total, gradient in zip(
            learner.parameters, self._gradients, found, strict=True
        ):
            if gradient is not None:
                parameter.grad = total  # one without stays without, so that no step changes it
                sums.append(total)
                new.append(gradient)
        torch._foreach_add_(sums, new)
        self._loss.add_(loss.detach())

    def _make_step(self) -> None:
        learner = self._learner
        norm = nn.utils.clip_grad_norm_(
            learner.parameters, learner.settings.max_grad_norm or float("inf")
        )
        learner.optimizer.step()
        if learner.average is not None:
            update_average(learner.average, learner.model, self._newest)
        self._numbers.copy_(torch.stack([self._loss, norm.double()]))
        self._loss.zero_()
        torch._foreach_zero_(self._gradients)

    # What lasts.

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Let the block's updates come to nothing."""
        before = {id(tensor): (tensor, tensor.detach().clone()) for tensor in self._lasting()}
        yield
        with torch.no_grad():
            for tensor in self._lasting():
                if id(tensor) in before:
                    tensor.copy_(before[id(tensor)][1])
                else:  # a moment of the optimizer, which begins at zero
                    tensor.zero_()

    def _lasting(self) -> Iterator[Tensor]:
        learner = self._learner
        yield from (*learner.model.parameters(), *learner.model.buffers())
        yield from (learner.average or {}).values()
        for state in learner.optimizer.state.values():
            yield from state.values()
        yield from (*self._gradients, self._loss, self._numbers)


@dataclass(frozen=True, slots=True)
class _Captured:
    """A graph, the batch that it reads, and the work that was captured."""

    batch: Batch
    work: Callable[[], None]
    graph: Replayable


def _sizes(batch: Batch) -> tuple[torch.Size, torch.Size]:
    return batch.source.shape, batch.target.shape


def _tensors(batch: Batch) -> tuple[Tensor, ...]:
    return batch.source, batch.source_mask, batch.target, batch.target_mask


def _like(batch: Batch, device: torch.device) -> Batch:
    """A batch of the same shape on a device, of no pairs yet."""
    source, source_mask, target, target_mask = (
        torch.empty_like(tensor, device=device) for tensor in _tensors(batch)
    )
    return Batch(source, source_mask, target, target_mask, ())


def _copy(batch: Batch, held: Batch) -> None:
    """Copy a batch of the host into one on a device, without waiting for it.

    torch keeps pinned memory until it has been read.
    """
    for tensor, target in zip(_tensors(batch), _tensors(held), strict=True):
        if target.is_cuda:
            target.copy_(tensor.pin_memory(), non_blocking=True)
        else:
            target.copy_(tensor)
