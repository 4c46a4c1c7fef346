"""The lab: every claim about attention as an experiment with a verdict."""

from attlas.lab.experiment import (
    Claim,
    Context,
    Example,
    Experiment,
    Measurement,
    Plot,
    Published,
    Scale,
    Source,
)
from attlas.lab.verdict import (
    All,
    AtLeast,
    AtMost,
    Difference,
    Exponent,
    Judgement,
    Measurements,
    Monotone,
    Provided,
    Ratio,
    Rule,
)

__all__ = [
    "All",
    "AtLeast",
    "AtMost",
    "Claim",
    "Context",
    "Difference",
    "Example",
    "Experiment",
    "Exponent",
    "Judgement",
    "Measurement",
    "Measurements",
    "Monotone",
    "Plot",
    "Provided",
    "Published",
    "Ratio",
    "Rule",
    "Scale",
    "Source",
]
