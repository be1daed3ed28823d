"""Tests in several processes, each of which loads a file of tests only when it is that file's turn.

Loading all files takes some 20 s of CPU and 0.6 GB, in each process. So with ``--dist loadfile`` what pytest-xdist
hands out is files: a process collects at first one item for each, which knows no more than its path, and finds its
tests when it is told to run it. What is told of them, and where, stays as elsewhere.

The longest files come first, by the seconds that ``file_seconds.json`` has of them, so that no process is left alone
with one at the end. Before them come files that are not there: they may take minutes, and a short one does no harm
where it runs. ``make test-all ARGS=--write-seconds`` writes it anew.
"""

from __future__ import annotations

import gc
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SECONDS = Path(__file__).with_name("file_seconds.json")
UNKNOWN = (float("inf"), 10)
"""Seconds, so that it comes first, and number of tests of a file of which nothing is known."""
_MANY = 200
"""Descriptors of a process between two files: what a file's tests have left in cycles, which the collector may never
come to, is given back then. Clients that ``select`` can't go on above 1,024."""
_ORDERED_OTHERWISE = ("lf", "failedfirst", "newfirst", "stepwise", "collectonly")
_WORKER = "terrazzo_by_file"  # among what xdist's controller tells a worker


class FileOfTests(pytest.Module):
    """A file: at first of one item, that stands for all its tests."""

    is_open = False

    def collect(self) -> Any:
        return super().collect() if self.is_open else [AllTests.from_parent(self, name="all")]

    def open(self, session: pytest.Session) -> list[pytest.Item]:
        """Loads it: its tests that are selected, in the order in which they run. What fails is told as elsewhere."""
        self.is_open = True
        with no_garbage_collection():
            items = [each for each in session.genitems(self) if isinstance(each, pytest.Item)]
            self.config.hook.pytest_collection_modifyitems(session=session, config=self.config, items=items)
        return items


class AllTests(pytest.Item):
    """Whatever tests a file has."""

    def runtest(self) -> None:
        """There is nothing to do: ``ByFile`` runs the tests in its place."""

    @property
    def file(self) -> FileOfTests:
        parent = self.parent
        assert isinstance(parent, FileOfTests)
        return parent


class ByFile:
    """The hooks of a process that runs tests."""

    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Module:
        return FileOfTests.from_parent(parent, path=module_path)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, object, object]:
        """Files are neither selected nor ordered by what is meant for tests (``-k``)."""
        files = [item for item in items if isinstance(item, AllTests)]
        outcome = yield
        if files:
            items[:] = longest_first(files, known())
        return outcome

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, AllTests):
            return None
        tests = item.file.open(item.session)
        for test, following in zip(tests, [*tests[1:], nextitem], strict=False):
            with standing_for(item, test):
                test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if item.session.shouldfail or item.session.shouldstop:
                break
        if not tests:
            self._pass_over(item, nextitem)
        if descriptors() > _MANY:
            gc.collect()
        return True

    def _pass_over(self, item: AllTests, nextitem: pytest.Item | None) -> None:
        """Ends what the file before had kept for this one, and the next one has no use for."""
        item.ihook.pytest_runtest_setup(item=item)
        item.ihook.pytest_runtest_teardown(item=item, nextitem=nextitem)


class Files(LoadFileScheduling):  # type: ignore[misc]
    """Hands out files, and goes on after a process has died.

    What that one had done would be handed out again as files with nothing left to run: whoever gets one tells of
    nothing, so asks for nothing more, and the run never ends. The file that ended it has failed, and isn't run again.
    """

    def remove_node(self, node: Any) -> str | None:
        work = self.assigned_work[node]
        for path in [path for path, items in work.items() if all(items.values())]:
            del work[path]
        ended: str | None = next((item for items in work.values() for item, done in items.items() if not done), None)
        if ended is not None:
            work.pop(self._split_scope(ended))
        rest = self.assigned_work.pop(node)
        self.workqueue.update(rest)
        for each in self.assigned_work if rest else ():
            self._reschedule(each)
        return ended


class Told:
    """The hooks of the process that hands out files and prints what comes of them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: Counter[str] = Counter()
        self.tests: dict[str, set[str]] = defaultdict(set)
        self.at: dict[str, str] = {}
        self.expected = 0

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_WORKER] = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Files:
        return Files(config, log)

    @pytest.hookimpl
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.at[_path(nodeid)] = nodeid

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Says which of its tests it was, in place of a file's only item."""
        report.nodeid = self.at.get(_path(crashitem), crashitem)
        report.longrepr = f"{report.longrepr}\n{report.nodeid}"

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        numbers = known()
        self.expected = sum(numbers.get(_path(each), UNKNOWN)[1] for each in ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path = _path(report.nodeid)
        self.seconds[path] += report.duration
        self.tests[path].add(report.nodeid)
        self.session.testscollected = max(
            self.expected, sum(map(len, self.tests.values()))
        )  # of which per cent are shown

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.tests and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        if self.config.getoption("write_seconds"):
            write({path: (self.seconds[path], len(tests)) for path, tests in self.tests.items()})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-seconds", action="store_true", help="write down how long each file of tests took")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        if config.workerinput.get(_WORKER):
            config.pluginmanager.register(ByFile())
    elif config.getoption("dist", "no") == "loadfile" and not _names_tests(config):
        config.pluginmanager.register(Told(config))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with no_garbage_collection():
        return (yield)


def _names_tests(config: pytest.Config) -> bool:
    """Whether single tests are named, or tests ordered in a way for which all must be known first."""
    return any("::" in each for each in config.args) or any(
        config.getoption(each, False) for each in _ORDERED_OTHERWISE
    )


@contextmanager
def standing_for(item: AllTests, test: pytest.Item) -> Iterator[None]:
    """Meanwhile xdist, which knows items by their number, has the test in the place of its file."""
    items = item.session.items
    number = items.index(item)
    items[number] = test
    try:
        yield
    finally:
        items[number] = item


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """While modules are loaded, which live to the end: it would find next to nothing, and take a fourth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def longest_first(files: Sequence[pytest.Item], numbers: dict[str, tuple[float, int]]) -> list[pytest.Item]:
    """Files of one length stay in their order."""
    return sorted(files, key=lambda item: -numbers.get(_path(item.nodeid), UNKNOWN)[0])


def descriptors() -> int:
    """How many this process has open, as far as the system says."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def _path(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def known() -> dict[str, tuple[float, int]]:
    """Seconds and number of tests of each file, by its path in the repository."""
    return {path: (took, tests) for path, (took, tests) in json.loads(SECONDS.read_text(encoding="utf-8")).items()}


def write(numbers: dict[str, tuple[float, int]]) -> None:
    """Writes down those of files that ran, and keeps what is known of the others that still exist."""
    kept = {path: each for path, each in known().items() if (SECONDS.parents[1] / path).exists()}
    lines = [f'"{path}": [{took:.1f}, {tests}]' for path, (took, tests) in sorted({**kept, **numbers}.items())]
    SECONDS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{SECONDS.name}: {len(numbers)} files", file=sys.stderr)
