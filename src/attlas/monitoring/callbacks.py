"""`attlas.watch` inside of the trainers of Hugging Face and Lightning."""

from pathlib import Path
from typing import Any

from attlas.errors import UnsupportedError
from attlas.monitoring.monitor import Watch, watch

FILE = "watch.jsonl"


def transformers_callback(**settings: Any) -> Any:
    """A `TrainerCallback` of Hugging Face that watches the model of its `Trainer`.

    Each step of the optimizer is a step of the watch. Readings are in `watch.jsonl` in the output
    folder of the trainer, unless `path` names another file. The attribute `watch` is the `Watch`.

    Args:
        settings: Those of `attlas.watch`, but for `model` and `step`.

    Raises:
        UnsupportedError: If transformers is not installed.

    Example:
        trainer = Trainer(model, args, callbacks=[attlas.monitoring.transformers_callback()])
    """
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise _missing("transformers", "a callback for the Trainer of Hugging Face") from None

    class WatchCallback(TrainerCallback):
        """Steps the watch with the trainer."""

        watch: Watch | None = None

        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
        ) -> None:
            """Begin to watch."""
            if self.watch is not None:  # of a training that has failed: no event says so
                self.watch.close()
            self.watch = _begun(model, Path(args.output_dir), state.global_step, settings)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            """One step of the optimizer."""
            if self.watch is not None:
                self.watch.step()

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            """Stop watching."""
            if self.watch is not None:
                self.watch.close()

    return WatchCallback()


def lightning_callback(**settings: Any) -> Any:
    """A callback of Lightning that watches the module of its `Trainer`.

    Each step of the optimizer is a step of the watch. Readings are in `watch.jsonl` in the log
    folder of the trainer, unless `path` names another file. The whole of `training_step` is read,
    whatever method of the module it calls. The attribute `watch` is the `Watch`.

    Args:
        settings: Those of `attlas.watch`, but for `model` and `step`.

    Raises:
        UnsupportedError: If Lightning is not installed.

    Example:
        trainer = Trainer(callbacks=[attlas.monitoring.lightning_callback(every=50)])
    """
    try:
        from lightning.pytorch import Callback
    except ImportError:
        try:
            from pytorch_lightning import Callback
        except ImportError:
            raise _missing("lightning", "a callback for the Trainer of Lightning") from None

    class WatchCallback(Callback):  # type: ignore[misc]
        """Steps the watch with the trainer."""

        watch: Watch | None = None
        steps = 0
        _known: tuple[int, int] | None = None  # a step of the trainer, and its number in the watch

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            """Begin to watch: the step of the module takes the place of its call."""
            self._end(pl_module)
            folder = Path(trainer.log_dir or trainer.default_root_dir)
            self.steps = step = trainer.global_step
            if self._known is not None and self._known[0] == step:
                step = self._known[1]
            self.watch = _begun(pl_module, folder, step, settings)
            pl_module.training_step = _WatchedStep(self.watch, pl_module)

        def on_train_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            """One step of the optimizer, unless gradients are still summed."""
            if self.watch is not None and trainer.global_step > self.steps:
                self.steps = trainer.global_step
                self.watch.step()
                self._known = self.steps, self.watch.steps

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            """Stop watching."""
            self._end(pl_module)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            """Stop watching."""
            self._end(pl_module)

        def state_dict(self) -> dict[str, Any]:
            """How the steps of the trainer, which counts each optimizer, are those of the watch."""
            return {} if self._known is None else {"known": list(self._known)}

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            """Go on from a checkpoint."""
            known = state_dict.get("known")
            self._known = None if known is None else (known[0], known[1])

        def _end(self, pl_module: Any) -> None:
            if isinstance(vars(pl_module).get("training_step"), _WatchedStep):
                del pl_module.training_step
            if self.watch is not None:
                self.watch.close()

    return WatchCallback()


class _WatchedStep:
    """The training step of a module, which is read. A copy of the module has its own step."""

    def __init__(self, watch: Watch, module: Any) -> None:
        self._watch, self._module, self._step = watch, module, module.training_step
        self.__wrapped__ = self._step  # Lightning reads which arguments it takes

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """One training step."""
        with self._watch.forward():
            return self._step(*arguments, **options)

    def __reduce__(self) -> Any:
        return getattr, (self._module, "training_step")


def _begun(model: Any, folder: Path, step: int, settings: dict[str, Any]) -> Watch:
    settings = dict(settings)
    if "path" not in settings:
        folder.mkdir(parents=True, exist_ok=True)
        settings["path"] = folder / FILE
    return watch(model, step=step, **settings)


def _missing(package: str, what: str) -> UnsupportedError:
    return UnsupportedError(what, f"an installation without {package}", f"pip install {package}")
