"""The ONNX operator Attention (opsets 23 to 25), case by case, against our function.

The cases are the ONNX project's own (Apache-2.0), with its reference results. All of them apply;
where the operator says a thing in other words than attlas, `read` translates:

- heads side by side in the width (3 axes) are split first, as `MultiheadAttention` does;
- a float mask is a `bias`, a bool mask a `mask`, of which 3 axes are heads, queries and keys; a
  mask shorter than the keys hides the rest;
- past and new keys are a `Memory` and what extends it; the result is the operator's present;
- causal counts queries from the end of the past, or where there is none from key 0: that is
  `first`; with `nonpad_kv_seqlen` tokens in a row, its queries are the newest of those;
- a window to the left with causal is `both(causal, window(n))`; attlas has no pattern whose two
  sides differ, so those windows are a mask;
- softmax runs in float32 or better, whatever `softmax_precision` asks.

What does not apply is the operator's view of scores before the softmax (`SCORES`): attlas gives
weights. Those scores, finished by hand, must give the same weights.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attlas.layers import scaled_dot_product_attention as sdpa
from attlas.layers import scaled_dot_product_attention_with_weights as sdpa_with_weights
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Pattern, both, causal, everywhere, window
from attlas.reference import softmax

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "onnx-attention"
INDEX = FOLDER / "index.json"
CASES = json.loads(INDEX.read_text(encoding="utf-8")) if INDEX.is_file() else []

# What `read` translates; a case with anything else would otherwise be half understood.
ATTRIBUTES = {
    *("is_causal", "left_window_size", "right_window_size", "scale", "softcap"),
    *("q_num_heads", "kv_num_heads", "qk_matmul_output_mode", "softmax_precision"),
}
INPUTS = {"Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen", ""}

WEIGHTS = 3  # the mode in which qk_matmul_output is our weights
SCORES = {
    0: "scale · q kᵀ: attlas gives weights, which a user can compare between mechanisms",
    1: "the scores after the softcap: the same",
    2: "the scores after the softcap and the bias: the same",
}


@dataclass(frozen=True)
class Case:
    """One case: its attributes, and its arrays as tensors with a head axis."""

    name: str
    attributes: dict[str, Any]
    tensors: dict[str, Tensor]
    tolerance: float

    @classmethod
    def load(cls, entry: dict[str, Any]) -> "Case":
        assert set(entry["attrs"]) <= ATTRIBUTES, entry["name"]
        assert set(entry["node_inputs"]) <= INPUTS, entry["name"]
        attributes = entry["attrs"]
        heads = dict.fromkeys("QY", attributes.get("q_num_heads"))
        heads |= dict.fromkeys("KV", attributes.get("kv_num_heads"))
        tensors = {}
        with np.load(FOLDER / f"{entry['name']}.npz") as arrays:
            for key in arrays.files:
                name = key.partition("_")[2]
                tensor = torch.from_numpy(arrays[key])
                if entry["dtypes"][name] == "bfloat16":
                    tensor = tensor.bfloat16()
                if name in heads and tensor.ndim == 3:
                    tensor = tensor.unflatten(2, (heads[name], -1)).transpose(1, 2)
                tensors[name] = tensor
        tolerance = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}[entry["dtypes"]["Q"]]
        return cls(entry["name"], attributes, tensors, tolerance)

    @property
    def memory(self) -> KeyValueCache:
        """The present: the past, if there is one, and the new keys and values."""
        new = KeyValueCache(self.tensors["K"], self.tensors["V"])
        if "past_key" not in self.tensors:
            return new
        return KeyValueCache(self.tensors["past_key"], self.tensors["past_value"]).append(new)

    @property
    def token_mask(self) -> Tensor | None:
        counts = self.tensors.get("nonpad_kv_seqlen")
        return None if counts is None else torch.arange(self.memory.num_keys) < counts[:, None]

    @property
    def firsts(self) -> list[int]:
        """The position of the first query of each batch row."""
        batch, _, queries, _ = self.tensors["Q"].shape
        if "nonpad_kv_seqlen" in self.tensors:
            return [int(count) - queries for count in self.tensors["nonpad_kv_seqlen"]]
        return [self.memory.num_keys - self.tensors["K"].shape[2]] * batch

    @property
    def pattern(self) -> Pattern:
        left, right = (self.attributes.get(f"{side}_window_size") for side in ("left", "right"))
        pattern = causal if self.attributes.get("is_causal") else everywhere
        if left is not None and right is None and pattern == causal:
            return both(causal, window(left))
        return pattern

    def options(self, row: int) -> dict[str, Any]:
        """The options of our function for one batch row; rows differ in their first position."""
        options = {"scale": self.attributes.get("scale"), "softcap": self.attributes.get("softcap")}
        options |= {"pattern": self.pattern, "query_offset": self.firsts[row], "enable_gqa": True}
        if self.token_mask is not None:
            options["token_mask"] = self.token_mask[row, None]
        if (pairs := self._pairs()) is not None:
            options["attn_mask"] = pairs if pairs.ndim < 4 or len(pairs) == 1 else pairs[row, None]
        if "right_window_size" in self.attributes:
            position = torch.arange(self.tensors["Q"].shape[2])[:, None] + self.firsts[row]
            ahead = torch.arange(self.memory.num_keys) - position
            left, right = (self.attributes[f"{side}_window_size"] for side in ("left", "right"))
            within = (-left <= ahead) & (ahead <= right)
            pairs = options.get("attn_mask", within)
            hidden = False if pairs.dtype == torch.bool else -float("inf")
            options["attn_mask"] = pairs.masked_fill(~within, hidden)
        return options

    def _pairs(self) -> Tensor | None:
        pairs = self.tensors.get("attn_mask")
        if pairs is None:
            return None
        pairs = pairs[None] if pairs.ndim == 3 else pairs
        missing = self.memory.num_keys - pairs.shape[-1]
        hidden = False if pairs.dtype == torch.bool else -float("inf")
        return torch.nn.functional.pad(pairs, (0, missing), value=hidden)

    def read(self, door: Any) -> list[Any]:
        """What a door of attlas answers, row by row."""
        query, memory = self.tensors["Q"], self.memory
        return [
            door(query[row, None], memory.keys[row, None], memory.values[row, None], **options)
            for row in range(len(query))
            for options in [self.options(row)]
        ]

    def close(self, ours: Tensor, theirs: Tensor) -> None:
        torch.testing.assert_close(ours, theirs, atol=self.tolerance, rtol=self.tolerance)


needs_cases = pytest.mark.skipif(
    not CASES, reason="the shared data folder is not beside this checkout: onnx-attention"
)


def of_every_case(*outputs: str) -> pytest.MarkDecorator:
    """Every case that has these outputs."""
    chosen = [entry for entry in CASES if set(outputs) <= set(entry["node_outputs"])]
    return pytest.mark.parametrize("case", chosen, ids=[entry["name"] for entry in chosen])


@needs_cases
def test_every_case_is_applied_whole_but_for_the_scores_before_the_softmax():
    views = [
        entry["attrs"].get("qk_matmul_output_mode", 0)
        for entry in CASES
        if "qk_matmul_output" in entry["node_outputs"]
    ]
    assert set(views) <= {WEIGHTS, *SCORES}
    outputs = {name for entry in CASES for name in entry["node_outputs"] if name}
    assert outputs <= {"Y", "present_key", "present_value", "qk_matmul_output"}
    names = sorted(entry["name"] for entry in CASES)
    assert names == sorted(path.stem for path in FOLDER.glob("*.npz"))


@needs_cases
@of_every_case("Y")
def test_the_context_agrees_with_and_without_weights(case):
    case = Case.load(case)
    case.close(torch.cat(case.read(sdpa)), case.tensors["Y"])
    contexts = [context for context, _ in case.read(sdpa_with_weights)]
    case.close(torch.cat(contexts), case.tensors["Y"])


@needs_cases
@of_every_case("present_key", "present_value")
def test_an_extended_memory_is_the_present(case):
    case = Case.load(case)
    assert torch.equal(case.memory.keys, case.tensors["present_key"])
    assert torch.equal(case.memory.values, case.tensors["present_value"])


@needs_cases
@of_every_case("qk_matmul_output")
def test_the_weights_agree_or_follow_from_the_scores(case):
    case = Case.load(case)
    theirs = case.tensors["qk_matmul_output"]
    mode = case.attributes.get("qk_matmul_output_mode", 0)
    for row, (_, weights) in enumerate(case.read(sdpa_with_weights)):
        if mode == WEIGHTS:
            case.close(weights[0], theirs[row])
            continue
        options = case.options(row)
        scores = theirs[row].double().numpy()
        if mode == 0 and options["softcap"] is not None:
            scores = options["softcap"] * np.tanh(scores / options["softcap"])
        mask = options.get("attn_mask")
        if mode < 2 and mask is not None:
            scores = scores + mask.numpy()
        assert mask is None or mask.is_floating_point()
        assert "token_mask" not in options
        assert options["pattern"] == everywhere
        for head, of_head in enumerate(scores.reshape(weights.shape[1:])):
            finished = torch.from_numpy(softmax(of_head)).to(weights.dtype)
            case.close(weights[0, head], finished)
