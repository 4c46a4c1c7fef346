"""A suite as it is kept in results.json, and how it, or a part of it, is measured anew.

A suite has its measurements beside the date and the machine that they were made on. A contender of
a curve that was measured on another day, or in another state of the source, has `conditions` of its
own, and the command that measured it.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Suite = dict[str, Any]
Contender = Mapping[str, Any]
CONDITIONS = ("date", "machine")


def plain(suite: Suite) -> Suite:
    """The suite, where contenders have conditions of their own only if they differ from its own."""
    measurements = [
        measurement | {"contenders": [_plain(one, suite) for one in measurement["contenders"]]}
        for measurement in suite["measurements"]
    ]
    return suite | {"measurements": measurements}


def keep(target: Path, name: str, suite: Suite, *, part: bool) -> None:
    """Put a suite into the results, beside the others there; the file is written whole or not.

    It takes the place of what there was of it; where it is a part, or failed, it is merged.
    """
    results = json.loads(target.read_text(encoding="utf-8")) if target.is_file() else {}
    if name in results and (part or suite["failed"]):
        suite = merged(results[name], suite)
    begun = target.with_suffix(".begun")
    begun.write_text(json.dumps(results | {name: suite}, indent=1) + "\n", encoding="utf-8")
    begun.replace(target)


def merged(old: Suite, new: Suite) -> Suite:
    """The old measurements with what was measured anew put in.

    A measurement is the same where its name and its threads are. The contenders of a curve are put
    in one by one, and one that is lost leaves the curve that it had. Contenders that took turns
    belong together, because their ratios are of these turns: all are replaced, unless all are lost
    and had figures before. Where nothing is put in, the old suite stays.
    """
    own = {name: old[name] for name in CONDITIONS}
    before, anew = {}, {}
    for measurement in old["measurements"]:
        reported = {"conditions": own, "command": measurement["command"]}
        contenders = [reported | one for one in measurement["contenders"]]
        before[_key(measurement)] = measurement | {"contenders": contenders}
    for measurement in new["measurements"]:
        there = before.get(_key(measurement), {"contenders": []})["contenders"]
        put_in = _one_by_one if "moments" in measurement else _together
        contenders = put_in(there, measurement["contenders"])
        if contenders:
            anew[_key(measurement)] = measurement | {"contenders": contenders}
    if before and not anew:
        return old
    return plain(new | {"measurements": list((before | anew).values())})


def came_through(contenders: Iterable[Contender]) -> bool:
    """Whether anybody has figures."""
    return any("lost" not in one for one in contenders)


def lost(measurements: Iterable[Mapping[str, Any]]) -> list[str]:
    """Who has no figures, and why; each reason once."""
    contenders = [one for measurement in measurements for one in measurement["contenders"]]
    reasons = [f"{one['name']}: {one['lost']}" for one in contenders if "lost" in one]
    return list(dict.fromkeys(reasons))


def _one_by_one(old: list[Contender], new: list[Contender]) -> list[Contender]:
    """Both; nothing where nobody of the new has a place."""
    there = {one["name"]: one for one in old}
    found = {
        one["name"]: one
        for one in new
        if "lost" not in one or "lost" in there.get(one["name"], one)
    }
    return list((there | found).values()) if found else []


def _together(old: list[Contender], new: list[Contender]) -> list[Contender]:
    """The new; nothing where all of them are lost and the old have figures."""
    return new if came_through(new) or not came_through(old) else []


def _key(measurement: dict[str, Any]) -> tuple[str, int]:
    return measurement["name"], measurement["threads"]


def _plain(contender: dict[str, Any], suite: Suite) -> dict[str, Any]:
    conditions = contender.get("conditions")
    if conditions is None or not _agree(conditions, {name: suite[name] for name in CONDITIONS}):
        return contender
    return {key: value for key, value in contender.items() if key != "conditions"}


def _agree(one: Any, other: Any) -> bool:
    """Whether all that the one says is what the other says, which may say more."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(key in other and _agree(value, other[key]) for key, value in one.items())
    return bool(one == other)
