"""Where a training is: the numbers beside the tensors."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from attlas.errors import AttlasError


@dataclass(frozen=True, slots=True)
class Window:
    """What was seen since it was last told. weight: see `Update`."""

    loss: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class TrainingState:
    """A frozen value: `update` updates are done, `position` batches of epoch `epoch` are used.

    seconds: of training over all sittings. best: (value of the criterion, loss) of the best
    validation, made at `best_update` (None: its weights are gone); stale: how many validations
    came since. saved: the updates whose checkpoints are kept, newest last. journal: bytes of
    `metrics.jsonl`.

    Only what the recipe plans is entered. A validation or a checkpoint that is made because a
    sitting ends is not, so that where one sitting ended never shows in the next.
    """

    update: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0
    best: tuple[float, float] | None = None
    best_update: int | None = None
    stale: int = 0
    validated: int = 0
    saved: tuple[int, ...] = ()
    window: Window = Window()
    journal: int = 0

    @property
    def kept(self) -> set[int]:
        """The updates whose checkpoints stay: the newest, the best, and this one."""
        best = set() if self.best_update is None else {self.best_update}
        return {*self.saved, self.update} | best

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "TrainingState":
        """What `facts` gave.

        Errors: `AttlasError` for a checkpoint without them, such as an averaged one.
        """
        try:
            numbers = {name: facts[name] for name in cls.__dataclass_fields__}
            best = numbers["best"] and tuple(numbers["best"])
            # Checkpoints of before predictions had weights have none.
            window = Window(**{"weight": numbers["window"]["tokens"], **numbers["window"]})
            saved = tuple(numbers["saved"])
        except (KeyError, TypeError) as error:
            raise AttlasError(
                "a checkpoint that a training can go on from",
                f"one without {error.args[0]!r} in it"
                if isinstance(error, KeyError)
                else f"one with other facts ({error})",
                "write the name of a numbered checkpoint into the file `last`",
            ) from None
        return cls(**{**numbers, "best": best, "window": window, "saved": saved})
