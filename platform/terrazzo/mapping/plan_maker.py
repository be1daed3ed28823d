"""Makes plans beside the loop's other work: in slices, compiling in a process; companies take turns."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from types import CodeType

from terrazzo.listeners import Listeners
from terrazzo.loop_pauses import next_turn
from terrazzo.mapping.catalogue import MappingCatalogue, Plan
from terrazzo.mapping.compiler import SHORT, PlanCompiler
from terrazzo.mapping.plan import PlanSteps, compile_source
from terrazzo.ports.tasks import OnFailure, Task, Tasks

_log = logging.getLogger(__name__)

_WORKERS = 2  # companies whose plans are made at the same time
_SLICE_S = 0.003


class Slices:
    """Steps that are done for a while at a time. ``wanted``: a long text; they go on when they are given its code."""

    def __init__(self, steps: PlanSteps[None]) -> None:
        self.wanted: str | None = None
        self._steps = steps
        self._code: CodeType | None = None

    def run(self) -> bool:
        """Does some; whether they are done."""
        until_s = perf_counter() + _SLICE_S
        while self.wanted is None and perf_counter() < until_s:
            try:
                source = self._steps.send(self._code)
            except StopIteration:
                return True
            self._code = None
            if source is not None and len(source) > SHORT:
                self.wanted = source
            elif source is not None:
                self._code = compile_source(source)
        return False

    def give(self, code: CodeType) -> None:
        """The code of what is wanted."""
        self.wanted, self._code = None, code


class _Job:
    """A terminal whose plans are being made, and who is told when they are there."""

    def __init__(self, uid: str, steps: PlanSteps[None]) -> None:
        self.uid = uid
        self.slices = Slices(steps)
        self.done: list[Callable[[], None]] = []


class PlanMaker:
    """What waits for terminals' plans, and the tasks that make them. ``read`` tells of mappings that have been read."""

    def __init__(self, catalogue: MappingCatalogue) -> None:
        self.read: Listeners[int] = Listeners("mappings that were read")
        self._catalogue = catalogue
        self._compiler = PlanCompiler()
        self._jobs: dict[str, _Job] = {}
        self._waiting: OrderedDict[int, deque[_Job]] = OrderedDict()  # by company, whose turn it is first
        self._busy: set[int] = set()  # companies
        self._held: Counter[str] = Counter()  # terminals whose reports have to wait, by how many want that
        self._until_released: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()  # there is no job
        self._idle.set()
        self._changed = asyncio.Event()
        self._tasks: list[Task] = []

    def start(self, tasks: Tasks) -> None:
        """Starts the tasks."""
        self._tasks = [tasks.spawn(f"mapping plans {n}", self._work, OnFailure.RESTART) for n in range(_WORKERS)]
        self._tasks.append(tasks.spawn("mapping rows", self._read, OnFailure.RESTART))

    async def stop(self) -> None:
        """Ends the tasks, and the process that compiles."""
        for task in self._tasks:
            await task.stop()
        await self._compiler.close()

    def plans(self, uid: str) -> Sequence[Plan] | None:
        """A terminal's plans, made here if that takes no longer than a slice.

        None: they are being made, or the terminal is held; ``when_ready`` says when to ask again.
        """
        plans = self._catalogue.made.get(uid)
        if plans is not None and not self._held:
            return plans
        if uid in self._held or not self._is_ready(uid):
            return None
        return self._catalogue.plans(uid)

    def _is_ready(self, uid: str) -> bool:
        if self._catalogue.is_ready(uid):
            return True
        if uid in self._jobs:
            return False
        job = _Job(uid, self._catalogue.preparation(uid))
        if job.slices.run():
            return True
        self._jobs[uid] = job
        self._idle.clear()
        self._waiting.setdefault(self._catalogue.company_of(uid), deque()).append(job)
        self._wake.set()
        return False

    def when_ready(self, uid: str, done: Callable[[], None]) -> None:
        """Calls ``done`` when it makes sense to ask for ``plans`` again, of which there were none."""
        waiting = self._until_released[uid] if uid in self._held else self._jobs[uid].done
        waiting.append(done)

    def hold(self, uids: Iterable[str]) -> None:
        """These terminals' reports wait, until ``release`` is called as often."""
        self._held.update(uids)

    def release(self, uids: Iterable[str]) -> None:
        """Ends what ``hold`` began."""
        self._held -= Counter(uids)
        for uid in [uid for uid in self._until_released if uid not in self._held]:
            for done in self._until_released.pop(uid):
                done()

    def on_changed(self) -> None:
        """Mappings or objects were changed: what objects have now is read soon."""
        self._changed.set()

    async def prepare(self, object_id: int) -> None:
        """Returns when all is at hand that an object needs."""
        await self._finish(Slices(self._catalogue.preparation_of_object(object_id)))

    async def _work(self) -> None:
        while True:
            found = self._next()
            if found is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            company, job = found
            self._busy.add(company)
            try:
                await self._finish(job.slices)
            finally:
                self._busy.discard(company)
                self._jobs.pop(job.uid, None)
                if not self._jobs:
                    self._idle.set()
                self._wake.set()
                for done in job.done:
                    done()

    def _next(self) -> tuple[int, _Job] | None:
        for company, jobs in self._waiting.items():
            if company not in self._busy:
                job = jobs.popleft()
                del self._waiting[company]
                if jobs:
                    self._waiting[company] = jobs  # at the end
                return company, job
        return None

    async def _finish(self, slices: Slices) -> None:
        while not slices.run():
            if slices.wanted is not None:
                slices.give(await self._compiler.compile(slices.wanted))
            else:
                await next_turn()

    async def _read(self) -> None:
        """Reads the rows of mappings that objects have, though none of their terminals reports: for who looks on."""
        while True:
            self._changed.clear()
            for mapping_id in self._catalogue.unread:
                await self._idle.wait()  # jobs read what they need themselves
                await self._finish(Slices(self._catalogue.reading(mapping_id)))
                self.read.tell(mapping_id)
            await self._changed.wait()
