"""What a contender on the way to a good translation is told, and when it keeps its weights."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class _OverError(Exception):
    """The time is."""


class Course:
    """The command line: corpus, folder, minutes, points, threads.

    corpus: written by time_to_bleu.py; folder: the contender's own. The time of keeping weights
    does not count as training.
    """

    def __init__(self) -> None:
        corpus, folder, minutes, points, threads = sys.argv[1:]
        self.corpus, self.folder = Path(corpus), Path(folder)
        self.threads = int(threads)
        self.recipe: dict[str, Any] = json.loads((self.corpus / "recipe.json").read_text("utf-8"))
        self._apart, self._end = 60 * float(minutes) / int(points), 60 * float(minutes)
        self._begun, self._away = time.monotonic(), 0.0
        self.kept: list[dict[str, Any]] = []

    @contextmanager
    def training(self) -> Iterator[None]:
        """Around a training, which ends when the time is over."""
        try:
            yield
        except _OverError:
            return
        raise SystemExit("wanted a training of so many minutes; it ended before")

    def begin(self) -> None:
        """Everything is built: from here on the time counts."""
        self._begun = time.monotonic()

    def updated(self, updates: int, keep: Callable[[Path], None]) -> None:
        """So many updates are made. `keep` writes the weights."""
        now = time.monotonic()
        seconds = now - self._begun - self._away
        if seconds >= min(self._apart * (len(self.kept) + 1), self._end):
            file = f"{updates}.weights"
            keep(self.folder / file)
            self.kept.append({"seconds": seconds, "updates": updates, "file": file})
            self._away += time.monotonic() - now
        if seconds >= self._end:
            raise _OverError

    def translated(self, translate: Callable[[Path], list[str]]) -> None:
        """Translate the test set with all weights that were kept."""
        for point in self.kept:
            weights = self.folder / point["file"]
            point["file"] = f"{point['updates']}.txt"
            lines = "".join(f"{line}\n" for line in translate(weights))
            (self.folder / point["file"]).write_text(lines, encoding="utf-8")
            weights.unlink()
        (self.folder / "course.json").write_text(json.dumps(self.kept), encoding="utf-8")
