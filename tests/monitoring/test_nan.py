"""Where NaN begins: the first module whose output has it."""

import math
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

import attlas
from attlas.monitoring import read_history
from attlas.monitoring.nan import first_nan, nan_flags, outputs_with_nan


def model():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train()


class HalfPrecision(nn.Module):
    """Attention whose weights are NaN where a score is infinite in float16."""

    def forward(self, x):
        return (x @ x.mT / 2).half().softmax(-1).float() @ x


def reading_of(watched, x, **settings):
    watch = attlas.watch(watched, every=1, on_alarm=None, **settings)
    watched(x)
    return watch.step()


def nan_in(name):
    broken = model()
    with torch.no_grad():
        broken.get_parameter(name)[-1] = math.nan
    return broken


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("layers.0.self_attn.in_proj_weight", "layers.0.self_attn"),  # of a value
        ("layers.0.linear1.weight", "layers.0.linear1"),
        ("layers.1.norm1.weight", "layers.1.norm1"),
    ],
)
def test_a_broken_module_is_named(name, module):
    reading = reading_of(nan_in(name), torch.randn(2, 5, 16))
    assert reading.nan_module == module
    assert [(alarm.kind, alarm.layer) for alarm in reading.alarms] == [("nonfinite", module)]
    assert reading.alarms[0].message.startswith(f"step 1, module '{module}': of all modules")


def test_weights_of_the_model_that_are_nan_are_found_where_exact_ones_are_not():
    watched = nn.Sequential(nn.Linear(16, 16), HalfPrecision(), nn.Linear(16, 16)).train()
    reading = reading_of(watched, torch.randn(2, 4, 5, 16) * 1000)
    assert {head.nonfinite for head in reading.heads} == {0}
    assert reading.nan_module == "1"


def test_a_row_that_a_mask_hides_whole_is_found_where_it_is_hidden():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.MultiheadAttention(16, 4, batch_first=True)
            self.b = nn.MultiheadAttention(16, 4, batch_first=True)

        def forward(self, x):
            hidden = torch.zeros(5, 5, dtype=torch.bool)
            hidden[3] = True
            x = self.a(x, x, x, attn_mask=hidden)[0]
            return self.b(x, x, x)[0]

    torch.manual_seed(0)
    reading = reading_of(Two().train(), torch.randn(2, 5, 16))
    assert reading.nan_module == "a"


def test_a_model_that_makes_nan_itself_is_named_by_its_type():
    class Divides(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model()

        def forward(self, x):
            return self.inner(x) * math.nan

    reading = reading_of(Divides().train(), torch.randn(2, 5, 16))
    assert reading.nan_module == "Divides"


def test_infinity_is_no_nan_and_a_healthy_model_has_none():
    healthy = nn.Sequential(model(), nn.Threshold(math.inf, -math.inf)).train()
    reading = reading_of(healthy, torch.randn(2, 5, 16))
    assert (reading.nan_module, reading.alarms) == (None, ())


def test_the_alarm_lasts_until_nothing_is_nan_and_a_file_keeps_it(tmp_path: Path):
    path = tmp_path / "watch.jsonl"
    watched = nan_in("layers.0.linear1.weight")
    with attlas.watch(watched, every=1, path=path, on_alarm=None) as watch:
        for _ in range(2):
            watched(torch.randn(2, 5, 16))
            watch.step()
        (alarm,) = watch.active_alarms
    records = read_history(path)
    assert [len(record["alarms"]) for record in records] == [1, 0]
    assert [record["nan_module"] for record in records] == ["layers.0.linear1"] * 2
    with attlas.watch(watched, every=1, path=path, step=2, on_alarm=None) as watch:
        assert watch.active_alarms == (alarm,)
        with torch.no_grad():
            watched.layers[0].linear1.weight.zero_()
        watched(torch.randn(2, 5, 16))
        reading = watch.step()
        assert reading.nan_module is None
        assert watch.active_alarms == ()


def test_modules_have_no_hook_after_the_pass():
    watched = model()
    watch = attlas.watch(watched, every=1)
    for expected in (False, True):
        assert any(bool(m._forward_hooks) for m in watched.modules()) is True  # of the watch
        assert not any(bool(m._forward_hooks) for m in watched.layers.modules())
        if not expected:
            watched(torch.randn(2, 5, 16))
    with pytest.raises(AssertionError):
        watched(torch.randn(2, 5, 17))
    assert not any(bool(m._forward_hooks) for m in watched.layers.modules())
    watch.close()


def test_outputs_of_other_threads_are_not_taken():
    watched = model()
    x = torch.randn(2, 5, 16)
    with outputs_with_nan(watched) as outputs:
        thread = threading.Thread(target=watched, args=(x * math.nan,))
        thread.start()
        thread.join()
        assert outputs == []
        watched(x)
    assert len(outputs) > 0
    assert first_nan(outputs) is None


@pytest.mark.parametrize(
    "output",
    [
        torch.ones(2, device="meta"),
        torch.ones(2).to_sparse(),
        torch.ones(2, dtype=torch.int64),
        "text",
        None,
    ],
    ids=["meta", "sparse", "ids", "text", "none"],
)
def test_what_cannot_be_asked_is_left_out(output):
    assert nan_flags("a", output) == []


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_are_left_out():
    assert nan_flags("a", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])) == []


def test_outputs_are_found_in_lists_mappings_and_dataclasses():
    @dataclass
    class Output:
        hidden: torch.Tensor
        others: tuple

    bad = torch.tensor([1.0, math.nan])
    for output in ([bad], {"a": (bad,)}, Output(torch.ones(2), (bad,))):
        assert first_nan(nan_flags("a", output)) == "a"


def test_a_reader_that_fails_leaves_no_hook(monkeypatch):
    def fail(*_):
        raise KeyError

    watched = model()
    watch = attlas.watch(watched, every=1)
    monkeypatch.setattr("attlas.monitoring.monitor.recorded_statistics", fail)
    with pytest.raises(KeyError):
        watched(torch.randn(2, 5, 16))
    assert not any(bool(m._forward_hooks) for m in watched.layers.modules())
    watch.close()
