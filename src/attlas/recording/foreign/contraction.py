"""An Einstein sum of two tensors: which of its axes are queries and slots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_letters
from typing import Any

import torch
from torch import Tensor

from attlas.recording.foreign.scored import Loose
from attlas.recording.foreign.unreadable import unreadable
from attlas.recording.foreign.versions import memory


@dataclass(frozen=True, slots=True)
class Contraction:
    """`torch.einsum(equation, *tensors)` of two tensors, every axis of which has a letter.

    Axes that the equation leaves to dots have letters of their own here.
    """

    equation: str
    tensors: tuple[Tensor, Tensor]
    terms: tuple[str, str]
    out: str

    @classmethod
    def of(cls, args: Sequence[Any]) -> "Contraction | None":
        """From the arguments; None where it is of another kind."""
        if not args or not isinstance(args[0], str):
            return None
        given = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
        terms, arrow, out = args[0].replace(" ", "").partition("->")
        left, comma, right = terms.partition(",")
        if len(given) != 2 or not comma or "," in right:
            return None
        named = _spelled_out((left, right), out if arrow else _implied(terms), given)
        return None if named is None else cls(args[0], (given[0], given[1]), *named)

    @classmethod
    def over_last(cls, left: Tensor, right: Tensor) -> "Contraction":
        """The sum over the last axes of both, as `F.linear` and `torch.inner` take it."""
        return cls._dotted(left, right, [left.ndim - 1], [right.ndim - 1])

    @classmethod
    def of_dots(
        cls, function: Any, args: Sequence[Any], named: Mapping[str, Any]
    ) -> "Contraction | None":
        """From the arguments of `torch.tensordot` or `torch.inner`; None where they are named."""
        if len(args) < 2 or not all(isinstance(one, Tensor) for one in args[:2]):
            return None
        left, right = args[:2]
        if function is torch.inner:
            return cls.over_last(left, right) if min(left.ndim, right.ndim) else None
        dims = args[2] if len(args) > 2 else named.get("dims", 2)
        if isinstance(dims, int):
            dims = range(left.ndim - dims, left.ndim), range(dims)
        if isinstance(dims, Tensor) or len(dims) != 2:
            return None
        mine, theirs = (
            [axis % one.ndim for axis in on] for one, on in zip((left, right), dims, strict=True)
        )
        return cls._dotted(left, right, mine, theirs)

    @classmethod
    def _dotted(
        cls, left: Tensor, right: Tensor, mine: Sequence[int], theirs: Sequence[int]
    ) -> "Contraction":
        """The sum over these axes of the one and of the other, behind which nothing is joined."""
        first = ascii_letters[: left.ndim]
        free = iter(ascii_letters[left.ndim :])
        summed = dict(zip(theirs, mine, strict=True))
        second = "".join(
            first[summed[axis]] if axis in summed else next(free) for axis in range(right.ndim)
        )
        kept = [letter for letter in first if letter not in second]
        kept += [letter for letter in second if letter not in first]
        out = "".join(kept)
        return cls(f"{first},{second}->{out}", (left, right), (first, second), out)

    def query_axis(
        self, mine: int, slots: int, queries: int | None, heads: Callable[[], int | None]
    ) -> int | None:
        """Which axis of these weights has queries, counted from the last; None where none has.

        slots: which one has slots, summed over, as of the values. Queries are kept, and the values
        have none; where heads share their values, these have none of heads either: they are the
        axes that make so many heads, or else come before. queries: which one has them, where that
        is known.
        """
        letters, values = self.terms[mine], self.terms[1 - mine]
        slot = letters[slots]
        if slot in self.out or slot not in values:
            return None
        others = letters.replace(slot, "")
        asking = [letter for letter in others if letter in self.out and letter not in values]
        if not asking:
            return None
        if len(asking) == 1:
            return letters.index(asking[0]) - len(letters)
        if queries is not None and letters[queries] in asking:
            return queries
        sizes = dict(zip(letters, self.tensors[mine].shape, strict=True))
        named = heads()
        for one in reversed(asking) if named is not None else ():
            rest = others.replace(one, "")
            runs = (rest[a:b] for b in range(len(rest) + 1) for a in range(b))
            alike = (run for run in runs if {*asking} <= {*run, one})
            if any(prod(sizes[letter] for letter in run) == named for run in alike):
                return letters.index(one) - len(letters)
        return letters.index(asking[-1]) - len(letters) if asking[-1] == others[-1] else None

    def axis_after(self, mine: int, axis: int) -> int | None:
        """Where an axis of one of the tensors is in the sum, counted from the last; None = gone."""
        place = self.out.find(self.terms[mine][axis])
        return None if place < 0 else place - len(self.out)

    def as_multiplied(self, mine: int, order: Sequence[int]) -> Tensor:
        """The values as a matrix product takes them behind weights with their axes in this order,
        queries and slots the last: with the axes before queries, slots and width."""
        letters, values = self.terms[mine], self.terms[1 - mine]
        *rows, _, slot = (letters[axis] for axis in order)
        width = [letter for letter in values if letter not in letters]
        wanted = [letter for letter in (*rows, slot, *width) if letter in values]
        tensor = self.tensors[1 - mine].permute([values.index(letter) for letter in wanted])
        for axis, letter in enumerate(rows):
            if letter not in values:
                tensor = tensor.unsqueeze(axis)
        if not width:
            tensor = tensor.unsqueeze(-1)
        return tensor.flatten(len(rows) + 1) if len(width) > 1 else tensor

    def product(self) -> tuple[Tensor, Tensor] | None:
        """Two tensors of which the result is the matrix product; None where it is none."""
        if len(self.out) < 2:
            return None
        batch, query, slot = self.out[:-2], self.out[-2], self.out[-1]
        left, right = self.tensors
        mine, theirs = self.terms
        if query not in mine:
            left, right, mine, theirs = right, left, theirs, mine
        summed = [letter for letter in mine if letter in theirs and letter not in self.out]
        if len(summed) != 1:
            return None
        wanted = batch + query + summed[0], batch + summed[0] + slot
        if sorted(mine) != sorted(wanted[0]) or sorted(theirs) != sorted(wanted[1]):
            return None
        return (
            left.permute([mine.index(letter) for letter in wanted[0]]),
            right.permute([theirs.index(letter) for letter in wanted[1]]),
        )

    def loose(self) -> Loose | None:
        """The axes of queries and slots of a product, in whatever order; None where it is none."""
        mine, theirs = self.terms
        summed = [letter for letter in mine if letter in theirs and letter not in self.out]
        asking = [letter for letter in mine if letter in self.out and letter not in theirs]
        asked = [letter for letter in theirs if letter in self.out and letter not in mine]
        if not len(summed) == len(asking) == len(asked) == 1 or len(self.out) != len(mine):
            return None
        if unreadable(*self.tensors):
            return None
        first, second = (self.out.index(one) - len(self.out) for one in (asking[0], asked[0]))
        return Loose((first, second), tuple(map(memory, self.tensors)))


_DOTS = "..."


def _implied(terms: str) -> str:
    """What an equation without an arrow stands for: axes that one tensor alone has, by letter."""
    letters = sorted(letter for letter in set(terms) - set(".,") if terms.count(letter) == 1)
    return _DOTS * (_DOTS in terms) + "".join(letters)


def _spelled_out(
    terms: tuple[str, str], out: str, tensors: Sequence[Tensor]
) -> tuple[tuple[str, str], str] | None:
    """The terms with letters in place of dots, which are aligned from the last on; None where one
    of the two is repeated for the other along one of them."""
    if not any(_DOTS in term for term in terms):
        return terms, out
    left, right = (_behind_dots(term, tensor) for term, tensor in zip(terms, tensors, strict=True))
    fewer = min(len(left), len(right))
    if fewer and left[-fewer:] != right[-fewer:]:
        return None
    unused = [letter for letter in ascii_letters if letter not in "".join(terms)]
    axes = "".join(unused[: max(len(left), len(right))])
    spelled = [
        term.replace(_DOTS, axes[len(axes) - len(sizes) :])
        for term, sizes in zip(terms, (left, right), strict=True)
    ]
    return (spelled[0], spelled[1]), out.replace(_DOTS, axes)


def _behind_dots(term: str, tensor: Tensor) -> tuple[int, ...]:
    """The sizes of the axes that stand behind the dots of a term."""
    before, dots, after = term.partition(_DOTS)
    return tuple(tensor.shape[len(before) : tensor.ndim - len(after)]) if dots else ()
