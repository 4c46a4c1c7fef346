"""The links of annotators beside the attention of a head."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.analysis.alignment import (
    NUMBERED_LINK,
    Reference,
    argmax_links,
    read_numbered_reference,
    read_reference,
)
from attlas.data.lines import read_lines
from attlas.errors import AttlasError, DataError
from attlas.explorer.maps import Layer, MapRoutes, check_parameters, read_number
from attlas.explorer.messages import json_no_store, path_number
from attlas.metrics import alignment_error

_NO_WORD = re.compile(r"</?s>|<pad>|<[be]os>|\[(CLS|SEP|PAD)\]|<\|.*\|>", re.DOTALL)


def read_gold(path: Path, first: int = 0) -> tuple[Reference, ...]:
    """The reference links of each text: lines "0-0 1p2", or lines "1 1 1 S".

    Args:
        first: The number of the first word in lines of the former kind, see `read_reference`; for
            the latter see `read_numbered_reference`.

    Raises:
        AttlasError: As those do.
    """
    lines = (line for line in read_lines(path).texts if line.strip())
    if NUMBERED_LINK.fullmatch(next(lines, "")):
        return read_numbered_reference(path)
    return read_reference(path, first=first)


def check_gold(gold: Sequence[Reference], texts: int) -> None:
    """Check that there are links for these texts, in their order.

    Raises:
        DataError: For another number of sentences.
    """
    if len(gold) != texts:
        raise DataError(
            f"gold links of as many sentences as the trace has texts, {texts:,}",
            f"{len(gold):,}",
            "keep the lines of these texts, in their order; a text without links has an empty line",
        )


def words_of(tokens: Sequence[str]) -> list[int | None]:
    """The word that each token is in, counted from 0; None for a mark of the model's own.

    A word begins where a token begins with "▁" or "Ġ", where there are such; else with each token
    that does not begin with "##".
    """
    mark = next((m for m in ("▁", "Ġ") if any(token.startswith(m) for token in tokens)), None)
    words: list[int | None] = []
    number, apart = -1, True  # apart: no word goes on
    for token in tokens:
        if _NO_WORD.fullmatch(token):
            words.append(None)
            apart = True
            continue
        begins = not token.startswith("##") if mark is None else token.startswith(mark)
        number += apart or begins
        apart = False
        words.append(number)
    return words


def alignment_message(layer: Layer, head: int | None, gold: Reference) -> dict[str, Any]:
    """The gold links in tokens, and how well a head (None: the mean of all) finds them.

    The head links words as `argmax_links` does.

    Raises:
        AttlasError: For links of words that the text does not have, and without a sure link.
    """
    sources = _words(layer.axes.keys, layer.num_keys)
    targets = _words(layer.axes.queries, layer.queries)
    count = [len({*words} - {None}) for words in (sources, targets)]
    for source, target in sorted(gold.possible):
        if source >= count[0] or target >= count[1]:
            raise AttlasError(
                f"gold links between {count[0]:,} source words and {count[1]:,} target words",
                f"a link of source word {source} and target word {target}, counted from 0",
                "name the source first, and number the words of the text as the trace has them",
            )
    attention_map = layer.attention_map
    if head is not None:
        attention_map = attention_map.select_heads(torch.tensor([head]))
    guessed = argmax_links(attention_map, _in_words(sources), _in_words(targets))
    score = alignment_error([guessed], [gold.sure], [gold.possible])
    links = len(gold.possible)
    both = len(guessed & gold.possible)
    return {
        "notes": [
            f"On the map are the links of annotators: {len(gold.sure)} sure ones, and "
            f"{links - len(gold.sure)} possible ones, dashed. The head links each target token "
            "with the source token of its largest weight: "
            f"{score.links} links of words. {both} of them are gold links."
        ],
        "links": [
            {
                "source": _span(sources, source),
                "target": _span(targets, target),
                "sure": (source, target) in gold.sure,
                "guessed": (source, target) in guessed,
            }
            for source, target in sorted(gold.possible)
        ],
        "guessed": score.links,
        "error": score.error,
        "precision": score.precision,
        "recall": score.recall,
    }


def _words(tokens: Sequence[str], count: int) -> list[int | None]:
    return words_of(tokens) if len(tokens) == count else list(range(count))


def _span(words: Sequence[int | None], word: int) -> list[int]:
    """The first token of a word, and the one after its last."""
    places = [place for place, own in enumerate(words) if own == word]
    return [places[0], places[-1] + 1]


def _in_words(words: Sequence[int | None]) -> list[tuple[int, ...]]:
    return [() if word is None else (word,) for word in words]


class GoldRoutes:
    """Answers how well heads find the links of annotators."""

    def __init__(self, maps: MapRoutes) -> None:
        self._maps = maps

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for the gold links of a text."""
        return [Route("/maps/{id}/{layer}/alignment", self._alignment)]

    async def _alignment(self, request: Request) -> Response:
        text_maps = self._maps.text_maps(request)
        layer = text_maps.layer(path_number(request, "layer"))
        check_parameters(request, ("head",))
        head = read_number(request.query_params, "head", layer.heads)
        gold = text_maps.gold
        if gold is None or layer.axes.within:
            raise AttlasError(
                "a layer that looks from a target to a source, of a text with gold links",
                f"layer {layer.name}" + (" of a text without" if gold is None else ""),
                "choose a layer of cross-attention: attlas look TRACE --gold FILE",
            )
        return json_no_store(
            await self._maps.answer(request, lambda _: alignment_message(layer, head, gold))
        )
