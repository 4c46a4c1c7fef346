"""The terms on which a recipe is trained beside JoeyNMT, found out before the first hour."""

from curve import BEAM

from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.training import Recipe

SUBWORDS = ("bpe", "unigram")  # by sentencepiece, as JoeyNMT has them
# What its Transformer is like in any case. Its one dropout falls on attentions' weights and inside
# the feed-forward as well, and no words are left out: that is told, and no reason to refuse.
ALWAYS = {
    "positions": "sinusoidal", "norm_type": "layer", "activation": "relu", "bias": True,
    "num_kv_heads": None, "encoder_patterns": ("everywhere",), "decoder_patterns": ("everywhere",),
    "tie_source": True, "tie_output": True,
}  # fmt: skip


def check_search(name: str, recipe: Recipe) -> None:
    """That the recipe searches as the table says, and as JoeyNMT can be told to.

    Errors: `AttlasError` that names the settings which say otherwise.
    """
    came = recipe.decoding.model_dump()
    expected = DecodingConfig(num_beams=BEAM, length_penalty=came["length_penalty"]).model_dump()
    others = [f"decoding.{key} = {came[key]!r}" for key in expected if came[key] != expected[key]]
    if others:
        raise AttlasError(
            f"a recipe that searches with a beam of {BEAM} and a length penalty, and nothing else",
            f"{name} with {', '.join(others)}",
            f"--set decoding.method=beam decoding.num_beams={BEAM}, and leave the others out",
        )


def check_model(name: str, recipe: Recipe) -> None:
    """That JoeyNMT can be told of the model and its vocabulary (contenders/joeynmt_course.py).

    Errors: `AttlasError` where it cannot.
    """
    model, vocabulary = recipe.model.kind, recipe.vocabulary
    if model != "transformer" or not vocabulary.shared or vocabulary.kind not in SUBWORDS:
        raise AttlasError(
            "a Transformer with joint subwords, for JoeyNMT to train as well",
            f"{name} with model.kind = {model!r}, vocabulary.kind = {vocabulary.kind!r}, "
            f"vocabulary.shared = {vocabulary.shared}",
            "choose another recipe, or leave JoeyNMT out: --contenders attlas",
        )
    came = recipe.model.model_dump()
    others = [f"model.{key} = {came[key]!r}" for key, value in ALWAYS.items() if came[key] != value]
    if vocabulary.sampling:
        others.append(f"vocabulary.sampling = {vocabulary.sampling:g}")
    if others:
        raise AttlasError(
            "a model that JoeyNMT can be told of",
            f"{name} with {', '.join(others)}",
            "leave these as they are by default, with tie_source = true, or leave JoeyNMT out: "
            "--contenders attlas",
        )
