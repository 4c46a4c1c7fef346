"""Vision models of Hugging Face, from a folder and images to where they look."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image, ImageDraw

from attlas.errors import AttlasError
from attlas.inference import observe_images
from attlas.recording import Trace
from support.command_line import called
from support.small_models import saved

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 48,
    "patch_size": 8,
}
TEXT = {key: SMALL[key] for key in ("hidden_size", "num_attention_heads", "intermediate_size")}
SIZE = {"height": 48, "width": 48}


def processor(kind: str, **settings: Any) -> Any:
    return getattr(transformers, kind)(**settings)


def vit(folder: Path, **settings: Any) -> None:
    transformers.ViTModel(transformers.ViTConfig(**SMALL, **settings)).save_pretrained(folder)
    processor("ViTImageProcessor", size=SIZE).save_pretrained(folder)


def labelled_vit(folder: Path) -> None:
    config = transformers.ViTConfig(**SMALL, num_labels=3)
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    processor("ViTImageProcessor", size=SIZE).save_pretrained(folder)


def deit(folder: Path) -> None:
    transformers.DeiTModel(transformers.DeiTConfig(**SMALL)).save_pretrained(folder)
    processor(
        "DeiTImageProcessor", size={"height": 60, "width": 60}, crop_size=SIZE
    ).save_pretrained(folder)


def dino(folder: Path) -> None:
    settings = {key: value for key, value in SMALL.items() if key != "intermediate_size"}
    config = transformers.Dinov2WithRegistersConfig(**settings, num_register_tokens=3)
    transformers.Dinov2WithRegistersModel(config).save_pretrained(folder)
    processor("BitImageProcessor", size={"shortest_edge": 52}, crop_size=SIZE).save_pretrained(
        folder
    )


def clip(folder: Path) -> None:
    config = transformers.CLIPConfig(
        vision_config=dict(SMALL), text_config={**TEXT, "vocab_size": 99, "num_hidden_layers": 1}
    )
    transformers.CLIPModel(config).save_pretrained(folder)
    processor("CLIPImageProcessor", size={"shortest_edge": 48}, crop_size=SIZE).save_pretrained(
        folder
    )


def siglip(folder: Path) -> None:
    config = transformers.SiglipConfig(
        vision_config=dict(SMALL), text_config={**TEXT, "vocab_size": 99, "num_hidden_layers": 1}
    )
    transformers.SiglipModel(config).save_pretrained(folder)
    processor("SiglipImageProcessor", size=SIZE).save_pretrained(folder)


def swin(folder: Path) -> None:
    config = transformers.SwinConfig(
        image_size=48, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=3
    )
    transformers.SwinModel(config).save_pretrained(folder)
    processor("ViTImageProcessor", size=SIZE).save_pretrained(folder)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    drawn = Image.new("RGB", (90, 60), "skyblue")
    pen = ImageDraw.Draw(drawn)
    pen.ellipse((8, 8, 30, 30), fill="gold")
    pen.polygon(((40, 50), (55, 22), (80, 50)), fill="firebrick")
    drawn.save(tmp_path / "house.png")
    return tmp_path / "house.png"


@pytest.mark.parametrize(
    ("made", "in_front"),
    [
        (vit, ["[CLS]"]),
        (labelled_vit, ["[CLS]"]),
        (deit, ["[CLS]", "[DIST]"]),
        (dino, ["[CLS]", "[REG0]", "[REG1]", "[REG2]"]),
        (clip, ["[CLS]"]),
        (siglip, []),
    ],
)
def test_patches_and_what_stands_in_front_of_them_have_names(
    made: Callable[[Path], None], in_front: list[str], tmp_path: Path, image: Path
) -> None:
    folder = tmp_path / "model"
    made(folder)
    tall = tmp_path / "tall.jpg"
    Image.open(image).rotate(90, expand=True).save(tall)
    trace = observe_images(folder, [image, tall])
    for layer, attention_map in trace.items():
        patches = trace.image_patches(layer)
        assert patches is not None
        assert (patches.grid, patches.first) == ((6, 6), len(in_front))
        assert len(patches.images) == attention_map.shape[0] == 2
        queries, keys = attention_map.shape[2:]
        if queries == keys:
            names = [*in_front, *(f"patch {n // 6},{n % 6}" for n in range(36))]
            assert list(trace.tokens(layer)[0][0]) == names
    assert {patches.images[0].shape for patches in map(trace.image_patches, trace) if patches} == {
        (48, 48, 3)
    }


@pytest.mark.parametrize("made", [vit, deit, dino, siglip])
def test_a_patch_of_the_image_is_the_place_that_is_named_after_it(
    made: Callable[[Path], None], tmp_path: Path
) -> None:
    """Where one patch of the image differs, one embedding does."""
    folder = tmp_path / "model"
    made(folder)
    model: Any = transformers.AutoModel.from_pretrained(folder)
    model = getattr(model, "vision_model", model).eval()
    first = Image.new("RGB", (48, 48), "white")
    first.save(tmp_path / "a.png")
    trace = observe_images(folder, [tmp_path / "a.png"])
    patches = next(filter(None, map(trace.image_patches, trace)))
    pixels = torch.ones(2, 3, 48, 48)
    pixels[1, :, 16:24, 32:40] = 0.0  # row 2, column 4
    with torch.no_grad():
        embedded = model.embeddings(pixels)
    differs = (embedded[0] != embedded[1]).any(-1).nonzero().flatten().tolist()
    assert differs == [patches.first + 2 * 6 + 4]


def test_the_image_is_the_one_that_the_model_saw(tmp_path: Path, image: Path) -> None:
    folder = tmp_path / "model"
    clip(folder)
    trace = observe_images(folder, [image])
    seen = next(filter(None, map(trace.image_patches, trace))).images[0].numpy()
    made = processor(
        "CLIPImageProcessor", size={"shortest_edge": 48}, crop_size=SIZE, do_normalize=False
    )
    expected = made(Image.open(image), return_tensors="np")["pixel_values"][0] * 255
    assert np.abs(seen - expected.transpose(1, 2, 0)).max() <= 1


def test_weights_are_those_that_the_model_returns(tmp_path: Path, image: Path) -> None:
    folder = tmp_path / "model"
    vit(folder)
    opened: Any = transformers.ViTModel
    model = opened.from_pretrained(folder, attn_implementation="eager").eval()
    values = processor("ViTImageProcessor", size=SIZE)(Image.open(image), return_tensors="pt")
    with torch.no_grad():
        expected = model(**values, output_attentions=True).attentions
    trace = observe_images(folder, [image])
    for found, weights in zip(trace.values(), expected, strict=True):
        torch.testing.assert_close(found.weights(), weights, atol=1e-6, rtol=0)


def test_what_is_no_image_and_what_has_no_patches_is_refused(tmp_path: Path, image: Path) -> None:
    folder = tmp_path / "model"
    vit(folder)
    text = tmp_path / "text.png"
    text.write_text("no image")
    with pytest.raises(AttlasError, match=r"a whole image, such as PNG or JPEG; got .*text\.png"):
        observe_images(folder, [text])
    with pytest.raises(AttlasError, match=r"a whole image.*missing\.png"):
        observe_images(folder, [tmp_path / "missing.png"])
    swin(tmp_path / "swin")
    with pytest.raises(AttlasError, match=r"looks at patches of images.*with 9; .*label_image"):
        observe_images(tmp_path / "swin", [image])
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(AttlasError, match=r"its image processor in .*save it there"):
        observe_images(folder, [image])


def test_a_model_of_text_reads_no_image(tmp_path: Path, image: Path) -> None:
    folder = saved(tmp_path / "bert", "bert")
    with pytest.raises(AttlasError, match=r"kind bert, which names no size of patches"):
        observe_images(folder, [image])


def test_a_deep_image_is_refused_and_a_grey_one_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    vit(folder)
    Image.fromarray(np.full((20, 20), 128, np.uint8)).save(tmp_path / "grey.png")
    assert len(observe_images(folder, [tmp_path / "grey.png"])) == 2
    Image.fromarray(np.full((20, 20), 4000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(AttlasError, match="8 bits a channel"):
        observe_images(folder, [tmp_path / "deep.png"])


def test_attlas_look_exports_the_page_of_an_image(tmp_path: Path, image: Path) -> None:
    folder = tmp_path / "model"
    vit(folder)
    page = tmp_path / "house.html"
    code, out, error = called("look", folder, "--image", image, "--export", page)
    assert (code, out) == (0, f"{page}\n"), error
    content = page.read_text(encoding="utf-8")
    assert "patch 0,0" in content
    code, _, error = called("look", folder, "--export", page)
    assert code == 2
    assert "let it read an image: attlas look MODEL --image FILE" in error


def test_an_image_is_for_a_model_of_images(tmp_path: Path, image: Path) -> None:
    folder = tmp_path / "model"
    vit(folder)
    observe_images(folder, [image]).save(tmp_path / "trace.safetensors")
    code, _, error = called("look", tmp_path / "trace.safetensors", "--image", image)
    assert code == 2
    assert "--image" in error
    code, _, error = called("look", folder, "--image", image, "--max-new-tokens", 3)
    assert code == 2
    assert "it writes nothing" in error
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps(settings)[:-5])
    code, _, error = called("look", folder, "--image", image)
    assert code == 2
    assert "Traceback" not in error


def test_the_trace_is_kept_whole_by_its_file(tmp_path: Path, image: Path) -> None:
    folder = tmp_path / "model"
    vit(folder)
    trace = observe_images(folder, [image])
    trace.save(tmp_path / "house.safetensors")
    again = Trace.load(tmp_path / "house.safetensors")
    layer = next(iter(trace))
    assert again.tokens(layer) == trace.tokens(layer)
    kept, before = again.image_patches(layer), trace.image_patches(layer)
    assert kept is not None
    assert before is not None
    assert torch.equal(kept.images[0], before.images[0])
