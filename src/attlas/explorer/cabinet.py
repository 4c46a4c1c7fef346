"""The cabinet in which the latest maps are kept, so that the page can ask for their parts."""

import secrets
import threading
from collections import OrderedDict

from attlas.errors import AttlasError
from attlas.explorer.atlas import Atlas


class Cabinet:
    """The latest atlases by id: at most `most` of them; the least recently used one goes first.

    most_bytes: what their tensors may take together, None = any amount; the latest is kept anyway.
    Ids are drawn at random, so that a page which did not ask for a translation cannot guess it.
    """

    def __init__(self, most: int = 32, *, most_bytes: int | None = None) -> None:
        if most < 1:
            raise AttlasError("room for at least one map", str(most), "keep one or more")
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Atlas] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, atlas: Atlas) -> str:
        """Keep an atlas and say under which id."""
        name = secrets.token_hex(8)
        with self._lock:
            self._kept[name] = atlas
            while len(self._kept) > 1 and self._full:
                self._kept.popitem(last=False)
        return name

    @property
    def _full(self) -> bool:
        if len(self._kept) > self._most:
            return True
        most = self._most_bytes
        return most is not None and sum(atlas.size for atlas in self._kept.values()) > most

    def get(self, name: str) -> Atlas | None:
        """The atlas of this id, or None where it is no longer (or never was) kept."""
        with self._lock:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name]
