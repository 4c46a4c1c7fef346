"""Where models on a GPU look: exactly, and beside kernels that only a GPU has."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attlas.layers import MultiheadAttention
from attlas.patterns import both, causal, window
from attlas.recording import FactoredAttentionMap, intervene, observe, uniform
from attlas.recording.maps.statistics import NAMES
from support import small_models

GPU = torch.device("cuda")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "llama"])
def test_models_of_hugging_face_look_where_eager_attention_says(
    kind: str, dtype: torch.dtype
) -> None:
    model = small_models.model(kind).to(GPU, dtype).eval()
    ids = torch.randint(4, small_models.SIZE, (2, 9), device=GPU)
    seen = torch.ones_like(ids)
    seen[1, 6:] = 0
    with torch.no_grad():
        plain = model(ids, attention_mask=seen)[0]
        with observe(model) as trace:
            heard = model(ids, attention_mask=seen)[0]
        model.set_attn_implementation("eager")
        reported = model(ids, attention_mask=seen, output_attentions=True).attentions
    assert torch.equal(heard, plain)
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
    assert len(trace) == len(reported)
    for layer, expected in zip(trace, reported, strict=True):
        weights = trace[layer].weights()
        assert weights.device.type == expected.device.type == "cuda"
        ours, theirs = weights.float(), expected.float()
        torch.testing.assert_close(ours[0], theirs[0], atol=tolerance, rtol=0)
        torch.testing.assert_close(ours[1, :, :6], theirs[1, :, :6], atol=tolerance, rtol=0)


def test_an_intervention_on_a_gpu_changes_what_it_changes_on_the_cpu() -> None:
    model = small_models.model("bert").eval()
    ids = torch.randint(4, small_models.SIZE, (2, 9))

    def logits(device: torch.device) -> Tensor:
        model.to(device)
        with torch.no_grad(), intervene(model, uniform):
            return model(ids.to(device)).logits

    with torch.no_grad():
        plain = model(ids).logits
    here, there = logits(torch.device("cpu")), logits(GPU)
    assert not torch.allclose(here, plain, atol=1e-6)
    torch.testing.assert_close(there.cpu(), here, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_encoder_of_torch_is_heard_on_its_fast_path(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(GPU, dtype).eval()
    source = torch.randn(2, 11, 32, device=GPU, dtype=dtype)
    with torch.no_grad(), observe(model) as trace:
        model(source)
    given = model.layers[0].self_attn
    _, expected = given(source, source, source, average_attn_weights=False)
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    weights = trace[next(iter(trace))].weights()
    torch.testing.assert_close(weights.float(), expected.float(), atol=tolerance, rtol=0)


def longest(queries: int, width: int = 64) -> tuple[nn.Module, Tensor, Tensor]:
    class Long(nn.Module):
        def forward(self, query: Tensor, keys: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(query, keys, keys, is_causal=True)

    torch.manual_seed(1)
    query, keys = torch.randn(2, 1, 2, queries, width, device=GPU)
    return Long(), query, keys


def test_a_hundred_thousand_tokens_are_summed_up_in_bounded_memory() -> None:
    model, query, keys = longest(100_000)
    with observe(model) as trace:
        model(query, keys)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = trace[next(iter(trace))].summary("entropy")
    assert torch.cuda.max_memory_allocated() - before < 4 * 2**30  # the map has 80 GB
    last = (query[..., -1:, :].double() @ keys.double().mT / 8).squeeze(-2).softmax(-1)
    entropy = -(last * last.log()).sum(-1)
    torch.testing.assert_close(
        found.entropy[..., -1].double().to(GPU), entropy, atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("pattern", [causal, both(causal, window(50))], ids=str)
def test_a_summary_on_a_gpu_is_the_one_of_the_cpu(pattern: Any) -> None:
    torch.manual_seed(1)
    layer = MultiheadAttention(32, 4, num_kv_heads=2, pattern=pattern)
    source = torch.randn(2, 300, 32)
    with observe(layer) as here:
        layer.attend(source, layer.project_kv(source))
    layer.to(GPU)
    with observe(layer) as there:
        layer.attend(source.to(GPU), layer.project_kv(source.to(GPU)))
    one, other = (each[next(iter(each))] for each in (here, there))
    assert isinstance(other, FactoredAttentionMap)
    mine, theirs = one.summary(*NAMES), other.summary(*NAMES)
    for name in NAMES:
        ours, expected = getattr(theirs, name), getattr(mine, name)
        torch.testing.assert_close(ours.cpu(), expected, atol=1e-4, rtol=1e-4, msg=name)
