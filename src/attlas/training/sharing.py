"""How the work of an optimiser's step is shared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from attlas.training.crew import Crew


def _itself(tensor: Tensor, like: Tensor | None = None) -> Tensor:
    return tensor


@dataclass(frozen=True)
class Sharing:
    """Among the threads of a crew, and the processes of a fleet that holds a model in parts.

    all_of: does one thing for each of many, side by side where it can (`Crew.all_of`). whole, part:
    of a tensor of which this process may hold a part alone (`Spread`). By default nobody shares.
    """

    all_of: Callable[[Callable[[Tensor], None], Sequence[Tensor]], Any] = field(
        default_factory=lambda: Crew().all_of
    )
    whole: Callable[[Tensor], Tensor] = _itself
    part: Callable[[Tensor, Tensor], Tensor] = _itself
