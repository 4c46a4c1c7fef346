"""A suite as it is kept in results.json, and how it, or a part of it, is measured anew.

A suite has its measurements beside the date and the machine that they were made on. A contender of
a curve that was measured on another day, or in another state of the source, has `conditions` of its
own, and the command that measured it.
"""

import json
from pathlib import Path
from typing import Any

Suite = dict[str, Any]
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
    """The old measurements with what was measured anew put in, contender by contender.

    A measurement is the same where its name and its threads are. What was measured anew takes the
    place of what there was of that contender, but for one that was lost and had figures before.
    Where the new suite failed and has nothing, the old one stays.
    """
    if old["measurements"] and not new["measurements"]:
        return old
    own = {name: old[name] for name in CONDITIONS}
    found = {_key(one): one for one in old["measurements"]}
    for key, measurement in found.items():
        told = {"conditions": own, "command": measurement["command"]}
        contenders = [told | one for one in measurement["contenders"]]
        found[key] = measurement | {"contenders": contenders}
    for measurement in new["measurements"]:
        before = found.get(_key(measurement), {"contenders": []})
        named = {one["name"]: one for one in before["contenders"]}
        for one in measurement["contenders"]:
            if "lost" not in one or "lost" in named.get(one["name"], one):
                named[one["name"]] = one
        found[_key(measurement)] = measurement | {"contenders": list(named.values())}
    return plain(new | {"measurements": list(found.values())})


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
