"""Statistics of maps by Triton's kernels on a GPU, beside the blocks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from attlas.patterns import Pattern, both, causal, everywhere, window
from attlas.recording import FactoredAttentionMap
from attlas.recording.maps import row_kernels
from attlas.recording.maps.statistics import NAMES

pytest.importorskip("triton", reason="Triton has no wheel for this machine")


def by_blocks(monkeypatch: pytest.MonkeyPatch, question: Callable[[], Any]) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(row_kernels, "is_available", lambda device: False)
        return question()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("width", [24, 64, 128, 256])
@pytest.mark.parametrize("pattern", [everywhere, causal, both(causal, window(70))], ids=str)
def test_the_kernels_say_what_the_blocks_say(
    pattern: Pattern, width: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    query = torch.randn(2, 4, 300, width, device="cuda", dtype=dtype)
    keys = torch.randn(2, 2, 333, width, device="cuda", dtype=dtype)
    tokens = torch.arange(333, device="cuda") < torch.tensor([[333], [211]], device="cuda")
    softcap = 20.0 if pattern == causal else None
    bias = torch.randn(1, 4, 300, 333, device="cuda") if width == 64 else None
    attention_map = FactoredAttentionMap(
        query, keys, width**-0.5, pattern, 33, tokens, bias, softcap
    )
    assert attention_map.row_kernels((0, 300), frozenset()) is not None
    names = (*(name for name in NAMES if name != "gini"), "max_logit")
    found = attention_map.summary(*names)
    twin = by_blocks(monkeypatch, lambda: attention_map.summary(*names))
    for name in names:
        ours, expected = getattr(found, name), getattr(twin, name)
        if name in ("argmax", "count_above"):  # what is as good as equal may be either
            assert float((ours != expected).double().mean()) < 0.01, name
        else:
            torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4, msg=name)
    pooled = attention_map.pool(shape=(9, 11), how="max")
    cells = by_blocks(monkeypatch, lambda: attention_map.pool(shape=(9, 11), how="max"))
    torch.testing.assert_close(pooled, cells, atol=1e-5, rtol=1e-4)
    top = by_blocks(monkeypatch, lambda: attention_map.topk(3)[0])
    torch.testing.assert_close(attention_map.topk(3)[0], top, atol=1e-5, rtol=1e-4)
    groups = torch.arange(333) % 5
    mass = by_blocks(monkeypatch, lambda: attention_map.mass(groups))
    torch.testing.assert_close(attention_map.mass(groups), mass, atol=1e-5, rtol=1e-4)
