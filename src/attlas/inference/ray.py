"""Translate a column of a table, batch by batch, as Ray Data does."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attlas.errors import AttlasError, DataError, quoted
from attlas.inference.translator import Translator


class ColumnTranslator:
    """batch → the batch and one more column: the translations of another, row by row.

    A batch is a table of columns by name, arrays or lists, as `ray.data.Dataset.map_batches` hands
    them over. `load` makes the translator, once in each worker: `functools.partial(Translator,
    "/shared/runs/demo")`, say, which is small enough to be sent there. Needs nothing of Ray.
    """

    def __init__(self, load: Callable[[], Translator], source: str, target: str) -> None:
        if source == target:
            raise AttlasError("two different columns", f"{source!r} twice", "name a new target")
        self.translator = load()
        self.source, self.target = source, target

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Translate one batch.

        Raises:
            AttlasError: If there is no such column, if the new one is there already, and for a row
                without a text.
        """
        if self.source not in batch or self.target in batch:
            raise DataError(
                f"a batch with a column {self.source!r} and none {self.target!r}",
                f"the columns {', '.join(map(repr, batch))}",
                "name a column of texts, and a new one for their translations",
            )
        texts: list[Any] = np.asarray(batch[self.source], dtype=object).tolist()
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(
                    f"a text in each row of column {self.source!r}",
                    f"{quoted(text)} in row {row} of a batch",
                    'leave such rows out, or give them the text ""',
                )
        translations = self.translator.stream(texts, window=max(1, len(texts)))
        # Objects, because NumPy's own strings lose what ends in U+0000, and are all as long as the
        # longest.
        return {
            **batch,
            self.target: np.array([translation.text for translation in translations], dtype=object),
        }
