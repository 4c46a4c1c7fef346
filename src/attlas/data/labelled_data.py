"""Where labelled texts come from."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attlas.config import Config
from attlas.data.corpus import SplitName
from attlas.data.filters import FilterReport
from attlas.data.holding_back import check_choice, held_back, overlap_told
from attlas.data.labelled import read_labelled_texts
from attlas.data.labelled_corpus import LabelledCorpus, LabelledSplits, labelled_corpus_of
from attlas.data.lines import coming_from
from attlas.data.pair import OnFault
from attlas.data.resolving import resolved_name
from attlas.data.settings import EMPTY_IS_NONE
from attlas.data.table import Quoting, Separator
from attlas.errors import AttlasError


class LabelledData(Config):
    """Labelled texts, each a JSONL, CSV or TSV file or a folder (see `read_labelled_texts`).

    text, label: the fields of a file. Where a folder has folders called train, valid or test, as
    aclImdb has, that of the split is taken. valid: what the best checkpoint is chosen by; without
    it, `held_back` texts of train (a whole number, or a share below 1; 0 = none), chosen by `seed`
    by a hash of it and of the text. An empty name (`--set data.test=`) is none. `<br />` counts
    as white space; an empty text is left out. separator, quoting: of tables, left out = by the name
    of the file (.csv: commas, and quotes around a field may be taken off; any other: tabs, and no
    quotes). unlabelled: what to do with a text without a label; "skip" leaves it out and counts it.
    origin: where the files come from, told where one is missing.
    """

    kind: Literal["labelled"] = "labelled"
    train: str = Field(min_length=1)
    valid: Annotated[str | None, EMPTY_IS_NONE] = None
    test: Annotated[str | None, EMPTY_IS_NONE] = None
    held_back: int | float = 0
    text: str = "text"
    label: str = "label"
    separator: Separator | None = None
    quoting: Quoting | None = None
    unlabelled: OnFault = "error"
    origin: str = ""
    seed: int = Field(default=1, ge=0)

    @model_validator(mode="after")
    def _one_to_choose_by(self) -> Self:
        check_choice(self.held_back, self.valid, "text")
        return self

    @property
    def passing(self) -> bool:
        """Whether a part of the data comes from the standard input: none does."""
        return False

    def resolved(self, base: Path) -> "LabelledData":
        """The same with relative paths taken from `base`, the folder of the recipe file."""

        def absolute(path: str | None) -> str | None:
            return path and resolved_name(base, path)

        names = ("train", "valid", "test")
        return self.model_copy(update={name: absolute(getattr(self, name)) for name in names})

    def corpus(self, split: SplitName) -> LabelledCorpus:
        """Read one split alone; a mistake in the data is an `AttlasError` that names its place."""
        if split == "test" and self.test is None:
            return _none("no test")
        if split == "test" or not self.held_back:
            return self._read(split)
        rest, part = held_back(self._read("train"), self.held_back, self.seed)
        return rest if split == "train" else part

    def load(self) -> LabelledSplits:
        """Read the three splits."""
        test = self.corpus("test")
        if self.held_back:
            return LabelledSplits(*held_back(self._read("train"), self.held_back, self.seed), test)
        train, valid = self.corpus("train"), self.corpus("valid")
        return LabelledSplits(train, overlap_told(train, valid), test)

    def _read(self, split: SplitName) -> LabelledCorpus:
        path = getattr(self, split)
        inner = Path(path) / split
        with coming_from(self.origin, f"data.{split}"):
            found = read_labelled_texts(
                inner if inner.is_dir() else path,
                self.text,
                self.label,
                separator=self.separator,
                quoting=self.quoting,
                unlabelled=self.unlabelled,
            )
        corpus = labelled_corpus_of(found, self.unlabelled)
        if not corpus.texts:
            raise AttlasError(
                f"at least one labelled text in {path}", str(corpus.report), "check the data"
            )
        return corpus


def _none(name: str) -> LabelledCorpus:
    return LabelledCorpus(name, (), (), (), FilterReport(name, 0, 0, example="text"))
