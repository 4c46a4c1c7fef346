"""A vision model of Hugging Face in a folder: from images to where it looks on them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas._hardware import device_named
from attlas.errors import AttlasError, CheckpointError, UnsupportedError
from attlas.inference.huggingface_folder import (
    HERE,
    check_weights,
    explain_loading,
    import_transformers,
    pretrained,
    quiet,
    reading,
)
from attlas.recording import Trace, observe
from attlas.recording.images import opened_image

_BY_HAND = (
    "call it in Python inside `with attlas.observe(model) as trace:`, and say with "
    "trace.label_image where the patches are"
)

# Parameters that stand before the patches, by their last name, in this order, and what their
# tokens are called.
_IN_FRONT = {
    "cls_token": "[CLS]",
    "class_embedding": "[CLS]",
    "distillation_token": "[DIST]",
    "register_tokens": "[REG]",
}


def observe_images(path: Path | str, images: Sequence[Path | str], device: str = "cpu") -> Trace:
    """Let a vision model read images, and record where it looks.

    The processor of the folder makes pixel values of each image. The trace is labelled with what
    the model saw: the image as its processor cropped and resized it, its patches, and the tokens
    in front of them.

    Args:
        path: A folder with a vision Transformer and its image processor, or with a model of images
            and text, whose vision part reads them.
        images: Files.

    Raises:
        AttlasError: If transformers is missing, for a file that is no image, for a folder that
            cannot be read, and for a model in which not every layer's keys are patches of the
            whole image.
    """
    folder = Path(path)
    pictures = [opened_image(image) for image in images]
    transformers = import_transformers()
    with quiet(transformers), explain_loading(folder):
        config = transformers.AutoConfig.from_pretrained(folder, **HERE)
    size = _patch_size(config, folder)
    if not (folder / _PROCESSOR).is_file() and not (folder / _BOTH).is_file():
        raise CheckpointError(
            f"a model and its image processor in {folder}",
            f"no {_PROCESSOR}",
            f"save it there: processor.save_pretrained({str(folder)!r})",
        )
    with quiet(transformers), explain_loading(folder):
        processor: Any = transformers.AutoImageProcessor.from_pretrained(folder, **HERE)
        model, loading_info = pretrained(transformers.AutoModel, folder)
    check_weights(model, sorted(loading_info["missing_keys"]), folder)
    model = model.to(device_named(device)).eval()
    with quiet(transformers), _explained(folder):
        values = processor(images=pictures, return_tensors="pt")["pixel_values"]
    if values.ndim != 4:
        raise _unread(folder, f"pixel values of shape {tuple(values.shape)}")
    with _explained(folder), torch.no_grad(), observe(model) as trace:
        pixels = values.to(model.device, model.dtype)
        if hasattr(model, "get_image_features"):
            model.get_image_features(pixel_values=pixels)
        else:
            model(pixel_values=pixels)
    _label(trace, model, _as_seen(values, processor), size, folder)
    return trace


_PROCESSOR, _BOTH = "preprocessor_config.json", "processor_config.json"


def _patch_size(config: Any, folder: Path) -> tuple[int, int]:
    """Rows and columns of pixels of a patch."""
    found = getattr(getattr(config, "vision_config", None) or config, "patch_size", None)
    size = tuple(found) if isinstance(found, list | tuple) else (found, found)
    if len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size):
        raise _unread(
            folder, f"a model of kind {config.model_type}, which names no size of patches"
        )
    return size[0], size[1]


def _explained(folder: Path) -> Any:
    return reading(folder, "images", _BY_HAND)


def _unread(folder: Path, got: str) -> AttlasError:
    expected = f"a vision Transformer that looks at patches of images, in {folder}"
    return UnsupportedError(expected, got, _BY_HAND)


def _as_seen(
    values: Float[Tensor, "images 3 height width"], processor: Any
) -> list[Float[Tensor, "height width 3"]]:
    """The images that pixel values are of, from 0 to 1: cropped and resized, as the model saw them.

    x = values · std + mean
    """
    pixels = values.double()
    if getattr(processor, "do_normalize", False):
        mean, std = (
            torch.tensor(numbers, dtype=torch.float64).view(-1, 1, 1)
            for numbers in (processor.image_mean, processor.image_std)
        )
        pixels = pixels * std + mean
    if not getattr(processor, "do_rescale", True):
        pixels = pixels / 255
    return list(pixels.clamp(0, 1).permute(0, 2, 3, 1))


def _label(
    trace: Trace,
    model: nn.Module,
    seen: Sequence[Float[Tensor, "height width 3"]],
    patch: tuple[int, int],
    folder: Path,
) -> None:
    """Say what each place of the maps is."""
    height, width, _ = seen[0].shape
    grid = height // patch[0], width // patch[1]
    in_front = _tokens_in_front(model)
    try:
        trace.label_image([image.numpy() for image in seen], grid, first=len(in_front))
    except AttlasError as error:
        raise _unread(folder, error.got) from None
    patches = [f"patch {row},{column}" for row in range(grid[0]) for column in range(grid[1])]
    names = [in_front + patches] * len(seen)
    for layer, attention_map in trace.items():
        *_, queries, keys = attention_map.shape
        if trace.image_patches(layer) is not None and queries == keys:
            trace.label_layer(layer, names, names)


def _tokens_in_front(model: nn.Module) -> list[str]:
    """What stands before the patches."""
    found = list[str]()
    for last, name in _IN_FRONT.items():
        for path, parameter in model.named_parameters():
            if path.rpartition(".")[2] == last:
                count = parameter.shape[-2] if parameter.ndim > 1 else 1
                found += [name] if count == 1 else [f"{name[:-1]}{n}]" for n in range(count)]
    return found
