"""`attlas.watch(model)`: the monitor of a training."""

import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from attlas.errors import AttlasError, UnsupportedError
from attlas.monitoring.alarms import Alarm, AlarmState, Thresholds, messages_of
from attlas.monitoring.history import HistoryFile, Reading, head_statistics_of, read_history
from attlas.monitoring.nan import Output, first_nan, first_nan_of_all, nan_flags, outputs_with_nan
from attlas.monitoring.processes import of_all_processes
from attlas.monitoring.reader import (
    StatisticsRecorder,
    TokenMask,
    is_recomputation,
    recorded_statistics,
)
from attlas.monitoring.statistics import LayerTotals, merged, statistics_of
from attlas.recording.hooks import check_module
from attlas.recording.observe import check_not_compiled, explain_empty_trace
from attlas.recording.trace import is_integer

Log = Callable[[dict[str, float]], object]
OnAlarm = Callable[[Alarm], object] | Literal["warn"] | None

IGNORED = -100
"""The label of padding, as in PyTorch and Hugging Face."""

_MANY_PASSES = 1_000
"""So many forward passes of one step look like a loop without `watch.step()`."""


class AttentionWarning(UserWarning):
    """An alarm of `attlas.watch`, or attention that it cannot read."""


class _Hook:
    """A hook of the watched model. In a copy of the model, or a file of it, it does nothing."""

    def __init__(self, function: Callable[..., None] | None = None) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> None:
        """What the hook is for."""
        if self._function is not None:
            self._function(*arguments)

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


class _Forward(threading.local):
    """The forward pass that is read in this thread; `depth`: how many calls it is nested in."""

    block: ExitStack | None = None
    recorder: StatisticsRecorder | None = None
    outputs: list[Output] = []  # noqa: RUF012
    depth: int = 0


class Watch:
    """The monitor of a training; see `watch`, which makes it.

    `history` has the records of all readings, also of those that the file held before.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        every: int,
        thresholds: Thresholds,
        path: Path | str | None = None,
        log: Log | None = None,
        on_alarm: OnAlarm = "warn",
        step: int | None = None,
        process_group: Any = None,
    ) -> None:
        self.model, self.every = model, every
        self.history: list[dict[str, Any]] = []
        self._log, self._on_alarm, self._group = log, on_alarm, process_group
        self._alarms = AlarmState(thresholds)
        self._file: HistoryFile | None = None
        self._step = step or 0
        self._forward = _Forward()
        self._lock = threading.Lock()
        self._parts: list[tuple[Any, StatisticsRecorder, list[Output]]] = []
        self._hooks: list[Any] = []
        self._warned: set[str] = set()
        self._is_compiled = self._is_closed = False
        if path is not None:
            self._open(Path(path), step)
        self._listen()

    @property
    def active_alarms(self) -> tuple[Alarm, ...]:
        """The alarms that have begun and have not cleared."""
        return tuple(self._alarms.active.values())

    @property
    def steps(self) -> int:
        """How many steps were done."""
        return self._step

    @property
    def reads_next(self) -> bool:
        """Return True if the step under way is read."""
        number = self._step + 1
        return number == 1 or number % self.every == 0

    def step(self) -> Reading | None:
        """End a step; call it after the optimizer's. Return the reading of that step, or None.

        In a process group every process calls it, and all of them get the reading of all.
        """
        if self._is_closed:
            raise AttlasError("a watch that is open", "one that was closed", "watch the model anew")
        is_read = self.reads_next
        self._step += 1
        self._abandon()
        found = self._read() if is_read else None
        self._listen()
        return found

    @contextmanager
    def forward(
        self, token_mask: Shaped[Tensor, "batch queries"] | None = None, order: Any = None
    ) -> Iterator[None]:
        """Read what the model does in the block, as if it were one call of the model.

        It is for models whose forward pass is not `model(…)`, such as `model.encode(…)`, and for
        trainings without gradients. On steps that are not read it does nothing.

        Args:
            token_mask: True = a query of a token, where the model's masks do not say it.
            order: What the sums of several threads are ordered by.
        """
        if not self.reads_next or is_recomputation() or self._forward.block is not None:
            yield
            return
        self._begin([] if token_mask is None else [token_mask.detach() != 0])
        try:
            yield
        except BaseException:
            self._abandon()
            raise
        self._end(order)

    def close(self) -> None:
        """Stop watching: remove the hooks and close the file."""
        self._is_closed = True
        self._abandon()
        self._unhook()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """What it watches."""
        return f"<attlas.watch of {type(self.model).__name__}, step {self._step:,}>"

    def resume(self, records: Sequence[dict[str, Any]]) -> None:
        """Go on from the records of an earlier session: with their history and their alarms."""
        for record in records:
            self.history.append(record)
            heads = head_statistics_of(record)
            self._alarms.advance(record["step"], heads, record.get("nan_module"))

    # The file.

    def _open(self, path: Path, step: int | None) -> None:
        if path.exists():
            records = read_history(path)
            self.resume([r for r in records if step is None or r["step"] <= step])
            if step is None and self.history:
                self._step = self.history[-1]["step"]
                if self._is_main:
                    self._warn_once(
                        f"{path} has readings to step {self._step:,}, and this watch goes on from "
                        f"there: for a training that goes on pass step={self._step}; for a new one "
                        "pass another path, or remove this file"
                    )
        if self._is_main:
            self._file = HistoryFile(path)

    @property
    def _is_main(self) -> bool:
        return self._size == 1 or dist.get_rank(self._group) == 0

    @property
    def _size(self) -> int:
        is_distributed = dist.is_available() and dist.is_initialized()
        return dist.get_world_size(self._group) if is_distributed else 1

    # Forward passes: hooks of the model, only where the next step is read.

    def _listen(self) -> None:
        if not self.reads_next:
            self._unhook()
        elif not self._hooks:
            self._hooks = [
                self.model.register_forward_pre_hook(_Hook(self._before), with_kwargs=True),
                self.model.register_forward_hook(_Hook(self._after), always_call=True),
            ]

    def _unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if torch.compiler.is_compiling():
            self._is_compiled = True
        elif self._forward.block is not None:  # a model that calls itself
            self._forward.depth += 1
        elif module.training and not is_recomputation() and _is_for_gradients(args, kwargs):
            self._begin(_masks_of(module, args, kwargs))

    def _after(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if torch.compiler.is_compiling() or self._forward.block is None:
            return
        if self._forward.depth:
            self._forward.depth -= 1
        elif output is None and sys.exception() is not None:  # it has failed
            self._abandon()
        else:
            self._forward.outputs += nan_flags(type(module).__name__, output)
            self._end(None)

    def _begin(self, masks: Sequence[TokenMask]) -> None:
        with ExitStack() as block:
            outputs = block.enter_context(outputs_with_nan(self.model))
            recorder = block.enter_context(recorded_statistics(self.model, masks))
            self._forward.block, self._forward.depth = block.pop_all(), 0
        self._forward.recorder, self._forward.outputs = recorder, outputs

    def _end(self, order: Any) -> None:
        block, recorder = self._forward.block, self._forward.recorder
        assert block is not None
        assert recorder is not None
        self._forward.block = self._forward.recorder = None
        block.close()
        with self._lock:
            order = len(self._parts) if order is None else order
            self._parts.append((order, recorder, self._forward.outputs))
            count = len(self._parts)
        if count == _MANY_PASSES:
            self._warn_once(
                f"attlas.watch has read {count:,} forward passes of step {self._step + 1:,}, and "
                "holds their numbers until watch.step(): call it after each step of the optimizer, "
                "or watch.close() if the training has ended"
            )

    def _abandon(self) -> None:
        """Leave a forward pass of this thread that did not end."""
        block, self._forward.block, self._forward.recorder = self._forward.block, None, None
        if block is not None:
            block.close()

    # Readings.

    def _read(self) -> Reading | None:
        parts = sorted(self._parts, key=lambda part: part[0])
        recorders = [recorder for _, recorder, _ in parts]
        outputs = [output for _, _, each in parts for output in each]
        self._parts = []
        totals = self._gathered(recorders)
        self._warn_of_unread(recorders, is_empty=not totals)
        if not totals:
            return None
        heads = statistics_of(totals)
        is_alone = self._size == 1
        nan_module = first_nan(outputs) if is_alone else first_nan_of_all(outputs, self._group)
        alarms = self._alarms.advance(self._step, heads, nan_module)
        found = Reading(self._step, heads, alarms, nan_module)
        record = found.record()
        self.history.append(record)
        if self._is_main:
            problem = None if self._file is None else self._file.write(record)
            if self._file is not None and problem is not None:
                text = f"{self._file.path}: {problem}; `watch.history` has all readings"
                self._warn_once(text, stacklevel=4)
            if self._log is not None:
                self._log(found.flat())
            self._report(found.alarms)
        return found

    def _report(self, alarms: Sequence[Alarm]) -> None:
        if self._on_alarm == "warn":
            for message in messages_of(alarms):
                warnings.warn(message, AttentionWarning, stacklevel=4)
        elif self._on_alarm is not None:
            for alarm in alarms:
                self._on_alarm(alarm)

    def _gathered(self, recorders: Sequence[StatisticsRecorder]) -> dict[str, LayerTotals]:
        """The totals of all processes; see `of_all_processes`."""
        if self._size == 1:
            return merged(recorder.totals() for recorder in recorders)
        return of_all_processes(
            lambda: merged(recorder.totals() for recorder in recorders), self._group
        )

    def _warn_of_unread(self, recorders: Sequence[StatisticsRecorder], *, is_empty: bool) -> None:
        if not is_empty:
            unread = dict.fromkeys(line for r in recorders for line in r.unreadable_calls())
            if unread:
                self._warn_once("attention that attlas.watch cannot read: " + "; ".join(unread))
            return
        name = type(self.model).__name__
        if not recorders:
            compiled = (
                "compiled code calls no function that attlas can see; where `watch.reads_next` is "
                "True, call the model itself instead of torch.compile(model)"
            )
            if self._is_compiled:
                found, advice = f"{name} runs compiled", compiled
            else:
                found, advice = (
                    f"no forward pass of {name} in training mode and with gradients",
                    "call the watched model itself, as model(…), after model.train(); for another "
                    "method, or without gradients, write `with watch.forward(): model.encode(…)`; "
                    f"{compiled}",
                )
        else:
            found, advice = explain_empty_trace(self.model, recorders[0])
        self._warn_once(f"attlas.watch read nothing at step {self._step}: {found}; {advice}")

    def _warn_once(self, text: str, stacklevel: int = 5) -> None:
        key = text.replace(f"step {self._step}", "")
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(text, AttentionWarning, stacklevel=stacklevel)


def _is_for_gradients(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return True if a forward pass may be followed by a backward pass.

    Reentrant activation checkpointing of a whole model calls it without gradients, with an input
    that has one.
    """
    return torch.is_grad_enabled() or any(
        isinstance(value, Tensor) and value.requires_grad for value in (*args, *kwargs.values())
    )


def _masks_of(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[TokenMask]:
    """The mask of the tokens whose queries look, among the arguments of a forward pass."""
    named = dict(kwargs)
    try:
        signature = inspect.signature(module.forward)
        named |= signature.bind_partial(*args, **kwargs).arguments
        parameters = set(signature.parameters)
    except (TypeError, ValueError):
        parameters = set()
    decodes = {"decoder_attention_mask", "decoder_input_ids"} & (parameters | set(named))
    mask = named.get("decoder_attention_mask" if decodes else "attention_mask")
    labels = named.get("labels")
    is_ids = isinstance(labels, Tensor) and labels.ndim == 2 and not labels.is_floating_point()
    if mask is None and decodes and is_ids:
        mask = labels != IGNORED  # a query of the decoder is there to predict a label
    return [mask.detach() != 0] if isinstance(mask, Tensor) and mask.ndim == 2 else []


def watch(
    model: nn.Module,
    *,
    every: int = 50,
    path: Path | str | None = None,
    log: Log | None = None,
    on_alarm: OnAlarm = "warn",
    thresholds: Thresholds | Mapping[str, float | str] | None = None,
    step: int | None = None,
    process_group: Any = None,
) -> Watch:
    """Watch the attention of a training: exact statistics of every head, and alarms in words.

    Call `watch.step()` after each step of the optimizer. The first step and every step whose number
    is a multiple of `every` are read. `watch` reads any model that `attlas.observe` can read. All
    forward passes of a step in training mode count, as one large batch would. A pass under
    `torch.no_grad()` does not, nor one that activation checkpointing computes anew. Queries of
    padding do not count. On the other steps the model runs without any hook. The model has the same
    outputs, gradients and random numbers on all steps.

    Args:
        model: The model, as it is before torch.compile; inside of DistributedDataParallel, too.
        every: Steps between two readings.
        path: A file for the readings, one JSON object a line. An existing one goes on.
        log: A function of a flat dict for each reading, such as `wandb.log`.
        on_alarm: A function of each alarm that begins. "warn" = a warning of Python for each kind
            of alarm in a reading, which names the heads. None = the readings alone have them.
        thresholds: Of the alarms: `Thresholds`, or a dict of those that differ from the defaults.
        step: The steps that were done before. None = the last one in the file, or 0.
        process_group: The processes that share the batches. None = all of torch.distributed.

    Raises:
        AttlasError: For anything but a model, a wrong setting, or a file of something else.
        UnsupportedError: For a compiled model, and for nn.DataParallel.

    Example:
        >>> import torch, attlas
        >>> model = torch.nn.TransformerEncoderLayer(16, 4, batch_first=True)
        >>> watch = attlas.watch(model)
        >>> model(torch.randn(2, 5, 16)).sum().backward()
        >>> reading = watch.step()
        >>> len(reading.heads), reading.heads[0].queries
        (4, 10)
    """
    check_module(model)
    if isinstance(model, nn.DataParallel):
        raise UnsupportedError(
            "a model that is not inside of nn.DataParallel, whose copies are not its modules",
            "nn.DataParallel",
            "train with torch.nn.parallel.DistributedDataParallel",
        )
    if isinstance(model, DistributedDataParallel):
        model = model.module
    check_not_compiled(model)
    if not (is_integer(every) and every > 0):
        raise AttlasError(
            "a whole number of steps between two readings, at least one",
            f"every={every!r:.80}",
            "pass for example every=50",
        )
    if step is not None and not (is_integer(step) and step >= 0):
        raise AttlasError(
            "the number of steps that were done before",
            f"step={step!r:.80}",
            "pass step=0 for a new training",
        )
    for name, function, others in (("log", log, ()), ("on_alarm", on_alarm, ("warn",))):
        if function is not None and function not in others and not callable(function):
            raise AttlasError(
                " or ".join([f"a function as {name}", *map(repr, others)]),
                f"{name}={function!r:.80}",
                "pass a function, such as print",
            )
    if not isinstance(thresholds, Mapping | Thresholds | None):
        raise AttlasError(
            "thresholds as a dict of their names and numbers",
            f"thresholds={thresholds!r:.80}",
            "pass for example thresholds={'max_logit': 50}",
        )
    if not isinstance(thresholds, Thresholds):
        thresholds = Thresholds.read(dict(thresholds or {}), "thresholds")
    return Watch(
        model,
        every=every,
        path=path,
        log=log,
        on_alarm=on_alarm,
        thresholds=thresholds,
        step=step,
        process_group=process_group,
    )
