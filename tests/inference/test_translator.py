"""From text to text, and where the model looked for it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from attlas.config import write_toml
from attlas.data import END, Characters, Vocabularies, Words, train_subwords
from attlas.decoding import DecodingConfig, Hypothesis
from attlas.errors import AttlasError
from attlas.inference import Translation, Translator
from attlas.inference import alignment as teacher_forced
from attlas.inference import translator as translator_module
from attlas.inference.alignment import attention_links
from attlas.models import RecurrentConfig, TransformerConfig, build
from attlas.ops import linear
from attlas.ops.linear import is_bf16_matmul
from attlas.recording import Trace, observe
from attlas.runs import Checkpoint, CheckpointStore, Run
from support.table_model import LookingTable, TableModel
from support.warm_processes import python

TEXTS = [
    "the cat sat on the mat",
    "",
    "a dog",
    "   \t ",
    "on the mat a cat",
    "unheard of",
    "cat",
] * 4
SUBWORDS = train_subwords(TEXTS, "bpe", 290)
MODEL = RecurrentConfig(embed_dim=16, hidden_dim=16, encoder_hidden_dim=8)


def recurrent(attention: str = "additive", **config: object) -> Translator:
    torch.manual_seed(1)
    changed = {"attention": attention, "decoder": "bahdanau"}
    model = build(MODEL.model_copy(update=changed), len(SUBWORDS), len(SUBWORDS))
    vocabularies = Vocabularies(SUBWORDS, SUBWORDS)
    return Translator.of(model, vocabularies, DecodingConfig(**config))  # type: ignore[arg-type]


def table(seed: int = 0, **config: object) -> Translator:
    """A known model: source words are letters, target words are "x" and "y" (and <unk>)."""
    vocabularies = Vocabularies(Words(list("abcdefgh")), Words(["x", "y"]))
    settings = DecodingConfig(**config)  # type: ignore[arg-type]
    return Translator.of(LookingTable(seed), vocabularies, settings)


def described(one: Translation) -> tuple[object, ...]:
    return one.text, one.source_text, one.tokens, one.finished, one.cut, len(one.alternatives)


def test_a_text_is_segmented_once_and_its_tokens_named_only_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    translator = recurrent(num_beams=2, n_best=2)
    requested: list[str] = []
    token_mask = SUBWORDS._pieced
    monkeypatch.setattr(
        SUBWORDS, "_pieced", lambda text: (requested.append(text), token_mask(text))[1]
    )
    found = list(translator.stream(["a dog", "cat", "  "]))
    assert requested == ["a dog", "cat"]
    for one in (found[0], *found[0].alternatives):
        assert one.source_tokens == (*SUBWORDS.pieces(SUBWORDS.encode("a dog")), "</s>")
        assert one.trace
        assert one.trace.source == (one.source_tokens,)
    assert requested == ["a dog", "cat", *["a dog"] * 2]  # by this test itself
    assert found[2].source_tokens == ()


@pytest.mark.parametrize("window", [1, 3, 1000])
@pytest.mark.parametrize("tokens", [1, 20, 4096])
def test_many_gives_one_translation_per_line_in_the_order_of_the_lines(
    window: int, tokens: int
) -> None:
    translator = recurrent(num_beams=2, max_len_a=0.5)
    found = list(translator.stream(TEXTS, window=window, tokens=tokens))
    alone = [translator(text) for text in TEXTS[:7]] * 4
    assert [described(one) for one in found] == [described(one) for one in alone]
    for one, other in zip(found, alone, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_many_streams_a_window_at_a_time() -> None:
    requested = []

    def lines():  # type: ignore[no-untyped-def]
        for text in ["a b", "", "c", "d"]:
            requested.append(text)
            yield text

    stream = table().stream(lines(), window=2)
    assert requested == []
    next(stream)
    assert requested == ["a b", ""]
    assert len(list(stream)) == 3


def test_the_lines_of_a_file_may_come_with_their_line_breaks(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"the cat\n\na dog\r\non")
    translator = recurrent(method="greedy")
    with file.open(encoding="utf-8", newline="") as lines:
        found = list(translator.stream(lines))
    assert [one.source_text for one in found] == ["the cat", "", "a dog", "on"]
    assert described(found[0]) == described(translator("the cat"))


def test_an_empty_line_is_an_empty_translation() -> None:
    for text in ("", " ", "\t\u3000"):
        one = table()(text, prefix=" ")
        assert (one.text, one.source_text, one.tokens, one.source_tokens) == ("", text, (), ())
        assert (one.score, one.finished, one.alternatives, one.alignment) == (0.0, True, (), ())
        assert (one.trace, one.pharaoh, one.blank) == (None, "", "the text is empty")


def test_the_trace_is_that_of_the_finished_hypothesis_and_labelled() -> None:
    translator = recurrent(min_length=3)
    with torch.no_grad():
        translator.model.output.bias[END] += 9.0  # type: ignore[index, union-attr]
    one = translator("the cat sat")
    assert one.finished
    assert len(one.tokens) >= 4
    trace = one.trace
    assert trace is not None
    (layer,) = trace
    assert trace[layer].shape == (1, 1, len(one.tokens), len(one.source_tokens))
    assert one.tokens[-1] == one.source_tokens[-1] == "</s>"
    assert trace.source == (one.source_tokens,)
    assert trace.target == (one.tokens,)
    torch.testing.assert_close(
        trace[layer].weights().sum(-1), torch.ones(1, 1, len(one.tokens)), atol=1e-5, rtol=0
    )
    assert one.trace is trace  # read again once, not at each asking


def test_an_unknown_word_is_shown_on_the_axis_as_it_was_typed() -> None:
    one = table(max_source_length=3)(" a  zebra b c ")
    assert one.source_tokens == ("a", "<unk:zebra>", "b", "</s>")
    assert one.cut == 1
    assert one.trace is not None
    assert one.trace.source == (one.source_tokens,)


def test_a_hypothesis_that_was_cut_off_has_no_end_on_its_axis() -> None:
    translator = table(method="greedy", max_len_a=0.0, max_len_b=2)
    translator.model.table[:, END] = -9.0  # type: ignore[operator]
    one = translator("a b c")
    assert not one.finished
    assert len(one.tokens) == 2
    assert "</s>" not in one.tokens
    assert one.trace is not None
    assert one.trace["look"].shape == (1, 1, 2, 4)


def test_the_alignment_is_where_each_token_looked_most() -> None:
    one = table(seed=4, min_length=3, method="greedy", no_repeat_ngram=2)("a b c d e")
    assert one.trace is not None
    weights = one.trace["look"].weights()[0, 0]
    words = len(one.text.split())
    assert words >= 3
    wanted = tuple((int(weights[t, :5].argmax()), t) for t in range(words))
    assert one.alignment == wanted
    assert one.word_alignment == tuple(sorted(wanted))
    assert one.pharaoh == " ".join(f"{i}-{j}" for i, j in sorted(wanted))


def test_word_links_of_subwords_are_those_of_their_pieces() -> None:
    translator = recurrent(min_length=4, method="greedy")
    one = translator("the cat  sat on über")
    assert one.alignment
    sources, targets = one.source_text.split(), one.text.split()
    for i, j in one.word_alignment:
        assert 0 <= i < len(sources)
        assert 0 <= j < len(targets)
    assert {j for _, j in one.word_alignment} <= set(range(len(targets)))


def test_a_model_that_does_not_look_has_no_trace_and_says_why() -> None:
    blind = (recurrent("none"), Translator.of(TableModel(), table().vocabularies))
    for one in (blind[0]("the cat"), blind[1]("a b")):
        assert (one.trace, one.alignment, one.pharaoh) == (None, (), "")
        assert one.blank == "the model has no attention"


def test_the_translation_begins_with_the_prefix() -> None:
    translator = recurrent(method="greedy")
    for prefix in ("the", "on the", "über"):
        assert translator("a cat", prefix=prefix).text.startswith(prefix)
    assert described(translator("a cat", prefix="")) == described(translator("a cat"))


def test_all_translations_of_a_translator_with_a_prefix_begin_with_it() -> None:
    short = {"max_len_a": 1.0, "max_len_b": 8}
    for translator in (
        recurrent(method="greedy", **short),
        recurrent(num_beams=2, n_best=2, **short),
    ):
        prefixed = translator.with_prefix("on the")
        found = list(prefixed.stream(TEXTS))
        for text, one in zip(TEXTS, found, strict=True):
            alone = translator(text, prefix="on the") if text.strip() else translator(text)
            assert described(one) == described(alone) == described(prefixed(text))
            assert one.text.startswith("on the") or not text.strip()
        with prefixed.forked() as faster:
            assert [one.text for one in faster.stream(TEXTS)] == [one.text for one in found]
        assert prefixed(TEXTS[0], prefix="a dog").text.startswith("a dog")
    with pytest.raises(AttlasError, match="expected a prefix; got ' '; write a word"):
        translator.with_prefix(" ")


def test_a_prefix_to_an_empty_text_is_an_error() -> None:
    for text in ("", " \t"):
        with pytest.raises(
            AttlasError, match="expected a text to translate with the prefix; got an"
        ):
            table()(text, prefix="x")


def test_half_of_a_surrogate_pair_is_an_error_that_says_where() -> None:
    said = r"expected text in Unicode; got half of a surrogate pair, U\+D800, at character 2; send"
    for translator in (recurrent(), table()):
        with pytest.raises(AttlasError, match=said):
            translator("a \ud800 b")
        with pytest.raises(AttlasError, match=said):
            translator("a", prefix="x \ud800")
        with pytest.raises(AttlasError, match=said):
            next(translator.stream(["a", "b \ud800"]))


def test_alternatives_are_the_rest_of_the_n_best_list_and_can_be_looked_into() -> None:
    one = table(num_beams=4, n_best=4, max_len_b=3)("a b c")
    everything = [one, *one.alternatives]
    assert len({other.text for other in everything}) == 4
    scores = [other.score for other in everything]
    assert scores == sorted(scores, reverse=True)
    for other in one.alternatives:
        assert other.trace is not None
        assert other.trace["look"].shape[2] == len(other.tokens)


def test_a_source_that_is_cut_says_by_how_much() -> None:
    whole, cut = table()("a b c d e"), table(max_source_length=3)("a b c d e")
    assert whole.cut == 0
    assert cut.cut == 2
    assert cut.source_tokens == ("a", "b", "c", "</s>")
    assert cut.source_text == "a b c d e"
    assert cut.text == table()("a b c").text


def test_a_line_break_that_the_model_spells_does_not_break_the_line() -> None:
    vocabularies = Vocabularies(Words(["a"]), Characters(["\n", "x"]))
    model = LookingTable()
    model.table[:, END] = -9.0
    model.table[:, 4] = 9.0
    settings = DecodingConfig(method="greedy", max_len_a=0.0, max_len_b=3)
    assert Translator.of(model, vocabularies, settings)("a").text == "   "


def test_many_threads_get_what_one_thread_gets() -> None:
    translator = recurrent(num_beams=2, max_len_a=0.5)
    wanted = [described(translator(text)) for text in TEXTS]

    def looked(text: str) -> Translation:
        one = translator(text)
        assert one.trace is None or one.trace.target == (one.tokens,)
        return one

    with ThreadPoolExecutor(4) as pool:
        assert [described(one) for one in pool.map(looked, TEXTS)] == wanted


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_child_processes_find_what_this_one_finds(method: str) -> None:
    translator = recurrent(
        method=method, n_best=2 if method != "greedy" else 1, max_len_a=1.0, max_len_b=8
    )
    with translator.forked() as faster:
        found = list(faster.stream(TEXTS, window=9, tokens=20))
        links = [one.pharaoh for one in found]
    wanted = list(translator.stream(TEXTS, window=9, tokens=20))
    assert [described(one) for one in found] == [described(one) for one in wanted]
    assert [one.score for one in found] == pytest.approx([one.score for one in wanted])
    assert links == [one.pharaoh for one in wanted]


@pytest.mark.usefixtures("two_threads")
def test_nothing_is_forked_where_somebody_listens() -> None:
    translator = recurrent()
    with observe(translator.model), translator.forked() as same:
        assert same is translator
        same(TEXTS[0])


@pytest.mark.usefixtures("two_threads")
def test_who_listens_later_is_heard_although_there_are_children() -> None:
    translator = recurrent(max_len_a=0.5, max_len_b=4)
    with translator.forked() as faster, observe(translator.model) as trace:
        list(faster.stream(TEXTS, tokens=20))
    assert trace


@pytest.mark.usefixtures("two_threads")
def test_a_translator_outlives_its_children() -> None:
    translator = recurrent(max_len_a=0.5, max_len_b=4)
    with translator.forked() as faster:
        before = [one.text for one in faster.stream(TEXTS, tokens=20)]
    assert [one.text for one in faster.stream(TEXTS, tokens=20)] == before


def test_a_single_text_is_not_taken_for_many() -> None:
    with pytest.raises(AttlasError, match="expected several texts; got one text"):
        table().stream("a b")
    with pytest.raises(AttlasError, match="a window and a batch of at least 1"):
        table().stream(["a b"], window=0)


def test_a_translator_opens_a_run_and_searches_as_its_recipe_says(tmp_path: Path) -> None:
    wanted = recurrent(num_beams=3, n_best=2, min_length=2)
    tables = {
        "model": MODEL.model_dump(),
        "decoding": {"num_beams": 3, "n_best": 2, "min_length": 2},
    }
    (tmp_path / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    wanted.vocabularies.save(tmp_path)
    store = CheckpointStore(tmp_path)
    store.write("00000001", Checkpoint(wanted.model.state_dict()))
    store.point("best", "00000001")
    text = "the cat sat"
    for opened in (Translator(tmp_path), Translator(str(tmp_path)), Translator(Run(tmp_path))):
        assert opened.config == wanted.config
        assert described(opened(text)) == described(wanted(text))
    greedy = Translator(tmp_path, DecodingConfig(method="greedy"))
    assert greedy(text).alternatives == ()
    assert greedy.facts["checkpoint"] == "best"
    (tmp_path / "config.toml").write_text(
        write_toml(tables | {"decoding": {"num_beems": 3}}), encoding="utf-8"
    )
    with pytest.raises(AttlasError, match="did you mean `num_beams`"):
        Translator(tmp_path)


def test_a_trace_of_a_translation_can_be_saved_and_read_back(tmp_path: Path) -> None:
    one = table()("a b c")
    assert one.trace is not None
    one.trace.save(tmp_path / "trace.safetensors")
    loaded = Trace.load(tmp_path / "trace.safetensors")
    assert loaded.source == one.trace.source
    torch.testing.assert_close(loaded["look"].weights(), one.trace["look"].weights())


def test_what_is_no_text_is_the_callers_mistake() -> None:
    """In a process of its own, in which nothing but the translator looks at the types."""
    code = """
from attlas.inference import Translator
from attlas.errors import AttlasError
translator = object.__new__(Translator)
for call, wrong in ((translator, {"a", "b"}), (translator, 3), (translator, None),
                    (translator.stream, 3), (translator.stream, None),
                    (lambda texts: list(translator.stream(texts)), [b"a"])):
    try:
        call(wrong)
    except AttlasError as error:
        print(error)
"""
    done = python(code)
    one, several = "expected one text, a str; got {}; {}", "expected several texts; got {}; {}"
    assert done.stdout.splitlines() == [
        *(
            one.format(kind, "for several texts call translator(list(texts)) or translator.stream")
            for kind in ("set", "int", "NoneType")
        ),
        *(several.format(kind, "pass a list of str") for kind in ("int", "NoneType")),
        one.format("bytes", "pass each text as a str"),
    ]


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("limit", [{}, {"max_source_length": 2}])
def test_a_model_of_so_many_positions_reads_and_writes_no_further_and_says_so(
    method: str, limit: dict[str, int]
) -> None:
    torch.manual_seed(0)
    words = Words([f"w{number}" for number in range(20)])
    config = TransformerConfig(
        embed_dim=8, num_heads=2, ffn_dim=8, positions="learned", max_positions=6
    )
    model = build(config, len(words), len(words))
    settings = DecodingConfig(method=method, **limit)  # type: ignore[arg-type]
    translator = Translator.of(model, Vocabularies(words, words), settings)
    reads = limit.get("max_source_length", 5)  # and its end
    for length in (1, 4, 5, 6, 30):
        found = translator(" ".join(["w3"] * length))
        assert found.cut == max(0, length - reads)
        assert len(found.tokens) - found.finished <= 5
        assert found.trace is not None
        assert found.trace


def test_a_token_that_looked_at_no_word_has_no_link() -> None:
    weights = torch.tensor([[0.7, 0.3, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    assert attention_links(weights, 4, 2) == ((0, 0), (0, 3))
    assert attention_links(weights, 4, 3) == ((0, 0), (2, 1), (0, 3))


def test_a_model_in_training_mode_is_not_read_again() -> None:
    translator = recurrent(method="greedy")
    one = translator("the cat")
    translator.model.train()
    with pytest.raises(AttlasError, match="a model in evaluation mode"):
        _ = one.trace


def test_a_prefix_that_the_model_cannot_write_is_an_error() -> None:
    with pytest.raises(
        AttlasError, match=r"expected a prefix of words .*got 'x foo', a part of which"
    ):
        table()("a b", prefix="x foo")


def test_a_shortest_translation_beyond_the_positions_is_an_error() -> None:
    torch.manual_seed(0)
    words = Words([f"w{number}" for number in range(20)])
    config = TransformerConfig(
        embed_dim=8, num_heads=2, ffn_dim=8, positions="learned", max_positions=6
    )
    model = build(config, len(words), len(words))
    with pytest.raises(AttlasError, match=r"a min_length of at most 5, .*; got 6; lower"):
        Translator.of(model, Vocabularies(words, words), DecodingConfig(min_length=6))
    translator = Translator.of(model, Vocabularies(words, words), DecodingConfig(min_length=5))
    assert len(translator("w1").text.split()) == 5
    with pytest.raises(AttlasError, match="shorten it: the model has no more positions"):
        translator("w1", prefix="w2 w3 w4 w5 w6 w7")


@pytest.mark.parametrize(
    ("config", "most"),
    [
        ({"method": "greedy"}, 40),
        ({"method": "beam", "num_beams": 5}, 8),
        ({"method": "sample", "n_best": 20}, 2),
        ({"method": "sample", "n_best": 400}, 1),
    ],
)
def test_a_batch_has_only_so_many_hypotheses(
    config: dict[str, int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translator_module, "_HYPOTHESES", 40)
    translator, sizes = recurrent(max_len_a=0.0, max_len_b=2, **config), []
    search = translator.search_all

    def counted(batches):
        sizes.extend(map(len, batches))
        return search(batches)

    monkeypatch.setattr(translator, "search_all", counted)
    count = max(most, 10)
    assert len(list(translator.stream(["cat"] * count, tokens=10_000))) == count
    assert max(sizes) <= most
    assert sum(sizes) == count


@pytest.mark.parametrize("config", [{"method": "greedy"}, {"num_beams": 3, "n_best": 2}])
def test_what_is_left_of_batches_goes_on_with_the_next_in_every_share(
    config: dict[str, object], two_threads: None
) -> None:
    translator = recurrent(max_len_a=1.0, max_len_b=2, **config)
    texts = [" ".join(["cat", "mat", "a dog", "the"][: 1 + n % 4] * (1 + n % 3)) for n in range(24)]
    alone = [translator(text) for text in texts]
    for forked in (False, True):
        with translator.forked() if forked else nullcontext(translator) as faster:
            together = list(faster.stream(texts, rows=3))
        assert [described(one) for one in together] == [described(one) for one in alone]
        scores = [one.score for one in alone]
        assert [one.score for one in together] == pytest.approx(scores, abs=1e-4)


def test_a_subclass_with_a_search_of_its_own_searches_by_it() -> None:
    class Parrot(Translator):
        def search(self, sources, prefixes):
            return [[Hypothesis(tuple(ids), 0.0, 0.0, True)] for ids in sources]

    plain = recurrent()
    parrot = Parrot.of(plain.model, plain.vocabularies)
    assert [one.text for one in parrot.stream(["a cat", "", "the mat"])] == ["a cat", "", "the mat"]


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_a_search_in_bfloat16_is_nearly_that_of_float32(
    kind: str, method: str, monkeypatch: pytest.MonkeyPatch, two_threads: None
) -> None:
    monkeypatch.setattr(linear, "_LEAST_HALVES", 0)  # so small a model is worth no bfloat16 else
    torch.manual_seed(2)
    config = (
        TransformerConfig(embed_dim=16, num_heads=2, ffn_dim=32, encoder_layers=1, decoder_layers=1)
        if kind == "transformer"
        else MODEL
    )
    model = build(config, len(SUBWORDS), len(SUBWORDS))
    vocabularies = Vocabularies(SUBWORDS, SUBWORDS)
    texts = [
        " ".join([word] * count) for word in ("a cat", "the mat", "dog") for count in range(1, 16)
    ]

    def found(**settings: object) -> list[Translation]:
        search = DecodingConfig(method=method, max_len_a=0.3, **settings)  # type: ignore[arg-type]
        return list(Translator.of(model, vocabularies, search).stream(texts))

    exact, coarse = found(), found(autocast="bf16")
    assert [one.log_probability for one in exact] != [one.log_probability for one in coarse]
    alike = [
        (one, other) for one, other in zip(exact, coarse, strict=True) if one.tokens == other.tokens
    ]
    assert len(alike) > len(texts) / 4  # of a model that knows nothing, all is nearly as good
    for one, other in alike:
        assert other.log_probability == pytest.approx(one.log_probability, rel=0.01)
    assert not is_bf16_matmul()


def test_a_search_leaves_autocast_from_outside_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = table(method="greedy")
    seen = []
    step = translator.model.encode_for_search
    monkeypatch.setattr(
        translator.model,
        "encode_for_search",
        lambda *given: seen.append(torch.is_autocast_enabled("cpu")) or step(*given),
    )
    translator("a b")
    with torch.autocast("cpu", torch.bfloat16):
        translator("a b")
    assert seen == [False, True]


def test_numbers_that_the_device_does_not_have_are_refused_before_anything_is_read() -> None:
    with pytest.raises(AttlasError, match=r"use decoding\.autocast = 'bf16' or 'none'"):
        table(autocast="fp16")


METHODS = [
    {"method": "greedy"},
    {"method": "beam", "num_beams": 3},
    {"method": "sample", "seed": 4},
]


@pytest.mark.parametrize("config", METHODS, ids=lambda config: str(config["method"]))
def test_a_bounded_translator_writes_as_one_whose_settings_allow_as_much(
    config: dict[str, object],
) -> None:
    free = recurrent(max_len_b=40, min_length=9, **config)
    short = recurrent(max_len_a=0.0, max_len_b=9, min_length=9, **config)
    for text in TEXTS[:3]:
        bounded = free.bounded(target=9)(text)
        assert described(bounded) == described(short(text))
        assert len(bounded.tokens) <= 10  # with END
    assert len(free(TEXTS[0]).tokens) > 10  # which is as it was


def test_a_bounded_translator_refuses_what_is_longer_than_it_reads() -> None:
    size = len(SUBWORDS.encode(TEXTS[0]))
    translator = recurrent(max_len_b=2)
    assert translator.bounded(source=size)(TEXTS[0]).text == translator(TEXTS[0]).text
    shorter = translator.bounded(source=size - 1)
    wanted = f"a text of at most {size - 1} tokens; got {size}"
    with pytest.raises(AttlasError, match=wanted):
        shorter(TEXTS[0])
    with pytest.raises(AttlasError, match=wanted):
        list(shorter.stream(TEXTS))
    # What the settings cut off is not read either.
    cutting = recurrent(max_source_length=size - 1, max_len_b=2).bounded(source=size - 1)
    assert cutting(TEXTS[0]).cut == 1


def test_a_prefix_beyond_the_bound_is_an_error_that_blames_no_setting() -> None:
    with pytest.raises(AttlasError, match=r"at most 2 tokens; got \d+ tokens; shorten it$"):
        recurrent().bounded(target=2)(TEXTS[0], prefix="the cat sat on the mat")


@pytest.mark.parametrize("config", METHODS, ids=lambda config: str(config["method"]))
def test_what_is_called_before_every_step_can_end_the_search(config: dict[str, object]) -> None:
    steps: list[int] = []
    translator = recurrent(min_length=12, max_len_a=0.0, max_len_b=12, **config)
    found = translator.bounded(before_step=lambda: steps.append(len(steps)))(TEXTS[0])
    assert len(steps) in (12, 13)  # of twelve tokens, and perhaps of END
    assert described(found) == described(translator(TEXTS[0]))

    def third() -> None:
        steps.append(len(steps))
        if len(steps) == 3:
            raise KeyError("enough")

    steps.clear()
    with pytest.raises(KeyError, match="enough"):
        translator.bounded(before_step=third)(TEXTS[0])
    assert len(steps) == 3


@pytest.mark.parametrize("bounds", [{"source": 0}, {"target": 0}])
def test_bounds_of_nothing_are_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(AttlasError, match="bounds of at least 1"):
        recurrent().bounded(**bounds)


@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_the_mean_of_heads_is_the_same_in_blocks_of_any_size(
    monkeypatch: pytest.MonkeyPatch, attention: str
) -> None:
    trace = recurrent(attention, min_length=7)(TEXTS[0]).trace
    assert trace is not None
    (layer,) = trace
    whole = trace[layer].weights()[0].mean(dim=0)
    assert torch.equal(teacher_forced.attention_to_source(trace), whole)
    for at_once in (1, 2 * whole.shape[1] + 1):
        monkeypatch.setattr(teacher_forced, "_AT_ONCE", at_once)
        torch.testing.assert_close(teacher_forced.attention_to_source(trace), whole)


def test_settings_of_a_call_are_those_of_a_translator_that_has_them() -> None:
    translator = recurrent(num_beams=3, n_best=2)
    for settings in ({"num_beams": 1, "n_best": 1}, {"method": "greedy"}, {"max_len_b": 3}):
        whole = {"num_beams": 3, "n_best": 2} | settings
        if settings.get("method") == "greedy":
            whole = settings
        expected = recurrent(**whole)(TEXTS[0])
        found = translator(TEXTS[0], **settings)
        assert (found.text, found.score) == (expected.text, expected.score)
        assert len(found.alternatives) == len(expected.alternatives)
    assert translator.config == DecodingConfig(num_beams=3, n_best=2)
    assert translator.with_settings(num_beams=4).config.num_beams == 4


@pytest.mark.parametrize("own", ["greedy", "beam", "sample"])
def test_a_setting_of_one_method_alone_chooses_that_method(own: str) -> None:
    translator = recurrent(method=own)
    assert translator.with_settings(num_beams=4).config.method == "beam"
    assert translator.with_settings(num_beams=4).config.num_beams == 4
    assert translator.with_settings(num_beams=1).config.method == "beam"
    assert translator.with_settings(temperature=0.5).config.method == "sample"
    assert translator.with_settings(top_k=3).config.method == "sample"
    assert translator.with_settings(length_penalty=0.5).config.method == own
    assert translator(TEXTS[0], num_beams=4).text == recurrent(num_beams=4)(TEXTS[0]).text


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"num_beam": 5}, r"a known setting in the call; got `num_beam`; did you mean `num_beams`"),
        ({"num_return_sequences": 5}, r"did you mean `n_best`"),
        ({"max_length": 5}, r"did you mean `max_len_b`"),
        ({"beam": 5}, r"it was renamed: write `num_beams`"),
        ({"num_beams": 0}, r"`num_beams` in the call: .*greater than or equal to 1; got 0"),
        ({"method": "beams"}, r"got 'beams'; did you mean 'beam'"),
        ({"method": "greedy", "num_beams": 5}, r"method = 'beam' for num_beams"),
        ({"n_best": 7}, r"n_best of at most 5"),
    ],
)
def test_a_setting_of_a_call_that_there_is_not_is_reported(settings: dict, reported: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(AttlasError, match=reported):
        recurrent()(TEXTS[0], **settings)


def test_a_list_of_texts_gives_the_list_of_their_translations() -> None:
    translator = recurrent()
    expected = [translator(text).text for text in TEXTS[:7]]
    assert [one.text for one in translator(TEXTS[:7])] == expected
    assert [one.text for one in translator(tuple(TEXTS[:2]), num_beams=5)] == expected[:2]
    assert translator([]) == []
    prefixed = translator(TEXTS[:1], prefix="cat")
    assert prefixed[0].text == translator(TEXTS[0], prefix="cat").text
