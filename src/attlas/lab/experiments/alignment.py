"""Whether attention finds which words translate each other."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.alignment import (
    Reference,
    argmax_links,
    read_links,
    read_reference,
)
from attlas.analysis.roles import roles
from attlas.analysis.roles.table import RoleTable
from attlas.data.lines import read_lines
from attlas.inference import Translator
from attlas.inference.alignment import attention_to_source, trace_teacher_forced, words_of_tokens
from attlas.lab.data import parallel_files, required, spaced_words, tanaka_pairs, tatoeba_pairs
from attlas.lab.experiment import (
    AttentionExample,
    Claim,
    Condition,
    Context,
    Experiment,
    Measurement,
    Published,
    Source,
)
from attlas.lab.sources import chapter_4, lesson
from attlas.lab.trainings import pairs_of, trained, translations
from attlas.lab.verdict import All, AtLeast, Difference, Provided, Rule
from attlas.metrics import alignment_error, corpus_bleu
from attlas.recording import DenseAttentionMap, Trace
from attlas.runs import Run

AER, BLEU = "alignment error rate", "BLEU on new pairs of its own kind"
DIAGONAL = "correlation of the places in both sentences, by weight"
FORWARD = "share of steps that do not go back"
GREATEST, SPREAD = "mean largest weight", "mean entropy over that of even weights"
Links = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Gold:
    """Pairs of sentences in words, and the links that annotators made."""

    pairs: tuple[tuple[str, str], ...]
    references: tuple[Reference, ...]

    @classmethod
    def read(cls) -> "Gold":
        """The English–French Hansards."""
        folder = required("word-alignment")
        lines = read_lines(folder / "enfr.src-tgt").texts
        pairs = tuple((source.strip(), target.strip()) for source, target in map(_sides, lines))
        return cls(pairs, read_reference(folder / "enfr.gold", first=1))

    def error(self, links: Sequence[Links]) -> float:
        """AER of the links of all pairs."""
        sure = [one.sure for one in self.references]
        return alignment_error(links, sure, [one.possible for one in self.references]).error

    @cached_property
    def linked(self) -> tuple[Counter[int], ...]:
        """For each pair the number of links, sure or possible, of each target word that has one."""
        return tuple(Counter(t for _, t in one.sure | one.possible) for one in self.references)


def _sides(line: str) -> tuple[str, str]:
    source, _, target = line.partition("|||")
    return source, target


def diagonal(source: int, target: int) -> Links:
    """Each target word with the source word at the same part of its sentence.

    Example:
        >>> sorted(diagonal(4, 2))
        [(1, 0), (3, 1)]
    """
    return frozenset((int((t + 0.5) * source / target), t) for t in range(target))


@dataclass(frozen=True)
class Looked:
    """Where a model looked for each word of a translation that it was fed with.

    Args:
        links: Word by word, counted from 0.
        greatest: The largest weight of each target word, of its first token.
        entropies: Of the words in turn, and of the end of the text.
    """

    links: Links
    greatest: dict[int, float]
    entropies: tuple[list[float], float]


def looked(run: Run, pairs: Sequence[tuple[str, str]]) -> Iterator[Looked]:
    """A model reads each source and its given translation."""
    translator = Translator(run)
    vocabularies = run.vocabularies()
    for source, target in pairs:
        ids = vocabularies.source.encode(source)
        target_ids = vocabularies.target.encode(target)
        read = words_of_tokens(vocabularies.source, ids, source)
        written = words_of_tokens(vocabularies.target, target_ids, target)
        trace = traced(translator.model, ids, target_ids)
        # The mean over heads and layers; END is of no word.
        weights = attention_to_source(trace)
        mean = DenseAttentionMap(weights[None, None])
        links = argmax_links(mean, [*read, ()], [*written, ()])
        largest, entropy = weights.amax(-1), relative_entropy(weights)
        first = {words[0]: t for t, words in reversed(list(enumerate(written))) if words}
        yield Looked(
            frozenset(links),
            {word: largest[t].item() for word, t in first.items()},
            (entropy[:-1].tolist(), entropy[-1].item()),
        )


def relative_entropy(weights: Float[Tensor, "queries keys"]) -> Float[Tensor, " queries"]:
    """The entropy of each row over that of even weights; of a single key it is 0."""
    even = torch.tensor(float(max(2, weights.shape[-1]))).log()
    return -(weights * weights.clamp_min(1e-30).log()).sum(-1) / even


def traced(model: Any, source: Sequence[int], target: Sequence[int]) -> Trace:
    """Where the model looks while it is fed with a translation, to its END."""
    labels = ["" for _ in source], ["" for _ in target]
    trace = trace_teacher_forced(model, source, target, True, [*labels[0], ""], [*labels[1], ""])
    assert trace.trace is not None
    return trace.trace


def sampled(
    pairs: Sequence[tuple[str, str]], seed: int, sizes: tuple[int, int], least: int
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs to train with, and others: no English sentence is in both.

    Args:
        sizes: How many of each.
        least: How many words an English sentence has to have.
    """
    chance = random.Random(seed)
    by_source: dict[str, list[str]] = {}
    for source, target in pairs:
        if least <= len(source.split()) <= 20:
            by_source.setdefault(source, []).append(target)
    sources = sorted(by_source)
    chance.shuffle(sources)
    drawn = [(source, chance.choice(by_source[source])) for source in sources[: sum(sizes)]]
    return drawn[: sizes[0]], drawn[sizes[0] :]


def trained_translator(
    context: Context, label: str, pairs: Sequence[tuple[str, str]], recipe: str
) -> Run:
    """A model that has learnt to translate some of these pairs, with others for validation."""
    s = context.settings
    parts = sampled(pairs, context.seed, (s["pairs"], s["held back"]), s["least words"])
    train, valid = (
        parallel_files(context.folder, f"{label}-{name}", some)
        for name, some in zip(("train", "valid"), parts, strict=True)
    )
    files = [f"data.{name}={paths}" for name, paths in (("train", train), ("valid", valid))]
    return trained(context, label, recipe, [*files, f"data.test={valid}", *s["recipes"][recipe]])


def bleu_of(run: Run) -> float:
    """BLEU of greedy translations of the pairs that were held back."""
    corpus = pairs_of(run, "valid")
    found = [_joined(one.text) for one in translations(run, corpus)]
    return corpus_bleu(found, [_joined(text) for text in corpus.targets]).value


def _joined(text: str) -> str:
    """Without the spaces before marks, which BLEU sets itself."""
    return re.sub(r" (?=[.,;:?!])", "", text)


def measure_alignment(context: Context) -> Iterator[Measurement]:
    """Translate in one domain, and align gold pairs of another."""
    gold = Gold.read()
    pairs = [(spaced_words(en), spaced_words(fr, french=True)) for en, fr in tatoeba_pairs("fr")]
    lower = [(source.lower(), target.lower()) for source, target in gold.pairs]
    lengths = [(len(source.split()), len(target.split())) for source, target in lower]
    yield Measurement(AER, gold.error([diagonal(*both) for both in lengths]), {"by": "diagonal"})
    for name, links in published_links().items():
        yield Measurement(AER, gold.error(links), {"by": name})
    for recipe in context.settings["recipes"]:
        run = trained_translator(context, recipe, pairs, recipe)
        name = {"multi30k": "additive", "tiny": "Transformer"}[recipe]
        yield Measurement(BLEU, bleu_of(run), {"by": name})
        found = list(looked(run, lower))
        yield Measurement(AER, gold.error([one.links for one in found]), {"by": name})
        ends = torch.tensor([one.entropies[1] for one in found]).mean().item()
        words = torch.tensor([e for one in found for e in one.entropies[0]]).mean().item()
        yield Measurement(SPREAD, words, {"by": name, "at": "words"})
        yield Measurement(SPREAD, ends, {"by": name, "at": "end"})
        for several in (False, True):
            greatest = [
                one.greatest[word]
                for one, linked in zip(found, gold.linked, strict=True)
                for word, count in linked.items()
                if (count > 1) == several and word in one.greatest
            ]
            where = {"by": name, "links": "several" if several else "one"}
            yield Measurement(GREATEST, torch.tensor(greatest).mean().item(), where)


def alignment_examples(context: Context) -> Iterator[AttentionExample]:
    """What both models look at in a sentence that was held back."""
    pairs = [(spaced_words(en), spaced_words(fr, french=True)) for en, fr in tatoeba_pairs("fr")]
    for recipe in context.settings["recipes"]:
        run = trained_translator(context, recipe, pairs, recipe)
        name = {"multi30k": "additive attention", "tiny": "a Transformer"}[recipe]
        yield translation_example(run, recipe, f"English to French: {name}.")


def translation_example(run: Run, name: str, caption: str) -> AttentionExample:
    """The model translates the first sentence of eight words that was held back."""
    sources = pairs_of(run, "valid").sources
    text = next((one for one in sources if len(one.split()) == 8), sources[0])
    trace = Translator(run)(text).trace
    assert trace is not None
    cross = [layer for layer in trace if trace.is_cross_attention(layer)]
    return AttentionExample(name, caption, trace, cross[-1])


def published_links() -> dict[str, Sequence[Links]]:
    """What fast_align and Giza++ found from English to French."""
    folder = required("word-alignment") / "system-outputs"
    return {
        name: [frozenset(links) for links in read_links(folder / f"{file}.test.enfr.talp", first=0)]
        for name, file in (("fast_align", "fastalign"), ("Giza++", "giza"))
    }


def measure_order(context: Context) -> Iterator[Measurement]:
    """The maps of a model for each language, on pairs that were held back."""
    for language, pairs in (
        ("German", [(spaced_words(en), spaced_words(de)) for en, de in tatoeba_pairs("de")]),
        ("Japanese", tanaka_pairs()),
    ):
        run = trained_translator(context, language, pairs, "multi30k")
        where: Condition = {"English to": language}
        yield Measurement(BLEU, bleu_of(run), where)
        vocabularies, model = run.vocabularies(), run.model()
        corpus = pairs_of(run, "valid")
        table, forward, entropies = RoleTable({}), list[bool](), list[float]()
        for source, target in zip(corpus.sources, corpus.targets, strict=True):
            ids = vocabularies.source.encode(source), vocabularies.target.encode(target)
            # END looks at END in every language: it is left out.
            weights = attention_to_source(traced(model, *ids))[:-1, :-1]
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-9)
            trace = Trace()
            trace.record("cross", DenseAttentionMap(weights[None, None]))
            trace.set_kind("cross", cross_attention=True)
            table += roles(trace)
            places = weights.argmax(-1)
            forward += (places[1:] >= places[:-1]).tolist()
            entropies += relative_entropy(weights).tolist()
        yield Measurement(DIAGONAL, table.role("cross", 0, "diagonal").score, where)
        yield Measurement(FORWARD, sum(forward) / len(forward), where)
        yield Measurement(SPREAD, sum(entropies) / len(entropies), where)


def order_examples(context: Context) -> Iterator[AttentionExample]:
    """A sentence into each language."""
    for language, pairs in (
        ("German", [(spaced_words(en), spaced_words(de)) for en, de in tatoeba_pairs("de")]),
        ("Japanese", tanaka_pairs()),
    ):
        run = trained_translator(context, language, pairs, "multi30k")
        yield translation_example(
            run, language.lower(), f"English to {language}: additive attention."
        )


MODELS = ("additive", "Transformer")
RECURRENT = (
    "vocabulary.size=4000",
    "vocabulary.sampling=0",
    "model.embed_dim=128",
    "model.hidden_dim=192",
    "model.encoder_hidden_dim=96",
    "model.dropout=0.1",
    "training.learning_rate=3e-3",
)
SMALL = (
    "vocabulary.size=4000",
    "model.embed_dim=128",
    "model.ffn_dim=256",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
)


def ending(updates: int, kind: str) -> tuple[str, ...]:
    """The end of a training, and a validation at it alone."""
    warmup = min(100, updates // 2)
    return (
        f"training.max_steps={updates}",
        f"training.schedule={{kind='{kind}', warmup={warmup}, total_steps={updates}}}",
        f"training.validation={{criterion='loss', translate=false, every={updates}}}",
    )


def recipes_of(recurrent: int, transformer: int = 0) -> dict[str, tuple[str, ...]]:
    """What trains the models for so many updates; 0 = no Transformer."""
    averaging = "training.averaging={kind='none'}"
    found = {"multi30k": (*RECURRENT, *ending(recurrent, "linear"), averaging)}
    return found | ({"tiny": (*SMALL, *ending(transformer, "cosine"))} if transformer else {})


def _learnt(rule: Rule, *models: str) -> Provided:
    """The rule, where one of these models has learnt to translate its own kind of texts."""
    return Provided(rule, BLEU, 10.0, *({"by": name} for name in models or MODELS))


def _both_learnt(rule: Rule) -> Provided:
    """The rule, where each language has been learnt."""
    german, japanese = ({"English to": name} for name in ("German", "Japanese"))
    return Provided(Provided(rule, BLEU, 8.0, japanese), BLEU, 8.0, german)


_LUONG = Source("Luong et al., 2015", "table 6", read=False)
_SCRIPTS = Source("github.com/lilt/alignment-scripts", "*results.txt beside the outputs", read=True)
EXPERIMENTS = (
    Experiment(
        name="alignment",
        title="Does attention align words?",
        method="Models learn to translate English to French with short everyday pairs (Tatoeba). "
        "They are then fed with the French of 447 pairs of the Canadian Hansards, word by word. "
        "Each French word is linked to the English word with the greatest weight: the mean over "
        "heads and layers, of the step that writes the word. Annotators linked the same pairs. "
        "The Hansards are another kind of text than the models have learnt; fast_align and Giza++ "
        "learnt from Hansards. The diagonal links words at the same part of both sentences.",
        measure=measure_alignment,
        examples=alignment_examples,
        settings={
            "quick": {
                "pairs": 40_000,
                "held back": 200,
                "least words": 4,
                "recipes": recipes_of(150, 120),
            },
            "full": {
                "pairs": 40_000,
                "held back": 200,
                "least words": 4,
                "recipes": recipes_of(600, 450),
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Additive attention aligns words, in texts of another kind, too.",
                lesson("Attention as interpretability"),
                _learnt(Difference(AER, {"by": "diagonal"}, {"by": "additive"}, 0.1), "additive"),
                "An error that is less than 10 points below that of the diagonal.",
                (
                    Published("AER, English to German, local-m attention", 0.34, _LUONG),
                    Published("AER, English to German, global attention", 0.39, _LUONG),
                ),
            ),
            Claim(
                "The cross-attention of a Transformer aligns words, in texts of another kind, too.",
                lesson("Attention as interpretability"),
                _learnt(
                    Difference(AER, {"by": "diagonal"}, {"by": "Transformer"}, 0.1), "Transformer"
                ),
                "An error that is less than 10 points below that of the diagonal.",
            ),
            Claim(
                "Attention aligns as well as an aligner made for it.",
                lesson("Attention as interpretability"),
                _learnt(
                    All(*(Difference(AER, {"by": "fast_align"}, {"by": one}) for one in MODELS))
                ),
                "A model with a higher error than fast_align in the same direction.",
                (
                    Published("AER, fast_align, one direction", 0.164, _SCRIPTS),
                    Published("AER, fast_align, grow-diagonal", 0.105, _SCRIPTS),
                    Published("AER, Giza++, grow-diagonal", 0.059, _SCRIPTS),
                ),
            ),
            Claim(
                "A large weight means a one-to-one translation.",
                chapter_4("4.4.2"),
                _learnt(
                    Difference(
                        GREATEST,
                        {"by": "additive", "links": "one"},
                        {"by": "additive", "links": "several"},
                        0.05,
                    ),
                    "additive",
                ),
                "Words of one link whose largest weight is within 0.05 of words of several.",
            ),
            Claim(
                "At the end of a sentence attention is sharp.",
                chapter_4("4.4.2"),
                _learnt(
                    Difference(
                        SPREAD,
                        {"by": "additive", "at": "words"},
                        {"by": "additive", "at": "end"},
                        0.05,
                    ),
                    "additive",
                ),
                "An entropy at the end that is within 5 % of the range, or above, that of words.",
            ),
        ),
        needs=("tatoeba", "word-alignment"),
    ),
    Experiment(
        name="word-order",
        title="Similar and different word order",
        method="GRUs with additive attention learn to translate English to German (Tatoeba) and to "
        "Japanese (the Tanaka corpus, in words), each with as many pairs. They are fed with pairs "
        "that were held back. The correlation of the places of two tokens, by the weight between "
        "them, is 1 on a diagonal map. A step goes back where its greatest weight stands before "
        "that of the step before it.",
        measure=measure_order,
        examples=order_examples,
        settings={
            "quick": {
                "pairs": 30_000,
                "held back": 200,
                "least words": 5,
                "recipes": recipes_of(120),
            },
            "full": {
                "pairs": 30_000,
                "held back": 200,
                "least words": 5,
                "recipes": recipes_of(500),
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Between languages of similar word order the map is near the diagonal.",
                chapter_4("4.4.1"),
                _both_learnt(AtLeast(DIAGONAL, 0.7, {"English to": "German"})),
                "A correlation below 0.7 between English and German.",
            ),
            Claim(
                "Between languages of different word order it is off the diagonal.",
                chapter_4("4.4.1"),
                _both_learnt(
                    All(
                        Difference(
                            DIAGONAL, {"English to": "German"}, {"English to": "Japanese"}, 0.2
                        ),
                        Difference(
                            FORWARD, {"English to": "German"}, {"English to": "Japanese"}, 0.1
                        ),
                    )
                ),
                "A map from English to Japanese that is as diagonal, or as steady, as the other.",
            ),
        ),
        needs=("tatoeba", "tanaka-en-ja"),
    ),
)
