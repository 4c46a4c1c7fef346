"""The checkpoints of a run, and which of them is the best and which the last."""

from collections.abc import Iterable
from pathlib import Path
from shlex import quote

from attlas.errors import AttlasError
from attlas.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from attlas.runs.durable import TEMPORARY, explained, write_durably

BEST, LAST, AVERAGED = "best", "last", "averaged"
_SUFFIX = ".safetensors"
_WRITTEN = (BEST, LAST, "config.toml", "provenance.json")


class Shelf:
    """`checkpoints/NNNNNNNN.safetensors`, where N counts updates, and `averaged.safetensors`.

    The text files `best` and `last` in the run's folder name one of them each. Only who holds the
    lock may write.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self.folder = run / "checkpoints"

    def names(self) -> list[str]:
        """The names of the checkpoints on disk, oldest first, the averaged one at the end."""
        found = [path.stem for path in self.folder.glob(f"*{_SUFFIX}")]
        others = sorted(name for name in found if not name.isdecimal())
        return sorted((name for name in found if name.isdecimal()), key=int) + others

    def numbered(self) -> list[int]:
        """The updates at which the checkpoints on disk were saved, oldest first."""
        return [int(name) for name in self.names() if name.isdecimal()]

    def begun(self) -> bool:
        """Whether there is a checkpoint to go on from, or some that starting over would lose.

        A single one that nothing names is what a killed first save leaves.
        """
        count = len(self.names())
        return (self.run / LAST).exists() or count > 1 or (count > 0 and (self.run / BEST).exists())

    def path(self, name: str) -> Path:
        """Where the checkpoint of this name is or would be."""
        return self.folder / (name + _SUFFIX)

    def named(self, which: str) -> str | None:
        """What `best` or `last` names; None where that file does not exist yet."""
        try:
            name = (self.run / which).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise AttlasError(
                f"the name of a checkpoint in {self.run / which}", str(error), "mend that file"
            ) from None
        name = name.removesuffix(_SUFFIX)
        if not self.path(name).is_file() or Path(name).name != name:
            there = ", ".join(self.names())
            raise AttlasError(
                f"the name of a checkpoint of {self.folder} in {self.run / which}",
                repr(name),
                f"write one of these into it: {there}"
                if there
                else "put the checkpoints back, or train into another folder: none is left",
            )
        return name

    def number_of(self, which: str) -> str:
        """The name of the checkpoint that `best` or `last` names now; any other name as it is."""
        return (self.named(which) or which) if which in (BEST, LAST) else which

    def read(self, which: str) -> Checkpoint:
        """`best`, `last`, or the name of a checkpoint.

        Errors: `AttlasError` where there is none of that name, or where it is damaged.
        """
        name: str | None = which
        if which in (BEST, LAST):
            name = self.named(which)
        if name is None or name not in self.names():
            there = [one for one in (BEST, LAST) if (self.run / one).exists()] + self.names()
            raise AttlasError(
                f"a checkpoint {which!r} of {self.run}",
                f"a run that has {', '.join(there) or 'none yet'}",
                "choose one of these"
                if there
                else f"train it: attlas train {quote(str(self.run))}",
            )
        return read_checkpoint(self.path(name))

    def write(self, name: str, checkpoint: Checkpoint) -> None:
        """Put a checkpoint on the shelf; nothing points at it yet."""
        with explained(self.folder):
            self.folder.mkdir(exist_ok=True)
        write_checkpoint(self.path(name), checkpoint)

    def point(self, which: str, name: str | None) -> None:
        """Make `best` or `last` name this checkpoint; None takes the pointer away."""
        if name is None:
            self._remove(self.run / which)
        else:
            write_durably(self.run / which, f"{name}{_SUFFIX}\n".encode())

    def prune(self, kept: Iterable[int]) -> None:
        """Remove all numbered checkpoints but those of these updates."""
        for update in set(self.numbered()) - set(kept):
            self._remove(self.path(numbered(update)))

    def forget_after(self, update: int) -> None:
        """Remove what was saved after this update, and the average made of it."""
        for later in self.numbered():
            if later > update:
                self._remove(self.path(numbered(later)))
        self._remove(self.path(AVERAGED))

    def clean(self) -> None:
        """Remove what killed writes of ours left behind."""
        of_run = [self.run / f"{name}{TEMPORARY}" for name in _WRITTEN]
        for leftover in (*of_run, *self.folder.glob(f"*{_SUFFIX}{TEMPORARY}")):
            if leftover.is_file():
                self._remove(leftover)

    def _remove(self, path: Path) -> None:
        with explained(path):
            path.unlink(missing_ok=True)


def numbered(update: int) -> str:
    """The name of the checkpoint saved after this update."""
    return f"{update:08d}"
