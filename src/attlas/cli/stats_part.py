"""The statistics of a corpus as far as they have come, which no kill can spoil."""

import os
from collections.abc import Iterable
from pathlib import Path

from attlas.cli.part import Origin, Part, Progress, books, checksum, recorded, told
from attlas.cli.stats_table import Facts, Table, write_beside
from attlas.errors import AttlasError
from attlas.runs.durable import explained, sync, write_whole


class StatsPart(Part):
    """As `Part`, of a table: rows are added window by window, and put together at the end.

    Errors: as `Part`.
    """

    def __init__(self, output: Path, origin: Origin, table: Table) -> None:
        self._table = table
        with explained(output):
            begun = (books(output) / "progress.json").exists()
            standing = [path for path in (output, table.beside(output)) if path and path.exists()]
            if standing and not begun:
                raise _foreign(standing[0])
        before = recorded(output)
        super().__init__(output, origin)
        # Who takes a table away wants it anew, and has left what stands beside it.
        if before and before.whole and not self.progress.whole:
            self._keep(self.progress.model_copy(update={"beside": True}))
        if not self.progress.whole and not self.progress.bytes:
            self.add(0, table.head)

    def add_rows(self, lines: int, rows: Iterable[bytes]) -> None:
        """Keep what so many further lines came to, for good, all of it or nothing."""
        digest, place = self._digest.copy(), self.progress.bytes
        with explained(self._lines):
            descriptor = os.open(self._lines, os.O_WRONLY)
            try:
                os.ftruncate(descriptor, place)
                os.lseek(descriptor, place, os.SEEK_SET)
                for written in rows:
                    write_whole(descriptor, written)
                    digest.update(written)
                    place += len(written)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self._digest = digest
        found = {
            "lines": self.progress.lines + lines,
            "bytes": place,
            "sha256": digest.hexdigest(),
        }
        self._keep(self.progress.model_copy(update=found))

    @property
    def has_rows(self) -> bool:
        """Whether anything stands below the head."""
        return self.progress.bytes > len(self._table.head)

    def put_together(self, facts: Facts) -> None:
        """Put the output in its place, whole, with its facts in it or beside it.

        It may stand there, where a kill came before that was told.
        """
        self._spare()
        if not self._stands():
            whole = self._books / f"whole{''.join(self.output.suffixes[-2:])}"
            with explained(self.output):
                self._table.assemble(self._lines, whole, facts)
                sync(whole)
            self._spare()
            beside = self._table.beside(self.output)
            if beside is not None and beside.exists() and not self.progress.beside:
                raise _foreign(beside)
            ours = {"assembled": checksum(whole, unzipped=False), "beside": True}
            self._keep(self.progress.model_copy(update=ours))
            self.tell_beside(facts)
            with explained(self.output):
                os.replace(whole, self._place)
                sync(self._place.parent)
        self._keep(self.progress.model_copy(update={"whole": True}))
        self._drop_lines()

    def _spare(self) -> None:
        """As ever, by the checksum of what was put together."""
        if self._stands() and checksum(self.output, unzipped=False) != self.progress.assembled:
            raise _foreign(self.output)

    def tell_beside(self, facts: Facts) -> None:
        """Write the facts beside the output, if that is their place and they are not there."""
        path = self._table.beside(self.output)
        if path is not None and not (self.progress.whole and path.exists()):
            write_beside(path, facts)

    def _check(self, found: Progress, origin: Origin) -> None:
        keys = [k for k in {**found.origin, **origin} if found.origin.get(k) != origin.get(k)]
        if not keys:
            return
        done = "finished" if found.whole else f"begun and done as far as line {found.lines:,}"
        raise AttlasError(
            f"{self.output}, {done}, to be of {told(keys, found.origin)}",
            told(keys, origin),
            "give what it was begun with, choose another output, or, to begin it anew, take away "
            f"{self.output if found.whole else self._books}",
        )


def _foreign(path: Path) -> AttlasError:
    return AttlasError(
        f"to write {path}",
        "a file there that attlas stats did not write",
        "choose another name, or take that file away",
    )
