"""The experiments measure what their rules read."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attlas.lab import Claim, Experiment, Published, Source
from attlas.lab.data import VARIABLE, spaced_words
from attlas.lab.experiments.alignment import (
    Gold,
    published_links,
    recipes_of,
    relative_entropy,
    sampled,
)
from attlas.lab.experiments.coreference import IT, Example, examples, most_of_all, right_noun
from attlas.lab.experiments.induction import predicted, prefix_matching
from attlas.lab.experiments.luong_ladder import reversed_sources
from attlas.lab.experiments.norm_depth import RECIPE as NARROW
from attlas.lab.experiments.padding import with_padding
from attlas.lab.experiments.patterns import treebank_sentences
from attlas.lab.experiments.projections import TIES, tied
from attlas.lab.experiments.qk_norm import rises_of
from attlas.lab.experiments.scale_training import scaled_by
from attlas.lab.experiments.sentence_lengths import BUCKETS, buckets_of
from attlas.lab.experiments.sentiment import Counts, Review, inverse_frequencies, log_odds
from attlas.lab.experiments.sparse_cost import peak_bytes
from attlas.lab.ledger import all_experiments, find_experiment, judged
from attlas.lab.report import effect_of, published_text, rule_table
from attlas.lab.results import SHIPPED, key_of, results_of, table_of
from attlas.lab.runner import missing_data, run
from attlas.lab.trainings import SMALL_TRANSFORMER, toy_settings
from attlas.lab.verdict import All, AtLeast, AtMost, Difference, Measurements, Provided, Ratio, Rule
from attlas.layers import MultiheadAttention
from attlas.models import TransformerConfig, build
from attlas.recording import DenseAttentionMap
from attlas.training import read_recipe

# Trainings of two updates: enough to see that every number of every rule is there.
TINY: dict[str, dict[str, object]] = {
    "bottleneck": {
        "lengths": (15, 30),
        "widths": (32, 64, 128, 256),
        "epochs": 1,
        "train": 64,
    },
    "reversal": {"lengths": (20, 40), "epochs": 1, "train": 64},
    "sorting": {"hidden": 8, "epochs": 1, "train": 64},
    "teacher-forcing": {"length": 4, "epochs": 1, "train": 64},
    "beam": {"lengths": (10, 20), "beams": (1, 5, 10, 25), "epochs": 1, "train": 64},
    "beam-translation": {"new": 20, "beams": (1, 5, 100)},
    "rnn-vs-attention": {"dim": 8, "lengths": (64, 256, 1024), "repeats": 1},
    "crossing-length": {
        "widths": (64, 128, 256, 512),
        "lengths": (64, 128, 1024),
        "radius": 4,
        "repeats": 1,
    },
    "cost-of-heads": {"dim": 16, "length": 8, "repeats": 1},
    "memory-of-heads": {"dim": 16, "length": 64},
    "parameters-of-mechanisms": {},
    "untrained-heads": {},
    "permutation": {},
    "dot-score": {"steps": 2},
    "induction": {"texts": 2, "length": 8},
    "sinks": {"texts": 1, "length": 128},
    "masks": {"length": 6},
    "positions": {},
    "scale": {"keys": 8, "queries": 16},
    "scale-training": {
        # 32, 4 and 1 heads, which are narrower here than they are called
        "recipe": (
            "model.kind=transformer",
            "model.embed_dim=32",
            "model.ffn_dim=32",
            "model.encoder_layers=1",
            "model.decoder_layers=1",
        ),
        "widths": (8, 64, 256),
        "length": 4,
        "updates": 20,
    },
    "mechanisms-captions": {"pairs": 200, "held back": 5},
    "mechanisms-japanese": {"pairs": 200, "held back": 5},
    "longer-than-trained": {"trained": (3, 4), "updates": 2},
    "luong-global-local": {"length": 4, "radius": 1, "updates": 2},
    "norm": {"length": 4, "updates": 2},
    "norm-depth": {
        "recipe": (*NARROW, "data.valid=4", "data.test=4"),
        "depths": (2, 6, 12, 24),
        "length": 4,
        "updates": 2,
    },
    "clipping": {"length": 4, "updates": 2},
    "small-data": {"length": 4, "updates": 2},
    "attention-dropout": {"length": 4, "pairs": 20, "updates": 2, "texts": 4},
    "projections": {"length": 4, "updates": 2},
    "context-places": {"length": 4, "updates": 2},
    "padding": {"pairs": 20, "updates": 2},
    "length-penalty": {"lengths": (2, 3), "updates": 2, "texts": 4},
    "heads": {"length": 4, "updates": 2, "texts": 4},
    "more-heads": {"length": 4, "updates": 10, "texts": 4},
    "toy-maps": {"length": 4, "updates": 2, "texts": 4},
    "printed-numbers": {"tokens": 100},
    "statistics": {},
    "logits": {"length": 4, "updates": 20},
    "patterns": {"choosing": 30, "measuring": 30},
    "coreference": {"pairs": 4},
    "alignment": {"pairs": 300, "held back": 10, "recipes": recipes_of(4, 4)},
    "word-order": {"pairs": 300, "held back": 10, "recipes": recipes_of(4)},
    "additions": {"pairs": 300, "held back": 5, "gold": 3},
    "mechanisms": {"pairs": {"many": 300, "few": 200}, "held back": 5, "gold": 3},
    "luong-ladder": {"pairs": 300, "new": 5, "most words": 8},
    "lengths": {"pairs": 300, "held back": 15},
    "mechanisms-cost": {"rows": 1, "repeats": 1},
    "sentiment-heads": {"train": 200, "test": 20, "words": 30, "epochs": 1},
    "sentiment": {"train": 200, "test": 20, "words": 30, "epochs": 1, "explained": 4},
    "qk-norm": {"length": 4, "updates": 20},
    "sparse-reviews": {"train": 200, "test": 20, "words": 30, "epochs": 1},
    "sparse-cost": {"lengths": (16, 2048), "radius": 2, "repeats": 1},
    "sparse-copying": {"length": 4, "updates": 2},
}


NOT_SHARED = "the shared data folder is not beside this checkout"


@pytest.fixture(autouse=True)
def _lab_data(monkeypatch: pytest.MonkeyPatch, shared_data: Path) -> None:
    """The lab reads the shared data, unless it has a folder of its own."""
    if VARIABLE not in os.environ and shared_data.is_dir():
        monkeypatch.setenv(VARIABLE, str(shared_data))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", TINY)
def test_an_experiment_measures_what_its_rules_read(name: str, tmp_path: Path) -> None:
    experiment = find_experiment(name)
    if reason := missing_data(experiment):
        pytest.skip(f"{NOT_SHARED}: {reason}")
    settings = {**experiment.settings["quick"], **TINY[name]}
    tiny = replace(experiment, settings={"quick": settings, "full": settings})
    entry = judged(tiny, "full", list(run(tiny, "full", tmp_path, seeds=1)))
    reasons = [judgement.reason for _, judgement in entry.verdicts]
    assert [reason for reason in reasons if "missing" in reason or "expected" in reason] == []
    # Two updates teach nothing. So a rule that asks for a learnt task is judged without asking.
    table = table_of(entry.results)
    for claim, _ in entry.verdicts:
        judgement = unguarded(claim.rule, table).judge(table)
        assert judgement.outcome != "not judged", judgement.reason


def unguarded(rule: Rule, table: Measurements) -> Rule:
    """The rule, of which no part asks for a learnt task; those that did have found their number."""
    match rule:
        case Provided(rule=inner):
            assert rule.judge(table).provided
            return unguarded(inner, table)
        case All(rules=rules):
            return All(*(unguarded(one, table) for one in rules))
    return rule


def test_a_toy_reads_new_sequences_in_every_update() -> None:
    recipe = read_recipe("copy", [*toy_settings("reverse", (4, 9), 30), *SMALL_TRANSFORMER])
    assert recipe.data.task == "reverse"  # type: ignore[union-attr]
    assert recipe.data.train == 30 * 64  # type: ignore[union-attr]
    assert recipe.batching.rows == 64
    assert recipe.batching.max_tokens == 64 * 11  # 9 symbols, BEGIN and END
    assert recipe.model.kind == "transformer"
    assert recipe.training.schedule.warmup == 15


@pytest.mark.parametrize("name", TIES)
def test_tied_maps_are_one_map(name: str) -> None:
    torch.manual_seed(1)
    with tied(TIES[name]):
        attention = MultiheadAttention(8, 2, batch_first=True)
    assert attention.k_proj is (attention.q_proj if "k_proj" in TIES[name] else attention.k_proj)
    maps = {id(module) for module in (attention.q_proj, attention.k_proj, attention.v_proj)}
    assert len(maps) == 3 - len(TIES[name])
    plain = MultiheadAttention(8, 2, batch_first=True)
    assert plain.k_proj is not plain.q_proj


def test_layers_that_are_made_meanwhile_have_another_factor() -> None:
    inputs = torch.randn(5, 1, 8)  # places before texts, as in torch
    config = TransformerConfig(embed_dim=8, num_heads=1, ffn_dim=8)
    with scaled_by(1.0):
        model = build(config, 9, 9)
    layers = [module for module in model.modules() if isinstance(module, MultiheadAttention)]
    assert [layer.scale for layer in layers] == [1.0] * 9  # three encoder and six decoder layers
    usual = [m for m in build(config, 9, 9).modules() if isinstance(m, MultiheadAttention)]
    assert [layer.scale for layer in usual] == [None] * 9
    layer = layers[0]
    with torch.no_grad():
        weights = layer(inputs, inputs, inputs)[1]
        scores = layer.q_proj(inputs[:, 0]) @ layer.k_proj(inputs[:, 0]).T
    torch.testing.assert_close(weights[0], scores.softmax(-1))


def test_a_loss_is_compared_with_the_least_before_it() -> None:
    assert rises_of([4.0, 2.0, 3.0, 1.0, 1.5]) == [1.0, 1.0, 1.5, 1.0, 1.5]


def test_the_peak_is_that_of_the_tensors_that_live_together() -> None:
    given = torch.zeros(1000)

    def work() -> torch.Tensor:
        one = given + 1  # 4,000 bytes, and the view of another takes none
        two = one * 2 + given.view(10, 100).flatten()  # 4,000 for the product, and for the sum
        del one
        return two + 1  # two, and the sum

    assert peak_bytes(work) == 12_000
    assert peak_bytes(lambda: given.view(10, 100)) == 0


def test_padding_is_symbols_behind_a_text() -> None:
    assert with_padding("3 1", 4) == "3 1 pad pad"
    assert with_padding("3 1 2 4", 4) == "3 1 2 4"


def test_prefix_matching_is_the_weight_on_the_token_behind_the_earlier_copy() -> None:
    length = 4
    weights = torch.zeros(1, 2, 1 + 2 * length, 1 + 2 * length)
    weights[..., 0] = 1.0
    for i in range(length):  # head 1: from the second time of token i to the one behind the first
        weights[0, 1, 1 + length + i] = 0.0
        weights[0, 1, 1 + length + i, 2 + i] = 1.0
    assert prefix_matching(DenseAttentionMap(weights), length).tolist() == [0.0, 1.0]


def test_what_is_predicted_is_the_token_that_follows() -> None:
    ids = torch.tensor([[0, 2, 1]])
    logits = torch.full((1, 3, 3), -20.0)
    logits[0, 0, 2] = logits[0, 1, 0] = 20.0  # right, then wrong
    loss, right = predicted(logits, ids)
    assert right.tolist() == [[1.0, 0.0]]
    assert loss[0].tolist() == pytest.approx([0.0, 40.0], abs=1e-4)


def test_sentences_come_in_pairs_that_differ_in_the_last_word() -> None:
    lists = examples(20, 1)
    assert [len(one) for one in lists] == [40, 40]
    for animal, thing in (pair for one in lists for pair in zip(one[::2], one[1::2], strict=True)):
        assert animal.words[:-1] == thing.words[:-1]
        assert animal.words[IT] == "it"
        assert animal.noun == thing.other
    fixed = {"the", "on", "because", "it", "was", "sat", "slept", "lay", "jumped", "stood"}
    chosen, measured = ({word for each in one for word in each.words} - fixed for one in lists)
    assert chosen.isdisjoint(measured)


def test_the_right_noun_is_the_one_with_more_weight() -> None:
    words = ("the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "tired")
    sentences = [Example(words, 1), Example(words, 5)]
    weights = torch.zeros(2, 2, len(words))
    weights[:, 0, 1], weights[:, 0, 5] = 0.3, 0.2  # head 0 looks at the cat always,
    weights[:, 1, 1], weights[:, 1, 5] = 0.1, 0.2  # head 1 at the mat, and most at "tired"
    weights[:, 1, 9] = 0.3
    weights[:, :, IT] = 0.4
    assert right_noun(weights, sentences).tolist() == [0.5, 0.5]
    assert most_of_all(weights, sentences).tolist() == [0.5, 0.0]


def test_the_first_seeds_measure_other_sentences(shared_data: Path) -> None:
    assert shared_data / "ud"  # or the test is left out
    parts = [treebank_sentences(seed, 10, 20) for seed in (1, 2, 3)]
    measured = [sentence.comments["sent_id"] for _, some in parts for sentence in some]
    assert len(set(measured)) == 60
    for choosing, measuring in parts:
        assert not {id(one) for one in choosing} & {id(one) for one in measuring}
        assert (len(choosing), len(measuring)) == (10, 20)


def test_words_and_marks_stand_apart() -> None:
    assert spaced_words("Don't you?") == "don ' t you ?"
    assert spaced_words("Aujourd’hui, j'ai l'eau.", french=True) == "aujourd ' hui , je ai le eau ."


def test_published_links_have_their_published_error(shared_data: Path) -> None:
    assert shared_data / "word-alignment"  # or the test is left out
    gold = Gold.read()
    errors = {name: round(gold.error(links), 3) for name, links in published_links().items()}
    assert errors == {"fast_align": 0.164, "Giza++": 0.080}


def test_no_sentence_is_both_trained_with_and_held_back() -> None:
    pairs = [(f"s {i // 2}", f"t {i}") for i in range(40)] + [("one", "word")]
    train, held_back = sampled(pairs, 1, (12, 5), 2)
    assert (len(train), len(held_back)) == (12, 5)
    sources = [source for source, _ in train + held_back]
    assert len(set(sources)) == 17
    assert "one" not in sources
    assert set(train + held_back) <= set(pairs)


def test_buckets_hold_the_same_sentences_in_texts_of_their_lengths() -> None:
    pairs = [(f"{i} " + "w " * (4 + i % 6), f"t{i}") for i in range(200)]
    pairs = [(source.strip(), target) for source, target in pairs]
    buckets = buckets_of(pairs, 1)
    assert buckets["short"] == pairs
    for name, (low, high) in BUCKETS.items():
        sizes = [len(source.split()) for source, _ in buckets[name]]
        assert low <= min(sizes), name
        assert max(sizes) <= high, name
        targets = [word for _, target in buckets[name] for word in target.split()]
        assert targets == [target for _, target in pairs][: len(targets)], name
        assert len(pairs) - len(targets) < high, name
    assert max(len(source.split()) for source, _ in buckets["long"]) > 80


def test_a_reversed_source_keeps_its_words_and_its_target() -> None:
    assert reversed_sources([("a b ,", "x y")]) == [(", b a", "x y")]


def test_the_entropy_of_even_weights_is_1() -> None:
    weights = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.0, 1.0, 0.0, 0.0]])
    assert relative_entropy(weights).tolist() == pytest.approx([1.0, 0.0])


GOOD = [Review("good film", True), Review("a good film", True)]
BAD = [Review("bad film", False), Review("a bad film", False)]


def test_log_odds_are_those_of_texts_with_a_word() -> None:
    found = log_odds(GOOD + BAD, 1)
    assert set(found) == {"good", "bad", "film", "a"}
    assert found["good"] == pytest.approx(torch.tensor(3.0).log().item())  # (2 + 1) / (0 + 1)
    assert found["bad"] == pytest.approx(-found["good"])
    assert found["film"] == pytest.approx(0.0)


@pytest.mark.parametrize("frequent", [True, False])
def test_counted_words_tell_good_from_bad(frequent: bool) -> None:
    weights = inverse_frequencies(GOOD + BAD, 2)
    assert weights["film"] == pytest.approx(1.0)  # in every text
    assert weights["good"] > weights["film"]
    model = Counts.fitted(GOOD + BAD, weights, longest=2, frequent=frequent)
    new = [Review("a really good one", True), Review("bad", False)]
    assert model.accuracy(new) == 1.0


def test_the_effect_of_a_rule_of_one_part_is_that_of_the_part() -> None:
    numbers = Measurements({1: [("score", {}, 1.0)], 2: [("score", {}, 1.0)]})
    one, rule = AtLeast("score", 0.5), All(AtLeast("score", 0.5))
    assert effect_of(rule.judge(numbers)) == effect_of(one.judge(numbers)) == "1 (1 to 1)"
    assert effect_of(All(one, one).judge(numbers)) == "2 of 2 parts hold"


def test_a_part_whose_model_has_not_learnt_says_what_it_has() -> None:
    numbers = Measurements({seed: [("score", {}, 1.0), ("BLEU", {}, 9.0)] for seed in (1, 2)})
    one = AtLeast("score", 0.5)
    rule = All(one, Provided(one, "BLEU", 10.0, {}))
    rows = rule_table(rule, rule.judge(numbers)).rows
    assert [row[1:] for row in rows] == [
        ("1 (1 to 1)", "holds"),
        ("9 with the worst seed", "not judged"),
    ]


def _parts(rule: Rule) -> Iterator[Rule]:
    match rule:
        case All(rules=rules):
            for one in rules:
                yield from _parts(one)
        case Provided(rule=inner):
            yield from _parts(inner)
        case _:
            yield rule


@pytest.mark.parametrize("experiment", all_experiments(), ids=lambda one: one.name)
def test_no_claim_of_equality_has_two_parts_that_never_both_fail(experiment: Experiment) -> None:
    for claim in experiment.claims:
        sides = []
        for part in _parts(claim.rule):
            match part:
                case Difference() | Ratio():
                    both = str(part.more), str(part.less)
                    sides.append((type(part), part.metric, *sorted(both)))
                case AtLeast() | AtMost():
                    sides.append(("bound", part.metric, str(part.where)))
        assert len(sides) == len(set(sides)), claim.text


def test_a_figure_at_second_hand_is_said_to_be_so() -> None:
    read, other = Source("A", "table 1", read=True), Source("B", "table 2", read=False)
    claim = Claim("C.", read, AtLeast("score", 0.5), "D.", (Published("BLEU", 24.9, read),))
    assert published_text(claim) == "24.9 (read at its source)"
    assert published_text(replace(claim, published=(Published("x", 2.0, other),))).endswith(
        "2 (second hand)"
    )
    assert published_text(replace(claim, published=())) == "–"
    pruned = Published("heads", 38 / 48, other, "38 of 48", measured=False)
    both = replace(claim, published=(*claim.published, pruned))
    assert published_text(both) == (
        "24.9 (read at its source); 38 of 48 (second hand; not measured there)"
    )


def test_who_cites_says_whether_it_was_read() -> None:
    with pytest.raises(TypeError, match="read"):
        Source("A", "table 1")  # type: ignore[call-arg]


# A key has a digest of the data too, which is not at hand everywhere.
JUDGED = [one for one in all_experiments() if not missing_data(one)]


@pytest.mark.parametrize("experiment", JUDGED, ids=lambda one: one.name)
def test_what_is_shipped_was_measured_by_the_code_that_is_there(experiment: Experiment) -> None:
    found = [
        (scale, result)
        for scale in experiment.settings
        for result in results_of(experiment.name, scale, [SHIPPED])
        if result.facts["torch"] == torch.__version__
    ]
    for scale, result in found:
        assert result.key == key_of(experiment, scale, result.seed), (scale, result.seed)
