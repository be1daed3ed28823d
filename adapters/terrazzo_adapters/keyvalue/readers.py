"""``Readers``: threads that answer queries, companies in turn, without a way back to the event loop between two."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread, local
from traceback import clear_frames
from typing import Any, NamedTuple, TypeVar

from terrazzo.errors import Throttled
from terrazzo.short_turns import computing

T = TypeVar("T")

_RETRY_AFTER_S = 5.0


_Bell = SimpleQueue[None]


class _Query(NamedTuple):
    answer: asyncio.Future[Any]
    work: Callable[[], Any]


class _Answer(NamedTuple):
    to: asyncio.Future[Any]
    result: Any
    error: BaseException | None


_under_way = local()  # the answer that a thread works for


class Unwanted(Exception):
    """Nobody waits for the answer any more."""


def still_wanted() -> None:
    """To be called now and then by long work of a query.

    Raises:
        Unwanted: its thread may have the next one.
    """
    answer: asyncio.Future[Any] | None = getattr(_under_way, "answer", None)
    if answer is not None and answer.cancelled():
        raise Unwanted


class Readers:
    """As ``CompanyTurns`` before a pool of threads, but a thread that is done takes who is next itself.

    What threads have found while the event loop was busy it is told all at once: to wake it for each costs more than
    most queries do.

    Args:
        threads: at most; started when they are needed.
        of_company: that work for one company at a time.
        waiting: queries of one company; more are refused.
    """

    def __init__(self, name: str, *, threads: int, of_company: int, waiting: int) -> None:
        self._name = name
        self._most_threads = threads
        self.refused = 0  # queries, as too many of their company waited
        self._of_company = of_company
        self._most_waiting = waiting
        self._lock = Lock()  # of all that follows, but for what is answered
        self._threads: list[Thread] = []
        self._idle: list[_Bell] = []  # of threads that have nothing to do, in the order in which that began
        self._waiting: OrderedDict[int, deque[_Query]] = OrderedDict()  # whose turn is next comes first
        self._working: dict[int, int] = {}  # threads by company
        self._is_closed = False
        self._answers: deque[_Answer] = deque()
        self._is_told = False  # the event loop, that there are answers

    def ask(self, company_id: int, work: Callable[[], T]) -> asyncio.Future[T]:
        """What ``work`` returns or raises, of which a thread does it in the company's turn. To be called on the loop.

        Raises:
            Throttled: too many of the company wait already.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            waiting = self._waiting.get(company_id)
            if waiting is None:
                waiting = self._waiting[company_id] = deque()
            elif len(waiting) >= self._most_waiting:
                self.refused += 1
                info = f"queries of the store: {len(waiting)} of your company wait already"
                raise Throttled(info, _RETRY_AFTER_S)
            waiting.append(_Query(answer, work))
            is_next = self._working.get(company_id, 0) + len(waiting) <= self._of_company
            starts = is_next and self._call_thread()
        if starts:
            self._start_thread()
        return answer

    def is_free_for(self, company_id: int) -> bool:
        """Whether a thread would begin at once with a query of a company."""
        return bool(self._idle) and self._working.get(company_id, 0) < self._of_company

    def close(self) -> None:
        """Answers what waits, and ends the threads."""
        with self._lock:
            self._is_closed = True
            for bell in self._idle:
                bell.put(None)
        for thread in self._threads:
            thread.join()

    def _call_thread(self) -> bool:
        """Has the thread come that has waited least, which may not sleep yet; whether one is to be started."""
        if self._idle:
            self._idle.pop().put(None)
            return False
        return len(self._threads) < self._most_threads

    def _start_thread(self) -> None:
        loop = asyncio.get_running_loop()
        name = f"{self._name}_{len(self._threads)}"
        thread = Thread(target=self._serve, args=(loop,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """A thread: query after query, until there is none that may be worked on.

        It is free, or has the next one, before the loop hears of an answer: who asks again at once finds it so.
        """
        bell: _Bell = SimpleQueue()
        done_for: int | None = None
        answer: _Answer | None = None
        while True:
            with self._lock:
                if done_for is not None:
                    self._end(done_for)
                done_for, query = self._take()
                ends = query is None and self._is_closed
                if query is None and not ends:
                    self._idle.append(bell)
            if answer is not None:
                self._give(answer, loop)
                answer = None
            if query is not None:
                answer = self._work(query)
                query = None  # which has more than its answer
            elif ends:
                return
            else:
                bell.get()

    def _take(self) -> tuple[int | None, _Query | None]:
        """The next query of a company that has not all of its threads, and whose it is."""
        for company_id, waiting in self._waiting.items():
            working = self._working.get(company_id, 0)
            if working >= self._of_company:
                continue  # so there are no more of these than threads
            query = waiting.popleft()
            if waiting:
                self._waiting.move_to_end(company_id)
            else:
                del self._waiting[company_id]
            self._working[company_id] = working + 1
            return company_id, query
        return None, None

    def _end(self, company_id: int) -> None:
        working = self._working[company_id] - 1
        if working:
            self._working[company_id] = working
        else:
            del self._working[company_id]

    @staticmethod
    def _work(query: _Query) -> _Answer | None:
        """The answer; None where nobody waits for it any more."""
        if query.answer.cancelled():
            return None
        _under_way.answer = query.answer
        try:
            with computing:
                found = query.work()
            return _Answer(query.answer, found, None)
        except Unwanted:
            return None
        except StopIteration as error:  # which a future doesn't take: whoever asked would wait for ever
            return _Answer(query.answer, None, RuntimeError(f"a query has ended with {error!r}"))
        except BaseException as error:  # noqa: BLE001 - it is whoever asked who is told
            return _Answer(query.answer, None, _without_records(error))
        finally:
            _under_way.answer = None

    def _give(self, answer: _Answer, loop: asyncio.AbstractEventLoop) -> None:
        self._answers.append(answer)
        if not self._is_told:
            self._is_told = True
            try:
                loop.call_soon_threadsafe(self._tell)
            except RuntimeError:
                self._answers.clear()  # the loop is closed, and nobody waits

    def _tell(self) -> None:
        self._is_told = False  # before the first is taken: what comes now is told, or taken below
        answers = self._answers
        while answers:
            to, result, error = answers.popleft()
            if to.done():
                continue
            if error is None:
                to.set_result(result)
            else:
                to.set_exception(error)


def _without_records(error: BaseException) -> BaseException:
    """The error without what its query had read, which would stay until the garbage collector comes by.

    Its frames have the query, which has the answer, which has the error.
    """
    trace = error.__traceback__
    clear_frames(trace)
    return error.with_traceback(trace and trace.tb_next)
