"""Whether a head of a real model finds the noun that "it" stands for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

import attlas
from attlas.analysis.syntax import between_words, word_numbers
from attlas.lab.data import text_encoder
from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Published, Source
from attlas.lab.sources import lesson
from attlas.lab.verdict import All, AtLeast, Difference

RIGHT = "share of sentences in which it looks more at its own noun than at the other"
MOST = "share of sentences in which it looks most, of all words, at its own noun"
ANIMALS = ("cat", "dog", "horse", "rabbit", "bird", "bear", "cow", "sheep", "mouse", "lion")
THINGS = ("mat", "sofa", "rug", "carpet", "bench", "blanket", "pillow", "bed", "chair", "floor")
VERBS = ("sat", "slept", "lay", "jumped", "stood")
OF_ANIMALS = ("tired", "hungry", "sleepy", "afraid", "angry", "sick", "thirsty", "lonely")
OF_THINGS = ("soft", "flat", "wooden", "comfortable", "dusty", "woollen", "thick", "folded")
ANIMAL, THING, IT = 1, 5, 7  # places in "the cat sat on the mat because it was tired"


@dataclass(frozen=True)
class Example:
    """A sentence with two nouns and "it".

    Args:
        noun: The place of the noun that it stands for.
    """

    words: tuple[str, ...]
    noun: int

    @property
    def other(self) -> int:
        """The place of the other noun."""
        return ANIMAL + THING - self.noun


def examples(count: int, seed: int) -> tuple[list[Example], list[Example]]:
    """Sentences by which a head is chosen, and others by which it is measured.

    They come in pairs, which differ in the last word alone: with one of them "it" is the animal,
    with the other the thing. So a head that always looks at the first noun, or at the nearest, is
    right half of the time. The two lists share no noun and no last word.
    """
    generator = torch.Generator().manual_seed(seed)

    def halves(words: Sequence[str]) -> tuple[list[str], list[str]]:
        order = torch.randperm(len(words), generator=generator).tolist()
        shuffled = [words[i] for i in order]
        return shuffled[: len(words) // 2], shuffled[len(words) // 2 :]

    parts = [halves(words) for words in (ANIMALS, THINGS, OF_ANIMALS, OF_THINGS)]
    found: list[list[Example]] = []
    for half in range(2):
        animals, things, *adjectives = (part[half] for part in parts)
        several = list(product(animals, VERBS, things, *adjectives))
        drawn = torch.randperm(len(several), generator=generator)[:count].tolist()
        pairs = [
            (
                Example((*_words(animal, verb, thing), of_animal), ANIMAL),
                Example((*_words(animal, verb, thing), of_thing), THING),
            )
            for animal, verb, thing, of_animal, of_thing in (several[i] for i in drawn)
        ]
        found.append([example for pair in pairs for example in pair])
    return found[0], found[1]


def _words(animal: str, verb: str, thing: str) -> tuple[str, ...]:
    return ("the", animal, verb, "on", "the", thing, "because", "it", "was")


def looks(
    model: Any, tokenizer: Any, sentences: Sequence[Example]
) -> Float[Tensor, "sentences heads words"]:
    """The weights of "it" on the words of each sentence, of all heads of all layers in turn."""
    rows: list[Tensor] = []
    for one in sentences:
        encoding = tokenizer([list(one.words)], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad(), attlas.observe(model) as trace:
            model(**encoding)
        words, count = word_numbers(encoding)[0], len(one.words)
        maps = [next(iter(between_words(layer, words, count)))[1] for layer in trace.values()]
        rows.append(torch.cat(maps)[:, IT])
    return torch.stack(rows)


def right_noun(
    weights: Float[Tensor, "sentences heads words"], sentences: Sequence[Example]
) -> Float[Tensor, " heads"]:
    """For each head the share of sentences in which the noun has more weight than the other."""
    noun, other = (torch.tensor(places) for places in zip(*_places(sentences), strict=True))
    row = torch.arange(len(sentences))
    return (weights[row, :, noun] > weights[row, :, other]).double().mean(0)


def most_of_all(
    weights: Float[Tensor, "sentences heads words"], sentences: Sequence[Example]
) -> Float[Tensor, " heads"]:
    """For each head the share of sentences in which the noun has the greatest weight.

    The weight on "it" itself does not count.
    """
    noun = torch.tensor([place for place, _ in _places(sentences)])
    others = weights.clone()
    others[..., IT] = -1.0
    return (others.argmax(-1) == noun[:, None]).double().mean(0)


def _places(sentences: Sequence[Example]) -> list[tuple[int, int]]:
    return [(one.noun, one.other) for one in sentences]


def measure_coreference(context: Context) -> Iterator[Measurement]:
    """The head that is best on some sentences, on others, of a trained and an untrained model."""
    trained, tokenizer = text_encoder("minilm")
    torch.manual_seed(context.seed)
    untrained = type(trained)(trained.config).eval()
    choosing, measuring = examples(context.settings["pairs"], context.seed)
    for name, model in (("trained", trained), ("untrained", untrained)):
        chosen, found = (looks(model, tokenizer, some) for some in (choosing, measuring))
        head = int(right_noun(chosen, choosing).argmax())
        yield Measurement(RIGHT, right_noun(found, measuring)[head].item(), {"model": name})
        head = int(most_of_all(chosen, choosing).argmax())
        most = most_of_all(found, measuring)[head].item()
        yield Measurement(MOST, most, {"model": name, "noun": "either"})
        # The text's own sentence: its tired animals alone, with a head that is chosen by them.
        tired, new = (
            [i for i, one in enumerate(some) if one.noun == ANIMAL]
            for some in (choosing, measuring)
        )
        head = int(most_of_all(chosen[tired], [choosing[i] for i in tired]).argmax())
        most = most_of_all(found[new], [measuring[i] for i in new])[head].item()
        yield Measurement(MOST, most, {"model": name, "noun": "animal"})


_CLARK = Source("Clark et al., 2019", "table 2", read=False)
EXPERIMENTS = (
    Experiment(
        name="coreference",
        title="What “it” looks at",
        method="MiniLM and an untrained copy read sentences such as “the cat sat on the mat "
        "because it was tired”, each beside its twin, “… because it was soft”. A head is chosen by "
        "some sentences, and measured by others with other nouns and other last words. One that "
        "looks at the first noun always is right in half of them.",
        measure=measure_coreference,
        settings={"quick": {"pairs": 60}, "full": {"pairs": 200}},
        seeds={"quick": 3, "full": 5},
        claims=(
            Claim(
                "A head finds the noun that “it” stands for.",
                lesson("Self-attention: the big conceptual leap"),
                AtLeast(RIGHT, 0.65, {"model": "trained"}),
                "No head that is right in 65 % of pairs of sentences that differ in the last word.",
                (Published("% of coreferent mentions, BERT's head 5-4", 65.0, _CLARK),),
            ),
            Claim(
                "At “it” a head looks most at the cat, where the cat was tired.",
                lesson("Self-attention: the big conceptual leap"),
                All(
                    AtLeast(MOST, 0.5, {"model": "trained", "noun": "animal"}),
                    Difference(
                        MOST,
                        {"model": "trained", "noun": "animal"},
                        {"model": "untrained", "noun": "animal"},
                        0.2,
                    ),
                ),
                "No head whose greatest weight is on the animal in half of these sentences.",
            ),
            Claim(
                "It looks most at the right noun, whether that is the cat or the mat.",
                lesson("Self-attention: the big conceptual leap"),
                AtLeast(MOST, 0.65, {"model": "trained", "noun": "either"}),
                "No head whose greatest weight is on the right noun in 65 % of the sentences.",
            ),
        ),
        needs=("minilm",),
    ),
)
