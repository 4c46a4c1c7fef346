"""An Einstein sum of two tensors: which of its axes are queries and slots."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import Any

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

    def query_axis(self, mine: int, slots: int = -1) -> int | None:
        """Which axis of these weights has queries, counted from the last; None where none has.

        slots: which one has slots, summed over, as of the values. Queries are kept, and the values
        have none; where heads share their values, these have none of heads either, which come
        before.
        """
        letters, values = self.terms[mine], self.terms[1 - mine]
        slot = letters[slots]
        if slot in self.out or slot not in values:
            return None
        others = letters.replace(slot, "")
        asking = [letter for letter in others if letter in self.out and letter not in values]
        if not asking or (len(asking) > 1 and asking[-1] != others[-1]):
            return None
        return letters.index(asking[-1]) - len(letters)

    def axis_after(self, mine: int, axis: int) -> int | None:
        """Where an axis of one of the tensors is in the sum, counted from the last; None = gone."""
        place = self.out.find(self.terms[mine][axis])
        return None if place < 0 else place - len(self.out)

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
    """The terms with letters in place of dots; None where the two have other axes there."""
    if not any(_DOTS in term for term in terms):
        return terms, out
    left, right = (_behind_dots(term, tensor) for term, tensor in zip(terms, tensors, strict=True))
    if left != right and left and right:  # one of them is repeated for the other
        return None
    unused = [letter for letter in ascii_letters if letter not in "".join(terms)]
    axes = "".join(unused[: max(len(left), len(right))])
    spelled = [
        term.replace(_DOTS, axes if sizes else "")
        for term, sizes in zip(terms, (left, right), strict=True)
    ]
    return (spelled[0], spelled[1]), out.replace(_DOTS, axes)


def _behind_dots(term: str, tensor: Tensor) -> tuple[int, ...]:
    """The sizes of the axes that stand behind the dots of a term."""
    before, dots, after = term.partition(_DOTS)
    return tuple(tensor.shape[len(before) : tensor.ndim - len(after)]) if dots else ()
