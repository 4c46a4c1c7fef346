"""The exported graphs as `translate.py` runs them, for the tests beside this file."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

ALONE = """
import runpy, sys
sys.modules |= dict.fromkeys(["torch", "attlas", "onnx", "safetensors", "pydantic"])
runpy.run_path(sys.argv[1], run_name="__main__")
"""  # how a file runs where nothing of attlas is installed


def example(folder: Path) -> ModuleType:
    """`translate.py` of an exported folder, as a module."""
    return loaded(folder / "translate.py")


def loaded(path: Path) -> ModuleType:
    """A file of an exported folder, as a module."""
    spec = importlib.util.spec_from_file_location(f"exported_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


class Runtime:
    """The two graphs, run a token at a time, the state handed on."""

    def __init__(self, folder: Path) -> None:
        self.translator: Any = example(folder).Translator(folder)

    def start(self, source: Tensor, token_mask: Tensor) -> dict[str, Any]:
        """The state before the first token."""
        return dict(self.translator.start(source.numpy(), token_mask.numpy()))

    def read(self, target: Tensor, state: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
        """The logits (batch, queries, vocabulary) of a whole target, and the weights (batch,
        queries, keys), where the model looks.
        """
        logits, weights = [], []
        for tokens in target.T:
            found, state = self.translator.step(tokens.numpy(), state)
            logits.append(torch.from_numpy(np.array(found)))
            if "past_weights" in state:
                weights.append(torch.from_numpy(np.array(state["past_weights"])))
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1) if weights else None
