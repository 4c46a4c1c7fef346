"""Shapes are checked in tests only: jaxtyping annotations, enforced by beartype."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config

import shape_checker
from shape_checker import CHECKED_OF_PROPERTY, LATER

# One thread a process: the tests run in parallel, and small products are faster on one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Without a GPU Triton's kernels run in its interpreter; it reads this when it is imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
shape_checker.install()
# Of what a collection makes nothing is garbage, and looking for it takes a fifth of its time.
gc.disable()
# A child of a fork repeats what its parent does, or is timed.
os.register_at_fork(after_in_child=lambda: config.update("jaxtyping_disable", True))
# In the background of a shell Ctrl-C is ignored, and so by every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "quick", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("ATTLAS_HYPOTHESIS", "quick"))

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
NOT_SHARED = "the shared data folder is not beside this checkout"
NOT_SERVED = "the package index does not serve these files"
NO_OTHER_TOOL = "other tools have environments of their own: make other-tools"
MISSING = (NOT_SHARED, NOT_SERVED, NO_OTHER_TOOL)  # what a test may be left out for in CI, too


class SharedData(type(Path())):  # type: ignore[misc]
    """The folder of the shared data, of which a part that is not there leaves a test out."""

    def __truediv__(self, name: str | os.PathLike[str]) -> Path:
        found = Path(self) / name
        if not found.exists():
            pytest.skip(f"{NOT_SHARED}: {name}")
        return found


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real corpora, beside the checkout; tests that need them say so where they are missing."""
    return SharedData(SHARED)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--few", action="store_true", help="of a test with many parameters run the first and last"
    )
    parser.addoption(
        "--sampled", action="store_true", help="as `make test`: see the markers exhaustive, sampled"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with slow tests come first: at the end no process waits long for another.

    With `--few` most cases of most tests are left for `make test`, and with `--sampled` those for
    `make test-all` that take long and show what others show.
    """
    if config.getoption("sampled"):
        keep(config, items, sampled(items))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    if not config.getoption("few"):
        return
    first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
    last = {item.nodeid.partition("[")[0]: item for item in items}
    keep(config, items, {item.nodeid for item in (*first.values(), *last.values())})


def sampled(items: list[pytest.Item]) -> set[str]:
    """The tests that `make test` runs: none that is exhaustive, and of each that is `sampled` so
    many, evenly spread over its parameters.
    """
    kept, cases = set[str](), dict[str, list[pytest.Item]]()
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
        elif not item.get_closest_marker("exhaustive"):
            kept.add(item.nodeid)
    for group in cases.values():
        marker = group[0].get_closest_marker("sampled")
        count = min(marker.args[0] if marker else 0, len(group))
        last = len(group) - 1
        places = {round(last * index / max(count - 1, 1)) for index in range(count)}
        kept |= {group[place].nodeid for place in places}
    return kept


def keep(config: pytest.Config, items: list[pytest.Item], kept: set[str]) -> None:
    """Leave out all other tests."""
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Modules and tests live to the end: no later search for garbage visits them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup` one process runs all tests of a file, which share what they set up.

    xdist by itself deals out single tests, and groups that are marked.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class Files(LoadGroupScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return super()._split_scope(nodeid).partition("::")[0]

        def schedule(self) -> None:
            super().schedule()
            # A process begins its last test when it knows what follows: more, or nothing. One that
            # takes the place of a dead one gets a single file from xdist, and may wait for ever.
            for node in self.nodes if self.collection else ():
                self._reschedule(node)

        def remove_node(self, node: Any) -> str | None:
            """The test in which a process died: it has failed. Others run what is left.

            xdist deals it out again, and with it the files that are done: who gets such a file
            waits for ever.
            """
            files = self.assigned_work.pop(node)
            left = (test for file in files.values() for test, done in file.items() if not done)
            died_in: str | None = next(left, None)
            if died_in is not None:
                files[self._split_scope(died_in)][died_in] = True
                self.workqueue.update({k: v for k, v in files.items() if not all(v.values())})
                for other in self.nodes:
                    self._reschedule(other)
            return died_in

    config.option.loadscopereorder = False  # the order is that of the collection
    return Files(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    config.update("jaxtyping_disable", False)
    property_test = hasattr(getattr(item, "obj", None), "hypothesis")
    shape_checker.begin_test(*((CHECKED_OF_PROPERTY, LATER) if property_test else ()))
    # A command in this process handles Ctrl-C in its own way from then on, also where a fixture of
    # a module runs it. The next test that sends Ctrl-C would end the whole process.
    before = signal.getsignal(signal.SIGINT)
    try:
        return (yield)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """CI leaves out nothing: there a skipped test fails, but for corpora that nobody may ship."""
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr)
        if not any(known in reason for known in MISSING):
            report.outcome = "failed"
            report.longrepr = f"in CI nothing is left out, but: {reason}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None, None, None]:
    """At the very end, what was left out and for want of what: a green run may have run little."""
    yield
    reasons = Counter(
        str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr)
        for report in terminalreporter.stats.get("skipped", ())
    )
    for reason, count in sorted(reasons.items()):
        tests = f"{count} test{'s' if count > 1 else ''}"
        terminalreporter.write_line(f"left out: {tests}: {reason.removeprefix('Skipped: ')}")


@pytest.fixture
def two_threads() -> Generator[None, None, None]:
    import torch  # not at the top, where nothing may be imported before the hook

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
