"""The statistics of a step against float64, from the weights that eager code has."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attlas
from support import small_models

LENGTH, WIDTH, HEADS = 9, 16, 4


def brute(weights, visible, counted, position=None, *, scores=None):
    """Every statistic of each head, written down as the formulas say, in float64.

    Args:
        weights: (batch, heads, queries, keys); visible: which keys each query may see;
        counted: (batch, queries).
    """
    weights = weights.detach().double().numpy()
    batch, heads, queries, keys = weights.shape
    visible = np.broadcast_to(visible, weights.shape)
    found = []
    for head in range(heads):
        rows, shares = [], []
        for text in range(batch):
            first = np.flatnonzero(visible[text, head].any(0))[0]
            received, number = np.zeros(keys), 0
            for query in range(queries):
                sees = visible[text, head, query]
                if not counted[text, query] or not sees.any():
                    continue
                w = weights[text, head, query]
                entropy = -sum(p * math.log(p) for p in w if p > 0)
                own = np.nan if position is None else position + query
                rows.append(
                    (
                        sees.sum(),
                        entropy,
                        entropy / math.log(sees.sum()) if sees.sum() > 1 else np.nan,
                        math.exp(entropy),
                        w[first],
                        np.nan if position is None else w[own],
                        sum(p * abs(own - key) for key, p in enumerate(w)),
                        np.nan if scores is None else max(scores[text, head, query][sees]),
                    )
                )
                received += w
                number += 1
            if number:
                shares.append(received.max() / number)
        table = np.array(rows)
        found.append(
            {
                "queries": len(rows),
                "visible": table[:, 0].mean(),
                "entropy": table[:, 1].mean(),
                "entropy_p10": np.quantile(table[:, 1], 0.1),
                "entropy_p50": np.quantile(table[:, 1], 0.5),
                "entropy_p90": np.quantile(table[:, 1], 0.9),
                "normalized_entropy": np.nanmean(table[:, 2]),
                "effective_keys": table[:, 3].mean(),
                "first_share": table[:, 4].mean(),
                "received_share": np.mean(shares),
                **({} if position is None else {"distance": table[:, 6].mean()}),
                **({} if position is None else {"self_share": table[:, 5].mean()}),
                **({} if scores is None else {"max_logit": table[:, 7].max()}),
            }
        )
    return found


def check(reading, layer, expected, *, without=()):
    heads = [head for head in reading.heads if head.layer == layer]
    assert len(heads) == len(expected), [head.layer for head in reading.heads]
    for number, (head, figures) in enumerate(zip(heads, expected, strict=True)):
        assert head.head == number
        assert head.nonfinite == 0
        for name, value in figures.items():
            if name not in without:
                assert getattr(head, name) == pytest.approx(value, abs=1e-5, rel=1e-5), name


def step_of(model, *args, **kwargs):
    """The reading of one step, and what the model gave."""
    model.train()
    with attlas.watch(model) as watch:
        output = model(*args, **kwargs)
        return watch.step(), output


def padded_batch(left=False):
    torch.manual_seed(3)
    ids = torch.randint(4, small_models.SIZE, (3, LENGTH))
    lengths = torch.tensor([LENGTH, 5, 2]).unsqueeze(1)
    place = torch.arange(LENGTH).flip(0) if left else torch.arange(LENGTH)
    mask = (place < lengths).long()
    return ids * mask, mask


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
    return model


CAUSAL = np.tri(LENGTH, dtype=bool)


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_bert(kernel):
    ids, mask = padded_batch()
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = small_models.model("bert", **quiet)
    model.set_attn_implementation(kernel)
    reading, _ = step_of(model, input_ids=ids, attention_mask=mask)
    model.set_attn_implementation("eager")
    weights = model(input_ids=ids, attention_mask=mask, output_attentions=True).attentions
    seen = mask.bool().numpy()
    for number, layer in enumerate(weights):
        path = f"bert.encoder.layer.{number}.attention.self"
        check(reading, path, brute(layer, seen[:, None, None, :], seen, 0))


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
@pytest.mark.parametrize("left", [False, True])
def test_llama_with_grouped_queries_and_padding_on_either_side(kernel, left, monkeypatch):
    ids, mask = padded_batch(left)
    model = small_models.model("llama")
    model.set_attn_implementation(kernel)
    reading, _ = step_of(model, input_ids=ids, attention_mask=mask)
    model.set_attn_implementation("eager")
    scores, softmax = [], F.softmax

    def listening(values, *args, **kwargs):
        scores.append(values.detach().double().numpy())
        return softmax(values, *args, **kwargs)

    monkeypatch.setattr(nn.functional, "softmax", listening)
    weights = model(input_ids=ids, attention_mask=mask, output_attentions=True).attentions
    seen = mask.bool().numpy()
    visible = CAUSAL & seen[:, None, None, :]
    for number, layer in enumerate(weights):
        path = f"model.layers.{number}.self_attn"
        check(reading, path, brute(layer, visible, seen, 0, scores=scores[number]))


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_labels_say_which_queries_of_a_decoder_are_padding(name):
    """As the collators of Hugging Face pad them, who give no mask of the decoder."""
    ids, mask = padded_batch()
    labels = ids[:, :6].masked_fill(~mask[:, :6].bool(), -100)
    model = without_dropout(small_models.model(name))
    reading, _ = step_of(model, input_ids=ids, attention_mask=mask, labels=labels)
    decoders = [head for head in reading.heads if "decoder" in head.layer]
    assert {head.queries for head in decoders} == {int((labels != -100).sum())}
    assert bool((labels == -100).any())


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_t5_with_biases_and_cross_attention(kernel):
    ids, mask = padded_batch()
    written, written_mask = ids[:, :6].clone(), mask[:, :6]
    model = without_dropout(small_models.model("t5"))
    model.set_attn_implementation(kernel)
    given = {
        "input_ids": ids,
        "attention_mask": mask,
        "decoder_input_ids": written,
        "decoder_attention_mask": written_mask,
    }
    reading, _ = step_of(model, **given)
    model.set_attn_implementation("eager")
    output = model(**given, output_attentions=True)
    seen, wrote = mask.bool().numpy(), written_mask.bool().numpy()
    for number, weights in enumerate(output.encoder_attentions):
        path = f"encoder.block.{number}.layer.0.SelfAttention"
        check(reading, path, brute(weights, seen[:, None, None, :], seen, 0))
    for number, weights in enumerate(output.decoder_attentions):
        path = f"decoder.block.{number}.layer.0.SelfAttention"
        visible = np.tri(6, dtype=bool) & wrote[:, None, None, :]
        check(reading, path, brute(weights, visible, wrote, 0))
    for number, weights in enumerate(output.cross_attentions):
        path = f"decoder.block.{number}.layer.1.EncDecAttention"
        expected = brute(weights, seen[:, None, None, :], wrote, 0)
        check(reading, path, expected, without=("self_share",))
        assert all(h.self_share is None for h in reading.heads if h.layer == path)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [False, True])
def test_the_transformer_of_torch(norm_first):
    torch.manual_seed(0)
    model = nn.Transformer(
        WIDTH, HEADS, 1, 2, 32, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    model.encoder.enable_nested_tensor = False
    source, target = torch.randn(2, LENGTH, WIDTH), torch.randn(2, 5, WIDTH)
    padding = torch.arange(LENGTH) >= torch.tensor([[LENGTH], [4]])
    written = torch.arange(5) >= torch.tensor([[5], [3]])
    masks = {
        "tgt_mask": nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.bool),
        "src_key_padding_mask": padding,
        "memory_key_padding_mask": padding,
        "tgt_key_padding_mask": written,
    }
    reading, _ = step_of(model, source, target, **masks)
    with attlas.observe(model) as trace:
        model(source, target, **masks)
    seen, wrote = ~padding.numpy(), ~written.numpy()
    for layer in trace:
        is_cross = "multihead_attn" in layer
        keys = seen if "encoder" in layer or is_cross else wrote
        counted = seen if "encoder" in layer else wrote
        visible = keys[:, None, None, :]
        if layer.startswith("decoder") and not is_cross:
            visible = visible & np.tri(5, dtype=bool)
        expected = brute(trace[layer].weights(), visible, counted, 0)
        check(reading, layer, expected, without=("self_share",) if is_cross else ())


class Capped(nn.Module):
    """Attention by hand: a cap and a bias, from which the scores are known."""

    def __init__(self):
        super().__init__()
        self.heads = nn.Linear(WIDTH, 3 * WIDTH)
        self.scores = None

    def forward(self, x, bias):
        query, key, value = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.heads(x).chunk(3, -1)
        )
        scores = 3.0 * torch.tanh(query @ key.mT * 4.0 / 3.0) + bias
        self.scores = scores
        return torch.softmax(scores, -1) @ value


def test_the_largest_logit_is_what_the_softmax_is_taken_of():
    torch.manual_seed(0)
    model, x = Capped(), torch.randn(2, LENGTH, WIDTH)
    bias = torch.randn(1, HEADS, LENGTH, LENGTH)
    bias = bias.masked_fill(~torch.from_numpy(CAUSAL), -math.inf)
    reading, _ = step_of(model, x, bias)
    weights = torch.softmax(model.scores, -1)
    everyone = np.ones((2, LENGTH), bool)
    scores = model.scores.detach().double().numpy()
    check(reading, "", brute(weights, CAUSAL, everyone, 0, scores=scores))


def mechanism(kind, **options):
    torch.manual_seed(0)
    return {
        "multihead": lambda: attlas.layers.MultiheadAttention(WIDTH, HEADS, **options),
        "additive": lambda: attlas.layers.AdditiveAttention(WIDTH, WIDTH, 8),
        "general": lambda: attlas.layers.GeneralAttention(WIDTH, WIDTH),
    }[kind]()


class Reads(nn.Module):
    """A layer of attlas that reads a text with padding."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, query, source, token_mask):
        return self.attention.attend(query, self.attention.project_kv(source, token_mask))


@pytest.mark.parametrize("kind", ["multihead", "additive", "general"])
def test_the_mechanisms_of_attlas(kind):
    attention = mechanism(kind)
    model = Reads(attention)
    source, query = torch.randn(2, LENGTH, WIDTH), torch.randn(2, LENGTH, WIDTH)
    token_mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [4]])
    reading, _ = step_of(model, query, source, token_mask)
    with attlas.observe(model) as trace:
        model(query, source, token_mask)
    (layer,) = trace
    seen = token_mask.numpy()
    expected = brute(trace[layer].weights(), seen[:, None, None, :], seen, 0)
    check(reading, layer, expected)
    scored = [head.max_logit is not None for head in reading.heads]
    assert all(scored) is (kind == "multihead")  # of the others only the weights are kept


def test_windows_of_a_pattern():
    attention = mechanism("multihead", pattern=attlas.patterns.window(2))
    model = Reads(attention)
    x = torch.randn(2, LENGTH, WIDTH)
    reading, _ = step_of(model, x, x, None)
    with attlas.observe(model) as trace:
        model(x, x, None)
    (layer,) = trace
    place = np.arange(LENGTH)
    visible = np.abs(place[:, None] - place) <= 2
    everyone = np.ones((2, LENGTH), bool)
    check(reading, layer, brute(trace[layer].weights(), visible, everyone, 0))


def test_the_steps_of_a_recurrent_decoder_are_one_text():
    torch.manual_seed(0)
    attention = mechanism("additive")
    source, query = torch.randn(2, LENGTH, WIDTH), torch.randn(2, 6, WIDTH)
    everyone = np.ones((2, 6), bool)

    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, at_once):
            cache = attention.project_kv(source, None)
            parts = [query] if at_once else query.split(1, dim=1)
            return [attention.attend(part, cache, None) for part in parts]

    model = Steps()
    attention.hook.cross_attention = True
    whole, _ = step_of(model, True)
    steps, _ = step_of(model, False)
    with attlas.observe(model) as trace:
        model(True)
    (layer,) = trace
    expected = brute(trace[layer].weights(), np.ones((1, 1, 1, LENGTH), bool), everyone)
    check(whole, layer, expected)
    check(steps, layer, expected)


def diagonals_of(allowed, tokens=None):
    """The `mask_diagonal` that is read of a layer with this mask, (queries, keys) or (batch, …)."""
    allowed = allowed if allowed.ndim == 3 else allowed[None]
    batch, length, _ = allowed.shape
    tokens = torch.ones(batch, length, dtype=torch.bool) if tokens is None else tokens

    class Masked(nn.Module):
        def forward(self, x):
            heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
            return F.scaled_dot_product_attention(heads, heads, heads, attn_mask=allowed[:, None])

    watch = attlas.watch(Masked().train(), every=1, on_alarm=None)
    with watch.forward(token_mask=tokens):
        watch.model(torch.randn(batch, length, 8))
    return {head.mask_diagonal for head in watch.step().heads}


def square(length):
    return torch.ones(length, length, dtype=torch.bool)


@pytest.mark.parametrize("length", [7, 8, 13])
@pytest.mark.parametrize("diagonal", [-1, 0, 1, 2])
def test_the_diagonal_of_a_causal_mask_is_read(length, diagonal):
    assert diagonals_of(square(length).tril(diagonal)) == {diagonal}


@pytest.mark.parametrize("length", [4, 5, 6, 9])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_window_a_prefix_and_packed_texts_have_no_diagonal(length, width):
    both = square(length).tril(width).triu(-width)
    assert diagonals_of(both) == {None}
    prefix = square(length).tril()
    prefix[:, : width + 1] = True
    assert diagonals_of(prefix) == {None}
    packed = torch.block_diag(square(length).tril(), square(length).tril())
    assert diagonals_of(packed) == {None}
    assert diagonals_of(square(length)) == {None}
    assert diagonals_of(square(length).triu()) == {None}


@pytest.mark.parametrize("diagonal", [0, 1])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_does_not_hide_the_diagonal(diagonal, side):
    length, lengths = 9, [9, 6, 4]
    tokens = torch.tensor([[i < n for i in range(length)] for n in lengths])
    tokens = tokens if side == "right" else tokens.flip(1)
    allowed = square(length).tril(diagonal) & tokens[:, None, :]
    assert diagonals_of(allowed, tokens) == {diagonal}


def test_a_sliding_window_is_causal_and_texts_that_differ_have_no_diagonal():
    assert diagonals_of(square(9).tril().triu(-3)) == {0}
    assert diagonals_of(torch.stack([square(9).tril(), square(9).tril(1)])) == {None}
    assert diagonals_of(torch.stack([square(9).tril(1), square(9)])) == {1}


def test_tokens_that_do_not_count_shift_no_diagonal():
    causal, tokens = square(9).tril(), torch.ones(1, 9, dtype=torch.bool)
    tokens[:, :3] = False  # a prompt, or padding that the map does not hide
    assert diagonals_of(causal, tokens) == {0}
    assert diagonals_of(square(9).tril(1), tokens) == {1}
    assert diagonals_of(square(9).tril(2).triu(-2), tokens.flip(1)) == {None}
    strided = (torch.arange(9)[:, None] - torch.arange(9)) % 2 == 0
    assert diagonals_of(strided & causal) == {None}
    assert diagonals_of(causal[:4, :4]) == {None}  # too short to say
