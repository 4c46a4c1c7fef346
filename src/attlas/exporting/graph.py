"""An ONNX graph, written node by node."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import AttlasError

_OPSET = 18
_IR = 8  # the oldest format of the file that has this opset: onnxruntime 1.14 reads it
_MOST = (1 << 31) - 1  # bytes; one protobuf message cannot be larger

Shape = tuple[int | str, ...]
"""Sizes, and names of those that are free."""


class Graph:
    """Nodes and constants; values are known by their names, which are given as they come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, dtype: type[np.generic], shape: Shape) -> str:
        """A value that the caller gives."""
        self._inputs.append(_value(name, dtype, shape))
        return name

    def output(self, value: str, name: str, dtype: type[np.generic], shape: Shape) -> None:
        """Give this value to the caller under a name."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(_value(name, dtype, shape))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The one value that an operator makes of others."""
        from onnx import helper

        name = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

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

    def save(self, path: Path) -> None:
        """Check the graph and write it.

        Errors: `AttlasError` where the weights are larger than a file can be.
        """
        import onnx
        from onnx import helper

        constants = list(self._constants.values())
        size = sum(len(constant.raw_data) for constant in constants)
        if size > _MOST:
            raise AttlasError(
                f"a model of at most {_MOST:,} bytes for {path.name}",
                f"{size:,} bytes",
                "use --to safetensors",
            )
        graph = helper.make_graph(
            self._nodes, self.name, self._inputs, self._outputs, initializer=constants
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR,
            producer_name="attlas",
        )
        onnx.checker.check_model(model, full_check=True)
        path.write_bytes(model.SerializeToString())


def _value(name: str, dtype: type[np.generic], shape: Shape) -> Any:
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, shape)
