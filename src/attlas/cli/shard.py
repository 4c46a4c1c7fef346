"""Which part of the files is ours, where several processes or machines divide them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attlas.errors import AttlasError, quoted


@dataclass(frozen=True, slots=True)
class Shard:
    """Number `number` of `count` shards, from 1."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read "I/N". Errors: `AttlasError` for anything else, and for an I beyond N."""
        number, _, count = text.partition("/")
        if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
            return cls(int(number), int(count))
        raise AttlasError(
            "a shard I/N with I from 1 to N, such as 2/8",
            quoted(text),
            "say which of how many it is",
        )

    def of(self, paths: Sequence[Path]) -> list[Path]:
        """Every N-th path of those that come, by their names: never two shards the same.

        They are sorted first, because a shell lists files by the habits of its own language.
        """
        ordered = sorted(paths, key=lambda path: (path.name.encode(errors="surrogateescape"), path))
        mine = set(ordered[self.number - 1 :: self.count])
        return [path for path in paths if path in mine]
