"""Labelled texts as a folder: one folder for each label, one file for each text."""

from pathlib import Path

from attlas.config import stored_bytes
from attlas.data.amount import amount
from attlas.data.lines import LONGEST_LINE
from attlas.data.pair import Labelled, Place
from attlas.errors import AttlasError

_WITHOUT_LABEL = "unsup"  # so the Large Movie Review Dataset calls what nobody has labelled
_TEXT = ".txt"


def folder_entries(folder: Path) -> tuple[list[tuple[Place, Labelled]], tuple[str, ...]]:
    """Each text with its name (LABEL/NAME.txt), in the order of the names; and what to remark.

    A file beside the folders is none of the texts, nor is what has a name that begins with a dot.
    """
    there = [path for path in folder.iterdir() if not path.name.startswith(".")]
    labels = sorted(path.name for path in there if path.is_dir())
    found: list[tuple[Place, Labelled]] = []
    remarks: list[str] = []
    for label in labels:
        names = sorted(path.name for path in (folder / label).iterdir())
        texts = [name for name in names if name.endswith(_TEXT) and not name.startswith(".")]
        if label == _WITHOUT_LABEL:
            remarks.append(f"{amount(len(texts), 'text')} in {label}, without a label, left out")
            continue
        if len(texts) < len(names):
            others = amount(len(names) - len(texts), "file")
            remarks.append(
                f"{others} in {label} left out, hidden or with a name that does not end in {_TEXT}"
            )
        found += [
            (f"{label}/{name}", Labelled(_read(folder / label / name), label)) for name in texts
        ]
    if not found:
        raise AttlasError(
            f"one folder for each label in {folder}, with texts (NAME{_TEXT}) in it",
            f"the folders {labels}" if labels else "no folder",
            "name the folder that holds those of the labels, such as aclImdb/train",
        )
    return found, tuple(remarks)


def _read(path: Path) -> str:
    try:
        content = stored_bytes(path, LONGEST_LINE + 1)
        if len(content) > LONGEST_LINE:
            raise AttlasError(
                f"a text of at most {LONGEST_LINE:,} bytes at {path}", "a longer one", "divide it"
            )
        return content.decode("utf-8-sig")
    except OSError as error:
        raise AttlasError(
            f"a readable file at {path}", error.strerror or str(error), "check it"
        ) from None
    except UnicodeDecodeError as error:
        raise AttlasError(
            f"UTF-8 text in {path}",
            f"byte 0x{error.object[error.start]:02x} at byte {error.start + 1}",
            "convert the file to UTF-8 (for example with iconv)",
        ) from None
