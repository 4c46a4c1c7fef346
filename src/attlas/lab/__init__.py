"""The lab: every claim about attention as an experiment with a verdict."""

from attlas.lab.experiment import (
    AttentionExample,
    Claim,
    Context,
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
    "AttentionExample",
    "Claim",
    "Context",
    "Difference",
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
