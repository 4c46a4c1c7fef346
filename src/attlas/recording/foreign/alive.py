"""What is known of tensors, for as long as they live."""

from functools import partial
from typing import TypeVar
from weakref import ref

from torch import Tensor

Fact = TypeVar("Fact")


class WhileAlive(dict[int, tuple[ref[Tensor], Fact]]):
    """A table by identity, which keeps no tensor alive: a fact goes when its tensor does.

    Every function of torch that a model calls may ask for each of its arguments, so that it is a
    plain dictionary.
    """

    __slots__ = ()

    def of(self, tensor: object) -> Fact | None:
        """What is known of this tensor; None of anything else."""
        found = self.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def learn(self, tensor: Tensor, fact: Fact) -> None:
        """From now on this is known of it."""
        number = id(tensor)
        self[number] = ref(tensor, partial(self.pop, number)), fact

    def forget(self, tensor: Tensor) -> None:
        """From now on nothing is known of it."""
        self.pop(id(tensor), None)
