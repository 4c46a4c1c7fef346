"""A trace: the attention maps of every attention layer of an observed model."""

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload, runtime_checkable

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialised
from safetensors.torch import save_file
from torch import Tensor

from attlas._files import parse_json
from attlas._text import count_noun
from attlas.errors import AttlasError, CheckpointError, DataError, join_paths, quoted, unwritable
from attlas.recording.conversion import LabelledMap, to_dataframe, to_xarray
from attlas.recording.labels import (
    ImagePatches,
    Tokens,
    check_either,
    check_keys,
    check_queries,
    rows_of,
    source_and_target,
)
from attlas.recording.maps.base import AttentionMap, are_same
from attlas.recording.serialization import fact, from_tensors, to_tensors, trace_checksum

# Selection of layers and heads.


@dataclass(frozen=True, slots=True)
class Selection:
    """Which layers, and which of their heads; None = all.

    Args:
        layers: Paths, or patterns of them such as "encoder.*" (`*` also stands for dots).
    """

    layers: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls, layers: str | Sequence[str] | None, heads: int | Sequence[int] | None
    ) -> "Selection":
        """From what a caller wrote: one or several.

        Raises:
            AttlasError: For none at all, and for what is no path and no number of a head.
        """
        paths = None if layers is None else _as_tuple(layers)
        numbers = None if heads is None else _as_tuple(heads)
        if paths == () or numbers == ():
            raise AttlasError("at least one layer and one head", "none", "leave it out for all")
        if not all(isinstance(path, str) for path in paths or ()):
            raise AttlasError(
                "paths of layers, or patterns of them, as text",
                f"layers={layers!r:.80}",
                'name them such as "encoder.*"; a trace lists those that it has as list(trace)',
            )
        if not all(map(is_integer, numbers or ())):
            raise AttlasError(
                "heads by number, as whole numbers",
                f"heads={heads!r:.80}",
                "count them from 0, such as heads=0 or heads=[0, 3]",
            )
        return cls(paths, numbers)

    def is_selected(self, layer: str) -> bool:
        """Return True if a layer of this path is kept."""
        return self.layers is None or any(_matches_layer(layer, path) for path in self.layers)

    def select_layers(self, layers: Iterable[str]) -> tuple[str, ...]:
        """Those of these layers that are kept, in the order in which they were chosen."""
        recorded_paths = tuple(layers)
        paths = ("*",) if self.layers is None else self.layers
        return tuple(
            dict.fromkeys(
                recorded
                for path in paths
                for recorded in recorded_paths
                if _matches_layer(recorded, path)
            )
        )

    def unmatched(self, layers: Iterable[str]) -> list[str]:
        """The paths and patterns that stand for none of these layers."""
        recorded = list(layers)
        return [
            layer
            for layer in self.layers or ()
            if not any(_matches_layer(path, layer) for path in recorded)
        ]

    def select_heads(self, attention_map: AttentionMap, layer: str) -> AttentionMap:
        """The chosen heads of an attention map.

        Raises:
            AttlasError: For heads that the layer has not.
        """
        if self.heads is None:
            return attention_map
        invalid = [head for head in self.heads if not 0 <= head < attention_map.shape[1]]
        if invalid:
            raise AttlasError(
                f"heads from 0 to {attention_map.shape[1] - 1} in layer {layer!r}",
                str(invalid),
                "name heads that every chosen layer has, or choose layers too",
            )
        return attention_map.select_heads(torch.tensor(self.heads))

    def select_bias_heads(self, bias: Tensor | None) -> Tensor | None:
        """The chosen heads of what is added to scores, which may be the same for all of them."""
        if self.heads is None or bias is None or bias.shape[1] == 1:
            return bias
        return bias[:, list(self.heads)]


def is_integer(number: Any) -> bool:
    """Return True if this is a whole number, Python's or NumPy's; True and False count nothing."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def _matches_layer(layer: str, path: str) -> bool:
    """Return True if a path or pattern stands for this layer, whose own path may have brackets in
    it.
    """
    return layer == path or fnmatchcase(layer, path)


def _as_tuple(values: Any) -> tuple[Any, ...]:
    """One or several of what Python knows: a text is one, NumPy's and torch's numbers are its."""
    is_single = isinstance(values, str) or not isinstance(values, Iterable) or _is_number(values)
    return tuple(map(_plain, (values,) if is_single else values))


def _is_number(value: Any) -> bool:
    return getattr(value, "ndim", None) == 0  # an array without axes, which says it can be iterated


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


TRACE_FORMAT = "attlas trace 2"
_SUM = "sha256"  # of all the rest of a file
_ITSELF = '"" (the model itself)'  # a layer without a path


@runtime_checkable
class GrowingMap(Protocol):
    """A map that still grows, by the steps of a generation."""

    def attention_map(self) -> AttentionMap:
        """What there is now, as one attention map."""


class UnknownLayerError(AttlasError, KeyError):
    """A path of no layer of a trace."""

    __str__ = AttlasError.__str__  # a KeyError would put it in quotes


if TYPE_CHECKING:
    _MapsByPath = Mapping[str, AttentionMap]
else:  # a checker of types would read a map of a `Mapping[…]`, and a layer may have several
    _MapsByPath = Mapping


class Trace(_MapsByPath):
    """A mapping from the path of each layer to its attention map, and the tokens of the axes.

    Layers are in the order of their first call: `for path, attention_map in trace.items()`. If the
    calls of a layer are several maps, `trace.calls(path)` has them.

    `source` (keys) and `target` (queries) hold one list of tokens for each batch row, if known.
    `attlas.figures.plot_trace(trace)` draws a trace; `attlas figure` draws a saved one.

    Example:
        >>> import numpy, torch, attlas
        >>> model = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        >>> x = torch.randn(1, 3, 16)
        >>> with attlas.observe(model) as trace:
        ...     output, _ = model(x, x, x)
        >>> trace.label(source=[["my", "own", "words"]])
        >>> [numpy.asarray(attention_map).shape for attention_map in trace.values()]
        [(1, 4, 3, 3)]
    """

    def __init__(self) -> None:
        self._calls: dict[str, list[AttentionMap | GrowingMap]] = {}
        self._split_reasons: dict[str, tuple[str, ...]] = {}
        self.source: Tokens = ()
        self.target: Tokens = ()
        self._axes: dict[str, tuple[Tokens, Tokens]] = {}
        self._images: dict[str, ImagePatches] = {}
        self._cross_attention: dict[str, bool | None] = {}

    def record(self, layer: str, attention_map: AttentionMap | GrowingMap) -> None:
        """Append the attention map of one call, or what becomes one."""
        self._calls.setdefault(layer, []).append(attention_map)

    def add_split_reason(self, layer: str, reason: str) -> None:
        """Say why a call of a layer does not go on from an earlier one."""
        reasons = self._split_reasons.get(layer, ())
        self._split_reasons[layer] = reasons if reason in reasons else (*reasons, reason)

    def split_reasons(self, layer: str) -> tuple[str, ...]:
        """Why the calls of a layer are not one map; nothing if unknown."""
        self.calls(layer)
        return self._split_reasons.get(layer, ())

    def keep_last(self, layer: str, count: int) -> None:
        """Drop all attention maps of a layer but the newest `count`."""
        del self._calls[layer][:-count]

    def set_kind(self, layer: str, *, cross_attention: bool) -> None:
        """Set whether a call of a layer is cross-attention.

        Nothing can be said of a layer whose calls differ in that.
        """
        self._cross_attention[layer] = (
            cross_attention
            if self._cross_attention.get(layer, cross_attention) == cross_attention
            else None
        )

    def kind(self, layer: str) -> Literal["self", "cross"] | None:
        """ "self" or "cross" attention of a layer; None = unknown, or both."""
        self.calls(layer)
        cross_attention = self._cross_attention.get(layer)
        return None if cross_attention is None else "cross" if cross_attention else "self"

    def relation(self, layer: str) -> Literal["self", "cross"] | None:
        """The same as `kind`, for scripts that were written before it had this name."""
        return self.kind(layer)

    def causal(self, layer: str) -> bool | None:
        """Return True if no query of the layer looks ahead; False for cross-attention.

        None if the query positions of a call are unknown, and no other call looks ahead.
        """
        attention_maps = self.calls(layer)
        if self._cross_attention.get(layer) is True:
            return False
        flags = {attention_map.causal for attention_map in attention_maps}
        return False if False in flags else None if None in flags else True

    @overload
    def label(
        self,
        source: Sequence[Sequence[str]] | None = None,
        target: Sequence[Sequence[str]] | None = None,
    ) -> None: ...

    @overload
    def label(
        self, tokenizer: Any, input_ids: Any = None, *, decoder_input_ids: Any = None
    ) -> None: ...

    def label(self, *inputs: Any, **kwargs: Any) -> None:
        """Name the keys (source) and the queries (target) of each text: `label(tokenizer, ids)`.

        `label(tokenizer, input_ids)` takes the tokens from a tokenizer, one to an id (see
        `attlas.recording.labels.tokens_of`); of an encoder–decoder `decoder_input_ids` are the
        target. `label(source, target)` takes lists of strings, one list to a text. A side that is
        left out stays as it is.

        Raises:
            AttlasError: For anything but lists of strings; for another number of lists than of
                batch rows, and for more or fewer tokens in the longest than an axis has places (see
                `attlas.recording.labels`). Of a trace without attention maps `save` finds the
                latter.
        """
        source, target = source_and_target(inputs, kwargs)
        keys = self.source if source is None else rows_of(source)
        queries = self.target if target is None else rows_of(target)
        if self._calls:
            self._check("source", keys)
            self._check("target", queries)
        self.source, self.target = keys, queries

    def label_layer(
        self, layer: str, keys: Sequence[Sequence[str]], queries: Sequence[Sequence[str]]
    ) -> None:
        """Name them for one layer whose axes are not source and target: self-attention.

        Raises:
            AttlasError: As `label`; and for a layer that the trace has not.
        """
        token_rows = rows_of(keys), rows_of(queries)
        if self._calls:
            self._check_layer(layer, *token_rows)
        self._axes[layer] = token_rows

    def label_image(
        self,
        images: Any,
        grid: tuple[int, int],
        *,
        first: int = 0,
        layers: str | Sequence[str] | None = None,
    ) -> None:
        """Say which keys are the patches of an image; of self-attention the queries, too.

        Patches follow each other row by row. Where tokens have no names, patches are called
        "patch 3,5", by row and column from 0. Layers with fewer places are left alone.

        Args:
            images: An image for each batch row, as the model saw it (cropped as its processor
                does): a PIL image, a path, or an array (height, width, 3), as uint8 or as floats
                from 0 to 1. One that is larger than 1,024 pixels a side is reduced.
            grid: How many rows and columns of patches.
            first: The place of the first patch, such as 1 behind [CLS].
            layers: Paths, or patterns of them, of layers that may have other places behind the
                patches. None = all with exactly first + rows · columns places.

        Raises:
            AttlasError: For what is no image and no grid, for a path of no layer, and where no
                layer has so many places and batch rows.
        """
        patches = _images().read_patches(images, grid, first)
        calls = {layer: self.calls(layer) for layer in self.matching_layers(layers)}
        fitting = _images().fitting_layers(patches, calls, exactly=layers is None)
        self._images |= dict.fromkeys(fitting, patches)

    def image_patches(self, layer: str) -> ImagePatches | None:
        """The images whose patches are places of a layer; None where it has none."""
        return self._images.get(layer)

    def tokens(self, layer: str) -> tuple[Tokens, Tokens]:
        """The keys and the queries of a layer: its own, or else source and target."""
        return self._axes.get(layer, (self.source, self.target))

    def is_cross_attention(self, layer: str) -> bool:
        """Return True if the axes of a layer are the trace's target and source."""
        return layer not in self._axes

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __contains__(self, layer: object) -> bool:
        return isinstance(layer, str) and layer in self._calls

    def __eq__(self, other: object) -> bool:
        """Returns True for the same layers, in any order, with the same maps and the same tokens,
        bit by bit."""
        if not isinstance(other, Trace):
            return NotImplemented
        return (
            self._calls.keys() == other._calls.keys()
            and (self.source, self.target) == (other.source, other.target)
            and (self._axes, self._cross_attention) == (other._axes, other._cross_attention)
            and self._images.keys() == other._images.keys()
            and all(self._images[layer].equals(other._images[layer]) for layer in self._images)
            and all(are_same(self.calls(layer), other.calls(layer)) for layer in self)
        )

    __hash__ = None  # type: ignore[assignment]  # it can change, as a dict

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self._no_array()

    __dlpack__ = __dlpack_device__ = __array__

    def _no_array(self) -> AttlasError:
        first = next(iter(self), "layer")
        return AttlasError(
            "the map of one layer, to make an array of",
            "a whole trace",
            f"choose a layer, as in np.asarray(trace[{first!r}])",
        )

    def matching_layers(self, layers: str | Sequence[str] | None) -> tuple[str, ...]:
        """The paths that one or several paths or patterns stand for; None = all of the trace.

        Raises:
            AttlasError: For one that stands for no layer of the trace.
        """
        selection = Selection.of(layers, None)
        unmatched = selection.unmatched(self._calls)
        if unmatched:
            raise AttlasError(
                f"some of the layers {join_paths(self._calls)}",
                ", ".join(map(repr, unmatched)),
                "name layers of the trace, or a pattern of them such as 'encoder.*'",
            )
        return selection.select_layers(self._calls)

    def calls(self, layer: str) -> tuple[AttentionMap, ...]:
        """Every attention map of this layer, one per call."""
        return tuple(map(_as_attention_map, self.growing_calls(layer)))

    def growing_calls(self, layer: str) -> tuple[AttentionMap | GrowingMap, ...]:
        """The same, with maps that still grow as they are."""
        if layer not in self:  # or what could name nothing, such as a list
            raise self._unknown_layer(layer)
        return tuple(self._calls[layer])

    def _unknown_layer(self, layer: object) -> UnknownLayerError:
        if not self._calls:
            hint = "call the model inside the block of attlas.observe"
        elif isinstance(layer, int):
            hint = f"name a layer by its path, such as {next(iter(self))!r}; list(trace) has all"
        elif similar_paths := _nearest(layer, self._calls):
            hint = f"did you mean {' or '.join(map(repr, similar_paths))}?"
        else:
            hint = "name a layer of the trace"
        return UnknownLayerError(
            f"one of the layers {join_paths(self._calls)}", quoted(layer), hint
        )

    def __getitem__(self, layer: str) -> AttentionMap:
        """The attention map of a layer that was called once.

        Raises:
            AttlasError: Which is a KeyError, for a layer that the trace has not.
            AttlasError: For one with several maps.
        """
        attention_maps = self.calls(layer)
        if len(attention_maps) != 1:
            reasons = "; ".join(self._split_reasons.get(layer, ()))
            raise AttlasError(
                f"a single call of layer {layer!r}",
                f"{len(attention_maps)} calls, {_split_reason(attention_maps)}"
                + (f" ({reasons})" if reasons else ""),
                f"choose one of trace.calls({layer!r}), or observe with last_calls=1",
            )
        return attention_maps[0]

    def to_dataframe(self, layers: str | Sequence[str] | None = None) -> Any:
        """A `pandas.DataFrame` with a row for each weight of each call.

        Columns: layer, call, batch, head, query, key, weight, query_token, key_token. A token that
        is not known is None.

        Args:
            layers: Paths, or patterns of them; None = all.

        Raises:
            AttlasError: For a path of no layer, for more than 2²⁴ weights, and if pandas is missing
                (`pip install 'attlas[pandas]'`).
        """
        return to_dataframe(
            [
                self._labelled_map(layer, call, attention_map)
                for layer in self.matching_layers(layers)
                for call, attention_map in enumerate(self.calls(layer))
            ]
        )

    def to_xarray(self, layer: str) -> Any:
        """An `xarray.DataArray` (batch, head, query, key) of a layer that was called once.

        Where tokens are known, its coordinates `query_token` and `key_token` hold them.

        Raises:
            AttlasError: As `trace[layer]`; and where xarray is missing (`pip install
                'attlas[xarray]'`).
        """
        return to_xarray(self._labelled_map(layer, 0, self[layer]))

    def _labelled_map(self, layer: str, call: int, attention_map: AttentionMap) -> LabelledMap:
        batch, _, queries, num_keys = attention_map.shape
        axes = [axes_of(self, layer, row, batch, queries, num_keys) for row in range(batch)]
        query_tokens, key_tokens = (
            [labels.queries for labels in axes],
            [labels.keys for labels in axes],
        )
        return LabelledMap(layer, call, attention_map, query_tokens, key_tokens)

    def __repr__(self) -> str:
        """Each layer with the shapes of its attention maps, and how many texts have tokens."""
        shapes = {
            layer: [attention_map.shape for attention_map in self.calls(layer)]
            for layer in self._calls
        }
        layers = [
            f"  {layer or _ITSELF}: {', '.join(' × '.join(map(str, shape)) for shape in maps)}"
            for layer, maps in shapes.items()
        ]
        rows = len(self.source), len(self.target)
        sides = f"{count_noun(rows[0], 'text')} in source, {rows[1]:,} in target"
        labelled = f"  tokens: {sides if any(rows) else 'none; name them by trace.label(…)'}"
        head = "Trace, layer: batch × heads × queries × keys of each call"
        count = count_noun(len(self._images), "layer")
        images = [f"  images: their patches are keys of {count}"] if self._images else []
        return "\n".join([head, *layers, labelled, *images])

    def _repr_html_(self) -> str | None:
        """The explorer with a picture of every head, as a notebook shows and keeps it."""
        html: str | None = _explorer().trace_in_frame(self) if self else None
        return html

    def to_html(
        self,
        path: Path | str,
        *,
        precision: Literal["display", "exact", "overview"] = "display",
        name: str | None = None,
    ) -> None:
        """Write the explorer and this trace as one HTML file, which a browser opens from disk.

        The page says what was left out: the weights of maps that are too long for it.

        Args:
            precision: How weights are kept. "display": with 8 bits, as the colours need. "exact":
                with 16 bits, off by less than 0.00001. "overview": pictures of the heads alone.
            name: What the page calls the trace.

        Raises:
            AttlasError: For an empty trace, for a name that does not end in .html, and if the file
                cannot be written.
        """
        _explorer().trace_to_html(self, path, precision=precision, name=name)

    def save(self, path: Path | str) -> None:
        """Write one safetensors file: tensors, and as metadata the layers, patterns and tokens, and
        a SHA-256 of all of it.

        Raises:
            AttlasError: For a pattern of your own; for a label that is no valid Unicode, or that
                fits no axis; and if the file cannot be written.
        """
        tensors: dict[str, Tensor] = {}
        described: list[dict[str, Any]] = []
        for layer in self._calls:
            for attention_map in self.calls(layer):
                key = str(len(described))
                fields, facts = to_tensors(attention_map)
                tensors |= {f"{key}.{name}": value for name, value in fields.items()}
                described.append({"layer": layer, **facts})
        labels: dict[str, Any] = {"source": self.source, "target": self.target, "axes": self._axes}
        labels |= {"cross_attention": self._cross_attention} if self._cross_attention else {}
        labels |= {"split_reasons": self._split_reasons} if self._split_reasons else {}
        if self._images:
            pictures, labels["images"] = _images().images_to_tensors(self._images)
            tensors |= pictures
        metadata = {"format": TRACE_FORMAT, "maps": _as_json(described)}
        metadata |= {name: _as_json(value) for name, value in labels.items()}
        self._check_labels()
        # Views of one storage are refused by safetensors; a trace owns its bytes.
        owned = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
        metadata[_SUM] = trace_checksum(owned, _as_json(dict(sorted(metadata.items()))))
        # Whole or absent: an older trace of that name stays until the new one is written.
        target = Path(os.path.realpath(path))  # a link stays a link
        part = target.with_name(f".attlas-{secrets.token_hex(8)}.tmp")
        try:
            if target.exists() and not target.is_file():  # a device or a pipe
                target.write_bytes(serialised(owned, metadata))
                return
            part.touch()
            mode = part.stat().st_mode  # what the user's mask allows; safetensors goes below it
            save_file(owned, part, metadata)
            part.chmod(mode)
            part.replace(target)
        except (OSError, SafetensorError) as error:
            raise unwritable(path, error) from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path | str) -> "Trace":
        """Read what `save` wrote; runs no code from the file.

        Raises:
            AttlasError: With the name of the file, if there is none, if it is none of ours or
                damaged, and if its attention maps or labels do not fit each other.
        """
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise CheckpointError(  # safetensors would wait for what comes through a pipe
                "a trace file", f"{path}, a pipe or a device", "name a file on disk"
            )
        try:
            with safe_open(path, framework="pt") as file:
                return cls._read(file)
        except AttlasError as error:
            raise CheckpointError(error.expected, f"{error.got} in {path}", error.hint) from None
        except FileNotFoundError:
            if os.path.exists(path):  # safetensors says so of whatever it cannot open
                raise CheckpointError(
                    "a trace file",
                    f"{path}, which cannot be opened",
                    "ask for the right to read it",
                ) from None
            raise CheckpointError("a trace file", f"no file at {path}", "check the path") from None
        except (
            *(SafetensorError, OSError, KeyError, TypeError, ValueError),
            *(AttributeError, OverflowError, RuntimeError),  # RecursionError is of the last kind
        ) as error:
            if os.path.isdir(path):
                raise CheckpointError(
                    "a trace file", f"the folder {path}", "name the file itself"
                ) from None
            raise CheckpointError(
                "a whole trace file", f"{path}, which is damaged ({error})", "save the trace again"
            ) from None

    @classmethod
    def _read(cls, file: Any) -> "Trace":
        metadata = file.metadata() or {}
        if metadata.get("format") == "pt":  # as transformers writes weights
            raise CheckpointError(
                "a trace file",
                "weights of a model",
                "for a model of Hugging Face, name the folder in which its config.json is",
            )
        if metadata.get("format") != TRACE_FORMAT:
            raise CheckpointError(
                f"a file of format {TRACE_FORMAT!r}",
                repr(metadata.get("format")),
                "pass a file that Trace.save of this version wrote, or observe the model again",
            )
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (no dict)
        checksum = metadata.pop(_SUM, None)
        if trace_checksum(tensors, _as_json(dict(sorted(metadata.items())))) != checksum:
            raise ValueError("its bytes are not those that were saved")
        trace = cls()
        for index, facts in enumerate(_from_json(metadata["maps"])):
            prefix = f"{index}."
            fields = {
                key.removeprefix(prefix): tensor
                for key, tensor in tensors.items()
                if key.startswith(prefix)
            }
            trace.record(fact(facts, "layer", str), from_tensors(fields, facts))
        trace.source = rows_of(_from_json(metadata["source"]))
        trace.target = rows_of(_from_json(metadata["target"]))
        for layer, (keys, queries) in _from_json(metadata.get("axes", "{}")).items():
            trace._axes[layer] = rows_of(keys), rows_of(queries)
        for layer, cross_attention in _from_json(metadata.get("cross_attention", "{}")).items():
            trace._cross_attention[layer] = (
                None if cross_attention is None else bool(cross_attention)
            )
        for layer, reasons in _from_json(metadata.get("split_reasons", "{}")).items():
            trace._split_reasons[layer] = tuple(map(str, reasons))
        if "images" in metadata:
            calls = {layer: trace.calls(layer) for layer in trace}
            trace._images = _images().images_from_tensors(
                tensors, _from_json(metadata["images"]), calls
            )
        trace._check_labels()
        return trace

    def _check_labels(self) -> None:
        """Raise `AttlasError` for labels that name no axis: they would never be shown."""
        self._check("source", self.source)
        self._check("target", self.target)
        for layer, (keys, queries) in self._axes.items():
            self._check_layer(layer, keys, queries)

    def _check(self, side: str, tokens: Tokens) -> None:
        check_either(side, tokens, [self.calls(layer) for layer in self._calls])

    def _check_layer(self, layer: str, keys: Tokens, queries: Tokens) -> None:
        check_keys(f"keys of layer {layer!r}", keys, self.calls(layer))
        check_queries(f"queries of layer {layer!r}", queries, self.calls(layer))


def _explorer() -> Any:
    """The module that writes pages. It stands above traces, so it is imported by its name."""
    return import_module("attlas.explorer.one_file")


def _images() -> Any:
    """The module that reads images, which few traces have; it needs Pillow."""
    return import_module("attlas.recording.images")


def _nearest(layer: object, layer_paths: Iterable[str]) -> list[str]:
    """The paths that the user may have meant: those that hold what was written, or are like it."""
    paths = list(layer_paths)
    if not isinstance(layer, str) or not layer:
        return []
    holding = [path for path in paths if f".{layer.strip('.')}." in f".{path}."]
    patterns = [path for path in paths if fnmatchcase(path, layer)]
    return (holding or patterns or get_close_matches(layer, paths, n=3))[:3]


def _split_reason(attention_maps: Sequence[AttentionMap]) -> str:
    """Why calls of a layer are not one map, as far as their shapes say it."""
    shapes = [attention_map.shape for attention_map in attention_maps]
    for first, second in pairwise(shapes):
        if first[:2] != second[:2]:
            sizes = f"{first[0]} × {first[1]} and {second[0]} × {second[1]}"
            return f"which do not continue each other: of {sizes} texts and heads"
        if second[3] not in (first[3], first[3] + second[2]):
            keys = f"of {first[3]} keys, then of {second[2]} queries and {second[3]} keys"
            return f"which do not continue each other: {keys}"
    return (
        "which do not continue each other: a step joins an earlier call if its keys are the "
        "earlier keys and "
        "those of its own queries, in the same cache"
    )


def _as_attention_map(call: AttentionMap | GrowingMap) -> AttentionMap:
    return call if isinstance(call, AttentionMap) else call.attention_map()


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            "labels of valid Unicode",
            f"half a character, {text[error.start : error.end]!r}",
            "read the text that they come from as what it is encoded in, or with errors='replace'",
        ) from None
    return text


def _from_json(text: str) -> Any:
    value = parse_json(text)
    _as_json(value)  # JSON can spell half a character, which cannot be printed
    return value


# What the two axes of a layer's map are: whose tokens ask, and whose are looked at.


@dataclass(frozen=True, slots=True)
class Axes:
    """The tokens of both axes, () where they have no names.

    Args:
        within: Whether queries and keys are of one side, as in self-attention, or it is unknown;
            else the target looks at the source.
        patches: The image of this batch row whose patches the keys are, and of self-attention the
            queries; None = there is none.
    """

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    within: bool
    patches: ImagePatches | None = None


def axes_of(trace: Trace, layer: str, row: int, batch: int, queries: int, num_keys: int) -> Axes:
    """The axes of a map of this many queries and keys that this layer has of this batch row.

    Args:
        batch: How many rows it has; the tokens of as many name them. In a beam search a decoder has
            several rows of each text, and row n of an encoder is another text than its row n.
    """
    axes = _axes_of_tokens(trace, layer, row, batch, queries, num_keys)
    patches = trace.image_patches(layer)
    if patches is None or len(patches.images) != batch or patches.stop > num_keys:
        return axes
    names = patches.names(num_keys)
    asking = names if axes.within and queries == num_keys else ()
    return Axes(axes.queries or asking, axes.keys or names, axes.within, patches.at(row))


def _axes_of_tokens(
    trace: Trace, layer: str, row: int, batch: int, queries: int, num_keys: int
) -> Axes:
    source, target = (rows[row] if len(rows) == batch else () for rows in trace.tokens(layer))
    kind, named_itself = trace.kind(layer), not trace.is_cross_attention(layer)
    fit = queries == len(target) and num_keys == len(source) and source != target
    if named_itself or kind == "cross" or (kind is None and fit):
        one_text = named_itself and kind != "cross"
        return Axes(_fitting(target, queries), _fitting(source, num_keys), one_text)
    # One side looks at itself, or what has no names.
    sides = (source, target)
    if len(source) == len(target) and trace.causal(layer):
        sides = (target, source)  # it is the decoder that does not look ahead
    labels = next((labels for labels in sides if queries == num_keys == len(labels)), ())
    # A side whose row is padded to this very length may be the one that looks: name nothing then.
    padded = [
        0 < len(side) < queries == max(map(len, rows))
        for side, rows in zip((source, target), trace.tokens(layer), strict=True)
        if len(rows) == batch
    ]
    if any(padded) and not (labels == target and trace.causal(layer)):
        labels = ()
    return Axes(_fitting(labels, queries), _fitting(labels, num_keys), within=True)


def _fitting(tokens: tuple[str, ...], count: int) -> tuple[str, ...]:
    return tokens if len(tokens) == count else ()
