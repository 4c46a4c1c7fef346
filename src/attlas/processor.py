"""The processor of this machine, by the names that it gives itself."""

import platform
from functools import cache
from pathlib import Path

_FACTS = Path("/proc/cpuinfo")  # of Linux


def processor_name() -> str:
    """Its model, such as "AMD EPYC (family 25, model 17)": a virtual machine may hide which EPYC it
    is, and one generation may be twice as fast as another. Else its kind, such as "arm64".
    """
    name, family, model = (_fact(of) for of in ("model name", "cpu family", "model"))
    if name and family and model:
        return f"{name} (family {family}, model {model})"
    return name or platform.processor() or platform.machine()


def processor_maker() -> str:
    """Who made it, such as "AuthenticAMD" or "GenuineIntel"; "" where it cannot be told."""
    made = _fact("vendor_id")
    # Windows: "AMD64 Family 25 Model 1 Stepping 1, AuthenticAMD".
    return made or platform.processor().rpartition(", ")[2]


@cache
def _fact(name: str) -> str:
    try:
        lines = _FACTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in found if key.strip() == name), "")
