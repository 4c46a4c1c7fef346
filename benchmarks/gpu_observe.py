"""Observing whole models on a GPU, and watching their training: parts of `gpu.py`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from watch_speed import MODELS

import attlas
from attlas.recording import Trace


def engine(attention_map: Any) -> str:
    """What answers for this map."""
    found = attention_map.row_kernels((0, 1), frozenset())
    return "blocks" if found is None else "kernels"


def observing(machine: Any) -> dict[str, Any]:
    """A forward pass of a Llama of 4 layers and 16 heads of 128, plain and observed; the entropy
    and the summary of one layer beside it.
    """
    found: dict[str, Any] = {}
    dry = _is_dry(machine)
    model = _llama(machine.device, dry=dry)
    for tokens in machine.cases((24, 16) if dry else (32_768, 8192), found):
        ids = torch.randint(0, model.config.vocab_size, (1, tokens), device=machine.device)
        trace = _observed(model, ids)
        layer: Any = trace[next(iter(trace))]
        found[f"{tokens:,} tokens"] = {"engine": engine(layer)} | machine.compare(
            3,
            plain=partial(_plain, model, ids),
            observed=partial(_observed, model, ids),
            **{
                "entropy of a layer": layer.entropy,
                "summary of a layer": layer.summary,
            },
        )  # fmt: skip
    return found


def watching(machine: Any) -> dict[str, Any]:
    """Updates of three models that are not watched, watched and not read, and read."""
    found: dict[str, Any] = {}
    models: dict[str, Callable[[], Any]] = {"toy": _toy} if _is_dry(machine) else MODELS
    for name in machine.cases(models, found):
        with machine.device:  # what the model and its loss make lies there
            model, loss_of = models[name]()
            model.train()
            optimizer = torch.optim.Adam(model.parameters(), fused=True)

            def update(
                model: nn.Module = model, loss_of: Any = loss_of, optimizer: Any = optimizer
            ) -> None:
                optimizer.zero_grad(set_to_none=True)
                loss_of(model).backward()
                optimizer.step()

            def watched(every: int, update: Any = update, model: nn.Module = model) -> None:
                with attlas.watch(model, every=every, step=1, on_alarm=None) as watch:
                    update()
                    watch.step()

            found[name] = machine.compare(
                10,
                plain=update,
                **{"not read": partial(watched, 1 << 30), "read": partial(watched, 1)},
            )
    return found


def _is_dry(machine: Any) -> bool:
    return bool(machine.device.type == "cpu")


def _toy() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    model = nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
    return model, lambda model: model(torch.randn(2, 5, 16)).square().mean()


def _llama(device: torch.device, *, dry: bool) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    heads, width = (2, 8) if dry else (16, 128)
    config = LlamaConfig(
        vocab_size=1000, hidden_size=heads * width, intermediate_size=2 * heads * width,
        num_hidden_layers=4, num_attention_heads=heads, num_key_value_heads=heads,
        max_position_embeddings=32_768, attn_implementation="sdpa",
    )  # fmt: skip
    torch.manual_seed(0)
    with device:
        model = LlamaForCausalLM(config).eval()
    return model.to(torch.float32 if dry else torch.bfloat16)


@torch.inference_mode()
def _plain(model: Any, ids: Tensor) -> None:
    model(input_ids=ids, use_cache=False, logits_to_keep=1)


def _observed(model: Any, ids: Tensor) -> Trace:
    with attlas.observe(model) as trace:
        _plain(model, ids)
    return trace
