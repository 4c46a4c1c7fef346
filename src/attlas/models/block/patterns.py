"""Where the layers of an encoder or a decoder may look."""

from attlas.errors import AttlasError
from attlas.patterns import Pattern, parse

Patterns = tuple[str, ...]
"""Where attention may look, such as "either(window(64), landmarks(0))": one pattern for all layers,
or one for each.
"""


def check_patterns(prefix: str, patterns: Patterns, layers: int) -> None:
    """That each pattern is one, and that there are as many as layers, or one for all."""
    for pattern in patterns:
        parse(pattern)
    if len(patterns) not in (1, layers):
        raise AttlasError(
            f"{prefix}patterns with one pattern for all layers, or one for each of "
            f"{prefix}layers = {layers}",
            f"{len(patterns)} patterns",
            f"give 1 or {layers}",
        )


def patterns_of(patterns: Patterns, layers: int) -> list[Pattern]:
    """One pattern per layer."""
    parsed = [parse(pattern) for pattern in patterns]
    return parsed * layers if len(parsed) == 1 else parsed
