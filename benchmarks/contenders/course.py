"""What a contender on the way to a good translation is told, and when it keeps its weights."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `curve`, wherever we run


class _OverError(Exception):
    """The time is."""


class Course:
    """`told.json` in the folder that the command line names, written by time_to_bleu.py.

    corpus: the folder of the pieces; recipe: its tables; moments: of the curve, in seconds;
    threads; sources, decoding: what is translated in the end, and how; run: where attlas trains.
    The time of keeping weights does not count as training, nor that in which it stands still: from
    SIGTSTP (Ctrl-Z) to SIGCONT. points: when which weights were kept; what they were when a
    training ended is written down, as is each translation of the test set, so that a course that
    was broken off in the same folder goes on there.
    """

    def __init__(self) -> None:
        self.folder = Path(sys.argv[1])
        self.reported: dict[str, Any] = json.loads((self.folder / "told.json").read_text("utf-8"))
        self.corpus = Path(self.reported["corpus"])
        self.recipe: dict[str, Any] = self.reported["recipe"]
        self.moments: list[float] = self.reported["moments"]
        self.threads: int = self.reported["threads"]
        self._kept = self.folder / "points.json"
        self.points: list[dict[str, Any]] = []
        if self._kept.is_file():
            self.points = json.loads(self._kept.read_text("utf-8"))
        self._still = 0.0
        self._begun, self._away = self._clock(), 0.0
        self._starter = os.getppid()
        signal.signal(signal.SIGTSTP, self._stand_still)

    def _stand_still(self, *_: object) -> None:
        since = time.monotonic()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._still += time.monotonic() - since

    def _clock(self) -> float:
        """Seconds, which do not pass while it stands still."""
        return time.monotonic() - self._still

    @property
    def trained(self) -> bool:
        """Whether the training of this folder has ended already."""
        return bool(self.points)

    @contextmanager
    def training(self) -> Iterator[None]:
        """Around a training without an end of its own, which ends with the last moment."""
        try:
            yield
        except _OverError:
            written(self._kept, self.points)
            return
        raise SystemExit("expected a training of so many minutes; it ended before")

    def begin(self) -> None:
        """Everything is built: from here on the time counts."""
        self._begun = self._clock()

    def updated(self, updates: int, keep: Callable[[Path], None]) -> None:
        """So many updates are made. `keep` writes the weights."""
        self.awaited()
        now = self._clock()
        seconds = now - self._begun - self._away
        if seconds < self.moments[len(self.points)]:
            return
        weights = f"{updates}.weights"
        keep(self.folder / weights)
        self.points.append({"seconds": seconds, "updates": updates, "weights": weights})
        print(f"after {seconds / 60:.1f} min: {updates} updates", flush=True)
        self._away += self._clock() - now
        if len(self.points) == len(self.moments):
            raise _OverError

    def awaited(self) -> None:
        """Leave where whoever started us is gone: nobody wants hours of work any more."""
        if os.getppid() != self._starter:
            raise SystemExit("expected somebody to train for; got nobody; start it again")

    def translated(self, translate: Callable[[str], list[str]], **facts: str) -> None:
        """Translate the test set by the weights of every point, and write down what came out,
        beside these facts of the training."""
        texts: dict[str, list[str]] = {}
        for name in dict.fromkeys(point["weights"] for point in self.points):
            done = self.folder / f"{name}.texts.json"
            if not done.is_file():
                print(f"translating by {name}", flush=True)
                written(done, translate(name))
            texts[name] = json.loads(done.read_text(encoding="utf-8"))
        found = {"points": self.points, "texts": texts, "facts": facts}
        written(self.folder / "course.json", found)


def written(path: Path, what: Any) -> None:
    """As JSON, whole or not at all."""
    half = path.with_name(f"{path.name}.half")
    half.write_text(json.dumps(what), encoding="utf-8")
    half.replace(path)
