"""Alarms: each names what happened, once until it clears."""

import gc
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import attlas
from attlas.errors import AttlasError, DataError
from attlas.monitoring import (
    Alarm,
    AttentionWarning,
    HeadStatistics,
    Reading,
    Thresholds,
    read_history,
)
from attlas.monitoring.alarms import ADVICE, KINDS, AlarmState, messages_of

HEALTHY = HeadStatistics(
    "encoder.0", 2, 100, visible=8.0, max_logit=4.0, entropy=1.5, normalized_entropy=0.7,
    effective_keys=4.5, first_share=0.1, self_share=0.2, received_share=0.3, distance=2.0,
    mask_diagonal=0, context_error=0.5,
)  # fmt: skip


def reported(heads, **thresholds):
    """The kinds of alarm that begin at each reading of a head."""
    state = AlarmState(Thresholds(**thresholds))
    return [[alarm.kind for alarm in state.advance(n, [head])] for n, head in enumerate(heads, 1)]


def test_a_healthy_head_has_no_alarm():
    assert reported([HEALTHY] * 20) == [[]] * 20


@pytest.mark.parametrize(
    ("kind", "name", "figure"),
    [
        ("logit_growth", "max_logit", 100.5),
        ("entropy_collapse", "normalized_entropy", 0.01),
        ("sink_growth", "first_share", 0.9),
        ("mask_diagonal", "mask_diagonal", 1),
        ("mask_diagonal", "mask_diagonal", -1),
        ("context_error", "context_error", 900.0),
    ],
)
def test_an_alarm_is_reported_once_until_it_clears(kind, name, figure):
    sick = replace(HEALTHY, **{name: figure})
    assert reported([HEALTHY, sick, sick, HEALTHY, sick]) == [[], [kind], [], [], [kind]]


@pytest.mark.parametrize(
    ("kind", "change"),
    [("uniform_head", {"normalized_entropy": 1.0}), ("constant_head", {"received_share": 1.0})],
)
def test_a_head_is_dead_after_several_readings_in_a_row(kind, change):
    dead = replace(HEALTHY, **change)
    assert reported([dead, dead, HEALTHY, dead, dead, dead, dead], dead_readings=3) == [
        [], [], [], [], [], [kind], [],
    ]  # fmt: skip


def test_a_sink_that_was_there_from_the_beginning_is_no_growth():
    assert reported([replace(HEALTHY, first_share=0.9)] * 3) == [[], [], []]


def test_a_narrow_head_that_was_so_from_the_beginning_is_no_collapse():
    assert reported([replace(HEALTHY, normalized_entropy=0.01)] * 3) == [[], [], []]


def test_what_is_unknown_is_no_alarm():
    blind = HeadStatistics("encoder.0", 2, 100)
    assert reported([blind] * 3) == [[], [], []]


def test_thresholds_can_be_set_and_are_checked():
    assert reported([replace(HEALTHY, max_logit=60.0)], max_logit=50.0) == [["logit_growth"]]
    with pytest.raises(AttlasError, match="min_entropy"):
        attlas.watch(nn.Linear(2, 2), thresholds={"min_entropy": 2.0})


def test_a_mask_is_judged_from_the_first_reading_on_and_may_be_meant_as_it_is():
    assert reported([replace(HEALTHY, mask_diagonal=0)]) == [[]]
    assert reported([replace(HEALTHY, mask_diagonal=1)]) == [["mask_diagonal"]]
    assert reported([replace(HEALTHY, mask_diagonal=1)], mask_diagonal=1) == [[]]
    assert reported([replace(HEALTHY, mask_diagonal=1)], mask_diagonal="any") == [[]]
    unknown = replace(HEALTHY, mask_diagonal=None)
    wrong = replace(HEALTHY, mask_diagonal=1)
    assert reported([wrong, unknown, wrong]) == [["mask_diagonal"], [], ["mask_diagonal"]]


def test_a_mask_is_that_of_a_layer_and_has_one_alarm():
    state = AlarmState(Thresholds())
    heads = [replace(HEALTHY, head=head, mask_diagonal=1) for head in range(4)]
    (alarm,) = state.advance(1, heads)
    assert (alarm.layer, alarm.head, alarm.figure) == ("encoder.0", None, 1.0)
    assert "has the diagonal 1, as of torch.tril, and not 0" in str(alarm)


def test_a_precision_is_that_of_a_layer_and_has_one_alarm():
    state = AlarmState(Thresholds())
    heads = [replace(HEALTHY, head=head, context_error=100.0 * head) for head in range(4)]
    (alarm,) = state.advance(1, heads)
    assert (alarm.layer, alarm.head, alarm.figure) == ("encoder.0", None, 300.0)
    assert "by 300 roundings of their type, above 90: it is computed in a lower" in str(alarm)
    unknown = replace(HEALTHY, context_error=None)
    assert reported([unknown]) == [[]]
    assert reported([heads[3]], max_context_error=500.0) == [[]]
    (kinds,) = reported([replace(heads[3], nonfinite=1)])
    assert "context_error" not in str(kinds)


def test_every_alarm_says_where_when_what_and_what_to_do():
    state = AlarmState(Thresholds())
    state.advance(1, [HEALTHY])
    (alarm,) = state.advance(400, [replace(HEALTHY, max_logit=132.4)])
    assert str(alarm) == (
        "step 400, layer 'encoder.0', head 2: the largest attention score is 132.4, above 100. "
        "Lower the learning rate, normalise queries and keys (QK-norm), or clip their weights "
        "(QK-clip)"
    )
    for kind in KINDS:
        message = replace(alarm, kind=kind).message
        assert message.endswith(f". {ADVICE[kind]}")


def model():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).train()


def test_what_is_not_finite_is_reported_for_the_layer_where_it_began(tmp_path: Path):
    broken = model()
    alarms = []
    watch = attlas.watch(broken, every=1, on_alarm=alarms.append, path=tmp_path / "watch.jsonl")
    x = torch.randn(2, 5, 16)
    broken(x)
    watch.step()
    with torch.no_grad():
        broken.layers[1].self_attn.in_proj_weight[0, 0] = math.nan  # of the first head's queries
    broken(x)
    reading = watch.step()
    broken(x)
    watch.step()
    (alarm,) = alarms
    assert (alarm.kind, alarm.layer, alarm.step) == ("nonfinite", "layers.1.self_attn", 2)
    assert alarm.figure == 10.0  # queries of the one head
    assert [h.nonfinite for h in reading.heads[:8]] == [0, 0, 0, 0, 10, 0, 0, 0]
    assert watch.active_alarms == (alarm,)
    with torch.no_grad():
        broken.layers[1].self_attn.in_proj_weight[0, 0] = 0.0
    broken(x)
    watch.step()
    assert not watch.active_alarms
    records = read_history(tmp_path / "watch.jsonl")
    assert [len(record["alarms"]) for record in records] == [0, 1, 0, 0]
    assert records[1]["heads"][4]["entropy"] is None


def test_a_kind_of_alarm_is_one_warning_of_python_by_default():
    broken = model()
    watch = attlas.watch(broken, thresholds={"max_logit": 1e-6})
    broken(torch.randn(2, 5, 16))
    with pytest.warns(AttentionWarning) as reported:
        reading = watch.step()
    assert len(reading.alarms) == 12
    (warning,) = reported
    worst = max(reading.alarms, key=lambda alarm: alarm.figure)
    assert str(warning.message).startswith(worst.message.split(". ")[0] + "; the same in ")
    assert "'layers.0.self_attn' heads " in str(warning.message)


def alarm(kind, layer, head, figure, threshold=100.0):
    return Alarm(7, kind, layer, head, "max_logit", figure, threshold)


def test_messages_name_the_worst_head_and_all_others():
    alarms = [
        alarm("logit_growth", "a", 1, 101.0),
        alarm("logit_growth", "b", 0, 130.0),
        alarm("mask_diagonal", "a", None, 1.0, 0.0),
        alarm("logit_growth", "b", 3, 102.0),
        alarm("logit_growth", "a", 2, 103.0),
    ]
    growth, mask = messages_of(alarms)
    assert growth.startswith(
        "step 7, layer 'b', head 0: the largest attention score is 130, above 100; "
        "the same in 'a' heads 1, 2; 'b' head 3. Lower the learning rate"
    )
    assert mask == alarms[2].message


def test_messages_count_the_layers_that_they_do_not_name():
    (message,) = messages_of(alarm("nonfinite", f"{n}", None, None) for n in range(9))
    assert "the same in '1'; '2'; '3'; '4'; '5'; '6'; 2 more layers (see" in message


def test_messages_of_a_healthy_reading():
    assert messages_of([]) == []


def test_a_printed_reading_is_a_table_of_heads():
    sick = replace(HEALTHY, layer="decoder.10", head=0, max_logit=200.0, self_share=None)
    alarms = AlarmState(Thresholds()).advance(3, [HEALTHY, sick])
    assert str(Reading(3, [HEALTHY, sick], alarms)).splitlines() == [
        "step 3",
        "layer       head  queries  max_logit  entropy  normalized_entropy  effective_keys  "
        "first_share  self_share  received_share  distance  nonfinite",
        "encoder.0      2      100          4      1.5                 0.7             4.5  "
        "        0.1         0.2             0.3         2          0",
        "decoder.10     0      100        200      1.5                 0.7             4.5  "
        "        0.1                         0.3         2          0",
        alarms[0].message,
    ]


# The file.


def steps(watch, watched, count, seed=0):
    for number in range(count):
        torch.manual_seed(seed + number)
        watched(torch.randn(2, 5, 16))
        watch.step()


def test_a_file_goes_on_as_if_nothing_had_happened(tmp_path: Path):
    """Also in what alarms remember: which began, and what the first reading was."""
    bounds = {"max_logit": 1.5, "dead_readings": 3, "uniform_entropy": 0.5}
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    quiet = {"every": 2, "thresholds": bounds, "on_alarm": lambda alarm: None}
    with attlas.watch(model(), path=whole, **quiet) as watch:
        steps(watch, watch.model, 12)
        history = watch.history
    with attlas.watch(model(), path=parts, **quiet) as watch:
        steps(watch, watch.model, 6)
    with parts.open("ab") as file:  # a kill in the middle of a line
        file.write(b'{"step": 8, "ala')
    with attlas.watch(model(), path=parts, step=6, **quiet) as watch:
        steps(watch, watch.model, 6, seed=6)
        assert watch.history == history
    assert parts.read_bytes() == whole.read_bytes()
    assert read_history(whole) == history
    assert [record["step"] for record in history] == [1, 2, 4, 6, 8, 10, 12]
    assert any(record["alarms"] for record in history)


def test_a_training_that_goes_back_repeats_its_steps(tmp_path: Path):
    path = tmp_path / "watch.jsonl"
    with attlas.watch(model(), every=1, path=path) as watch:
        steps(watch, watch.model, 4)
        before = read_history(path)
    with attlas.watch(model(), every=1, path=path, step=2) as watch:
        assert [record["step"] for record in watch.history] == [1, 2]
        steps(watch, watch.model, 1, seed=9)
    after = read_history(path)
    assert [record["step"] for record in after] == [1, 2, 3]
    assert after[:2] == before[:2]
    assert after[2] != before[2]


def test_without_a_step_the_file_says_how_many_were_done(tmp_path: Path):
    path = tmp_path / "watch.jsonl"
    with attlas.watch(model(), every=1, path=path) as watch:
        steps(watch, watch.model, 2)
    with pytest.warns(AttentionWarning, match=r"watch\.jsonl has readings to step 2.*pass step=2"):
        watch = attlas.watch(model(), every=1, path=path)
    with watch:
        steps(watch, watch.model, 2)
    assert [record["step"] for record in read_history(path)] == [1, 2, 3, 4]


@pytest.mark.parametrize("content", [b"a letter\n", b'{"step": 1}\n', b"no line", b"[1]\n", b"{}"])
def test_another_file_is_refused_and_stays_as_it_is(tmp_path: Path, content: bytes):
    path = tmp_path / "watch.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"line 1 of .*watch\.jsonl"):
        attlas.watch(model(), path=path)
    assert path.read_bytes() == content


def test_a_file_in_a_folder_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(AttlasError, match="nowhere"):
        attlas.watch(model(), path=tmp_path / "nowhere" / "watch.jsonl")
    with pytest.raises(AttlasError, match="missing"):
        read_history(tmp_path / "missing.jsonl")


def test_a_logger_gets_one_number_a_name():
    logged = []
    watched = model()
    watch = attlas.watch(watched, log=logged.append)
    watched(torch.randn(2, 5, 16))
    reading = watch.step()
    (numbers,) = logged
    head = reading.heads[5]
    assert numbers["attention/layers.1.self_attn/head_1/max_logit"] == head.max_logit
    assert numbers["attention/step"] == 1.0
    assert all(type(number) is float for number in numbers.values())


def test_a_file_has_one_writing_process_at_a_time(tmp_path: Path):
    path = tmp_path / "watch.jsonl"
    with attlas.watch(model(), every=1, path=path) as first:
        steps(first, first.model, 2)
        content = path.read_bytes()
        code = f"attlas.watch(torch.nn.Linear(2, 2), path={str(path)!r}, step=2)"
        command = [sys.executable, "-c", f"import torch, attlas; {code}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "another process whose watch writes it" in done.stderr
        assert path.read_bytes() == content
        steps(first, first.model, 1)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [record["step"] for record in read_history(path)] == [1, 2, 3]


def test_a_new_watch_takes_the_place_of_an_older_one_in_the_same_process(tmp_path: Path):
    """As where a notebook runs a cell again."""
    path = tmp_path / "watch.jsonl"
    first = attlas.watch(model(), every=1, path=path)
    steps(first, first.model, 2)
    with attlas.watch(model(), every=1, path=path, step=2) as second:
        steps(second, second.model, 1)
        with pytest.warns(AttentionWarning, match="writes it no more"):
            steps(first, first.model, 1)
        steps(second, second.model, 1)
    assert [record["step"] for record in read_history(path)] == [1, 2, 3, 4]
    assert [record["step"] for record in first.history] == [1, 2, 3]


def test_a_watch_that_nobody_holds_lets_go_of_its_file(tmp_path: Path):
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        attlas.watch(model(), path=tmp_path / f"{number}.jsonl")
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_process_that_was_forked_meanwhile_does_not_keep_the_file(tmp_path: Path):
    path = tmp_path / "watch.jsonl"
    watch = attlas.watch(model(), every=1, path=path)
    steps(watch, watch.model, 1)
    child = os.fork()
    if not child:
        time.sleep(30)
        os._exit(0)
    try:
        watch.close()
        code = f"attlas.watch(torch.nn.Linear(2, 2), path={str(path)!r}, step=1)"
        command = [sys.executable, "-c", f"import torch, attlas; {code}"]
        assert subprocess.run(command, check=False).returncode == 0
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_file_that_is_removed_meanwhile_is_written_anew(tmp_path: Path):
    path = tmp_path / "watch.jsonl"
    with attlas.watch(model(), every=1, path=path) as watch:
        steps(watch, watch.model, 2)
        path.unlink()
        with pytest.warns(AttentionWarning, match=r"was removed, and begins anew with step 3"):
            steps(watch, watch.model, 1)
        steps(watch, watch.model, 1)
    assert [record["step"] for record in read_history(path)] == [3, 4]
    assert [record["step"] for record in watch.history] == [1, 2, 3, 4]


def test_a_folder_that_is_removed_meanwhile_does_not_stop_the_training(tmp_path: Path):
    folder = tmp_path / "run"
    folder.mkdir()
    with attlas.watch(model(), every=1, path=folder / "watch.jsonl") as watch:
        steps(watch, watch.model, 1)
        (folder / "watch.jsonl").unlink()
        folder.rmdir()
        with pytest.warns(AttentionWarning, match=r"cannot be made anew.*no folder"):
            steps(watch, watch.model, 1)
        with pytest.warns(AttentionWarning, match="writes it no more"):
            steps(watch, watch.model, 1)
    assert [record["step"] for record in watch.history] == [1, 2, 3]


def test_a_wrong_setting_is_an_error_before_the_training():
    settings = [
        {"log": "wandb"}, {"on_alarm": "print"}, {"thresholds": 5}, {"thresholds": ["max_logit"]},
    ]  # fmt: skip
    code = (
        "import torch, attlas\n"
        f"for setting in {settings}:\n"
        "    try: attlas.watch(torch.nn.Linear(2, 2), **setting)\n"
        "    except attlas.AttlasError as error: print(error)"
    )
    # A process of its own, whose types nobody checks.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(settings)
    for line, setting in zip(lines, settings, strict=True):
        (name,) = setting
        assert f"got {name}=" in line
