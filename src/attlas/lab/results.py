"""Results on disk: one JSON file for each experiment, scale and seed."""

import ast
import hashlib
import inspect
import json
import marshal
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from symtable import symtable
from typing import Any

import torch

from attlas._files import parse_json, write_durably
from attlas._hardware import processor_name
from attlas.errors import DataError
from attlas.lab.data import checksum_of
from attlas.lab.experiment import Experiment, Measurement, Scale
from attlas.lab.verdict import Measurements
from attlas.training.setup import code_version

SHIPPED = Path(__file__).parent / "measured"
"""The results that come with attlas."""


@dataclass(frozen=True)
class SeedResult:
    """All measurements of one seed, and what they depend on.

    Args:
        key: The digest of what the numbers depend on; see `key_of`.
        facts: Machine, versions, commit, command and seconds.
    """

    experiment: str
    scale: Scale
    seed: int
    key: str
    measurements: tuple[Measurement, ...]
    facts: Mapping[str, Any]


def key_of(experiment: Experiment, scale: Scale, seed: int) -> str:
    """SHA-256 of settings, seed, the source of the experiment, its data, and versions.

    The versions are those of attlas and torch. A finished seed is measured again when its key
    has changed.
    """
    return _key(experiment, scale, seed, experiment.measure)


def key_of_examples(experiment: Experiment, scale: Scale) -> str:
    """The same of what gives its examples, which are of the first seed; "" = it has none."""
    return _key(experiment, scale, 1, experiment.examples) if experiment.examples else ""


def _key(experiment: Experiment, scale: Scale, seed: int, function: Callable[..., Any]) -> str:
    parts = {
        "settings": experiment.settings[scale],
        "seed": seed,
        "source": _digest_of_source(function),
        "attlas": code_version()["attlas"],
        "torch": torch.__version__,
        "data": [checksum_of(name) or "missing" for name in experiment.needs],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _digest_of_source(measure: Callable[..., Any]) -> str:
    """Of what measures: not of the claims and rules beside it, which read what was measured."""
    if not inspect.isfunction(measure):
        raise DataError(
            "a function that measures", f"a {type(measure).__name__}", "write it with def"
        )
    try:
        module = inspect.getsource(sys.modules[measure.__module__])
    except (OSError, TypeError, KeyError):  # typed at a prompt
        return hashlib.sha256(marshal.dumps(measure.__code__)).hexdigest()
    # Of a function within another one all of the module counts.
    content = source_of(module, measure.__qualname__) or module
    return hashlib.sha256(content.encode()).hexdigest()


def source_of(module: str, name: str) -> str:
    """The source of a function, and of all in its module that it needs; "" if there is none of that
    name.

    Args:
        module: The source of the module.
        name: The function.

    Example:
        >>> print(source_of("A = 1; B = 2\\ndef f(): return A  # one", "f"))
        A = 1
        def f(): return A
    """
    statements = list(_statements(module))
    # What a module does beside defining names may change any of them.
    needed = {index for index, one in enumerate(statements) if not _only_defines(one)}
    waiting = {name}.union(*(_globals(_text(module, statements[index])) for index in needed))
    if not any(name in _defined(statement) for statement in statements):
        return ""
    while waiting:
        own = waiting.pop()
        for index, statement in enumerate(statements):
            if index not in needed and own in _defined(statement):
                needed.add(index)
                waiting |= _globals(_text(module, statement)) - {own}
    return "\n".join(_text(module, statements[index]) for index in sorted(needed))


def _statements(module: str) -> Iterator[ast.stmt]:
    """The statements of a module; of an import one for each name."""
    for statement in ast.parse(module).body:
        match statement:
            case ast.Import(names=aliases):
                yield from (ast.Import([alias]) for alias in aliases)
            case ast.ImportFrom(module=source, names=aliases, level=level):
                yield from (ast.ImportFrom(source, [alias], level) for alias in aliases)
            case _:
                yield statement


def _only_defines(statement: ast.stmt) -> bool:
    """Return True for a definition, an import by name and a docstring."""
    match statement:
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return False
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AnnAssign, ast.Import, ast.ImportFrom)
    return isinstance(statement, kinds)


def _text(module: str, statement: ast.stmt) -> str:
    """The source of a statement, with its decorators."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return ast.unparse(statement)
    text = ast.get_source_segment(module, statement) or ""
    decorators = getattr(statement, "decorator_list", [])
    return "".join(f"@{ast.get_source_segment(module, one)}\n" for one in decorators) + text


def _globals(source: str) -> set[str]:
    """The names of its module that a statement reads."""
    tables, found = [symtable(source, "", "exec")], set[str]()
    for table in tables:
        tables += table.get_children()
        top = table.get_type() == "module"
        found |= {one.get_name() for one in table.get_symbols() if top or one.is_global()}
    return found


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module gives a meaning."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
        case _:
            found = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            return {node.id for node in found if isinstance(node.ctx, ast.Store)}


REWRITTEN = "key rewritten"


def with_new_key(result: SeedResult, key: str, commit: str, reason: str) -> SeedResult:
    """The result under another key, of which its facts tell, as it was not measured again.

    Args:
        key: That of the code that is there now.
        commit: Where the code was changed.
        reason: Why the change leaves the numbers alone.
    """
    earlier = list(result.facts.get(REWRITTEN, []))
    facts = {**result.facts, REWRITTEN: [*earlier, {"commit": commit, "reason": reason}]}
    return replace(result, key=key, facts=facts)


def provenance_of(seconds: float, experiment: Experiment, scale: Scale) -> dict[str, Any]:
    """The machine, the versions, the commit, the checksums of the data, and the command that makes
    the measurement again.
    """
    return {
        **code_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "seconds": round(seconds, 1),
        "data": {name: checksum_of(name) for name in experiment.needs},
        "command": f"attlas lab run {experiment.name} --{scale}",
    }


def path_of(folder: Path, experiment: str, scale: Scale, seed: int) -> Path:
    """Where the result of a seed stands."""
    return folder / experiment / scale / f"seed-{seed}.json"


def write_result(result: SeedResult, folder: Path) -> Path:
    """Write a result. The file is there whole or not at all."""
    path = path_of(folder, result.experiment, result.scale, result.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "experiment": result.experiment,
        "scale": result.scale,
        "seed": result.seed,
        "key": result.key,
        "facts": dict(result.facts),
        "measurements": [
            {"metric": m.metric, "condition": dict(m.condition), "value": _number(m.value)}
            for m in result.measurements
        ],
    }
    write_durably(path, (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode())
    return path


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)  # JSON has no NaN


def read(path: Path) -> SeedResult:
    """Read one result.

    Raises:
        DataError: If the file is not a result.
    """
    try:
        record = parse_json(path.read_bytes())
        return SeedResult(
            record["experiment"],
            record["scale"],
            int(record["seed"]),
            record["key"],
            tuple(
                Measurement(row["metric"], float(row["value"]), row["condition"])
                for row in record["measurements"]
            ),
            record["facts"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            "a result of attlas lab run",
            f"{path}: {type(error).__name__} {error}",
            "delete the file and run the experiment again",
        ) from error


def results_of(experiment: str, scale: Scale, folders: Sequence[Path]) -> list[SeedResult]:
    """The results of an experiment, by seed, from the first folder that has any."""
    for folder in folders:
        files = sorted((folder / experiment / scale).glob("seed-*.json"))
        if files:
            return sorted((read(file) for file in files), key=lambda result: result.seed)
    return []


def table_of(results: Sequence[SeedResult], deterministic: Sequence[str] = ()) -> Measurements:
    """The measurements as rules read them; `deterministic`: metrics that no seed can change."""
    return Measurements(
        {
            result.seed: [(m.metric, m.condition, m.value) for m in result.measurements]
            for result in results
        },
        frozenset(deterministic),
    )
