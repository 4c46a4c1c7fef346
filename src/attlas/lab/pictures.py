"""The figures of `attlas lab figures`: six of the NumPy reference, and those of trained models."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from matplotlib.figure import Figure

from attlas.errors import ConfigError, DataError, quoted
from attlas.figures import heatmap, heatmaps, lines, save
from attlas.lab.real_pictures import REAL_FIGURES
from attlas.reference import multi_head, scaled_dot_product, sinusoidal

FORMATS = ("svg", "png", "pdf")
_TOKENS = ("the", "cat", "sat", "on", "the", "mat")


def _inputs(seed: int, length: int, dim: int) -> Float64[np.ndarray, "length dim"]:
    return np.random.default_rng(seed).standard_normal((length, dim))


def weight_matrix(seed: int = 0) -> Figure:
    """softmax(Q Kᵀ / √d) of six random vectors, as queries and as keys."""
    inputs = _inputs(seed, len(_TOKENS), 16)
    _, weights = scaled_dot_product(inputs, inputs, inputs)
    return heatmap(weights, _TOKENS, _TOKENS, title="Self-attention of random vectors")


def causal_mask(seed: int = 0) -> Figure:
    """The same with and without a causal mask."""
    inputs = _inputs(seed, len(_TOKENS), 16)
    mask = np.tril(np.ones((len(inputs), len(inputs)), dtype=bool))
    _, without = scaled_dot_product(inputs, inputs, inputs)
    _, masked = scaled_dot_product(inputs, inputs, inputs, mask)
    return heatmaps({"no mask": without, "causal mask": masked}, title="What a causal mask hides")


def head_diversity(seed: int = 0) -> Figure:
    """Four heads with random projections."""
    rng = np.random.default_rng(seed)
    length, dim, heads = len(_TOKENS), 32, 4
    query, key, value = (
        rng.standard_normal((heads, dim, dim // heads)) / np.sqrt(dim) for _ in range(3)
    )
    output = rng.standard_normal((dim, dim)) / np.sqrt(dim)
    inputs = rng.standard_normal((length, dim)) * 2
    _, weights = multi_head(inputs, inputs, inputs, query, key, value, output)
    maps = {f"head {head}": weights[head] for head in range(heads)}
    return heatmaps(maps, title="Four heads before any training")


def score_variance(seed: int = 0) -> Figure:
    """Var(q · k) and Var(q · k / √d) by d, of 4,000 pairs each."""
    rng = np.random.default_rng(seed)
    dims = (4, 8, 16, 32, 64, 128, 256)
    products = [
        (rng.standard_normal((4000, d)) * rng.standard_normal((4000, d))).sum(1) for d in dims
    ]
    series = {
        "q · k": [p.var() for p in products],
        "q · k / √d": [p.var() / d for p, d in zip(products, dims, strict=True)],
    }
    return lines(series, list(dims), title="Variance of the score", xlabel="d", ylabel="variance")


def encoding_map(seed: int = 0) -> Figure:
    """PE(pos, i) of 64 positions and 32 dimensions. Nothing in it is random."""
    return heatmap(
        sinusoidal(64, 32),
        title="Sinusoidal positions",
        xlabel="dimension",
        ylabel="position",
        cmap="RdBu_r",
        label="PE",
    )


def encoding_similarity(seed: int = 0) -> Figure:
    """The cosine of the encodings of all pairs of 64 positions. Nothing in it is random."""
    encoding = sinusoidal(64, 32)
    unit = encoding / np.linalg.norm(encoding, axis=1, keepdims=True)
    return heatmap(
        unit @ unit.T,
        title="Similarity of positions",
        xlabel="position",
        ylabel="position",
        label="cosine",
    )


FIGURES: dict[str, Callable[[int], Figure]] = {
    "weight-matrix": weight_matrix,
    "causal-mask": causal_mask,
    "head-diversity": head_diversity,
    "score-variance": score_variance,
    "encoding-map": encoding_map,
    "encoding-similarity": encoding_similarity,
    **REAL_FIGURES,
}


def write_figures(
    folder: Path,
    format: str = "svg",
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Draw all figures into a folder, which is made.

    Args:
        report: Called with a line about a figure that is left out: its weights are not there.

    Raises:
        ConfigError: For another format than "svg", "png" or "pdf".
    """
    if format not in FORMATS:
        raise ConfigError(f"one of the formats {', '.join(FORMATS)}", quoted(format), "choose one")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, draw in FIGURES.items():
        path = folder / f"{name}.{format}"
        try:
            figure = draw(seed)
        except DataError as error:
            report(f"{name}: left out. {error}")
            continue
        save(figure, path)
        paths.append(path)
    return paths
