"""Optimizers: Adam, AdamW and Muon, and their state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import BeforeValidator, Field
from torch import Tensor, nn
from torch.optim.adam import adam

from attlas._parallel import ThreadGroup
from attlas.config import Config
from attlas.errors import CheckpointError
from attlas.ops.linear import linear

# Sharing the work of a step.


def _identity(tensor: Tensor, like: Tensor | None = None) -> Tensor:
    return tensor


@dataclass(frozen=True)
class Parallelism:
    """How a step of the optimizer is shared by threads, and by processes that hold parts of a
    model.

    Args:
        map: Does one thing for each of many, in parallel if possible (`ThreadGroup.map`).
        whole, part: Gather a tensor of which this process may hold a part, and take the part again
            (`DistributedModel`). By default nothing is shared.
    """

    map: Callable[[Callable[[Tensor], None], Sequence[Tensor]], Any] = field(
        default_factory=lambda: ThreadGroup().map
    )
    whole: Callable[[Tensor], Tensor] = _identity
    part: Callable[[Tensor, Tensor], Tensor] = _identity


# Adam, as torch has it.


_FUSED = {"cpu", "cuda"}  # where torch has a fused step

Beta = Annotated[float, Field(ge=0.0, lt=1.0)]


class _Adam(Config):
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """How much of the gradients before, and of their squares, stays in the averages."""
    eps: float = Field(default=1e-8, gt=0.0)
    """What is added to the divisor."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """How much of each weight is taken away at each step, times the learning rate."""

    def _settings(self, model: nn.Module, rate: float | Tensor) -> dict[str, Any]:
        capturable = isinstance(rate, Tensor) and rate.is_cuda  # torch asks this of CUDA graphs
        fused = has_fused_adam(model)
        return {**self.model_dump(exclude={"kind"}), "fused": fused, "capturable": capturable}


class AdamConfig(_Adam):
    """Adam    Kingma & Ba, 2015."""

    kind: Literal["adam"] = "adam"

    def build(
        self, model: nn.Module, rate: float | Tensor, parallelism: Parallelism | None = None
    ) -> torch.optim.Optimizer:
        """The optimizer of all parameters of a model that is already on its device.

        Args:
            rate: The learning rate. As a tensor on that device it can be written to, also between
                replays of a CUDA graph that has captured a step.
            parallelism: Adam, which steps every number by itself, has no need of it.
        """
        return torch.optim.Adam(model.parameters(), lr=rate, **self._settings(model, rate))


class AdamWConfig(_Adam):
    """AdamW, whose weight decay is apart from the gradient    Loshchilov & Hutter, 2019."""

    kind: Literal["adamw"] = "adamw"

    def build(
        self, model: nn.Module, rate: float | Tensor, parallelism: Parallelism | None = None
    ) -> torch.optim.Optimizer:
        """As of Adam."""
        return torch.optim.AdamW(model.parameters(), lr=rate, **self._settings(model, rate))


def has_fused_adam(model: nn.Module) -> bool:
    """Return True if torch has a fused step of Adam where this model is."""
    return next(model.parameters()).device.type in _FUSED


_A, _B, _C = 3.4445, -4.7750, 2.0315  # of the iteration, from Jordan et al.
_LEAST = 1e-7  # a norm; below it a gradient is none
_LIKE_ADAM = 0.2  # the root mean square of Adam's steps, measured by Liu et al.


class MuonConfig(Config):
    """Muon    Jordan et al., 2024: steps of matrices that have all directions of the gradient, each
    as long.

    The matrices within a model; its embeddings, its map to words or labels, norms and biases are
    stepped by AdamW, with these betas and eps. A step of either is about as large, so the rate is
    as of Adam, and may be higher. A step costs (4 rows² × columns + 2 rows³) × iterations
    multiplications and additions for each matrix with no more rows than columns, however small the
    batch, so batches should not be too small.
    """

    kind: Literal["muon"] = "muon"
    momentum: float = Field(default=0.95, ge=0.0, lt=1.0)
    """How much of the gradients before stays in their average."""
    iterations: int = Field(default=5, ge=1, le=20)
    """How close the directions come to being as long; fewer are quicker."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Of AdamW: how much of the gradients before, and of their squares, stays in the averages."""
    eps: float = Field(default=1e-8, gt=0.0)
    """Of AdamW: what is added to the divisor."""
    weight_decay: float = Field(default=0.0, ge=0.0)
    """How much of each weight is taken away at each step, times the learning rate."""

    def build(
        self, model: nn.Module, rate: float | Tensor, parallelism: Parallelism | None = None
    ) -> torch.optim.Optimizer:
        """The optimizer of all parameters of a model that is already on its device; `rate` as of
        Adam."""
        return Muon(model, rate, self, parallelism or Parallelism())


class Muon(torch.optim.Optimizer):
    """M ← μ M + (1 − μ) G,  O = orthogonalised((1 − μ) G + μ M),
    W ← (1 − η λ) W − 0.2 √max(rows, columns) η O

    of every matrix that maps one hidden vector to another: O has the directions of the averaged
    gradient, all as long. η: the rate, λ: the weight decay, μ: the momentum (Nesterov's). Muon is
    of Jordan et al. (2024, "Muon: an optimizer for hidden layers in neural networks"), the factor
    of Liu et al. (2025, "Muon is scalable for LLM training"): it makes a step as large as Adam's,
    so that one rate serves both.

    What is left, which is embeddings, the map to the vocabulary or the labels, norms and biases,
    is stepped by AdamW.

    sharing: the matrices are shared by a thread group, and put together where a process holds
    parts.
    """

    def __init__(
        self,
        model: nn.Module,
        rate: float | Tensor,
        settings: MuonConfig,
        parallelism: Parallelism,
    ) -> None:
        matrices = hidden_weights(model)
        matrix_ids = set(map(id, matrices))
        others = [p for p in model.parameters() if id(p) not in matrix_ids]
        groups = [
            {"params": others, "turned": False, "fused": has_fused_adam(model)},
            {"params": matrices, "turned": True},
        ]
        defaults = {"lr": rate, "weight_decay": settings.weight_decay}
        super().__init__([group for group in groups if group["params"]], defaults)
        self._settings, self._sharing = settings, parallelism

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One step of every parameter that has a gradient."""
        for group in self.param_groups:
            learning = [parameter for parameter in group["params"] if parameter.grad is not None]
            if group["turned"]:
                self._turn(learning, group["lr"], group["weight_decay"])
            else:
                self._adam(learning, group["lr"], group["weight_decay"], group["fused"])

    def _turn(self, matrices: list[Tensor], rate: float | Tensor, decay: float) -> None:
        for matrix in matrices:  # here, because threads come in any order
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)

        @torch.no_grad()  # it is a setting of each thread
        def step_matrix(matrix: Tensor) -> None:
            gradient = matrix.grad
            assert gradient is not None
            average = self.state[matrix]["momentum"].lerp_(gradient, 1.0 - self._settings.momentum)
            towards = self._sharing.whole(gradient.lerp(average, self._settings.momentum))
            direction = self._sharing.part(
                orthogonalize(towards, self._settings.iterations), matrix
            )
            own_rate = rate.to(matrix.dtype) if isinstance(rate, Tensor) else rate
            if decay:
                matrix.mul_(1.0 - own_rate * decay)
            step = -own_rate * _LIKE_ADAM * max(towards.shape) ** 0.5
            if isinstance(step, Tensor):  # whose number is not asked for
                matrix.addcmul_(direction, step)
            else:
                matrix.add_(direction, alpha=step)

        self._sharing.map(step_matrix, matrices)

    def _adam(
        self, parameters: list[Tensor], rate: float | Tensor, decay: float, fused: bool
    ) -> None:
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                state["step"] = torch.zeros((), device=parameter.device if fused else "cpu")
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
        states = [self.state[parameter] for parameter in parameters]
        adam(
            parameters,
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=fused,
            amsgrad=False,
            beta1=self._settings.betas[0],
            beta2=self._settings.betas[1],
            lr=rate,
            weight_decay=decay,
            eps=self._settings.eps,
            maximize=False,
            decoupled_weight_decay=True,
        )


def orthogonalize(
    matrix: Float[Tensor, "rows columns"], iterations: int = 5
) -> Float[Tensor, "rows columns"]:
    """About U Vᵀ of matrix = U Σ Vᵀ: the same directions, all about as long.

    X ← X / ‖X‖, and then so many times  X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X, a Newton–Schulz
    iteration whose polynomial lifts small singular values so fast that five bring those above a
    hundredth of the norm to 0.7 … 1.2 (Jordan et al., 2024). A matrix of zeros stays one.
    """
    rows, columns = matrix.shape
    x = matrix if rows <= columns else matrix.mT  # X Xᵀ is the smaller one
    x = x / x.norm().clamp(min=_LEAST)
    for _ in range(iterations):
        square = linear(x, x)
        polynomial = torch.add(_B * square, linear(square, square.mT), alpha=_C)
        x = torch.add(linear(polynomial, x.mT), x, alpha=_A)
    return x if rows <= columns else x.mT


def hidden_weights(model: nn.Module) -> list[nn.Parameter]:
    """The parameters with rows and columns that are no embedding, and not the model's last map.

    That is what a model calls `output`: its rows are words or labels, as those of an embedding
    are, and have lengths of their own.
    """
    last = getattr(model, "output", None)
    separate = [m for m in model.modules() if isinstance(m, nn.Embedding) or m is last]
    separate_ids = {id(parameter) for module in separate for parameter in module.parameters()}
    return [
        parameter
        for parameter in model.parameters()
        if parameter.ndim == 2 and min(parameter.shape) > 1 and id(parameter) not in separate_ids
    ]


# The optimizer, and its state by the names of the parameters.


def _adam_by_default(optimizer: Any) -> Any:
    return {"kind": "adam", **optimizer} if isinstance(optimizer, Mapping) else optimizer


OptimizerConfig = Annotated[
    AdamConfig | AdamWConfig | MuonConfig,
    Field(discriminator="kind"),
    BeforeValidator(_adam_by_default),
]


def optimizer_state(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The state of every parameter as `parameter/key` → tensor: steps and moments."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_state(
    optimizer: torch.optim.Optimizer,
    model: nn.Module,
    saved_state: Mapping[str, Tensor],
    part: Callable[[Tensor, Tensor], Tensor] = lambda tensor, like: tensor,
) -> None:
    """Put back what `optimizer_state` gave; `part` takes from a moment what belongs to a parameter
    here.

    Raises:
        CheckpointError: For the state of a parameter that the model does not have.
    """
    parameter_ids = (id(p) for group in optimizer.param_groups for p in group["params"])
    order = {number: index for index, number in enumerate(parameter_ids)}
    numbers = {name: order[id(p)] for name, p in model.named_parameters()}
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in saved_state.items():
        parameter, _, key = name.rpartition("/")
        if parameter not in numbers:
            raise CheckpointError(
                "the optimizer's state of a parameter of this model",
                repr(parameter),
                "resume with the recipe that the run began with",
            )
        tensor = model.get_parameter(parameter)
        local = (
            part(value, tensor) if value.shape == tensor.shape else value
        )  # `step` is one number
        state.setdefault(numbers[parameter], {})[key] = local.clone()
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
