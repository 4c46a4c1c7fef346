"""An ONNX graph, written node by node."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UnsupportedError

_OPSET = 18
_IR = 8  # the oldest format of the file that has this opset: onnxruntime 1.14 reads it
_MOST = (1 << 31) - 1  # bytes; one protobuf message cannot be larger

Shape = tuple[int | str, ...]
"""Sizes, and names of those that are free."""


@dataclass(frozen=True, slots=True)
class Value:
    """What goes into a graph, or comes out of it."""

    name: str
    dtype: type[np.generic]
    shape: Shape

    @property
    def info(self) -> Any:
        """The same in the words of ONNX."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        return helper.make_tensor_value_info(self.name, kind, self.shape)

    def __str__(self) -> str:
        sizes = f"{self.shape[0]}," if len(self.shape) == 1 else ", ".join(map(str, self.shape))
        return f"{self.name} ({sizes}) {np.dtype(self.dtype).name}"


class Graph:
    """Nodes and constants; values are known by their names, which are given as they come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    @property
    def signature(self) -> str:
        """What goes in and what comes out, as people read it."""
        inputs, outputs = (", ".join(map(str, values)) for values in (self._inputs, self._outputs))
        return f"{inputs} → {outputs}"

    def input(self, name: str, dtype: type[np.generic], shape: Shape) -> str:
        """A value that the caller gives."""
        self._inputs.append(Value(name, dtype, shape))
        return name

    def output(self, value: str, name: str, dtype: type[np.generic], shape: Shape) -> None:
        """Give this value to the caller under a name."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(Value(name, dtype, shape))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The one value that an operator makes of others; of several the first."""
        return self.several(1, operator, *inputs, **attributes)[0]

    def several(self, count: int, operator: str, *inputs: str, **attributes: Any) -> list[str]:
        """The first `count` values that an operator makes of others; "" = an input left out."""
        from onnx import helper

        name = f"{operator}_{len(self._nodes)}"
        names = [name, *(f"{name}.{number}" for number in range(1, count))]
        self._nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def constant(self, array: Tensor | NDArray[Any], name: str | None = None) -> str:
        """A value that never changes; of several with one name the first is kept."""
        from onnx import numpy_helper

        name = f"constant_{len(self._constants)}" if name is None else name
        if name not in self._constants:
            if isinstance(array, Tensor):
                array = array.detach().cpu().numpy()
            self._constants[name] = numpy_helper.from_array(np.array(array, order="C"), name)
        return name

    def integers(self, *numbers: int) -> str:
        """A constant list of whole numbers, as shapes and axes are given."""
        name = f"integers({', '.join(map(str, numbers))})"
        return self.constant(np.array(numbers, dtype=np.int64), name)

    def number(self, value: int | float, dtype: type[np.generic] = np.float32) -> str:
        """A constant number."""
        return self.constant(np.array(value, dtype=dtype), f"{dtype.__name__}({value!r})")

    def reshaped(self, value: str, *shape: int) -> str:
        """The same numbers in another shape; 0 = as it was, −1 = what is left."""
        return self.node("Reshape", value, self.integers(*shape))

    def mapped(self, x: str, weight: Tensor, bias: Tensor | None = None) -> str:
        """x Wᵀ + b."""
        y = self.node("MatMul", x, self.constant(weight.t()))
        return y if bias is None else self.node("Add", y, self.constant(bias))

    def save(self, path: Path, facts: Mapping[str, Any] | None = None) -> None:
        """Check the graph and write it; the facts go into the metadata of the file.

        Raises:
            UnsupportedError: If the weights are larger than a file can be.
        """
        import onnx
        from onnx import helper

        constants = list(self._constants.values())
        size = sum(len(constant.raw_data) for constant in constants)
        if size > _MOST:
            raise UnsupportedError(
                f"a model of at most {_MOST:,} bytes for {path.name}",
                f"{size:,} bytes",
                "use --to safetensors",
            )
        graph = helper.make_graph(
            self._nodes,
            self.name,
            [value.info for value in self._inputs],
            [value.info for value in self._outputs],
            initializer=constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR,
            producer_name="attlas",
        )
        helper.set_model_props(model, {name: str(fact) for name, fact in (facts or {}).items()})
        onnx.checker.check_model(model, full_check=True)
        path.write_bytes(model.SerializeToString())


# Whole numbers as nodes of a graph: positions, lengths and what is reckoned with them.


_BOOL, _INT64 = 9, 7  # the numbers that onnx.TensorProto gives these types


class GraphNumbers:
    """Every method takes names of int64 values, or numbers, and gives back the name of another."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def of(self, operator: str, *numbers: str | int) -> str:
        """What an operator makes of them."""
        names = (
            self.graph.number(number, np.int64) if isinstance(number, int) else number
            for number in numbers
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
        maximum = self.graph.node(
            "ReduceMax", self._same(numbers, marks), self.graph.integers(-1), keepdims=0
        )
        return self.graph.node("Cast", maximum, to=_BOOL)

    def place(self, numbers: str, marks: tuple[int, ...]) -> str:
        """At which place in the marks each of the numbers stands; 0 for one that is no mark."""
        return self.graph.node("ArgMax", self._same(numbers, marks), axis=-1, keepdims=0)

    def _same(self, numbers: str, marks: tuple[int, ...]) -> str:
        """1 where a number is a mark, (…, marks), else 0."""
        is_equal = self.graph.node("Equal", self.apart(numbers, -1), self.graph.integers(*marks))
        return self.graph.node("Cast", is_equal, to=_INT64)
