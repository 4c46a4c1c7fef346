"""How a model is spread over the processes of a fleet."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from attlas.training.fleet import Fleet
from attlas.training.objective import Objective
from attlas.training.settings import Distribution


class Spread:
    """One model in all processes of a fleet, each of which has the loss of its own batches.

    "ddp": every process holds the model, and gradients are averaged on the way back
    (`DistributedDataParallel`; Li et al., 2020). "fsdp": every process holds its part of each
    parameter, of its gradient and of its moments, and they come together for the forward and
    backward pass alone (FSDP2's `fully_shard`; Zhao et al., 2023).
    """

    def __init__(self, objective: Objective, how: Distribution, fleet: Fleet) -> None:
        self.parted = how == "fsdp"
        self.objective: nn.Module = objective
        if not self.parted:
            self.objective = DistributedDataParallel(objective)
        else:
            # Imported where they are used: they take seconds, and few need them.
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            device = next(objective.parameters()).device.type
            fully_shard(objective, mesh=init_device_mesh(device, (fleet.size,)))

    @contextmanager
    def joined(self, together: bool) -> Iterator[nn.Module]:
        """The objective; `together`: whether this backward pass ends with everybody's gradient."""
        if isinstance(self.objective, DistributedDataParallel):
            if together:
                yield self.objective
            else:
                with self.objective.no_sync():
                    yield self.objective
        else:
            self.objective.set_requires_gradient_sync(together)  # type: ignore[operator]
            yield self.objective

    def whole(self, tensor: Tensor) -> Tensor:
        """All of a tensor of which this process may hold a part; every process has to ask."""
        if not self.parted:
            return tensor
        from torch.distributed.tensor import DTensor

        return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """This process's part of a whole tensor, where it holds a part of one like it."""
        if not self.parted:
            return tensor
        from torch.distributed.tensor import DTensor, distribute_tensor

        if not isinstance(like, DTensor):
            return tensor
        # Every process has the whole one: nobody has to send anything.
        return distribute_tensor(
            tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None
        )
