"""Observing attention of other models by the torch functions that they call."""
