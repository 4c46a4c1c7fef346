"""A dataset of Hugging Face, by its name or from a local folder, where `datasets` is installed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attlas.data.corpus import Corpus, SplitName, Splits, corpus_of
from attlas.data.filters import FilterConfig
from attlas.data.holding_back import overlap_told
from attlas.data.pair import Pair
from attlas.data.resolving import resolved, resolved_name
from attlas.data.settings import DataSettings
from attlas.errors import AttlasError, missing_extra


class HuggingFaceData(DataSettings):
    """Sentence pairs of a dataset: a name on the hub, or a folder (files, or `save_to_disk`).

    `source` and `target` are the columns of the two sides; a dot goes into a nested column, as in
    "translation.en", unless a column has that whole name. `config` is the dataset's configuration,
    where it has several. `train`, `valid` and `test` are its splits; test = "" is for a dataset
    without one, or to leave it alone.
    """

    kind: Literal["huggingface"] = "huggingface"
    name: str
    config: str | None = None
    source: str = "translation.en"
    target: str = "translation.de"
    train: str = "train"
    valid: str = "validation"
    test: str = "test"
    filters: FilterConfig = FilterConfig()

    def resolved(self, base: Path) -> "HuggingFaceData":
        if not resolved(base, self.name).is_dir():
            return self
        return self.model_copy(update={"name": resolved_name(base, self.name)})

    def load(self) -> Splits:
        dataset = _opened(self.name, self.config)  # once for all three
        train, valid = self._of(dataset, "train"), self._of(dataset, "valid")
        return Splits(train, overlap_told(train, valid), self._of(dataset, "test"))

    def corpus(self, split: SplitName) -> Corpus:
        return self._of(_opened(self.name, self.config), split)

    def _of(self, dataset: Mapping[str, Any], split: SplitName) -> Corpus:
        whole = self.filters.empties_alone
        if split == "train":
            return self._split(dataset, self.train, self.filters)
        if split == "valid":
            return self._split(dataset, self.valid, whole)
        return self._split(dataset, self.test, whole) if self.test else corpus_of((), "no test")

    def _split(self, dataset: Mapping[str, Any], split: str, filters: FilterConfig) -> Corpus:
        if split not in dataset:
            raise AttlasError(
                f"a split {split!r} in the dataset {self.name}",
                f"the splits {sorted(dataset)}",
                'name its splits in data.train and so on, or data.test = "" where there is none',
            )
        where = f"{self.name} {split}"
        rows = dataset[split]
        pairs = [
            Pair(_cell(row, self.source, where, number), _cell(row, self.target, where, number))
            for number, row in enumerate(rows, 1)
        ]
        return corpus_of(pairs, where, filters)


def _opened(name: str, config: str | None) -> Mapping[str, Any]:
    """The splits by name."""
    try:
        import datasets
    except ImportError:
        raise missing_extra("datasets of Hugging Face", "datasets") from None
    try:
        if (Path(name) / "dataset_dict.json").is_file():
            loaded = datasets.load_from_disk(name)
        else:
            loaded = datasets.load_dataset(name, config)
    except Exception as error:  # its many kinds of error share no base, and all mean: not readable
        raise AttlasError(
            f"a dataset of Hugging Face at {name!r}",
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason'}",
            "check its name, its configuration and the network, or pass a local folder",
        ) from error
    splits: Mapping[str, Any] = loaded
    return splits


def _cell(row: Mapping[str, Any], column: str, where: str, number: int) -> str:
    """The column of that name in one row, or the one to which its dots lead."""
    value: Any = row
    for key in [column] if column in row else column.split("."):
        if not isinstance(value, Mapping) or key not in value:
            valid = list(value) if isinstance(value, Mapping) else "no columns inside"
            raise AttlasError(
                f"a column {column!r} in {where}",
                f"{valid} where {key!r} should be",
                'set data.source and data.target, with dots into nested columns ("translation.en")',
            )
        value = value[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AttlasError(
            f"text in column {column!r} of {where}",
            f"{type(value).__name__} in row {number}",
            "name a column of text",
        )
    return value
