"""What the values of each layer are made of, heard while a model runs."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from attlas.analysis.norms.projections import found_in
from attlas.errors import AttlasError

Heard = dict[str, list[Float[Tensor, "batch slots source_width"]]]


@contextmanager
def hearing_sources(model: nn.Module) -> Iterator[Heard]:
    """`with observe(model) as trace, hearing_sources(model) as sources: model(...)`

    Of each layer, by the path that it has in a trace, what every call made its values of: (batch,
    slots, source_width), the batch first whatever the layer's habit. A cached generation makes them
    step by step, a list of new slots for each.

    Heard by hooks on the model, which are taken off at the end of the block: other threads that run
    it meanwhile are heard too, and PyTorch's Transformers leave their inference fast path.

    Errors: `AttlasError` for a model none of whose layers `value_map` knows, and where none of
    those ran, unless the block itself raised first.
    """
    heard: Heard = {}
    with ExitStack() as stack:
        known = False
        for path, _ in model.named_modules(remove_duplicate=False):
            found = found_in(model, path)
            if found is None:
                continue
            known = True
            whole = isinstance(found, nn.MultiheadAttention)
            listened = found if isinstance(found, nn.MultiheadAttention) else found.value
            note = _Note(heard.setdefault(path, []), whole)
            handle = listened.register_forward_pre_hook(note, with_kwargs=True)
            stack.callback(handle.remove)
        if not known:
            raise AttlasError(
                "a model with an attention whose values are projected as `value_map` knows",
                type(model).__name__,
                "see attlas.analysis.Projections for what it knows",
            )
        yield heard
    for path in [path for path, calls in heard.items() if not calls]:
        del heard[path]
    if not heard:
        raise AttlasError(
            "at least one attention call inside the block",
            f"none of {type(model).__name__}",
            "call this very model inside the block",
        )


@dataclass(frozen=True, slots=True)
class _Note:
    """A hook that writes down what a linear map, or PyTorch's layer, is given to make values of."""

    calls: list[Float[Tensor, "batch slots source_width"]]
    whole_layer: bool

    def __call__(self, module: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        if self.whole_layer:
            given = named["value"] if "value" in named else args[2]
            source = given.unsqueeze(0) if given.ndim == 2 else given
            if given.ndim == 3 and not getattr(module, "batch_first", False):
                source = source.transpose(0, 1)
        else:
            source = args[0] if args else named["input"]
            source = source.unsqueeze(0) if source.ndim == 2 else source
        self.calls.append(source.detach().clone())
