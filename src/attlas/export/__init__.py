"""Exporting: a run as a folder that other programs read."""

from attlas.export.export import FORMATS, Exported, export

__all__ = [
    "FORMATS",
    "Exported",
    "export",
]
