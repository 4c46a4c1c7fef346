"""Unknown words, for which words of the source stand where the model looked."""

import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import Characters, Vocabularies, Vocabulary, Words, train_subwords
from attlas.data.vocabulary import END, UNKNOWN
from attlas.decoding import DecodingConfig, Hypothesis
from attlas.errors import AttlasError
from attlas.inference import Translation, Translator
from attlas.inference.alignment import Line, most_attended_words, with_words
from attlas.models import RecurrentConfig, SequenceToSequence, TransformerConfig, build
from attlas.recording import AttentionHook, DenseAttentionMap, intervene, observe
from support.table_model import LookingTable, TableModel

LETTERS, WRITTEN = Words(list("abcdefgh")), Words(["x", "y"])
SUBWORDS = train_subwords(["the cat sat on the mat", "a dog and a cat"] * 5, "bpe", 290)
LIMITS = {"max_len_a": 0.0, "max_len_b": 6}


def table(seed: int, unknown: str = "replace", **config: object) -> Translator:
    """A known model that writes "x", "y" and, more often, <unk>."""
    model = LookingTable(seed)
    model.table[:, UNKNOWN] += 1.0
    settings = DecodingConfig(unknown=unknown, **(LIMITS | config))  # type: ignore[arg-type]
    return Translator.of(model, Vocabularies(LETTERS, WRITTEN), settings)


def by_the_rule(one: Translation) -> str:
    """Written words, and for "<unk>" that of the source with the greatest weight in the trace."""
    assert one.trace is not None
    words = one.source_text.split()
    written = [token for token in one.tokens if token != "</s>"]
    for query, token in enumerate(written):
        if token == "<unk>":
            weights = torch.stack([r.weights()[0, :, query] for r in across(one)]).mean((0, 1))
            written[query] = words[int(weights[: len(words)].argmax())]
    return " ".join(written)


def across(one: Translation) -> list[DenseAttentionMap]:
    assert one.trace is not None
    return [one.trace[layer] for layer in one.trace if one.trace.is_cross_attention(layer)]


@given(
    seed=st.integers(0, 2**32),
    method=st.sampled_from(["greedy", "beam", "sample"]),
    text=st.lists(st.sampled_from([*"abcx", "Zoë", "O’Hara,"]), min_size=1, max_size=5),
)
def test_for_an_unknown_word_stands_the_word_that_the_trace_shows(
    seed: int, method: str, text: list[str]
) -> None:
    one = table(seed, method=method)("  ".join(text))
    kept = table(seed, "keep", method=method)("  ".join(text))
    assert one.text == by_the_rule(one)
    assert "<unk>" not in one.text
    assert (one.tokens, one.score) == (kept.tokens, kept.score)  # the search is the same
    assert one.word_alignment == kept.word_alignment


@given(seed=st.integers(0, 2**32), num_beams=st.integers(3, 6), n_best=st.integers(1, 3))
def test_the_texts_of_a_list_are_different_where_words_stand_for_unknown_ones(
    seed: int, num_beams: int, n_best: int
) -> None:
    text = "x b y"  # the words that the model can write itself
    one = table(seed, num_beams=num_beams, n_best=n_best)(text)
    every = [one, *one.alternatives]
    assert len({each.text for each in every}) == len(every) <= n_best
    assert [each.text for each in every] == [by_the_rule(each) for each in every]
    order = [(not each.finished, -each.score) for each in every]
    assert order == sorted(order)
    assert one.text == table(seed, num_beams=num_beams)(text).text
    # No text that a longer list has is left out while there is room.
    whole = table(seed, "keep", num_beams=num_beams, n_best=num_beams)(text)
    different = {by_the_rule(each) for each in (whole, *whole.alternatives)}
    assert len(every) == min(n_best, len(different))


@pytest.mark.parametrize("method", ["beam", "sample"])
def test_lines_that_come_together_have_the_lists_that_they_have_alone(method: str) -> None:
    translator = table(5, method=method, n_best=3)
    texts = ["x b y", "", "a", "c x x", "y Zoë"]
    found = list(translator.stream(texts))
    for text, one in zip(texts, found, strict=True):
        alone = translator(text)
        assert [one.text, *(each.text for each in one.alternatives)] == [
            alone.text,
            *(each.text for each in alone.alternatives),
        ]
        assert len(one.alternatives) == (2 if text else 0)


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_the_weights_of_the_pieces_of_a_word_are_summed(kind: str) -> None:
    torch.manual_seed(2)
    config: RecurrentConfig | TransformerConfig = RecurrentConfig(
        embed_dim=16, hidden_dim=16, encoder_hidden_dim=8, attention="additive"
    )
    if kind == "transformer":
        config = TransformerConfig(
            embed_dim=16, num_heads=2, ffn_dim=16, encoder_layers=1, decoder_layers=2
        )
    model = build(config, len(SUBWORDS), len(WRITTEN)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).uniform_(-0.5, 0.5))
        model.output.bias[UNKNOWN] += 3.0
    settings = DecodingConfig(unknown="replace", method="greedy", min_length=4)
    translator = Translator.of(model, Vocabularies(SUBWORDS, WRITTEN), settings)
    seen, otherwise = set(), False
    for text in ("the cat  sat Zürich", "a Xenophon on mat", "日本 a", "dog and mat the mat"):
        one = translator(text)
        words, pieces = text.split(), one.source_tokens[:-1]
        weights = torch.stack([r.weights()[0] for r in across(one)]).mean((0, 1)).double()
        expected = [token for token in one.tokens if token != "</s>"]
        for query, token in enumerate(expected):
            sums = [0.0] * len(words)
            for place, piece in enumerate(pieces):
                if piece != "▁":
                    sums[word_of_piece(text, place)] += float(weights[query, place])
            word = words[sums.index(max(sums))]
            heaviest = int(weights[query, : len(pieces)].argmax())
            otherwise |= words[word_of_piece(text, heaviest)] != word
            expected[query] = word if token == "<unk>" else token
            seen.add(token)
        assert one.text == " ".join(expected)
    assert "<unk>" in seen
    assert otherwise or kind == "transformer"  # to sum them makes a difference


def word_of_piece(text: str, place: int) -> int:
    """The word of a piece: the last one of the text as far as its end."""
    written = SUBWORDS.decode(SUBWORDS.encode(text)[: place + 1])
    return len(written.split()) - 1


def test_a_character_stands_for_an_unknown_character() -> None:
    source, target = Characters("ab "), Characters("xy ")
    line = Line("a é b", tuple(source.encode("a é b")), 0)
    weights = torch.eye(6)[[2, 1, 0, 5]]  # é, the space, "a", END
    found = most_attended_words(weights, source, line)
    assert found == ["é", None, "a", None]
    text, words = with_words(target, [4, UNKNOWN, 6, UNKNOWN, 5], ["q", "é", "q", None, "q"])
    assert text == "xé \N{REPLACEMENT CHARACTER}y"
    assert words == [(0,), (0,), (), (1,), (1,)]


def test_words_are_those_in_the_form_in_which_they_are_read() -> None:
    source = Words(["a"], "nfkc")
    text = "a Zoe\u0308 ² b"
    line = Line(text, tuple(source.encode(text))[:3], 1)
    assert most_attended_words(torch.eye(4), source, line) == ["a", "Zoë", "2", None]


def test_an_unknown_word_stays_where_the_model_looked_at_no_word() -> None:
    translator = table(3, method="greedy")
    translator.model.attention[:, :] = torch.tensor([0.0, 0.0, 1.0] + [0.0] * 61)  # END alone
    one = translator("a b")
    assert "<unk>" in one.tokens
    assert one.text == " ".join(token for token in one.tokens if token != "</s>")


def test_a_word_stands_between_spaces_among_subwords() -> None:
    ids = SUBWORDS.encode("the cat sat")
    first, last = SUBWORDS.encode("the"), SUBWORDS.encode("cat sat")
    assert [*first, *last] == ids
    tokens = [UNKNOWN, *first, UNKNOWN, UNKNOWN, *last, UNKNOWN]
    words = ["Zoë" if id_ == UNKNOWN else None for id_ in tokens]
    text, of_tokens = with_words(SUBWORDS, tokens, words)
    assert text == "Zoë the Zoë Zoë cat sat Zoë"
    assert [of_tokens[place] for place, word in enumerate(words) if word] == [
        (0,),
        (2,),
        (3,),
        (6,),
    ]
    space = SUBWORDS.encode(" a")[0]
    assert SUBWORDS.pieces([space]) == ["▁"]
    assert (
        with_words(SUBWORDS, [*first, space, UNKNOWN], [None] * (len(first) + 1) + ["Zoë"])[0]
        == "the Zoë"
    )


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        (TableModel(), LETTERS),
        (build(RecurrentConfig(attention="none"), 12, 6), LETTERS),
    ],
    ids=["a table", "recurrent"],
)
def test_a_model_that_does_not_look_is_refused(
    model: SequenceToSequence[object], vocabulary: Vocabulary
) -> None:
    vocabularies = Vocabularies(vocabulary, WRITTEN)
    with pytest.raises(AttlasError, match="a model with cross-attention for decoding"):
        Translator.of(model, vocabularies, DecodingConfig(unknown="replace"))
    assert Translator.of(model, vocabularies, DecodingConfig(unknown="forbid"))


def test_who_observes_does_not_hear_that_the_model_is_read_again() -> None:
    """The table notes an attention map for each pass over a whole target, and none for a step."""
    translator = table(1, method="greedy")
    hook = translator.model.look["hook"]  # type: ignore[index]
    assert isinstance(hook, AttentionHook)
    with observe(translator.model) as trace:
        hook.record(DenseAttentionMap(torch.ones(1, 1, 1, 1)))
        assert "<unk>" in translator("a b c").tokens
    assert len(trace.calls("look")) == 1


def test_words_are_chosen_by_the_weights_that_somebody_put_in() -> None:
    torch.manual_seed(1)
    config = RecurrentConfig(
        embed_dim=16, hidden_dim=16, encoder_hidden_dim=8, attention="additive"
    )
    model = build(config, len(LETTERS), len(WRITTEN)).eval()
    with torch.no_grad():
        model.output.bias[UNKNOWN] += 9.0
    settings = DecodingConfig(unknown="replace", method="greedy", min_length=3)
    translator = Translator.of(model, Vocabularies(LETTERS, WRITTEN), settings)

    def at_second(weights: torch.Tensor, seen: torch.Tensor, layer: str) -> torch.Tensor:
        return torch.zeros_like(weights).index_fill(-1, torch.tensor([1]), 1.0)

    with intervene(model, at_second):
        changed = translator("a Zoë c")
    assert set(changed.text.split()) == {"Zoë"}


def test_many_threads_may_ask_at_once() -> None:
    translator, texts = table(9, n_best=2), ["a b x", "x y", "Zoë"] * 3
    expected = [translator(text).text for text in texts]
    found: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: translator(texts[n]).text}))
        for n in range(len(texts))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(len(texts))] == expected


def test_a_hypothesis_that_was_cut_off_has_its_words_too() -> None:
    translator = table(2, method="greedy")
    translator.model.table[:, END] = -9.0  # type: ignore[operator]
    one = translator("a b c")
    assert not one.finished
    assert one.text == by_the_rule(one)
    assert len(one.text.split()) == 6


def test_the_search_finds_hypotheses_as_they_were() -> None:
    """What a hypothesis is, ids and all, does not depend on what stands for an unknown one."""
    sources = [LETTERS.encode("a b x")]
    found = [table(4, unknown, n_best=3).search(sources, [[]]) for unknown in ("keep", "replace")]
    assert found[0] == found[1]
    assert isinstance(found[0][0][0], Hypothesis)
