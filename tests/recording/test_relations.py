"""Who looks at what: by what queries and keys were made of, whatever their names are."""

import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import nn

from attlas.recording import observe

WIDTH, HEADS, PLACES = 16, 2, 6
TEXT, OTHER, LONGER = (torch.randn(2, places, WIDTH) for places in (PLACES, PLACES, 9))


def relations(model, *given, **named):
    """What each layer relates, in the order of the layers."""
    with torch.no_grad(), observe(model) as trace:
        model(*given, **named)
    return [trace.kind(layer) for layer in trace]


def in_heads(vectors):
    return vectors.unflatten(-1, (HEADS, -1)).transpose(1, 2)


class Looking(nn.Module):
    """One head over what it is given, which is made anew by a linear map each."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, context):
        requested, keys = self.q_proj(x).unsqueeze(1), self.k_proj(context).unsqueeze(1)
        return F.scaled_dot_product_attention(requested, keys, keys)


def test_a_text_that_looks_at_one_of_another_length_looks_across():
    model = Looking()
    with observe(model) as trace:
        model(torch.randn(2, 2, 8), torch.randn(2, 9, 8))
    assert trace.kind("") == "cross"
    assert trace[""].query_offset == 0  # the queries are no newest positions of these keys


def test_the_end_of_a_text_that_looks_at_all_of_it_does_not():
    model, text = Looking(), torch.randn(2, 9, 8)
    with observe(model) as trace:
        model(text[:, -2:], text)
    assert trace.kind("") == "self"
    end = text[:, -2:]
    with observe(model) as trace:
        model(end, text)  # nobody saw where it came from, but it shares its memory
    assert trace.kind("") is None


def test_two_texts_of_one_length_are_reported_apart():
    assert relations(Looking(), torch.randn(2, 9, 8), torch.randn(2, 9, 8)) == ["cross"]


@pytest.mark.parametrize("name", ["encoder_decoder_attention", "is_cross_attention"])
@pytest.mark.parametrize("across", [True, False])
def test_a_module_may_say_it_itself(name, across):
    model = Looking()
    setattr(model, name, across)
    found = relations(model, torch.randn(2, 9, 8), torch.randn(2, 9, 8))
    assert found == ["cross" if across else "self"]


class Attention(nn.Module):
    """Many heads, which look at their own text where no other is given."""

    def __init__(self, fused):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.fused = fused

    def forward(self, hidden_states, encoder_hidden_states=None):
        if encoder_hidden_states is None:
            encoder_hidden_states = hidden_states
        query, key, value = (
            in_heads(each(text))
            for each, text in (
                (self.q, hidden_states),
                (self.k, encoder_hidden_states),
                (self.v, encoder_hidden_states),
            )
        )
        if self.fused:
            context = F.scaled_dot_product_attention(query, key, value)
        else:
            context = (query @ key.mT / 8**0.5).softmax(-1) @ value
        return self.o(context.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A layer of a decoder, or of an encoder where no memory is given."""

    def __init__(self, fused):
        super().__init__()
        self.norm, self.again = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.own, self.other = Attention(fused), Attention(fused)

    def forward(self, text, memory=None):
        text = text + self.own(self.norm(text))
        return text if memory is None else text + self.other(self.again(text), memory)


class Translating(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.encoder = nn.ModuleList(Block(fused) for _ in range(2))
        self.decoder = nn.ModuleList(Block(fused) for _ in range(2))

    def forward(self, source, target):
        for layer in self.encoder:
            source = layer(source)
        for layer in self.decoder:
            target = layer(target, source)
        return target


BOTH = [pytest.param(True, id="fused"), pytest.param(False, id="written")]
PAIRS = [(TEXT, LONGER), (TEXT, OTHER), (TEXT, TEXT)]


@pytest.mark.parametrize("fused", BOTH)
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["lengths", "alike", "the same"])
def test_a_decoder_looks_at_itself_and_across_whatever_it_is_given(fused, source, target):
    expected = ["self", "self", *["self", "cross"] * 2]
    assert relations(Translating(fused), source, target) == expected


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["lengths", "alike", "the same"])
def test_pytorchs_transformer_looks_across_though_both_texts_may_be_one(norm_first, source, target):
    model = nn.Transformer(WIDTH, HEADS, 2, 2, 16, batch_first=True, norm_first=norm_first)
    expected = ["self", "self", *["self", "cross"] * 2]
    assert relations(model.eval(), source, target) == expected


@pytest.mark.parametrize("fused", BOTH)
def test_a_source_that_a_body_puts_in_place_of_none_is_its_own_text(fused):
    model = Attention(fused)
    assert relations(model, TEXT) == ["self"]
    assert relations(model, TEXT, None) == ["self"]
    assert relations(model, TEXT, TEXT) == ["self"]
    assert relations(model, TEXT, OTHER) == ["cross"]
    assert relations(model, hidden_states=TEXT, encoder_hidden_states=LONGER) == ["cross"]


class Joint(nn.Module):
    """As Stable Diffusion 3 has it: both texts look at both, then the image at itself alone, and
    then across; a condition scales and shifts all that is given to them."""

    def __init__(self):
        super().__init__()
        self.own, self.added = (nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.condition = nn.Linear(WIDTH, 2 * WIDTH)
        self.alone, self.across = Attention(True), Attention(True)

    def forward(self, hidden_states, encoder_hidden_states, condition):
        scale, shift = self.condition(condition)[:, None].chunk(2, -1)
        image, text = (one * (1 + scale) + shift for one in (hidden_states, encoder_hidden_states))
        pairs = zip(self.own(image).chunk(3, -1), self.added(text).chunk(3, -1), strict=True)
        query, key, value = (in_heads(torch.cat(pair, 1)) for pair in pairs)
        read = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        image = hidden_states + read[:, :PLACES]
        text = encoder_hidden_states + read[:, PLACES:]
        image = image + self.alone(image * (1 + scale))
        return image + self.across(image * (1 + scale), text * (1 + scale))


def test_joint_attention_looks_at_its_own_texts_and_what_follows_is_reported_apart():
    model = Joint()
    with torch.no_grad(), observe(model) as trace:
        model(TEXT, LONGER, torch.randn(2, WIDTH))
    assert {layer: trace.kind(layer) for layer in trace} == {
        "": "self",
        "alone": "self",
        "across": "cross",
    }


SPLITS = {
    "chunk": lambda made: made.chunk(3, -1),
    "slices": lambda made: [made[..., start : start + WIDTH] for start in (0, WIDTH, 2 * WIDTH)],
    "unbind": lambda made: made.unflatten(-1, (3, WIDTH)).unbind(2),
    "permute": lambda made: made.unflatten(-1, (3, WIDTH)).permute(2, 0, 1, 3),
    "copy": lambda made: made.unflatten(-1, (3, WIDTH)).permute(2, 0, 1, 3).contiguous(),
}


class Projected(nn.Module):
    """Queries, keys and values that one product makes, in whatever way they are taken apart."""

    def __init__(self, split, *, keys_of_both, queries_of_both):
        super().__init__()
        self.own, self.added = (nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.split, self.of_both = split, (queries_of_both, keys_of_both, keys_of_both)

    def forward(self, image, text):
        pairs = zip(self.split(self.own(image)), self.split(self.added(text)), strict=True)
        query, key, value = (
            in_heads(torch.cat(pair, 1) if both else pair[0])
            for pair, both in zip(pairs, self.of_both, strict=True)
        )
        return F.scaled_dot_product_attention(query, key, value)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    ("queries_of_both", "keys_of_both", "expected"),
    [(True, True, "self"), (False, False, "self"), (False, True, None)],
)
def test_how_a_projection_is_taken_apart_does_not_matter(
    split, queries_of_both, keys_of_both, expected
):
    model = Projected(SPLITS[split], keys_of_both=keys_of_both, queries_of_both=queries_of_both)
    assert relations(model, TEXT, LONGER) == [expected]


class Detecting(nn.Module):
    """As DETR has it (Carion et al., 2020): positions are added to queries and keys alone."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, target, memory, query_positions, key_positions):
        query = in_heads(self.query(target + query_positions))
        key = in_heads(self.key(memory + key_positions))
        return F.scaled_dot_product_attention(query, key, in_heads(self.value(memory)))


def test_positions_that_are_added_to_keys_alone_do_not_hide_whose_they_are():
    positions = torch.randn(3, *TEXT.shape)
    assert relations(Detecting(), TEXT, OTHER, *positions[:2]) == ["cross"]
    assert relations(Detecting(), TEXT, TEXT, positions[0], positions[0]) == ["self"]


class TwoHalves(nn.Module):
    """Two texts in one tensor, which a layout of its own takes apart before they are projected."""

    def __init__(self):
        super().__init__()
        self.query, self.key = (nn.Linear(WIDTH, WIDTH) for _ in range(2))

    def forward(self, both):
        first, second = both.unflatten(1, (2, -1)).permute(1, 0, 2, 3)
        query, key = in_heads(self.query(first)), in_heads(self.key(second))
        return F.scaled_dot_product_attention(query, key, key)


def test_two_parts_of_a_text_that_are_projected_apart_are_not_called_one():
    assert relations(TwoHalves(), torch.cat((TEXT, OTHER), 1)) == [None]


class Probing(nn.Module):
    """Queries that a model has learned, in three ways: pooling, latents, a sampler."""

    def __init__(self, fused):
        super().__init__()
        self.probe = nn.Parameter(torch.randn(1, 3, WIDTH))
        self.pool = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.blocks = nn.ModuleList(Block(fused) for _ in range(2))

    def forward(self, hidden_states):
        probe = self.probe.repeat(len(hidden_states), 1, 1)
        read, _ = self.pool(probe, hidden_states, hidden_states)
        for block in self.blocks:
            probe = block(probe, hidden_states)
        return read, probe


@pytest.mark.parametrize("fused", BOTH)
def test_what_a_model_has_learned_looks_across_at_a_text_and_at_itself(fused):
    expected = ["cross", *["self", "cross"] * 2]
    assert relations(Probing(fused), TEXT) == expected


def test_latents_that_look_at_a_text_and_at_themselves_at_once_are_neither():
    class Sampling(Attention):
        def forward(self, media):
            latents = self.o.weight[None, :3].expand(len(media), -1, -1)
            query, keys = self.q(latents), self.k(torch.cat((media, latents), 1))
            return F.scaled_dot_product_attention(query[:, None], keys[:, None], keys[:, None])

    class Beside(Attention):
        def forward(self, hidden_states, encoder_hidden_states):
            query = self.q(hidden_states)
            keys = torch.cat((self.k(hidden_states), self.k(encoder_hidden_states)), 1)
            return F.scaled_dot_product_attention(query[:, None], keys[:, None], keys[:, None])

    assert relations(Sampling(True), TEXT) == [None]
    assert relations(Beside(True), TEXT, LONGER) == [None]


class Reducing(nn.Module):
    """Queries that are fewer than the places of the text of which they were made."""

    def __init__(self, reduce, fused):
        super().__init__()
        self.reduce, self.attention = reduce, Attention(fused)

    def forward(self, hidden_states):
        return self.attention(self.reduce(hidden_states), hidden_states)


REDUCTIONS = {
    "pooled": lambda text: F.avg_pool1d(text.mT, 2).mT,
    "the first": lambda text: text[:, :1],
    "a mean": lambda text: text.mean(1, keepdim=True),
    "a chunk": lambda text: text.split(2, 1)[1],
}


@pytest.mark.parametrize("reduce", REDUCTIONS.values(), ids=REDUCTIONS)
@pytest.mark.parametrize("fused", BOTH)
def test_queries_made_of_a_text_look_at_it_though_they_are_fewer(reduce, fused):
    assert relations(Reducing(reduce, fused), TEXT) == ["self"]


class Preparing(nn.Module):
    """nn.MultiheadAttention, of what was made of texts before it was called."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm, self.places = nn.LayerNorm(WIDTH), nn.Parameter(torch.randn(PLACES, WIDTH))

    def forward(self, way, text, memory):
        norm, places = self.norm, self.places
        given = {
            "apart": lambda: (norm(text), norm(text), norm(text)),
            "with places": lambda: (norm(text) + places, norm(text) + places, norm(text)),
            "the last": lambda: (text[:, -1:], text, text),
            "keys with places": lambda: (norm(text), memory + places, memory),
            "both normed": lambda: (norm(text), norm(memory), norm(memory)),
        }[way]
        return self.attention(*given())


WAYS = {"apart": "self", "with places": "self", "the last": "self"}
WAYS |= {"keys with places": "cross", "both normed": "cross"}


@pytest.mark.parametrize(("way", "relation"), WAYS.items())
def test_who_has_made_queries_and_keys_says_of_what(way, relation):
    assert relations(Preparing(), way, TEXT, OTHER) == [relation]


def test_inputs_of_which_nobody_saw_what_made_them_are_unknown():
    model, norm = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), nn.LayerNorm(WIDTH)
    given = norm(TEXT), norm(TEXT), norm(TEXT)
    assert relations(model, *given) == [None]
    with observe(model) as trace:
        model(norm(TEXT), norm(TEXT), norm(TEXT))
    assert trace.kind("") == "self"


class Multiplying(nn.Module):
    def forward(self, query, key, value, mask=None):
        return (query @ key.mT).softmax(-1) @ value


class Projecting(nn.Module):
    """As x-transformers has it: a module for the products, within the one that projects."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.q, self.kv = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.attend = Multiplying()

    def forward(self, x, context=None):
        x = self.norm(x)
        key, value = self.kv(x if context is None else context).chunk(2, -1)
        return self.attend(*(in_heads(one) for one in (self.q(x), key, value)))


def test_a_module_that_only_multiplies_asks_the_one_that_has_projected():
    model = Projecting()
    assert relations(model, TEXT) == ["self"]
    assert relations(model, TEXT, LONGER) == ["cross"]
    assert relations(model, TEXT, context=OTHER) == ["cross"]


@pytest.mark.parametrize("learned", [False, True])
def test_heads_that_are_mixed_after_the_softmax_hide_no_origin(learned):
    class Talking(Attention):
        def forward(self, x, context):
            query, key = in_heads(self.q(x)), in_heads(self.k(context))
            mix = self.o.weight[:HEADS, :HEADS] if learned else torch.randn(HEADS, HEADS)
            return torch.einsum("bhij,hg->bgij", (query @ key.mT).softmax(-1), mix) @ key

    model = Talking(False)
    assert relations(model, TEXT, TEXT) == ["self"]
    assert relations(model, TEXT, OTHER) == ["cross"]


class Remembering(nn.Module):
    """A cache of its own, without a name that says so."""

    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.own = self.other = None

    def forward(self, x, context=None):
        query = self.q(x)
        if context is not None:
            self.other = self.k(context)
        if self.other is None:
            self.own = self.k(x) if self.own is None else torch.cat((self.own, self.k(x)), 1)
        keys = self.own if self.other is None else self.other
        return F.scaled_dot_product_attention(query[:, None], keys[:, None], keys[:, None])


def test_keys_of_a_cache_are_of_the_text_that_filled_it():
    for contexts, relation in (([None] * 3, "self"), ([LONGER, None, None], "cross")):
        model = Remembering()
        with torch.no_grad(), observe(model) as trace:
            for place, context in enumerate(contexts):
                model(TEXT[:, place : place + 1], context)
        assert trace.kind("") == relation


def test_a_recurrent_decoder_looks_across_from_the_first_step_on():
    class Asking(nn.Module):
        def forward(self, query, keys):
            return (query @ keys.mT).softmax(-1) @ keys

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.look, self.recur = Asking(), nn.GRU(WIDTH, WIDTH, batch_first=True)

        def forward(self, word, outputs, hidden):
            return self.recur(word + self.look(hidden.transpose(0, 1), outputs), hidden)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.step = nn.GRU(WIDTH, WIDTH, batch_first=True), Step()

        def forward(self, source, target):
            outputs, hidden = self.encode(source)
            for word in target.split(1, 1):
                _, hidden = self.step(word, outputs, hidden)  # at first it is the source's
            return hidden

    assert relations(Model(), TEXT, OTHER) == ["cross"]


def test_following_origins_keeps_no_tensor_alive():
    made = []

    class Model(Attention):
        def forward(self, x):
            hidden = x * 2
            made.append(torch.utils.weak.TensorWeakRef(hidden))
            return super().forward(hidden)

    model = Model(False)
    with torch.no_grad(), observe(model, last_calls=1):
        model(TEXT)
        assert made[0]() is None


SMALL = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
SIDES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 24}
SIDES |= {"decoder_ffn_dim": 24, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
IDS = torch.randint(3, 30, (2, 7))


def siglip():
    config = transformers.SiglipVisionConfig(**SMALL, num_hidden_layers=1, image_size=8)
    config.patch_size = 4
    return transformers.SiglipVisionModel(config), (torch.randn(2, 3, 8, 8),), ["self", "cross"]


def funnel():
    config = transformers.FunnelConfig(
        vocab_size=40, block_sizes=[1, 1], d_model=16, n_head=2, d_head=8, d_inner=24
    )
    return transformers.FunnelBaseModel(config), (IDS,), ["self", "self"]


def deberta():
    config = transformers.DebertaV2Config(**SMALL, num_hidden_layers=1, vocab_size=40)
    config.relative_attention, config.pos_att_type = True, ["c2p", "p2c"]
    return transformers.DebertaV2Model(config), (IDS,), ["self"]


def qformer():
    config = transformers.Blip2QFormerConfig(
        **SMALL, num_hidden_layers=1, vocab_size=40, encoder_hidden_size=12
    )
    learned = nn.Parameter(torch.randn(1, 3, 16)).expand(2, -1, -1)
    image = {"encoder_hidden_states": torch.randn(2, 5, 12)}
    return transformers.Blip2QFormerModel(config), (learned, image), ["self", "cross"]


def bart():
    config = transformers.BartConfig(**SIDES, vocab_size=40, max_position_embeddings=32)
    given = {"input_ids": IDS, "decoder_input_ids": IDS}
    return transformers.BartModel(config), (given,), ["self", "self", "cross"]


@pytest.mark.parametrize("kind", [siglip, funnel, deberta, qformer, bart])
def test_models_of_hugging_face_relate_what_their_papers_say(kind):
    model, given, expected = kind()
    named = given[-1] if isinstance(given[-1], dict) else {}
    assert relations(model.eval(), *given[: len(given) - bool(named)], **named) == expected


@pytest.mark.parametrize("search", [{}, {"num_beams": 2}, {"cache_implementation": "static"}])
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
def test_a_generation_looks_across_at_keys_that_no_step_was_given(search, kernel):
    config = transformers.M2M100Config(
        **SIDES, vocab_size=40, max_position_embeddings=32, decoder_start_token_id=2
    )
    model = transformers.M2M100ForConditionalGeneration._from_config(
        config, attn_implementation=kernel
    ).eval()
    with torch.no_grad(), observe(model) as trace:
        model.generate(IDS, max_new_tokens=4, min_new_tokens=4, do_sample=False, **search)
    assert [trace.kind(layer) for layer in trace] == ["self", "self", "cross"]


@pytest.mark.parametrize("use_cache", [True, False])
def test_layers_that_share_the_keys_of_an_earlier_one_look_at_their_own_text(use_cache):
    config = transformers.Gemma3nTextConfig(
        **SMALL,
        vocab_size=40,
        num_hidden_layers=4,
        num_key_value_heads=1,
        head_dim=8,
        num_kv_shared_layers=2,
        hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=40,
        laurel_rank=4,
        activation_sparsity_pattern=[0.0] * 4,
        layer_types=["sliding_attention", "full_attention"] * 2,
        altup_num_inputs=2,
    )
    config.intermediate_size = [24] * 4
    model = transformers.Gemma3nForCausalLM(config).eval()
    assert relations(model, IDS, use_cache=use_cache) == ["self"] * 4


def test_relation_says_what_kind_says():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    with observe(layer) as trace:
        layer(TEXT[..., :8], LONGER[..., :8], LONGER[..., :8])
    assert trace.relation("") == trace.kind("") == "cross"
