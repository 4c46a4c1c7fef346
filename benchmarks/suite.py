"""A suite as it is kept in results.json, and how a part of it is measured anew.

A suite has its measurements beside the date and the machine that they were made on. A contender of
a curve that was measured on another day, or in another state of the source, has `conditions` of its
own, and the command that measured it.
"""

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


def merged(old: Suite, new: Suite) -> Suite:
    """The old curves with what was measured anew put in, contender by contender.

    A measurement is the same where its name and its threads are; what was measured anew takes the
    place of what there was of that contender. Where the new suite failed, the old one stays.
    """
    if new["failed"]:
        return old
    own = {name: old[name] for name in CONDITIONS}
    found = {_key(one): one for one in old["measurements"]}
    for key, measurement in found.items():
        told = {"conditions": own, "command": measurement["command"]}
        contenders = [told | one for one in measurement["contenders"]]
        found[key] = measurement | {"contenders": contenders}
    for measurement in new["measurements"]:
        before = found.get(_key(measurement), {"contenders": []})
        named = {one["name"]: one for one in [*before["contenders"], *measurement["contenders"]]}
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
