"""Trains one step in several processes that are watched; each process writes its reading as JSON.

Arguments: the folder for `rank-….json` and `watch.jsonl`, and how the model is spread: "ddp" or
"fsdp"; "failing" is "ddp" where the second process cannot make its reading.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import attlas
from attlas.errors import AttlasError
from attlas.monitoring.reader import StatisticsRecorder

LENGTHS = (7, 3, 5, 7, 2, 6)


def model() -> nn.Module:
    """Two layers with the same weights in every process."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train()


def batch() -> tuple[Tensor, Tensor]:
    """Texts, and where their padding is."""
    torch.manual_seed(1)
    padding = torch.arange(7) >= torch.tensor(LENGTHS).unsqueeze(1)
    return torch.randn(len(LENGTHS), 7, 16), padding


def _fail(recorder: StatisticsRecorder) -> Any:
    raise AttlasError("maps of one kind", "two", "look at the model")


def main(folder: Path, spread: str) -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    watched: Any = model()
    if spread != "fsdp":
        called: Any = DistributedDataParallel(watched)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        called = fully_shard(watched, mesh=init_device_mesh("cpu", (size,)))
    watch = attlas.watch(called, every=1, path=folder / "watch.jsonl")
    optimizer = torch.optim.SGD(called.parameters(), 0.1)
    x, padding = (tensor[rank::size] for tensor in batch())
    called(x, src_key_padding_mask=padding).square().mean().backward()
    optimizer.step()
    if spread == "failing" and rank == 1:
        StatisticsRecorder.totals = _fail  # type: ignore[method-assign]
    found: Any
    try:
        reading = watch.step()
        assert reading is not None
        found = reading.record()
    except AttlasError as error:
        found = str(error)
    (folder / f"rank-{rank}.json").write_text(json.dumps(found))
    watch.close()
    # A thread of gloo still lets go of tensors, for which it needs the interpreter. The end of the
    # model waits for that thread, and does not let go of the interpreter: both would wait for ever.
    time.sleep(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
