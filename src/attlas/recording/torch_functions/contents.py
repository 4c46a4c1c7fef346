"""What the keys of a cache hold: which tensor goes on from which, known without its numbers."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, NamedTuple
from weakref import ref

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.recording.torch_functions.tensors import Versions, WhileAlive, unreadable

_MOST_PLACES = 1 << 16  # of an index that is read


class KeyText:
    """Keys that were written one after another; a text that was cropped and goes on is another.

    cropped: up to where a cache has kept it that has let go of the rest, None = all of it.

    Args:
        parent, shared: The text that it begins with, up to this key.
        rows: Which of its rows each row was, None = the same one.
        written: So many keys.
    """

    __slots__ = ("cropped", "parent", "rows", "shared", "written")

    def __init__(
        self,
        written: int,
        parent: "KeyText | None" = None,
        shared: int = 0,
        rows: Int[Tensor, " batch"] | None = None,
    ) -> None:
        self.written, self.parent, self.shared, self.rows = written, parent, shared, rows
        self.cropped: int | None = None


class Common(NamedTuple):
    """What two contents have in common: keys up to `stop`, of the rows `rows` of the earlier."""

    stop: int
    rows: Int[Tensor, " batch"] | None


@dataclass(frozen=True, slots=True)
class Content:
    """The keys start … stop − 1 of a text, along an axis of a tensor, made in some way.

    Args:
        axis: Counted from the first.
        made: What was done to the tensor that was written, key by key.
        batch: How many rows the text has.
    """

    text: KeyText
    start: int
    stop: int
    axis: int
    batch: int
    made: tuple[Any, ...] = ()

    @property
    def repeats(self) -> int:
        """How often each head follows itself, because it was repeated for those that share it."""
        return next((change[1] for change in self.made if change[:1] == (REPEATED,)), 1)

    def once(self) -> "Content":
        """The same of keys that have each head once."""
        return replace(
            self, made=tuple(change for change in self.made if change[:1] != (REPEATED,))
        )

    def common(self, earlier: "Content") -> Common | None:
        """What this has in common with an earlier content; None where that is nothing."""
        if self.made != earlier.made:
            return None
        older: dict[int, int] = {}
        text: KeyText | None = earlier.text
        stop = earlier.stop
        while text is not None:
            older[id(text)] = stop
            if text.rows is not None:
                break  # rows of before the choice are not those of the earlier content
            stop, text = min(stop, text.shared), text.parent
        text, stop, rows = self.text, self.stop, None
        while text is not None:
            if id(text) in older:
                return Common(min(stop, older[id(text)]), rows)
            if text.rows is not None:
                rows = text.rows if rows is None else text.rows[rows]
            stop, text = min(stop, text.shared), text.parent
        return None


class _Cropping(NamedTuple):
    """The first keys of what an object holds by a name, which it may be about to hold instead."""

    owner: Callable[[], Any]
    name: str
    first: Callable[[], Any]
    text: KeyText
    stop: int

    def happened(self) -> bool:
        first = self.first()
        return first is not None and getattr(self.owner(), self.name, None) is first


class Contents:
    """The contents of tensors that are alive, for as long as they are not changed.

    A cache that appends, copies, crops, chooses rows or writes to its room says by that alone what
    it holds; no number is compared.
    """

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._known: WhileAlive[tuple[Content, Any]] = WhileAlive()
        self._cropping: _Cropping | None = None

    def of(self, tensor: Any) -> Content | None:
        """What is known of this tensor."""
        entry = self._known.of(tensor)
        if entry is None:
            return None
        content, version = entry
        return content if self._versions(tensor) == version else None

    def content_of(self, tensor: Tensor, axis: int) -> Content | None:
        """What keys hold that were looked at, with their keys along this axis; from now on known.

        None where nothing can be known of this tensor for long.
        """
        axis %= tensor.ndim
        content = self.of(tensor)
        if content is not None:
            return content if content.axis == axis else None
        return self._learn(tensor, _new(tensor, axis))

    def joined(self, parts: Any, axis: Any, result: Any) -> None:
        """`result` is these tensors, one after another: the first may be a text that goes on."""
        if not isinstance(parts, tuple | list) or not isinstance(result, Tensor):
            return
        if not isinstance(axis, int) or result.ndim < 3 or not parts:
            return
        axis %= result.ndim
        if result.is_nested or result.layout != torch.strided:
            return
        tensors = [part for part in parts if part.ndim > 1 or part.numel()]
        content = self.of(tensors[0]) if tensors else None
        if content is not None and content.axis == axis:
            more = result.shape[axis] - tensors[0].shape[axis]
            is_full = tensors[0].shape[axis] == content.stop - content.start
            self._learn(result, _longer(content, content.stop, more) if is_full else None)
        elif 0 < axis < result.ndim - 1:  # the first is texts, the last in most models width
            self._learn(result, _new(result, axis))

    def written(self, tensor: Any, axis: Any, index: Any) -> None:
        """Other keys were written to these places of a tensor, in it."""
        entry = self._known.of(tensor)
        if not isinstance(index, Tensor) or not isinstance(axis, int) or not index.numel():
            return
        if index.ndim != 1 or len(index) > _MOST_PLACES or tensor.ndim < 3:
            return
        numbers, axis = index.tolist(), axis % tensor.ndim
        begin, more = numbers[0], len(numbers)
        if numbers != list(range(begin, begin + more)):
            return
        if entry is not None and entry[0].axis == axis and entry[0].start <= begin:
            self._learn(tensor, _longer(entry[0], entry[0].start + begin, more))
        elif begin == 0 or entry is None:
            self._learn(tensor, replace(_new(tensor, axis), stop=begin + more))

    def before_writing(self, tensor: Any) -> None:
        """A tensor is about to be written to in its place: forget it if it was changed before."""
        if tensor is not None and self._known.of(tensor) is not None and self.of(tensor) is None:
            self._known.forget(tensor)

    def chosen(self, tensor: Any, rows: Any, result: Any) -> None:
        """`result` is some rows of a tensor, in some order."""
        content = self.of(tensor)
        if content is None or not isinstance(rows, Tensor) or content.axis == 0:
            return
        choosable = content.batch == tensor.shape[0] and rows.ndim == 1 and not content.made
        if choosable and rows.dtype in (torch.int64, torch.int32) and isinstance(result, Tensor):
            text = KeyText(content.stop, content.text, content.stop, rows.clone())
            self._learn(result, replace(content, text=text, batch=len(rows)))

    def copied(self, tensor: Any, result: Any) -> None:
        """`result` has the numbers of a tensor, perhaps of another type."""
        content = self.of(tensor)
        if content is None or result is tensor or not isinstance(result, Tensor):
            return
        if result.shape == tensor.shape:
            cast = () if result.dtype == tensor.dtype else (("cast", result.dtype),)
            self._learn(result, replace(content, made=(*content.made, *cast)))

    def reshaped(self, tensor: Any, result: Any) -> None:
        """`result` has the numbers of a tensor in another shape, or repeats some of them."""
        content = self.of(tensor)
        if content is None or not isinstance(result, Tensor) or result is tensor:
            return
        stride, num_keys = tensor.shape[: content.axis].numel(), tensor.shape[content.axis]
        if result.numel() != tensor.numel():  # expanded
            if result.ndim == tensor.ndim and result.shape[content.axis] == num_keys:
                shape = (*result.shape[: content.axis], -1, *result.shape[content.axis + 1 :])
                self._learn(result, replace(content, made=(*content.made, ("expand", shape))))
            return
        count = 1
        for axis, size in enumerate(result.shape):
            if count == stride and size == num_keys and (num_keys > 1 or axis >= result.ndim - 2):
                shape = (*result.shape[:axis], -1, *result.shape[axis + 1 :])
                steps = _with_view(content.made, shape)
                self._learn(result, replace(content, axis=axis, made=steps))
                return
            count *= size

    def moved(self, tensor: Any, result: Any, order: Sequence[int]) -> None:
        """`result` is a tensor whose axes were put into this order."""
        content = self.of(tensor)
        if content is not None and isinstance(result, Tensor):
            steps = (*content.made, ("permute", tuple(order)))
            axis = list(order).index(content.axis)
            self._learn(result, replace(content, axis=axis, made=steps))

    def part(self, tensor: Any, index: Any, result: Any) -> None:
        """`result` is `tensor[index]`: by numbers, slices, new axes, an ellipsis, or some rows."""
        content = self.of(tensor)
        if self._cropping is not None:
            self.settle()
        if content is None or not isinstance(result, Tensor) or result is tensor:
            return
        indices = index if isinstance(index, tuple) else (index,)
        if isinstance(indices[0], Tensor) and all(
            index_ is ... or _is_whole(index_) for index_ in indices[1:]
        ):
            self.chosen(tensor, indices[0], result)
            return
        full_index = _expand_index(indices, tensor.ndim)
        new_axis: int | None = None
        position = axis = 0
        start, stop = content.start, content.stop
        parts: list[Any] = []
        if full_index is None or any(isinstance(index_, Tensor) for index_ in full_index):
            return
        for index_ in full_index:
            if index_ is None or isinstance(index_, int):
                parts.append(index_)
            elif position == content.axis:
                begin, end, stride = index_.indices(tensor.shape[position])
                if stride != 1:
                    return
                start, stop, new_axis = start + begin, min(stop, start + end), axis
                parts.append(_WHOLE)
            else:
                parts.append((index_.start, index_.stop, index_.step))
            position, axis = position + (index_ is not None), axis + (not isinstance(index_, int))
        if new_axis is not None and stop > start:
            change = () if all(index_ == _WHOLE for index_ in parts) else (("part", *parts),)
            made_so = (*content.made, *change)
            part = replace(content, start=start, stop=stop, axis=new_axis, made=made_so)
            self._learn(result, part)
            if stop < content.stop and not content.made:
                self._may_be_cropped(tensor, result, content.text, stop)

    def assigned(self, tensor: Any, index: Any) -> None:
        """Other keys were written to `tensor[index]`, in it."""
        if not isinstance(tensor, Tensor) or tensor.ndim < 3:
            return
        full_index = _expand_index(index if isinstance(index, tuple) else (index,), tensor.ndim)
        assigned_axes = [
            axis for axis, index_ in enumerate(full_index or ()) if not _is_whole(index_)
        ]
        if full_index is None or len(assigned_axes) != 1 or None in full_index:
            return
        axis, places = assigned_axes[0], full_index[assigned_axes[0]]
        if isinstance(places, slice):
            begin, end, stride = places.indices(tensor.shape[axis])
            places = torch.arange(begin, end, stride) if stride == 1 < end - begin + 1 else None
        elif isinstance(places, int):
            places = torch.tensor([places % tensor.shape[axis]])
        if axis > 0:
            self.written(tensor, axis, places)

    def _may_be_cropped(self, tensor: Tensor, result: Tensor, text: KeyText, stop: int) -> None:
        """The first keys were taken of what somebody holds: who holds them instead from now on has
        cropped the text, which shows as soon as another function is called."""
        frame: FrameType | None = sys._getframe(1)
        for _ in range(_FRAMES):
            if frame is None:
                return
            code = frame.f_code
            owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            attributes = getattr(owner, "__dict__", {})
            name = next((name for name, value in attributes.items() if value is tensor), None)
            if name is not None:
                self._cropping = _Cropping(ref(owner), name, ref(result), text, stop)
                return
            frame = frame.f_back

    def settle(self) -> None:
        """Note what was cropped by now."""
        cropping, self._cropping = self._cropping, None
        if cropping is not None and cropping.happened():
            cropping.text.cropped = cropping.stop

    def _learn(self, tensor: Tensor, content: Content | None) -> Content | None:
        if content is not None and unreadable(tensor) is None:
            self._known.learn(tensor, (content, self._versions(tensor)))
        return content


def _new(tensor: Tensor, axis: int) -> Content:
    num_keys = tensor.shape[axis]
    return Content(KeyText(num_keys), 0, num_keys, axis, tensor.shape[0])


def _longer(content: Content, begin: int, num_new: int) -> Content:
    """The text of a content with more keys behind the first `begin` of it."""
    text, stop = content.text, begin + num_new
    if content.stop == begin == text.written:
        text.written, text.cropped = stop, None
    else:  # it was written to before, or not up to there
        text = KeyText(stop, text, min(begin, content.stop))
    return replace(content, text=text, stop=stop)


def _with_view(steps: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """One more view: where it folds heads that were repeated, that is what has been done."""
    if len(steps) > 1 and steps[-1][0] == "expand" and steps[-2] == _NEW_AXIS:
        repeated = steps[-1][1]
        if repeated[3:] == (-1, shape[-1]) and shape[1:3] == (repeated[1] * repeated[2], -1):
            return (*steps[:-2], (REPEATED, repeated[2]))
    return (*steps, ("view", shape))


REPEATED = "repeated"
_FRAMES = 16  # between a function that crops and here
_WHOLE = (None, None, None)
_NEW_AXIS = ("part", _WHOLE, _WHOLE, None, _WHOLE, _WHOLE)  # keys[:, :, None, :, :]


def _is_whole(index: Any) -> bool:
    return isinstance(index, slice) and (index.start, index.stop, index.step) == _WHOLE


def _expand_index(index: tuple[Any, ...], axes: int) -> list[Any] | None:
    """An index with a slice in place of what an ellipsis stands for, and of what is not named; None
    where it is of another kind."""
    if not all(
        index_ is None or index_ is ... or isinstance(index_, int | slice | Tensor)
        for index_ in index
    ):
        return None
    if any(isinstance(index_, bool) for index_ in index):
        return None
    missing = axes - sum(index_ is not None and index_ is not ... for index_ in index)
    ellipses = [axis for axis, index_ in enumerate(index) if index_ is ...]
    axis = ellipses[0] if ellipses else len(index)
    slices = [slice(None)] * missing
    return [*index[:axis], *slices, *index[axis + len(ellipses) :]]
