"""`with observe(model) as trace:` — every attention of the block, without changing a kernel."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from attlas.errors import AttlasError
from attlas.recording.tap import Listener, listening, taps
from attlas.recording.trace import Trace


@contextmanager
def observe(model: nn.Module) -> Iterator[Trace]:
    """Record a reading per attention call of `model` in this thread.

    The outputs, kernels and gradients of the model are the same with and without it; readings are
    detached from the graph. A trace that stayed empty raises and says why, unless the block itself
    raised first.

    Errors: `AttlasError` where the model holds no attention, or where none of it ran.
    """
    names = taps(model)
    if not names:
        raise AttlasError(
            "a model with an attention layer of attlas in it",
            f"{type(model).__name__}, which holds no tap",
            "observe a model that looks (a recurrent model with attention = 'none' does not)",
        )
    trace = Trace()
    with listening(Listener(names, note=trace.note)):
        yield trace
    if not trace.layers:
        raise AttlasError(
            "at least one attention call inside the block",
            f"none, although {type(model).__name__} holds {len(names)} attention layer(s)",
            "call this very model inside the block, in the same thread",
        )
