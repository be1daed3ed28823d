"""What keeps the examples of the documents honest notices a block that nobody runs, and an excuse without a cause."""

from __future__ import annotations

import pytest
from document_examples import Ledger, only, read_examples


def test_a_block_that_nobody_runs_is_noticed() -> None:
    page = "A page.\n\n```sh\nfirst\n```\n\n    second\n    line\n\n- a list\n    of two lines\n\n    third\n"
    first, second, third = found = read_examples("page.md", page)
    assert [each.text.strip() for each in found] == ["first", "second\n    line", "third"]
    ledger = Ledger()
    with ledger.running(first):
        pass
    with pytest.raises(ZeroDivisionError), ledger.running(second):
        _ = 1 / 0
    with pytest.raises(pytest.skip.Exception), ledger.running(third):
        pytest.skip("a program is not installed")
    assert ledger.faults(found) == ["'page.md: second\\n    line': run it, or say in NOT_RUN why not"]


def test_an_excuse_for_what_is_run_is_noticed() -> None:
    ledger, excused = Ledger(), only("README.md", "pip install .")
    assert ledger.faults([excused]) == []
    with ledger.running(excused):
        pass
    assert "take it out of NOT_RUN" in str(ledger.faults([excused]))
