"""Word alignment: links from attention, links in files, and symmetrization."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.data.lines import read_lines
from attlas.errors import AttlasError, DataError, quoted, unwritable
from attlas.inference.alignment import Link, attention_links, pharaoh, word_links
from attlas.recording import AttentionMap

# Symmetrization: two alignments of the same sentences, one for each direction, become one.


Links = frozenset[Link]
Free = Literal["either", "both"]
"""Of the two words of a link to be added, how many must have no link yet."""

NEIGHBOURS: tuple[Link, ...] = (
    *((-1, 0), (0, -1), (1, 0), (0, 1)),
    *((-1, -1), (-1, 1), (1, -1), (1, 1)),
)
"""What is beside a link, in the order in which Moses looks: straight first, then across."""


def transpose_links(links: Iterable[Link]) -> Links:
    """{(j, i)}: the links of the other direction, with its target first."""
    return frozenset((target, source) for source, target in links)


def intersection(forward: AbstractSet[Link], backward: AbstractSet[Link]) -> Links:
    """A ∩ B: what both directions say. Both name the source first, see `transpose_links`."""
    return frozenset(forward & backward)


def union(forward: AbstractSet[Link], backward: AbstractSet[Link]) -> Links:
    """A ∪ B: what any of them says."""
    return frozenset(forward | backward)


def grow_diagonal(
    forward: AbstractSet[Link],
    backward: AbstractSet[Link],
    *,
    free: Free = "either",
    neighbours: Sequence[Link] = NEIGHBOURS,
) -> Links:
    """A ∩ B, and repeatedly links of A ∪ B that are neighbours of a link, also diagonally.

    A link is added while one of its words has none (Koehn, Och & Marcu, 2003, section 3.1), or,
    with free="both", while neither has: so does Moses' manual, and what was written after it. Links
    are visited by source, then by target, and the neighbours of each in a fixed order. If
    neighbours compete for a word, the first one wins.
    """
    return frozenset(_grow_links(forward, backward, free, neighbours))


def grow_diagonal_final(
    forward: AbstractSet[Link],
    backward: AbstractSet[Link],
    *,
    free: Free = "either",
    free_finally: Free | None = None,
    neighbours: Sequence[Link] = NEIGHBOURS,
) -> Links:
    """`grow_diagonal`, and then the other links of A, and of B, by the same rule.

    Args:
        free_finally: The rule for this last step, None = the same; free_finally="both" after
            free="either" is known as grow-diag-final-and.
    """
    links = _grow_links(forward, backward, free, neighbours)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    rule = free_finally or free
    for direction in (forward, backward):
        for link in sorted(direction):
            if link not in links and _may_add(link, sources, targets, rule):
                _add(link, links, sources, targets)
    return frozenset(links)


METHODS: Mapping[str, Callable[[AbstractSet[Link], AbstractSet[Link]], Links]] = {
    "intersection": intersection,
    "union": union,
    "grow-diagonal": grow_diagonal,
    "grow-diagonal-final": grow_diagonal_final,
    "grow-diagonal-final-and": partial(grow_diagonal_final, free="either", free_finally="both"),
}


def symmetrize(forward: AbstractSet[Link], backward: AbstractSet[Link], method: str) -> Links:
    """Combine both directions by the method of this name.

    Raises:
        AttlasError: For another name.
    """
    if method not in METHODS:
        raise AttlasError(f"one of {list(METHODS)}", repr(method), "choose one of them")
    return METHODS[method](forward, backward)


def _grow_links(
    forward: AbstractSet[Link],
    backward: AbstractSet[Link],
    free: Free,
    neighbours: Sequence[Link],
) -> set[Link]:
    links = set(forward & backward)
    candidates = forward | backward
    order = sorted(candidates)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    num_links = -1
    while len(links) > num_links:
        num_links = len(links)
        for i, j in order:
            if (i, j) not in links:
                continue
            for row_step, right in neighbours:
                link = i + row_step, j + right
                if (
                    link in candidates
                    and link not in links
                    and _may_add(link, sources, targets, free)
                ):
                    _add(link, links, sources, targets)
    return links


def _may_add(link: Link, sources: set[int], targets: set[int], free: Free) -> bool:
    num_aligned = (link[0] in sources) + (link[1] in targets)
    return num_aligned == 0 if free == "both" else num_aligned < 2


def _add(link: Link, links: set[Link], sources: set[int], targets: set[int]) -> None:
    links.add(link)
    sources.add(link[0])
    targets.add(link[1])


# Links from attention of a target to its source.


Words = Sequence[Sequence[int]]
"""Of each token the words that it is a part of, counted from 0; () = a special token, of none."""

Step = Literal["writes", "reads"]
"""The step of a decoder that stands for a token: the one that predicts it, or the one after it."""

_AT_ONCE = 1 << 20  # weights


def argmax_links(
    attention_maps: AttentionMap | Sequence[AttentionMap],
    sources: Words | None = None,
    targets: Words | None = None,
    *,
    step: Step = "writes",
) -> Links:
    """{(argmax_i w_ti, t)}: each target token with the source token that it looked at most.

    w: the mean over the heads, and over the attention maps, of one pair of texts: (1, heads,
    queries, keys). Special tokens are left out on both sides, also of the argmax; equal weights:
    the first source token. Two words are linked where any of their tokens are. A token whose query
    saw no token of the source has no link.

    Args:
        sources, targets: The words of each token, e.g. `[() if w is None else (w,) for w in
            word_ids]` of a Hugging Face tokenizer; None = every key, or query, is a word.
        step: In an autoregressive decoder, query t reads token t − 1 and predicts token t. "writes"
            links token t by query t. "reads" links it by query t + 1, which has token t as its
            input; in the lower layers it looks where that token came from (Chen et al., 2020,
            section 3.1). With "reads", query 0, which reads BEGIN, has no token.

    Raises:
        AttlasError: For attention maps that are not of one pair and one shape, for words that do
            not fit them, and if a token is not read by any query.
    """
    looked = _WordLinks.of(attention_maps, sources, targets, step)
    links: list[Link] = []
    for tokens, weights in looked.blocks():
        best_links = attention_links(weights, len(tokens), len(looked.key_positions))
        links += [
            (looked.key_positions[i], tokens[t]) for i, t in best_links if float(weights[t, i]) > 0
        ]
    return looked.words_of(links)


def argmax_links_of_sources(
    attention_maps: AttentionMap | Sequence[AttentionMap],
    sources: Words | None = None,
    targets: Words | None = None,
    *,
    step: Step = "writes",
) -> Links:
    """{(i, argmax_t w_ti)}: each source token with the target token that looks at it most.

    The other direction of the same map; with `argmax_links` and `intersection` it gives the links
    that are best both ways (Jalili Sabet et al., SimAlign, 2020). Otherwise as `argmax_links`.
    """
    links = _WordLinks.of(attention_maps, sources, targets, step)
    best_weights = torch.zeros(len(links.key_positions))
    best = torch.full((len(links.key_positions),), -1)
    for tokens, weights in links.blocks():
        max_weights, best_source = weights.max(0)
        best_weights, best = best_weights.to(max_weights), best.to(best_source)
        better = max_weights > best_weights
        best = torch.where(better, torch.tensor(tokens).to(best_source)[best_source], best)
        best_weights = torch.where(better, max_weights, best_weights)
    pairs = zip(links.key_positions, best.tolist(), strict=True)
    return links.words_of([(i, t) for i, t in pairs if t >= 0])


def threshold_links(
    attention_maps: AttentionMap | Sequence[AttentionMap],
    threshold: float,
    sources: Words | None = None,
    targets: Words | None = None,
    *,
    step: Step = "writes",
) -> Links:
    """{(i, t) : w_ti > threshold}: any number of links to a word. Otherwise as `argmax_links`.

    Raises:
        AttlasError: As `argmax_links`.
        AttlasError: For a threshold that is no weight.
    """
    if not 0 <= threshold < 1:
        raise AttlasError("a threshold from 0 to below 1", str(threshold), "weights are at most 1")
    looked = _WordLinks.of(attention_maps, sources, targets, step)
    links: list[Link] = []
    for tokens, weights in looked.blocks():
        found = (weights > threshold).nonzero().tolist()
        links += [(looked.key_positions[i], tokens[t]) for t, i in found]
    return looked.words_of(links)


@dataclass(frozen=True, slots=True)
class _WordLinks:
    """Maps from a target to a source, and the words of their tokens.

    keys: the source tokens that are of a word.

    Args:
        queries: The query of each target token that is of a word, and that token.
    """

    attention_maps: tuple[AttentionMap, ...]
    sources: Words
    targets: Words
    key_positions: list[int]
    queries: list[tuple[int, int]]

    @classmethod
    def of(
        cls,
        attention_maps: AttentionMap | Sequence[AttentionMap],
        sources: Words | None,
        targets: Words | None,
        step: Step,
    ) -> "_WordLinks":
        maps = (
            (attention_maps,) if isinstance(attention_maps, AttentionMap) else tuple(attention_maps)
        )
        shapes = {(attention_map.shape[0], *attention_map.shape[2:]) for attention_map in maps}
        if len(shapes) != 1 or next(iter(shapes))[0] != 1:
            raise AttlasError(
                "attention maps of one pair of texts, (1, heads, queries, keys) each",
                ", ".join(str(attention_map.shape) for attention_map in maps) or "none",
                "choose the batch row with attention_map.at(row), and layers that look at the "
                "source",
            )
        _, queries, num_keys = next(iter(shapes))
        query_shift = 1 if step == "reads" else 0
        sources = [(i,) for i in range(num_keys)] if sources is None else sources
        targets = [(t,) for t in range(queries - query_shift)] if targets is None else targets
        if len(sources) != num_keys:
            raise AttlasError(
                f"the words of each of {num_keys:,} source tokens",
                f"those of {len(sources):,}",
                "give () for a token of no word, END among them",
            )
        queries_of_words = [(t + query_shift, t) for t, words in enumerate(targets) if words]
        if len(targets) > queries or (queries_of_words and queries_of_words[-1][0] >= queries):
            raise AttlasError(
                f"target tokens that {queries:,} queries {step.removesuffix('s')}",
                f"{len(targets):,} tokens",
                "name the tokens of this very map; one that only reads has to be finished by END",
            )
        return cls(
            maps,
            sources,
            targets,
            [i for i, words in enumerate(sources) if words],
            queries_of_words,
        )

    def blocks(self) -> Iterator[tuple[list[int], Float[Tensor, "tokens sources"]]]:
        """Yield some target tokens, and their mean weights on the source tokens of words."""
        heads = sum(attention_map.shape[1] for attention_map in self.attention_maps)
        queries, num_keys = self.attention_maps[0].shape[2:]
        size = max(1, _AT_ONCE // max(1, heads * num_keys))
        position = 0
        for start in range(0, queries if self.key_positions else 0, size):
            stop = min(start + size, queries)
            start_place = position
            while position < len(self.queries) and self.queries[position][0] < stop:
                position += 1
            block_queries = self.queries[start_place:position]
            if not block_queries:
                continue
            # Half-precision means of different keys would be rounded to the same number.
            means = [
                _precise(attention_map.rows(start, stop)[0]).mean(0)
                for attention_map in self.attention_maps
            ]
            rows = torch.tensor([query - start for query, _ in block_queries]).to(means[0].device)
            weights = torch.stack(means).mean(0)[rows][:, self.key_positions]
            yield [token for _, token in block_queries], weights

    def words_of(self, links: Sequence[Link]) -> Links:
        return frozenset(word_links(links, self.sources, self.targets))


def _precise(weights: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return weights.to(torch.promote_types(weights.dtype, torch.float32))


# Files of links: a line for each sentence, "i-j" for a link. The caller says from which number
# words are counted.


T = TypeVar("T")
_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")
NUMBERED_LINK = re.compile(
    r"\s*([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})(?:\s+([SP])(?:\s.*)?)?\s*"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference links of annotators; every sure link is possible, too."""

    sure: Links
    possible: Links


def parse_links(line: str, *, first: int) -> Links:
    """ "0-0 1-2" → {(0, 0), (1, 2)}, words counted from 0.

    Args:
        first: The number of the first word, 0 or 1. It has no default, because no line shows it.

    Raises:
        AttlasError: For a malformed link, for a possible link, and for a number below `first`.
    """
    links = _parsed(line, first)
    possible = [f"{i + first}p{j + first}" for (i, j), mark in links if mark == "p"]
    if possible:
        raise DataError(
            "links i-j alone",
            f"{quoted(possible[0])}, which is but possible",
            "read a reference with `read_reference`",
        )
    return frozenset(link for link, _ in links)


def parse_reference(line: str, *, first: int) -> Reference:
    """ "1-1 2p3" → sure {(0, 0)} and possible {(0, 0), (1, 2)} with first=1.

    Raises:
        AttlasError: As above.
    """
    marked_links = _parsed(line, first)
    sure_links = frozenset(link for link, mark in marked_links if mark == "-")
    return Reference(sure_links, frozenset(link for link, _ in marked_links))


def read_links(path: Path | str, *, first: int) -> tuple[Links, ...]:
    """Read the links of each line. If the file names the target first, apply `transpose_links`.

    Raises:
        AttlasError: As `parse_links`, with file and line; as `read_lines`.
    """
    return tuple(_of_each(path, lambda line: parse_links(line, first=first)))


def read_reference(path: Path | str, *, first: int) -> tuple[Reference, ...]:
    """The sure links "i-j" and the possible ones "ipj" of each line.

    Raises:
        AttlasError: As `read_links`.
    """
    return tuple(_of_each(path, lambda line: parse_reference(line, first=first)))


def read_numbered_reference(path: Path | str) -> tuple[Reference, ...]:
    """References with a line for each link, as of the shared task of Mihalcea & Pedersen (2003).

    A line has the number of the sentence, the source word and the target word, all counted from 1;
    and S (sure, also where it is left out) or P (possible). What stands after that is not read.
    Sentences without links are there up to the last one that has some.

    Raises:
        AttlasError: For another line, with file and line; as `read_lines`.
    """
    found: dict[int, list[tuple[Link, bool]]] = {}
    for sentence, link, sure in _of_each(path, _numbered):
        found.setdefault(sentence, []).append((link, sure))
    sentences = [found.get(number, []) for number in range(1, max(found, default=0) + 1)]
    return tuple(
        Reference(
            frozenset(link for link, sure in links if sure), frozenset(link for link, _ in links)
        )
        for links in sentences
    )


def _numbered(line: str) -> tuple[int, Link, bool]:
    match = NUMBERED_LINK.fullmatch(line)
    numbers = () if match is None else tuple(int(match[group]) for group in (1, 2, 3))
    if match is None or 0 in numbers:
        raise DataError(
            "a sentence, a source word and a target word, counted from 1, and S or P",
            quoted(line),
            "write such lines as 1 2 3 P",
        )
    sentence, source, target = numbers
    return sentence, (source - 1, target - 1), match[4] != "P"


def write_links(path: Path | str, sentences: Sequence[Iterable[Link]], *, first: int) -> None:
    """One line for each sentence, its links in order, counted from `first`.

    Raises:
        AttlasError: For another first than 0 and 1, and if the file cannot be written.
    """
    _check_first(first)
    lines = [
        pharaoh([(i + first, j + first) for i, j in sorted(set(links))]) for links in sentences
    ]
    try:
        Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    except OSError as error:
        raise unwritable(path, error) from None


def _parsed(line: str, first: int) -> list[tuple[Link, str]]:
    _check_first(first)
    links = []
    for text in line.split():
        match = _LINK.fullmatch(text)
        if match is None:
            raise DataError(
                "links such as 3-4, or 3p4 in a reference", quoted(text), "part them by blanks"
            )
        source, target = int(match[1]) - first, int(match[3]) - first
        if min(source, target) < 0:
            raise DataError(
                f"words counted from {first}",
                quoted(text),
                "where this file counts from 0, pass first=0; where 0 means no word, leave "
                "such links out",
            )
        links.append(((source, target), match[2]))
    return links


def _of_each(path: Path | str, parse: Callable[[str], T]) -> Iterator[T]:
    lines = read_lines(path)
    for number, line in enumerate(lines.texts, 1):
        try:
            yield parse(line)
        except AttlasError as error:
            location = f"{error.got} in {lines.name}, line {number:,}"
            raise DataError(error.expected, location, error.hint) from None


def _check_first(first: int) -> None:
    if first not in (0, 1):
        raise AttlasError("a first word that is number 0 or 1", str(first), "say what the file has")
