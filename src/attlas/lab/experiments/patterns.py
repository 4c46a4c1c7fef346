"""Which of the patterns that textbooks draw are there in the heads of a real model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

import attlas
from attlas.analysis.roles import roles
from attlas.analysis.roles.table import RoleTable
from attlas.analysis.syntax import DependencyTable, between_words, syntax, word_numbers
from attlas.data.conllu import Sentence, read_conllu
from attlas.lab.data import required, text_encoder
from attlas.lab.experiment import (
    AttentionExample,
    Claim,
    Context,
    Experiment,
    Measurement,
    Published,
    Source,
)
from attlas.lab.sources import chapter_4, chapter_17
from attlas.lab.verdict import All, AtLeast, Difference

ROLE = "highest score of any head"
ONE_WORD = "largest mean weight of any head on one word of a text"
FOUND = "share of words whose syntactic head is found"
ALIKE = "share of words that look most at the word of the nearest meaning"
MEASURED_ROLES = ("local", "positional", "previous", "next", "separator")
RELATIONS = {"det": "det", "obj": "obj", "nmod:poss": "poss", "nsubj": "nsubj", "all": "all"}
CONTENT = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV"})
TEXTS_AT_ONCE = 16


def treebank_sentences(
    seed: int, choosing: int, measuring: int
) -> tuple[list[Sentence], list[Sentence]]:
    """Sentences of 8 to 40 words by which a head is chosen, and others by which it is measured.

    Those of the first seeds have no sentence in common that is measured.
    """
    treebank = read_conllu(required("ud") / "en_ewt-ud-dev.conllu.gz")
    sentences = [one for one in treebank if 8 <= len(one.words) <= 40]
    order = torch.randperm(len(sentences), generator=torch.Generator().manual_seed(0)).tolist()
    start = (seed - 1) * measuring
    drawn = [sentences[order[(start + i) % len(order)]] for i in range(measuring + choosing)]
    return drawn[measuring:], drawn[:measuring]


@dataclass(frozen=True)
class HeadReading:
    """What the heads of a model do with a batch of sentences.

    Args:
        words: The number of the word of each token, −1 = of none.
    """

    trace: Any
    sentences: Sequence[Sentence]
    inputs: Any
    words: Int[Tensor, "batch tokens"]

    def maps(self, row: int) -> Float[Tensor, "heads words words"]:
        """The weights between the words of a sentence, of all heads of all layers in turn."""
        count = len(self.sentences[row].words)
        words = self.words[row]
        return torch.cat(
            [
                torch.cat([rows for _, rows in between_words(layer.at(row), words, count)], 1)
                for layer in self.trace.values()
            ]
        )


def readings(model: Any, tokenizer: Any, sentences: Sequence[Sentence]) -> Iterator[HeadReading]:
    """The model reads all sentences, some at a time."""
    for first in range(0, len(sentences), TEXTS_AT_ONCE):
        some = sentences[first : first + TEXTS_AT_ONCE]
        encoding = tokenizer(
            [list(one.forms) for one in some],
            is_split_into_words=True,
            padding=True,
            return_tensors="pt",
        )
        with torch.no_grad(), attlas.observe(model) as trace:
            model(**encoding)
        yield HeadReading(trace, some, encoding, word_numbers(encoding))


def roles_of(reading: HeadReading, separator: int) -> RoleTable:
    """The table of roles of one batch; `separator` is the token that ends a text."""
    ids, mask = reading.inputs["input_ids"], reading.inputs["attention_mask"].bool()
    return roles(reading.trace, token_mask=mask, queries=mask, separators=ids == separator)


def one_word(reading: HeadReading) -> Iterator[Float[Tensor, " heads"]]:
    """For each sentence the mean weight, over all its words, on the word that gets most."""
    for row, sentence in enumerate(reading.sentences):
        places = [i for i, word in enumerate(sentence.words) if word.part_of_speech != "PUNCT"]
        yield reading.maps(row).mean(1)[:, places].amax(-1)


@dataclass
class Meaning:
    """The nearest in meaning of each word: the vector of a word that the model reads alone."""

    model: Any
    tokenizer: Any

    def vectors(self, words: Sequence[str]) -> Float[Tensor, "words dim"]:
        """A vector of length 1 for each, the mean over the word's tokens."""
        encoding = self.tokenizer(list(words), padding=True, return_tensors="pt")
        with torch.no_grad():
            states = self.model(**encoding).last_hidden_state
        mask = encoding["attention_mask"].unsqueeze(-1)
        found: Tensor = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
        return found

    def hits(self, reading: HeadReading) -> Iterator[tuple[Float[Tensor, " heads"], float, int]]:
        """For each sentence: words right by head, words right by the nearest one, and all words.

        Content words alone count, and a word is not compared with another form of itself.
        """
        for row, sentence in enumerate(reading.sentences):
            places = [i for i, one in enumerate(sentence.words) if one.part_of_speech in CONTENT]
            lemmas = [sentence.words[i].lemma.lower() for i in places]
            if len(set(lemmas)) < 4:
                continue
            vectors = self.vectors([sentence.words[i].form for i in places])
            same = torch.tensor([[a == b for b in lemmas] for a in lemmas])
            nearest = (vectors @ vectors.T).masked_fill(same, -torch.inf).argmax(-1)
            weights = reading.maps(row)[:, places][..., places].masked_fill(same, -torch.inf)
            position = torch.tensor(places)
            apart = (position[:, None] - position).abs().double().masked_fill(same, torch.inf)
            right = (weights.argmax(-1) == nearest).double().sum(-1)
            yield right, float((apart.argmin(-1) == nearest).sum()), len(places)


def measure_patterns(context: Context) -> Iterator[Measurement]:
    """Roles, syntax and meaning, in the trained model and in an untrained copy."""
    s = context.settings
    trained, tokenizer = text_encoder("minilm")
    torch.manual_seed(context.seed)
    untrained = type(trained)(trained.config).eval()
    choosing, measuring = treebank_sentences(context.seed, s["choosing"], s["measuring"])
    meaning = Meaning(trained, tokenizer)
    for name, model in (("trained", trained), ("untrained", untrained)):
        chosen, found = DependencyTable({}, {}, {}), DependencyTable({}, {}, {})
        before = after = torch.zeros(())
        near, asked = 0.0, 0
        held, largest = RoleTable({}), []
        for reading in readings(model, tokenizer, choosing):
            chosen += syntax(reading.trace, reading.sentences, reading.words)
            before = before + sum(right for right, _, _ in meaning.hits(reading))
        for reading in readings(model, tokenizer, measuring):
            found += syntax(reading.trace, reading.sentences, reading.words)
            held += roles_of(reading, tokenizer.sep_token_id)
            largest += list(one_word(reading))
            for right, by_place, count in meaning.hits(reading):
                after, near, asked = after + right, near + by_place, asked + count
        for role in MEASURED_ROLES:
            yield Measurement(ROLE, held.best(role)[2].score, {"role": role, "model": name})
        means = torch.stack(largest).mean(0)
        yield Measurement(ONE_WORD, means.max().item(), {"model": name})
        yield from by_relation(chosen, found, name)
        head = int(before.argmax())
        yield Measurement(ALIKE, after[head].item() / asked, {"by": name})
        if name == "trained":  # the rest is the same of both
            yield Measurement(ALIKE, near / asked, {"by": "nearest word"})


def pattern_examples(context: Context) -> Iterator[AttentionExample]:
    """The trained model on a sentence of our own."""
    model, tokenizer = text_encoder("minilm")
    inputs = tokenizer(
        "The cat did not cross the street because it was tired.", return_tensors="pt"
    )
    with torch.no_grad(), attlas.observe(model) as trace:
        model(**inputs)
    trace.label(tokenizer, inputs["input_ids"])
    layer, head, _ = roles(trace).best("previous")
    caption = "MiniLM on a sentence: the head that looks most at the previous token."
    yield AttentionExample("minilm", caption, trace, layer, head)


def by_relation(
    chosen: DependencyTable, found: DependencyTable, model: str
) -> Iterator[Measurement]:
    """How often the head, and the offset, that were best on other sentences are right."""
    for relation, name in RELATIONS.items():
        best = chosen.best(relation)
        direction = 0 if best.direction == "dependent to head" else 1
        share = found.accuracy(relation, best.layer)[direction, best.head].item()
        yield Measurement(FOUND, share, {"relation": name, "by": model})
        if model == "trained":
            share = found.offsets[relation][best.offset] / found.pairs[relation]
            yield Measurement(FOUND, share, {"relation": name, "by": "offset"})


def _above(relation: str, bound: float = 0.1, less: str = "offset") -> Difference:
    return Difference(
        FOUND, {"relation": relation, "by": "trained"}, {"relation": relation, "by": less}, bound
    )


def _role(role: str, bound: float) -> All:
    """The trained model reaches the bound, and an untrained one is far below."""
    trained, untrained = ({"role": role, "model": name} for name in ("trained", "untrained"))
    return All(AtLeast(ROLE, bound, trained), Difference(ROLE, trained, untrained, 0.2))


_CLARK = Source("Clark et al., 2019", "table 1", read=False)
_SEPARATOR = Source("Clark et al., 2019", "section 3.2", read=False)
EXPERIMENTS = (
    Experiment(
        name="patterns",
        title="The drawn patterns, in the heads of a real model",
        method="MiniLM, a trained BERT of six layers with twelve heads, and an untrained copy read "
        "English sentences of 8 to 40 words: the development set of the treebank UD EWT. Of "
        "syntax and meaning a head is chosen by some sentences and measured by others; the fixed "
        "offset that it has to beat is chosen likewise. A head finds the syntactic head of a "
        "word where that is the word with the greatest weight (Clark et al.). They measured BERT "
        "base on other texts with other relations, so their figures are no target. Meaning is the "
        "cosine of the vectors that MiniLM has of two words alone.",
        measure=measure_patterns,
        examples=pattern_examples,
        settings={
            "quick": {"choosing": 80, "measuring": 80},
            "full": {"choosing": 230, "measuring": 230},
        },
        seeds={"quick": 3, "full": 5},
        claims=(
            Claim(
                "There are local heads, which look at neighbouring words.",
                chapter_4("4.6.4"),
                _role("local", 0.5),
                "No head with half of its weight within two tokens, or untrained heads near it.",
            ),
            Claim(
                "There are positional heads, which look at a fixed distance.",
                chapter_4("4.6.4"),
                _role("positional", 0.9),
                "No head with nine of ten greatest weights at one distance.",
            ),
            Claim(
                "There are heads that look at one important word, wherever they look from.",
                chapter_4("4.6.4"),
                AtLeast(ONE_WORD, 0.3, {"model": "trained"}),
                "No head with a mean weight of 0.3 on a word, punctuation and [SEP] left out.",
                (
                    Published(
                        "weight on one word, typed in", 0.4, chapter_4("4.6.4"), measured=False
                    ),
                ),
            ),
            Claim(
                "There are heads that look mostly at the separator.",
                _SEPARATOR,
                _role("separator", 0.5),
                "No head with half of its weight on [SEP].",
            ),
            Claim(
                "There are syntactic heads.",
                chapter_17("3"),
                All(_above("det"), _above("obj"), _above("poss")),
                "Heads that are within 10 points of a fixed offset.",
                (
                    Published("% of determiners", 94.3, _CLARK),
                    Published("% of direct objects", 86.8, _CLARK),
                    Published("% of possessors", 80.5, _CLARK),
                ),
            ),
            Claim(
                "A head links subject and predicate.",
                chapter_4("4.6.4"),
                _above("nsubj"),
                "No head that is 10 points better at it than a fixed offset.",
            ),
            Claim(
                "One head has the syntax of the whole sentence.",
                chapter_4("4.6.4"),
                AtLeast(FOUND, 0.5, {"relation": "all", "by": "trained"}),
                "No head that finds the syntactic head of half of all words.",
                (Published("% of all relations, best head", 34.5, _CLARK),),
            ),
            Claim(
                "Training, not the architecture, makes syntactic heads.",
                chapter_4("4.6.4"),
                All(*(_above(name, less="untrained") for name in ("det", "obj", "poss"))),
                "Untrained heads that are within 10 points.",
            ),
            Claim(
                "A head looks at words of similar meaning.",
                chapter_4("4.6.4"),
                All(
                    Difference(ALIKE, {"by": "trained"}, {"by": "nearest word"}, 0.1),
                    Difference(ALIKE, {"by": "trained"}, {"by": "untrained"}, 0.1),
                ),
                "No head that is 10 points better than a look at the nearest word.",
            ),
        ),
        needs=("minilm", "ud"),
    ),
)
