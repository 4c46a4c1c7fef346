"""`export(run, to, folder)`: from a run to a folder that others read."""

import json
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path

from attlas._files import check_free, new_folder
from attlas.decoding import DecodingConfig
from attlas.errors import UnsupportedError, quoted
from attlas.export.base import write_weights
from attlas.export.ctranslate2 import QUANTIZATIONS, write_ctranslate2
from attlas.export.marian import write_huggingface
from attlas.export.onnx import write_onnx
from attlas.export.onnx.classifier import write_onnx_classifier
from attlas.runs import BEST, Run
from attlas.runs.loaded import (
    LoadedCheckpoint,
    LoadedClassifier,
    file_digests,
    load_checkpoint,
    require_translator,
)

FORMATS = ("safetensors", "huggingface", "ctranslate2", "onnx")
_SEARCHING = ("huggingface", "onnx")  # those that say how to search
ORIGIN, README = "attlas.json", "README.md"
_OF_SUMS = f"{ORIGIN} has the SHA-256 of each file here, as sha256sum tells it."


@dataclass(frozen=True, slots=True)
class Exported:
    """A folder that was written: its files, and what a reader of it has to know."""

    path: Path
    files: tuple[str, ...]
    remarks: tuple[str, ...]


def export(
    run: Run | Path | str,
    to: str,
    folder: Path | str,
    *,
    checkpoint: str = BEST,
    quantization: str = "float32",
    search: DecodingConfig | None = None,
) -> Exported:
    """Write a checkpoint of a run into a new folder, whole or not at all.

    Beside what the format asks for, the folder has attlas.json, which says of which checkpoint it
    is and has the run's provenance and the SHA-256 of each file, and README.md, which has the
    remarks.

    Args:
        to: The format: safetensors, huggingface, onnx or ctranslate2.
        checkpoint: As `Run.model`.
        quantization: Of ctranslate2, float32 or int8.
        search: What huggingface and onnx write down of it, None = what the run's recipe says.

    Raises:
        AttlasError: For an unknown format, a folder that is not empty, a model that the format
            cannot hold, or a library that is missing.
    """
    _check(to, quantization, search)
    folder = Path(folder)
    check_free(folder)  # before the model is read
    loaded = load_checkpoint(run, checkpoint, search)
    with new_folder(folder) as temporary:
        remarks = [*_write(loaded, to, temporary, quantization), _OF_SUMS]
        _write_origin(loaded, to, quantization, temporary / ORIGIN)
        lines = [f"# {to}, exported by attlas", *(f"- {remark}" for remark in remarks)]
        (temporary / README).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        files = tuple(sorted(path.name for path in temporary.iterdir()))
    return Exported(folder, files, tuple(remarks))


def _write(loaded: LoadedCheckpoint, to: str, folder: Path, quantization: str) -> list[str]:
    match to:
        case "safetensors":
            return write_weights(loaded, folder)
        case "huggingface":
            return write_huggingface(require_translator(loaded, "Marian"), folder)
        case "ctranslate2":
            return write_ctranslate2(
                require_translator(loaded, "CTranslate2"), folder, quantization
            )
        case _:
            if isinstance(loaded, LoadedClassifier):
                return write_onnx_classifier(loaded, folder)
            return write_onnx(require_translator(loaded, "ONNX"), folder)


def _correction(to: str) -> str:
    matches = get_close_matches(to.lower(), (*FORMATS, "marian"), n=1)
    if matches == ["marian"]:
        return "Marian's model in the files of transformers is --to huggingface"
    return f"did you mean {matches[0]!r}?" if matches else "choose one"


def _check(to: str, quantization: str, search: DecodingConfig | None) -> None:
    if to not in FORMATS:
        raise UnsupportedError(
            f"one of the formats {', '.join(FORMATS)}", quoted(to), _correction(to)
        )
    if quantization not in QUANTIZATIONS:
        raise UnsupportedError(
            f"a quantization of {' or '.join(QUANTIZATIONS)}", quoted(quantization), "choose one"
        )
    if quantization != "float32" and to != "ctranslate2":
        raise UnsupportedError(
            f"quantization = float32 for {to}",
            quantization,
            "leave it out, or export to ctranslate2",
        )
    if search is not None and to not in _SEARCHING:
        raise UnsupportedError(
            f"settings of the search for {' or '.join(_SEARCHING)}, which write them down",
            f"them for {to}",
            "leave them out, and give them to what searches",
        )


def _write_origin(
    loaded: LoadedCheckpoint, format_name: str, quantization: str, path: Path
) -> None:
    origin = {
        "attlas": version("attlas"),
        "format": format_name,
        "quantization": quantization,
        "checkpoint": loaded.checkpoint,
        "weights": loaded.weights,
        "provenance": loaded.run.provenance(),
        "files": file_digests(path.parent),
    }
    text = json.dumps(origin, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8", newline="\n")
