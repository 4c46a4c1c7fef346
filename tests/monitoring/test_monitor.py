"""Which steps and forward passes a watch reads, and that the model computes what it would."""

import copy
import gc
import io
import warnings

import pytest
import torch
from jaxtyping import config
from torch import nn
from torch.utils.checkpoint import checkpoint

import attlas
from attlas.errors import AttlasError, UnsupportedError
from attlas.monitoring import AttentionWarning
from support import small_models

WIDTH, HEADS = 16, 4


def layer(dropout=0.0):
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(WIDTH, HEADS, 32, dropout=dropout, batch_first=True)


def llama():
    return small_models.model("llama", attention_dropout=0.3)


def own():
    torch.manual_seed(0)
    settings = attlas.models.TransformerConfig(
        embed_dim=WIDTH, num_heads=HEADS, ffn_dim=32, encoder_layers=1, decoder_layers=1,
        dropout=0.2, attention_dropout=0.1,
    )  # fmt: skip
    return attlas.models.build(settings, 20, 20)


def trained(make, inputs, watched):
    """What three steps give: outputs, gradients, weights, and the state of the random numbers."""
    model = make().train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watch = attlas.watch(model, every=3) if watched else None
    torch.manual_seed(5)
    found, readings = [], []
    for _ in range(4):
        output = model(*inputs)
        output = getattr(output, "logits", output)
        optimizer.zero_grad()
        output.square().mean().backward()
        found += [output.detach().clone(), *(p.grad.clone() for p in model.parameters())]
        optimizer.step()
        found.append(torch.get_rng_state())
        if watch is not None:
            readings.append(watch.step())
    if watch is not None:
        assert [reading is not None for reading in readings] == [True, False, True, False]
    return found


MODELS = {
    "torch": (lambda: layer(0.3), (torch.randn(2, 5, WIDTH),)),
    "llama": (llama, (torch.arange(12).reshape(2, 6),)),
    "attlas": (own, (torch.arange(4, 12).reshape(2, 4), torch.arange(4, 10).reshape(2, 3))),
}


@pytest.mark.parametrize("name", MODELS)
def test_outputs_gradients_and_random_numbers_are_those_without_a_watch(name):
    make, inputs = MODELS[name]
    for plain, watched in zip(
        trained(make, inputs, False), trained(make, inputs, True), strict=True
    ):
        assert torch.equal(plain, watched)


def test_between_readings_no_hook_is_left_in_the_model():
    model = layer()
    watch = attlas.watch(model, every=3)
    x, hooks = torch.randn(2, 5, WIDTH), []
    for _ in range(6):
        hooks.append(len(model._forward_hooks) + len(model._forward_pre_hooks))
        model(x)
        watch.step()
    assert hooks == [2, 0, 2, 0, 0, 2]
    watch.close()
    assert not model._forward_hooks
    with pytest.raises(AttlasError, match="closed"):
        watch.step()


def same(first, second):
    """Two readings of the same queries, whose sums may be rounded otherwise."""
    assert len(first.heads) == len(second.heads)
    for one, other in zip(first.heads, second.heads, strict=True):
        assert (one.layer, one.head, one.queries) == (other.layer, other.head, other.queries)
        found, expected = one.figures(), other.figures()
        # A count of roundings is another where they are others.
        counts = [figures.pop("context_error", None) for figures in (found, expected)]
        assert (counts[0] is None) == (counts[1] is None)
        assert all(count is None or count < 8 for count in counts)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_several_forward_passes_are_one_large_batch():
    model = small_models.model("llama")
    ids = torch.randint(4, small_models.SIZE, (6, 7), generator=torch.Generator().manual_seed(1))
    mask = (torch.arange(7) < torch.tensor([7, 3, 5, 7, 2, 6]).unsqueeze(1)).long()
    watch = attlas.watch(model.train(), every=1)
    model(input_ids=ids, attention_mask=mask)
    whole = watch.step()
    for start, stop in ((0, 1), (1, 4), (4, 6)):
        model(input_ids=ids[start:stop], attention_mask=mask[start:stop])
    same(watch.step(), whole)
    assert whole.heads[0].queries == int(mask.sum())


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("where", ["layer", "model"])
def test_a_call_that_checkpointing_computes_anew_counts_once(reentrant, where):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([layer(0.2), layer(0.2)])
            self.checkpointed = False

        def forward(self, x):
            for part in self.layers:
                x = checkpoint(part, x, use_reentrant=reentrant) if self.checkpointed else part(x)
            return x

    model = Stack().train()
    x = torch.randn(2, 5, WIDTH, requires_grad=True)
    watch = attlas.watch(model, every=1)
    torch.manual_seed(7)
    model(x).sum().backward()
    plain = watch.step()
    model.checkpointed = where == "layer"
    torch.manual_seed(7)
    if where == "model":
        checkpoint(model, x, use_reentrant=reentrant).sum().backward()
    else:
        model(x).sum().backward()
    assert watch.step().heads == plain.heads


def test_only_forward_passes_in_training_mode_count():
    model, x = layer(), torch.randn(2, 5, WIDTH)
    watch = attlas.watch(model, every=1)
    model(x)
    model.eval()
    model(x)
    model.train()
    assert watch.step().heads[0].queries == 10


def test_passes_without_gradients_do_not_count_unless_a_block_says_so():
    """Such as those of a reference model, or of `generate` between two updates."""
    model = small_models.model("llama").train()
    ids = torch.arange(4, 12).reshape(1, 8)
    watch = attlas.watch(model, every=1)
    with torch.no_grad():
        model(input_ids=ids)
    model.generate(ids, max_new_tokens=3, do_sample=False)
    model(input_ids=ids).logits.sum().backward()
    assert {head.queries for head in watch.step().heads} == {8}
    with torch.inference_mode():
        model(input_ids=ids)
    with pytest.warns(AttentionWarning, match="and with gradients"):
        assert watch.step() is None
    with torch.no_grad(), watch.forward():
        model(input_ids=ids)
    assert {head.queries for head in watch.step().heads} == {8}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_the_statistics_are_in_float32(dtype):
    model, x = layer(), torch.randn(2, 5, WIDTH)
    watch = attlas.watch(model, every=1)
    model(x)
    exact = watch.step()
    with torch.autocast("cpu", dtype):
        model(x)
    for head, other in zip(watch.step().heads, exact.heads, strict=True):
        assert head.figures() == pytest.approx(other.figures(), rel=0.05, abs=0.05)


def test_a_forward_pass_that_fails_does_not_count():
    model = layer()
    watch = attlas.watch(model, every=1)
    with pytest.raises(AssertionError):
        model(torch.randn(2, 5, WIDTH + 1))
    model(torch.randn(2, 5, WIDTH))
    assert watch.step().heads[0].queries == 10
    assert not torch.overrides._get_current_function_mode_stack()


def test_an_interrupted_forward_pass_leaves_nothing_behind():
    model = nn.Sequential(layer(), nn.Identity())
    watch = attlas.watch(model, every=1)

    def stop(*_):
        raise KeyboardInterrupt

    hook = model[1].register_forward_pre_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        model(torch.randn(2, 5, WIDTH))
    hook.remove()
    with pytest.warns(AttentionWarning, match="no forward pass"):
        assert watch.step() is None
    assert not torch.overrides._get_current_function_mode_stack()
    model(torch.randn(2, 5, WIDTH))
    assert watch.step().heads[0].queries == 10


def test_a_block_reads_what_is_no_call_of_the_model():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer()

        def encode(self, x):
            return self.layer(x)

    model, x = Encoder(), torch.randn(2, 5, WIDTH)
    watch = attlas.watch(model, every=1)
    with watch.forward():
        model.encode(x)
    assert watch.step().heads[0].queries == 10


def test_a_mask_given_to_a_block_says_which_queries_are_tokens():
    torch.manual_seed(0)
    attention = attlas.layers.MultiheadAttention(WIDTH, HEADS, pattern=attlas.patterns.causal)
    x = torch.randn(2, 5, WIDTH)
    token_mask = torch.arange(5) < torch.tensor([[5], [2]])
    watch = attlas.watch(attention, every=1)
    with watch.forward(token_mask=token_mask):
        attention.attend(x, attention.project_kv(x))
    padded = watch.step()
    for text, length in ((0, 5), (1, 2)):
        part = x[text : text + 1, :length]
        with watch.forward():
            attention.attend(part, attention.project_kv(part))
    same(padded, watch.step())


def test_a_step_without_attention_is_reported_once():
    model = layer()
    watch = attlas.watch(model, every=1)
    with pytest.warns(AttentionWarning, match="no forward pass of TransformerEncoderLayer"):
        assert watch.step() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert watch.step() is None
    other = nn.Linear(WIDTH, WIDTH)
    watch = attlas.watch(other)
    other(torch.randn(2, WIDTH))
    with pytest.warns(AttentionWarning, match="no attention by softmax"):
        assert watch.step() is None
    assert watch.history == []


def test_a_compiled_model_is_refused_or_reported():
    compiled = torch.compile(layer(), backend="eager")
    with pytest.raises(UnsupportedError, match=r"torch\.compile"):
        attlas.watch(compiled)
    model = layer()
    watch = attlas.watch(model, every=1)
    compiled = torch.compile(model, backend="eager")
    x = torch.randn(2, 5, WIDTH)
    compiled(x)
    with pytest.warns(AttentionWarning, match="compiled"):
        assert watch.step() is None
    assert watch.reads_next
    model(x)
    assert watch.step().heads[0].queries == 10


def test_wrong_arguments_are_errors():
    config.update("jaxtyping_disable", True)  # whose own error would come first
    with pytest.raises(AttlasError, match=r"torch\.nn\.Module"):
        attlas.watch("model")
    with pytest.raises(AttlasError, match="every=0"):
        attlas.watch(layer(), every=0)
    with pytest.raises(AttlasError, match="step=-1"):
        attlas.watch(layer(), step=-1)
    with pytest.raises(AttlasError, match="max_logits"):
        attlas.watch(layer(), thresholds={"max_logits": 3})
    with pytest.raises(UnsupportedError, match="DistributedDataParallel"):
        attlas.watch(nn.DataParallel(layer()))


def test_a_reading_holds_no_map():
    """A reading of a long text holds a few numbers for each query: far fewer than queries²."""
    model = layer()
    watch = attlas.watch(model, every=1)
    x = torch.randn(1, 3000, WIDTH)
    model(x)
    ((_, recorder, _),) = watch._parts
    gc.collect()
    held = sum(
        array.nbytes
        for totals in recorder.totals().values()
        for array in (*totals.entropies, *totals.sums.values())
    )
    assert held < 8 * HEADS * 3000
    assert not recorder.trace
    assert watch.step().heads[0].queries == 3000


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, saved])
def test_a_copy_of_a_watched_model_is_not_watched(copied):
    """Models are saved, and copied for averages of weights, between two steps of a training."""
    model = layer()
    watch = attlas.watch(model, every=1)
    x = torch.randn(2, 5, WIDTH)
    other = copied(model)
    assert torch.equal(other(x), model(x))
    other(x)
    assert watch.step().heads[0].queries == 10
    other(x)
    with pytest.warns(AttentionWarning, match="no forward pass"):
        assert watch.step() is None


def test_a_loop_that_never_ends_a_step_is_reported():
    model = layer()
    watch = attlas.watch(model, every=50)
    x = torch.randn(1, 2, WIDTH)
    for _ in range(999):
        model(x)
    with pytest.warns(AttentionWarning, match=r"1,000 forward passes.*watch\.step\(\)"):
        model(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(x)
    assert watch.step().heads[0].queries == 2 * 1001
