"""The newest calls of torch's functions: what was made of what, by the identities of tensors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Generic, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

MOST_KEPT = 4096  # calls: a module makes some dozens between what it is given and its attention

T = torch.Tensor
Function = Callable[..., Any]


class TensorVersion(NamedTuple):
    """A tensor: its identity, and the number of the call that has made it or changed it last; -1
    where nobody knows that call."""

    identity: int
    number: int


class RecordedCall(NamedTuple):
    """A call of a function: the tensors that it was given, the identity of one that it made, and
    the number of the call that had made this identity before.

    A function that changed a tensor in place has made one of its inputs.

    Args:
        view: The memory layouts of input and result, for functions that take or join parts.
        content: The inputs that determine the content of the result: no masks, places or weights.
    """

    function: Function
    given: tuple[TensorVersion, ...]
    made: int
    earlier: int
    view: "tuple[MemoryLayout, MemoryLayout] | None"
    content: tuple[TensorVersion, ...]

    @property
    def is_in_place(self) -> bool:
        """Return True if it has changed what it made."""
        return any(tensor_id == self.made for tensor_id, _ in self.given)

    @property
    def cut(self) -> "AxisSlice | None":
        """Which part of an axis was taken, or, of a join, all places of the axis of which there are
        more now; None if unknown."""
        if self.view is None:
            return None
        return _joined_axis(*self.view) if self.function in JOINING else _slice_of(*self.view)


class MemoryLayout(NamedTuple):
    """How a tensor lies in memory."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class AxisSlice(NamedTuple):
    """Places of one axis: `size` places from `first` on, in steps of `step`.

    Args:
        alone: Whether no other axis has this size.
    """

    size: int
    first: int
    step: int
    alone: bool


def _as_made(pair: tuple[int, int]) -> TensorVersion:
    return tuple.__new__(TensorVersion, pair)


class RecentCalls:
    """The newest calls of torch functions, by the identities of their tensors, which are not kept
    alive.

    When a tensor is gone, its identity may become another tensor's. So a call is stored with the
    numbers of the calls that had made its inputs.

    `start` is the first call that is followed. Older ones belong to an earlier call of the model.
    """

    def __init__(self) -> None:
        self._ring: list[Any] = [None] * MOST_KEPT
        self._newest: dict[int, int] = {}
        self.count = self.start = 0

    def record(
        self, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """One more call; one that made no tensor and changed none is of no interest."""
        last = self._newest.get
        if isinstance(result, Tensor) and function not in _OF_PARTS:  # nearly every call
            values = args if not kwargs else (*args, *kwargs.values())
            if not result.ndim:
                function = torch.zeros  # a number alone is of no text
            number, made_id = self.count, id(result)
            inputs = [
                (tensor_id := id(item), last(tensor_id, -1))
                for item in values
                if isinstance(item, Tensor)
            ]
            self._ring[number % MOST_KEPT] = function, inputs, made_id, last(made_id, -1), None
            self._newest[made_id] = number
            self.count = number + 1
            if not self.count % MOST_KEPT:
                self._forget()
        else:
            self._record_parts(function, args, kwargs, result)

    def _record_parts(
        self, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """The same of a function that takes or gives several tensors, or takes parts."""
        if isinstance(result, Tensor):
            made_ids: tuple[int, ...] = (id(result),)
            if not result.ndim:
                function = torch.zeros
        elif isinstance(result, tuple | list) and type(result) is not torch.Size:
            made_ids = tuple(map(id, tensors_in(result)))
        elif result is None and function is T.__setitem__:
            made_ids = (id(args[0]),)
        else:
            return
        if function is T.__getitem__ and _chooses(args[1]):
            function = _chosen
        pieces: Sequence[Any] = ()
        if function in _CUTTING:
            pieces = [result] if isinstance(result, Tensor) else result
        last = self._newest.get
        takes_list = len(args) == 1 and type(args[0]) in (tuple, list) and "out" not in kwargs
        joins = takes_list and function in _CUTTING
        tensors = args[0] if joins else tensors_in((*args, *kwargs.values()))
        inputs = [
            (tensor_id := id(item), last(tensor_id, -1))
            for item in tensors
            if isinstance(item, Tensor)
        ]
        for index, tensor_id in enumerate(made_ids):
            view = _view(args, pieces[index]) if index < len(pieces) else None
            number = self.count
            self._ring[number % MOST_KEPT] = (
                function,
                inputs,
                tensor_id,
                self._newest.get(tensor_id, -1),
                view,
            )
            self._newest[tensor_id] = number
            self.count = number + 1
            if not self.count % MOST_KEPT:
                self._forget()

    def _forget(self) -> None:
        items = self._newest.items()
        self._newest = {tensor_id: newest for tensor_id, newest in items if self.keeps(newest)}

    def at(self, number: int) -> RecordedCall:
        """The call of this number, which is kept."""
        recorded = self._ring[number % MOST_KEPT]
        if type(recorded) is RecordedCall:
            return recorded
        function, pairs, made_ids, earlier, view = recorded
        inputs = tuple(_as_made(pair) for pair in pairs)
        call = RecordedCall(function, inputs, made_ids, earlier, view, _content(function, inputs))
        self._ring[number % MOST_KEPT] = call  # whoever asks once asks again
        return call

    def made(self, identity: int, before_call: int | None = None) -> TensorVersion:
        """The tensor that has this identity now, or had it before the call of this number."""
        number = self._newest.get(identity, -1)
        while before_call is not None and number >= max(before_call, self.oldest):
            number = self.at(number).earlier
        return TensorVersion(identity, number)

    def born(self, identity: int) -> int:
        """The number of the call that has made the tensor of this identity, in no place of another;
        -1 where it is not followed."""
        number = self._newest.get(identity, -1)
        while self.follows(number):
            call = self.at(number)
            if not call.is_in_place:
                return number
            number = call.earlier
        return -1

    def keeps(self, number: int) -> bool:
        """Return True if the call of this number is known."""
        return number >= 0 and number >= self.count - MOST_KEPT

    def follows(self, number: int) -> bool:
        """Return True if the call of this number is known, and no older than the call of the
        model.
        """
        return number >= self.start and number >= 0 and number >= self.count - MOST_KEPT

    @property
    def oldest(self) -> int:
        """The number of the oldest call that is known."""
        return max(0, self.count - MOST_KEPT)


Note = TypeVar("Note")


class CallWalk(Generic[Note]):
    """Calls to be followed, the newest first, with what is known of each of them."""

    def __init__(self, calls: RecentCalls, oldest: int = 0) -> None:
        self._at = calls.at
        self._oldest = max(oldest, calls.start, calls.oldest)
        self._heap: list[int] = []
        self.notes: dict[int, Note] = {}

    def want(self, number: int, note: Note) -> bool:
        """Return True if the call of this number is followed; from now on with this note."""
        if number < self._oldest:
            return False
        if number not in self.notes:
            heappush(self._heap, -number)
        self.notes[number] = note
        return True

    def __iter__(self) -> Iterator[tuple[int, RecordedCall, Note]]:
        while self._heap:
            number = -heappop(self._heap)
            yield number, self._at(number), self.notes.pop(number)


def _content(function: Function, inputs: tuple[TensorVersion, ...]) -> tuple[TensorVersion, ...]:
    """Those of the tensors given to a function that say what it has made."""
    if function in _SETTING:
        return (*inputs[:1], *inputs[1:][-1:])
    part = _CONTENT.get(function)
    return inputs if part is None else inputs[part]


def _chosen(tensor: Tensor, index: Any) -> Tensor:
    """What `tensor[index]` is, where a tensor says which places are taken, in which order."""
    return tensor[index]


def _view(args: Sequence[Any], result: Any) -> tuple[MemoryLayout, MemoryLayout] | None:
    tensor = args[0] if args else None
    if isinstance(tensor, tuple | list) and tensor:
        tensor = tensor[0]
    if not isinstance(tensor, Tensor) or not isinstance(result, Tensor):
        return None
    try:
        layouts = [
            MemoryLayout(tensor.shape, tensor.stride(), int(tensor.storage_offset()))
            for tensor in (tensor, result)
        ]
    except (RuntimeError, NotImplementedError):  # nested and sparse tensors lie in other ways
        return None
    return layouts[0], layouts[1]


def _joined_axis(piece: MemoryLayout, whole: MemoryLayout) -> AxisSlice | None:
    if len(piece.shape) != len(whole.shape):
        return None
    pairs = zip(piece.shape, whole.shape, strict=True)
    longer = [after for before, after in pairs if before != after]
    is_unique = len(longer) == 1 and list(whole.shape).count(longer[0]) == 1
    return AxisSlice(longer[0], 0, 1, is_unique) if len(longer) == 1 else None


def _slice_of(whole: MemoryLayout, part: MemoryLayout) -> AxisSlice | None:
    sizes = {
        axis: size for axis, size in enumerate(whole.shape) if size > 1 and whole.stride[axis] > 0
    }
    offset = part.offset - whole.offset
    firsts: dict[int, int] = {}
    for axis in sorted(sizes, key=lambda axis: -whole.stride[axis]):
        firsts[axis], offset = divmod(offset, whole.stride[axis])
    if offset or any(not 0 <= first < sizes[axis] for axis, first in firsts.items()):
        return None
    cuts: list[tuple[int, int, int]] = []
    unused = dict(sizes)
    for size, stride in zip(part.shape, part.stride, strict=True):
        if size == 1 or not stride:
            continue
        candidates = [
            axis
            for axis in unused
            if not stride % whole.stride[axis] and stride // whole.stride[axis] < unused[axis]
        ]
        if not candidates:
            return None
        axis = max(candidates, key=lambda axis: whole.stride[axis])
        if size != unused.pop(axis):
            cuts.append((size, firsts[axis], stride // whole.stride[axis]))
    cuts += [(1, firsts[axis], 1) for axis in unused]
    if len(cuts) != 1:
        return None
    size, first, step = cuts[0]
    return AxisSlice(size, first, step, list(part.shape).count(size) == 1)


def _chooses(index: Any) -> bool:
    values = index if isinstance(index, tuple | list) else (index,)
    return any(isinstance(value, Tensor) for value in values)


def tensors_in(values: Iterable[Any], depth: int = 3) -> Iterator[Tensor]:
    """The tensors among these, and in lists and dictionaries among these."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif depth and isinstance(value, tuple | list):
            yield from tensors_in(value, depth - 1)
        elif depth and isinstance(value, dict):
            yield from tensors_in(value.values(), depth - 1)


def _functions_named(*names: str) -> frozenset[Function]:
    """The functions of these names in torch, in torch.nn.functional and of tensors, and those that
    do the same in place."""
    owners = (torch, F, T, torch.special)
    functions = (getattr(owner, name, None) for name in names for owner in owners)
    return frozenset(function for function in functions if callable(function))


LINEAR = _functions_named(
    *("linear", "bilinear", "embedding", "embedding_bag", "lstm", "gru", "rnn_tanh", "rnn_relu"),
    *(f"conv{more}{axes}d" for more in ("", "_transpose") for axes in (1, 2, 3)),
)
PRODUCTS = LINEAR | _functions_named(
    *("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "mv", "einsum", "tensordot", "inner"),
    *("addmm", "addbmm", "baddbmm", "baddbmm_", "chain_matmul", "bilinear"),
)
KERNELS = set(_functions_named("scaled_dot_product_attention", "multi_head_attention_forward"))
"""Functions that are whole attentions: what they give is of the text of their queries."""

SOFTMAXES = _functions_named("softmax", "_softmax", "_safe_softmax", "softmin", "gumbel_softmax")
SOFTMAXES |= _functions_named("log_softmax", "_log_softmax")
JOINING = _functions_named("cat", "concat", "concatenate", "stack", "hstack", "vstack")
_SETTING = _functions_named(
    *("__setitem__", "copy_", "index_copy", "index_copy_", "index_put", "index_put_"),
    *("scatter", "scatter_", "scatter_add", "scatter_add_", "index_add", "index_add_"),
    *("masked_scatter", "masked_scatter_", "slice_scatter", "select_scatter"),
)
JOINING |= _SETTING
_OF_LISTS = JOINING | _functions_named(
    "einsum", "lstm", "gru", "rnn_tanh", "rnn_relu", "block_diag"
)
PARTS = {_chosen} | _functions_named(
    *("__getitem__", "unbind", "chunk", "split", "tensor_split", "select", "narrow")
)
MOVING = _functions_named(
    *("roll", "flip", "fliplr", "flipud", "rot90", "gather", "index_select", "take_along_dim"),
    *("take", "masked_select", "sort", "unfold", "as_strided", "pad"),
) | {_chosen}
_CUTTING = PARTS - {_chosen} | _functions_named("cat", "concat", "concatenate")
_CHOOSING = frozenset((torch.where,))
_FIRST = {_chosen} | _functions_named(
    *("layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm", "normalize"),
    *("dropout", "prelu", "masked_fill", "masked_fill_", "gather", "index_select", "__getitem__"),
    *("take_along_dim", "masked_select", "expand_as", "view_as", "reshape_as", "type_as", "to"),
    *("native_layer_norm", "pad", "interpolate"),
)
BLANK = _functions_named(
    *("zeros", "ones", "full", "empty", "arange", "eye", "linspace", "zeros_like", "ones_like"),
    *("full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty", "zero_"),
)
_OF_PARTS = _OF_LISTS | _CUTTING | {T.__getitem__}
_CONTENT: dict[Function, slice] = {
    **dict.fromkeys(_CHOOSING, slice(1, None)),
    **dict.fromkeys(_FIRST | LINEAR, slice(1)),
    **dict.fromkeys(BLANK, slice(0)),
}
