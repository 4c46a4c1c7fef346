"""Patterns as text: what a configuration file or a saved trace holds."""

import ast
from collections.abc import Callable

from attlas.errors import AttlasError, ConfigError, quoted
from attlas.patterns.base import Pattern
from attlas.patterns.shapes import (
    both,
    causal,
    either,
    everywhere,
    landmarks,
    scattered,
    strided,
    window,
)

_NAMED: dict[str, Pattern] = {"everywhere": everywhere, "causal": causal}
_OF_NUMBERS: dict[str, Callable[..., Pattern]] = {
    "window": window,
    "strided": strided,
    "landmarks": landmarks,
    "scattered": scattered,
}
_OF_PATTERNS: dict[str, Callable[..., Pattern]] = {"both": both, "either": either}


def parse(text: str) -> Pattern:
    """Read a pattern from its text, such as `both(causal, window(128))`; runs no code."""
    try:
        return _pattern(ast.parse(text.strip(), mode="eval").body)
    except AttlasError:
        raise  # a known pattern with a wrong number says more than what follows
    except (SyntaxError, TypeError, KeyError, ValueError, RecursionError, MemoryError):
        known_patterns = ", ".join([*_NAMED, *_OF_NUMBERS, *_OF_PATTERNS])
        raise ConfigError(
            "a pattern such as both(causal, window(3))",
            quoted(text),
            f"build it from: {known_patterns}",
        ) from None


def _pattern(node: ast.expr) -> Pattern:
    if isinstance(node, ast.Name):
        return _NAMED[node.id]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        raise SyntaxError
    if node.func.id in _OF_PATTERNS:
        return _OF_PATTERNS[node.func.id](*map(_pattern, node.args))
    return _OF_NUMBERS[node.func.id](*map(_number, node.args))


def _number(node: ast.expr) -> int | float:
    value = ast.literal_eval(node)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return value
