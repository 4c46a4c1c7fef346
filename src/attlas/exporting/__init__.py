"""Exporting: a run as a folder that other programs read."""

from attlas.exporting.export import FORMATS, Exported, export
from attlas.exporting.fast_translator import FastTranslator

__all__ = ["FORMATS", "Exported", "FastTranslator", "export"]
