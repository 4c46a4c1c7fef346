"""How far a command is in a file, for who waits for it."""

import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_PATIENCE = 60.0  # seconds between two words about one file, where no bar shows how far it is


class Bar:
    """A bar on a terminal, elsewhere a line now and then: of so many lines, so many are done."""

    def __init__(self, path: Path, total: int, begun: int) -> None:
        console = Console(stderr=True)
        self._path, self._total = path, total
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(path.name, total=total, completed=begun)
        self._last = time.monotonic()

    def tell(self, lines: int) -> None:
        """So many lines are done."""
        self._bar.update(self._task, completed=lines)
        if self._bar.disable and time.monotonic() - self._last > _PATIENCE:
            self._last = time.monotonic()
            print(f"attlas: {self._path}: {lines:,} of {self._total:,} lines", file=sys.stderr)

    def __enter__(self) -> "Bar":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()
