"""Images whose patches are the places of a trace: labelled, stored, loaded, refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import attlas
from attlas.errors import AttlasError, CheckpointError
from attlas.recording import DenseAttentionMap, Trace
from attlas.recording.images import read_patches
from attlas.recording.labels import ImagePatches
from attlas.recording.serialization import trace_checksum
from attlas.recording.trace import axes_of


def pixels(number: int = 0, height: int = 6, width: int = 8) -> np.ndarray:
    generator = np.random.default_rng(number)
    return generator.integers(0, 256, (height, width, 3), dtype=np.uint8)


def made(batch: int = 2, **layers: tuple[int, int]) -> Trace:
    """Layers of so many queries and keys; self-attention of 7 places where none is named."""
    trace = Trace()
    for name, (queries, keys) in (layers or {"vision": (7, 7)}).items():
        weights = torch.full((batch, 1, queries, keys), 1 / keys)
        trace.record(name, DenseAttentionMap(weights, query_offset=None))
        trace.set_kind(name, cross_attention=queries != keys)
    return trace


def images_of(trace: Trace, layer: str = "vision") -> list[np.ndarray]:
    patches = trace.image_patches(layer)
    assert patches is not None
    return [image.numpy() for image in patches.images]


def test_each_row_has_its_image_and_its_patches_have_names() -> None:
    trace = made()
    trace.label_image([pixels(0), pixels(1)], grid=(2, 3), first=1)
    for row in range(2):
        axes = axes_of(trace, "vision", row, 2, 7, 7)
        names = ("0", *(f"patch {place}" for place in ("0,0", "0,1", "0,2", "1,0", "1,1", "1,2")))
        assert axes.keys == axes.queries == names
        assert axes.patches is not None
        assert (axes.patches.grid, axes.patches.first) == ((2, 3), 1)
        np.testing.assert_array_equal(axes.patches.images[0].numpy(), pixels(row))
    assert axes_of(trace, "vision", 0, 1, 7, 7).patches is None  # a map of other texts


def test_tokens_that_were_given_stay() -> None:
    trace = made(1)
    tokens = ["[CLS]", "a", "b", "c", "d", "e", "f"]
    trace.label_layer("vision", [tokens], [tokens])
    trace.label_image(pixels(), (2, 3), first=1)
    axes = axes_of(trace, "vision", 0, 1, 7, 7)
    assert axes.keys == axes.queries == tuple(tokens)
    assert axes.patches is not None


def test_queries_that_look_at_an_image_are_no_patches() -> None:
    trace = made(1, cross=(3, 6), text=(3, 3))
    trace.label_image(pixels(), (2, 3))
    axes = axes_of(trace, "cross", 0, 1, 3, 6)
    assert (axes.queries, axes.keys[-1]) == ((), "patch 1,2")
    assert trace.image_patches("text") is None


def test_other_places_may_stand_behind_the_patches_of_a_layer_that_is_named() -> None:
    trace = made(1, vision=(7, 7), text=(12, 12))
    trace.label_image(pixels(0), (2, 3), first=1)
    assert trace.image_patches("text") is None
    assert repr(trace).endswith("\n  images: their patches are keys of 1 layer")
    trace.label_image(pixels(0), (2, 3), first=4, layers="t*")
    assert repr(trace).endswith("\n  images: their patches are keys of 2 layers")
    names = axes_of(trace, "text", 0, 1, 12, 12).keys
    assert (names[3], names[4], names[9], names[10]) == ("3", "patch 0,0", "patch 1,2", "10")
    assert axes_of(trace, "vision", 0, 1, 7, 7).keys[1] == "patch 0,0"


def of_file(path: Path) -> Any:
    Image.fromarray(pixels()).save(path)
    return path


def test_every_kind_of_image_is_read_alike(tmp_path: Path) -> None:
    several = [
        pixels(),
        pixels() / 255,
        torch.from_numpy(pixels()),
        torch.from_numpy(pixels()).double() / 255,
        Image.fromarray(pixels()),
        of_file(tmp_path / "a.png"),
        str(of_file(tmp_path / "b.png")),
    ]
    for image in several:
        trace = made(1)
        trace.label_image(image, (2, 3), first=1)
        np.testing.assert_array_equal(images_of(trace)[0], pixels())
    trace = made(len(several))
    trace.label_image(several, (2, 3), first=1)
    assert len(images_of(trace)) == len(several)
    trace = made(2)
    trace.label_image(np.stack([pixels(0), pixels(1)]), (2, 3), first=1)
    np.testing.assert_array_equal(images_of(trace)[1], pixels(1))
    trace = made(1)
    trace.label_image(Image.fromarray(pixels()).convert("L"), (2, 3), first=1)
    assert images_of(trace)[0].shape == (6, 8, 3)


def test_a_large_image_is_reduced_to_its_shape() -> None:
    trace = made(1)
    trace.label_image(np.zeros((1500, 3000, 3), np.uint8), (2, 3), first=1)
    assert images_of(trace)[0].shape == (512, 1024, 3)


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (None, "got None"),
        (5, "got 5"),
        ({"a": 1}, "got {'a': 1}"),
        ([pixels(), None], "got None"),
        ([[1, 2], [3]], r"shape \(2,\) of int64"),
        (pixels()[:, :, 0], r"shape \(6, 8\) of uint8"),
        (pixels().transpose(2, 0, 1), r"shape \(3, 6, 8\)"),
        (pixels().astype(np.int64), "of int64"),
        (pixels() / 255 - 0.5, "numbers from -0.5"),
        (np.full((2, 2, 3), np.nan), "numbers from nan"),
        (np.zeros((0, 2, 3), np.uint8), r"shape \(0, 2, 3\)"),
        ("no_such.png", "no_such.png"),
        (Path(__file__), "UnidentifiedImageError"),
    ],
)
def test_what_is_no_image_is_refused_in_a_sentence(image: object, said: str) -> None:
    trace = made()
    with pytest.raises(AttlasError, match=said):
        trace.label_image(image, (2, 3), first=1)
    assert trace.image_patches("vision") is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"grid": (0, 3)}, "two whole numbers"),
        ({"first": -1}, "first=-1"),
        ({"first": True}, "first=True"),
        ({"first": 0}, "a layer with 6 keys: 0 and 2 × 3 patches; got layers with 7"),
        ({"grid": (3, 3)}, "a layer with 10 keys: 1 and 3 × 3 patches"),
        ({"images": pixels()}, "an image for each of 2 batch rows; got 1"),
        ({"layers": "text.*"}, r"some of the layers \['vision'\]"),
        ({"layers": "vision", "first": 2}, "a layer with 8 keys"),
    ],
)
def test_what_fits_no_layer_is_refused_in_a_sentence(given: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {"images": [pixels(0), pixels(1)], "grid": (2, 3), "first": 1} | given
    with pytest.raises(AttlasError, match=said):
        made().label_image(**asked)


@pytest.mark.parametrize("grid", [14, (2, 3, 1), (2.0, 3), "23", None])
def test_what_is_no_grid_is_refused_in_a_sentence(grid: object) -> None:
    with pytest.raises(AttlasError, match="two whole numbers; got grid="):
        read_patches(pixels(), grid, 0)


def test_an_empty_trace_has_no_layer_for_an_image() -> None:
    with pytest.raises(AttlasError, match="got layers with none"):
        Trace().label_image(pixels(), (2, 3))


def test_a_trace_is_loaded_with_its_images(tmp_path: Path) -> None:
    trace = made(2, a=(7, 7), b=(7, 7), c=(3, 9), d=(4, 4))
    trace.label_image([pixels(0), pixels(1, 20, 4)], (2, 3), first=1)
    trace.label_image([pixels(2), pixels(3)], (2, 3), first=2, layers="c")
    trace.save(tmp_path / "t.safetensors")
    loaded = Trace.load(tmp_path / "t.safetensors")
    assert loaded == trace
    assert loaded.image_patches("a") is loaded.image_patches("b")
    assert loaded.image_patches("d") is None
    np.testing.assert_array_equal(images_of(loaded, "a")[1], pixels(1, 20, 4))
    patches = loaded.image_patches("c")
    assert patches is not None
    assert (patches.grid, patches.first, patches.stop) == ((2, 3), 2, 8)
    # Each image is there once.
    names = [name for name in load_file(tmp_path / "t.safetensors") if "image" in name]
    assert sorted(names) == [f"image.{number}" for number in range(4)]


def test_traces_with_other_images_are_not_equal() -> None:
    def labelled(number: int, **given: Any) -> Trace:
        trace = made(1)
        trace.label_image(pixels(number), **{"grid": (2, 3), "first": 1} | given)
        return trace

    assert labelled(0) == labelled(0)
    assert labelled(0) != made(1)
    assert labelled(0) != labelled(1)
    assert labelled(0) != labelled(0, grid=(3, 2))


def test_a_trace_without_images_is_stored_as_before(tmp_path: Path) -> None:
    made().save(tmp_path / "t.safetensors")
    with safe_open(tmp_path / "t.safetensors", framework="pt") as file:
        assert "images" not in file.metadata()


def rewritten(path: Path, tensors: dict[str, torch.Tensor], images: str) -> None:
    """The same trace with other images, and with the checksum of these."""
    with safe_open(path, framework="pt") as file:
        metadata = dict(file.metadata())
    del metadata["sha256"]
    metadata["images"] = images
    text = json.dumps(dict(sorted(metadata.items())), ensure_ascii=False)
    save_file(tensors, path, {**metadata, "sha256": trace_checksum(tensors, text)})


FACTS = '[{"layers": ["vision"], "grid": [2, 3], "first": 1, "images": ["image.0"]}]'


@pytest.mark.parametrize(
    ("image", "facts"),
    [
        (torch.zeros(6, 8, 3), FACTS),
        (torch.zeros(6, 8, dtype=torch.uint8), FACTS),
        (torch.zeros(6, 8, 4, dtype=torch.uint8), FACTS),
        (torch.zeros(0, 8, 3, dtype=torch.uint8), FACTS),
        (torch.zeros(1025, 1, 3, dtype=torch.uint8), FACTS),
        (None, "5"),
        (None, "[5]"),
        (None, '{"layers": []}'),
        (None, FACTS.replace('"image.0"', '"image.1"')),
        (None, FACTS.replace('"image.0"', "[]")),
        (None, FACTS.replace("vision", "other")),
        (None, FACTS.replace("[2, 3]", "[2, 4]")),
        (None, FACTS.replace("[2, 3]", "[2, -3]")),
        (None, FACTS.replace('"first": 1', '"first": "1"')),
        (None, FACTS.replace('["image.0"]', '["image.0", "image.0"]')),
        (None, FACTS.replace('["image.0"]', "[]")),
        (None, "[{}]"),
    ],
)
def test_a_damaged_image_is_an_error_of_attlas(
    tmp_path: Path, image: torch.Tensor | None, facts: str
) -> None:
    path = tmp_path / "t.safetensors"
    trace = made(1)
    trace.label_image(pixels(), (2, 3), first=1)
    trace.save(path)
    tensors = load_file(path)
    rewritten(path, tensors, FACTS)
    assert Trace.load(path) == trace  # what is written here is read
    rewritten(path, tensors | ({} if image is None else {"image.0": image}), facts)
    with pytest.raises(CheckpointError, match=r"t\.safetensors"):
        Trace.load(path)


def test_bytes_of_an_image_that_were_changed_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    trace = made(1)
    trace.label_image(np.full((6, 8, 3), 77, np.uint8), (2, 3), first=1)
    trace.save(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"\x4d" * 144, b"\x4d" * 143 + b"\x4e"))
    with pytest.raises(CheckpointError, match="damaged"):
        Trace.load(path)


def test_pillow_is_imported_for_images_alone(tmp_path: Path) -> None:
    code = """
import sys, torch
from attlas.recording import DenseAttentionMap, Trace
trace = Trace()
trace.record("a", DenseAttentionMap(torch.ones(1, 1, 1, 1), query_offset=None))
trace.save("t.safetensors")
assert Trace.load("t.safetensors") == trace
print([name for name in sys.modules if name in ("PIL", "attlas.recording.images")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_names_of_patches_go_row_by_row() -> None:
    image = torch.zeros(1, 1, 3, dtype=torch.uint8)
    patches = ImagePatches((image,), (2, 2), 1)
    assert patches.names(6) == ("0", "patch 0,0", "patch 0,1", "patch 1,0", "patch 1,1", "5")
    assert patches.at(0).images == (image,)


def test_the_patches_of_a_vision_transformer_have_an_image() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        image_size=8, patch_size=2,
    )  # fmt: skip
    model = transformers.ViTModel(config).eval()
    with torch.no_grad(), attlas.observe(model) as trace:
        model(pixel_values=torch.rand(2, 3, 8, 8))
    trace.label_image([pixels(0, 8), pixels(1, 8)], (4, 4), first=1)
    assert all(trace.image_patches(layer) is not None for layer in trace)


@pytest.mark.parametrize("size", [(5000, 1), (1, 5000), (1025, 1024), (3000, 2)])
def test_a_thin_image_keeps_a_pixel_and_its_trace_can_be_loaded(
    size: tuple[int, int], tmp_path: Path
) -> None:
    trace = made(1)
    trace.label_image(Image.new("RGB", size, "red"), grid=(2, 3), first=1)
    trace.save(tmp_path / "t.safetensors")
    (image,) = images_of(Trace.load(tmp_path / "t.safetensors"))
    assert min(image.shape[:2]) >= 1
    assert max(image.shape[:2]) == 1024
    assert (image == [255, 0, 0]).all()


@pytest.mark.parametrize("mode", ["I", "F", "I;16"])
def test_an_image_of_many_bits_is_refused_and_not_cut_off(mode: str, tmp_path: Path) -> None:
    image = Image.new(mode, (8, 6))
    with pytest.raises(AttlasError, match=f"8 bits a channel; got one of mode '{mode}'"):
        made(1).label_image(image, grid=(2, 3), first=1)
    if mode == "I;16":
        image.save(tmp_path / "deep.png")
        with pytest.raises(AttlasError, match="8 bits a channel"):
            made(1).label_image(tmp_path / "deep.png", grid=(2, 3), first=1)


def test_an_image_that_is_read_late_and_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.png"
    Image.fromarray(pixels(0, 64, 64)).save(path)
    path.write_bytes(path.read_bytes()[:2000])
    with Image.open(path) as late:
        for image in (path, late):
            with pytest.raises(AttlasError, match="a whole image"):
                made(1).label_image(image, grid=(2, 3), first=1)
