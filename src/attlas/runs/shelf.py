"""The checkpoints of a run, and which of them is the best and which the last."""

from collections.abc import Iterable
from pathlib import Path
from shlex import quote

from attlas.config import stored_bytes, utf8_text
from attlas.errors import AttlasError, quoted
from attlas.runs.checkpoint import Checkpoint, read_checkpoint, read_seal, write_checkpoint
from attlas.runs.durable import TEMPORARY, explained, write_durably
from attlas.runs.seal import CONFIG, PROVENANCE, mark

BEST, LAST, AVERAGED = "best", "last", "averaged"
_SUFFIX = ".safetensors"
_WRITTEN = (BEST, LAST, CONFIG, PROVENANCE)


class Shelf:
    """`checkpoints/NNNNNNNN.safetensors`, where N counts updates, and `averaged.safetensors`.

    The text files `best` and `last` in the run's folder name one of them each, and what they name
    is marked (`mark`): so damage to the name is noticed, and the file of another run. A name that
    somebody has written by hand has no mark. Only who holds the lock may write.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self.folder = run / "checkpoints"

    def names(self) -> list[str]:
        """The names of the checkpoints on disk, oldest first, the averaged one at the end."""
        found = [path.stem for path in self.folder.glob(f"*{_SUFFIX}") if path.is_file()]
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
        """What `best` or `last` names; None where that file does not exist yet.

        Errors: `AttlasError` where it names none that is there, or another than attlas wrote there.
        """
        try:
            text = utf8_text(stored_bytes(self.run / which)).strip()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise AttlasError(
                f"the name of a checkpoint in {self.run / which}", str(error), "mend that file"
            ) from None
        name, *marked = text.split(" ")
        name, known = name.removesuffix(_SUFFIX), self.names()
        if name not in known:
            raise AttlasError(
                f"the name of a checkpoint of {self.folder} in {self.run / which}",
                quoted(text if marked else name),
                f"write one of these into it: {', '.join(known)}"
                if known
                else "put the checkpoints back, or train into another folder: none is left",
            )
        if marked and marked != [self._mark(name)]:
            raise AttlasError(
                f"the checkpoint that attlas wrote into {self.run / which}",
                f"{quoted(text)}, which was damaged, or is of another run than that checkpoint",
                f"write the name alone of the right one into it: {', '.join(known)}",
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
                f"a checkpoint {quoted(which)} of {self.run}",
                f"a run that has {', '.join(there) or 'none yet'}",
                "choose one of these"
                if there
                else f"train it: attlas train {quote(str(self.run))}",
            )
        return read_checkpoint(self.path(name))

    def sealed(self, name: str) -> bool:
        """Whether the checkpoint of this name says beside which files it was saved.

        Errors: `AttlasError` where its beginning is damaged.
        """
        return read_seal(self.path(name)) is not None

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
            marked = self._mark(name)
            text = f"{name}{_SUFFIX}" if marked is None else f"{name}{_SUFFIX} {marked}"
            write_durably(self.run / which, f"{text}\n".encode())

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

    def _mark(self, name: str) -> str | None:
        seal = read_seal(self.path(name))
        return None if seal is None else mark(name, seal)

    def _remove(self, path: Path) -> None:
        with explained(path):
            path.unlink(missing_ok=True)


def numbered(update: int) -> str:
    """The name of the checkpoint saved after this update."""
    return f"{update:08d}"
