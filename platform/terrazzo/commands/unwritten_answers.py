"""Answers that wait for the database: shares of them, so that made-up ones take nobody else's place. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque

MAX_ANSWERS = 10_000  # of all together; more are left out and stay in the grid
OF_COMPANY = 1_000  # of one company's terminals, beside answers to what they were sent of late
OF_TERMINAL = 50
_SENT = 20_000  # commands that are remembered as sent of late

_Answer = tuple[str, str]  # the terminal's uid, the command's


class UnwrittenAnswers:
    """Says which answers are kept until they are written. The first answer to a command that was sent always is: there
    are no more of them than commands. Any other could be made up, and has a share of its terminal and its company."""

    def __init__(self) -> None:
        self._sent: OrderedDict[_Answer, None] = OrderedDict()
        self._kept: deque[tuple[_Answer, int]] = deque()  # in the order of their taking; the company, 0: it was sent
        self._expected: set[_Answer] = set()
        self._others: Counter[str | int] = Counter()  # by terminal, by company, and of all (0)

    def note_sent(self, terminal_id: str, uid: str) -> None:
        """A command is with its terminal."""
        self._sent[terminal_id, uid] = None
        if len(self._sent) > _SENT:
            self._sent.popitem(last=False)

    def take(self, terminal_id: str, uid: str, company_id: int) -> bool:
        """Keeps an answer, if there is room for it."""
        answer = terminal_id, uid
        if answer in self._sent and answer not in self._expected:
            self._expected.add(answer)
            self._kept.append((answer, 0))
            return True
        counts = self._others
        if counts[terminal_id] >= OF_TERMINAL or counts[company_id] >= OF_COMPANY or counts[0] >= MAX_ANSWERS:
            return False
        counts.update((terminal_id, company_id, 0))
        self._kept.append((answer, company_id))
        return True

    def on_written(self, count: int) -> None:
        """The first ``count`` of those that were kept are written."""
        for _ in range(count):
            answer, company_id = self._kept.popleft()
            if not company_id:
                self._expected.discard(answer)
                continue
            for key in (answer[0], company_id, 0):
                self._others[key] -= 1
                if not self._others[key]:
                    del self._others[key]
