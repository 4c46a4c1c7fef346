"""Whole numbers as nodes of a graph: positions, lengths and what is reckoned with them."""

import numpy as np

from attlas.exporting.graph import Graph

_BOOL, _INT64 = 9, 7  # the numbers that onnx.TensorProto gives these types


class GraphNumbers:
    """Every method takes names of int64 values, or numbers, and gives back the name of another."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def of(self, operator: str, *numbers: str | int) -> str:
        """What an operator makes of them."""
        names = (
            self.graph.number(one, np.int64) if isinstance(one, int) else one for one in numbers
        )
        return self.graph.node(operator, *names)

    def size(self, value: str, axis: int) -> str:
        """How long an axis of any value is."""
        return self.graph.node("Squeeze", self.graph.node("Shape", value, start=axis, end=axis + 1))

    def up_to(self, stop: str, start: str | int = 0, step: str | int = 1) -> str:
        """start, start + step, … below stop."""
        return self.of("Range", start, stop, step)

    def apart(self, value: str, *axes: int) -> str:
        """Any value with new axes at these places."""
        return self.graph.node("Unsqueeze", value, self.graph.integers(*axes))

    def among(self, numbers: str, marks: tuple[int, ...]) -> str:
        """Which of the numbers are marks, as bools."""
        if not marks:
            return self.of("Less", numbers, numbers)
        most = self.graph.node(
            "ReduceMax", self._same(numbers, marks), self.graph.integers(-1), keepdims=0
        )
        return self.graph.node("Cast", most, to=_BOOL)

    def place(self, numbers: str, marks: tuple[int, ...]) -> str:
        """At which place in the marks each of the numbers stands; 0 for one that is no mark."""
        return self.graph.node("ArgMax", self._same(numbers, marks), axis=-1, keepdims=0)

    def _same(self, numbers: str, marks: tuple[int, ...]) -> str:
        """1 where a number is a mark, (…, marks), else 0."""
        same = self.graph.node("Equal", self.apart(numbers, -1), self.graph.integers(*marks))
        return self.graph.node("Cast", same, to=_INT64)
