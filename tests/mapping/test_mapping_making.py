"""Large mappings are read in slices and compiled in a process; messages are mapped by what is in force."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import new_tasks
from terrazzo.analysis.scripts import Formulas
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import in_turns
from terrazzo.mapping import compiler, plan_maker
from terrazzo.mapping.catalogue import MappingCatalogue, ObjectSpec
from terrazzo.mapping.engine import MappingEngine
from terrazzo.mapping.plan import compile_source
from terrazzo.mapping.plan_maker import PlanMaker, Slices
from terrazzo.metadata.definitions.registry import CALCULATE, MAPPING
from turns_of_loop import longest_turn
from waiting import until

PARTS = 40  # of each expression


@pytest.fixture(autouse=True)
def no_collections():
    """The collector looks through all that the tests have loaded; the platform freezes that at its start."""
    gc.disable()
    yield
    gc.enable()


def rows(count: int, *, factor: int = 2, parts: int = PARTS) -> list[list[Any]]:
    term = " + ".join([f"x * {factor}"] * (parts // 4))
    return [[f"V{number}", "", "", "STA", f"t1.p{number}", term] for number in range(count)]


def spec(object_id: int = 1, *, mapping_id: int = 1, terminals: tuple[str, ...] = ("t1",)) -> ObjectSpec:
    return ObjectSpec(id=object_id, company_id=1, mapping_id=mapping_id, terminals=terminals)


def shaped(engine: MappingEngine, uid: str = "t1") -> list[dict[str, Any]]:
    """What a message makes."""
    mosaic: list[Any] = []
    points = {f"p{number}": 1 for number in range(3)}
    reports: list[Any] = []
    engine.begin(reports)
    plans = engine.catalogue.plans(uid)
    if plans:
        engine.shape(plans, points, 1_000_000, uid, mosaic)
    return [msgspec.msgpack.decode(record.body) for record in mosaic]


@asynccontextmanager
async def making(catalogue: MappingCatalogue):
    maker = PlanMaker(catalogue)
    maker.start(new_tasks())
    try:
        yield maker
    finally:
        await maker.stop()


async def ready(maker: PlanMaker, uid: str) -> None:
    async with asyncio.timeout(60):
        while maker.plans(uid) is None:
            done = asyncio.Event()
            maker.when_ready(uid, done.set)
            await done.wait()


async def test_a_large_mapping_holds_the_loop_for_no_longer_than_a_slice():
    engine = MappingEngine()
    catalogue = engine.catalogue
    async with making(catalogue) as maker, longest_turn() as longest:
        catalogue.put_mapping(1, rows(1_000))
        catalogue.put_object(spec())
        await ready(maker, "t1")
        began_s = time.thread_time()
        assert len(catalogue.plans("t1")) == 1
        assert time.thread_time() - began_s < 0.002, "it is there"
    assert longest.cpu_s < 0.05, "all together takes a second"
    assert shaped(engine) == [{f"V{number}": 20 for number in range(3)}]


async def test_many_objects_are_bound_one_after_the_other():
    catalogue = MappingCatalogue()
    uids = tuple(f"terminal-number-{number}" for number in range(300))
    catalogue.put_mapping(1, [[f"V{n}", "", "", "STA", f"{uids[n % 3]}.p{n}", "x"] for n in range(200)])
    for number in range(1, 150):
        catalogue.put_object(spec(number, terminals=uids))
    async with making(catalogue) as maker, longest_turn() as longest:
        await ready(maker, uids[0])
        assert len(catalogue.plans(uids[0])) == 149
    assert longest.cpu_s < 0.04


async def test_a_short_mapping_is_made_at_once_and_a_company_waits_for_itself_alone(monkeypatch: pytest.MonkeyPatch):
    catalogue = MappingCatalogue()
    catalogue.put_mapping(1, rows(1_000))
    catalogue.put_mapping(2, [["A", "", "", "STA", "t9.a", ""]])
    for number in range(1, 4):
        catalogue.put_object(spec(number, terminals=(f"t{number}",), mapping_id=1))
    catalogue.put_object(ObjectSpec(id=9, company_id=2, mapping_id=2, terminals=("t9",)))
    monkeypatch.setattr(plan_maker, "_SLICE_S", 0.02)
    async with making(catalogue) as maker:
        assert maker.plans("t1") is None
        assert maker.plans("t9")
        assert maker.plans("nobody") == ()
        assert not catalogue.is_ready("t1")


CHANGES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 4)), max_size=6)


@given(CHANGES)
def test_whatever_changes_between_two_steps_plans_are_those_in_force(changes: list[tuple[int, int]]) -> None:
    engine = MappingEngine()
    catalogue = engine.catalogue
    script, table = {1: rows(6), 2: rows(6, factor=7)}, spec()
    for mapping_id, some in script.items():
        catalogue.put_mapping(mapping_id, some)
    catalogue.put_object(table)
    for steps, change in changes:
        work, code = catalogue.preparation("t1"), None
        for _ in range(steps):
            try:
                source = work.send(code)
            except StopIteration:
                break
            code = None if source is None else compile_source(source)
        match change:
            case 0 | 1:
                script[1] = rows(6, factor=3 + change)
                catalogue.put_mapping(1, script[1])
            case 2 | 3:
                table = spec(mapping_id=change - 1)
                catalogue.put_object(table)
            case 4:
                table = spec(terminals=("t0", "t1"))
                catalogue.put_object(table)
        try:
            while True:  # the rest of it
                source = work.send(code)
                code = None if source is None else compile_source(source)
        except StopIteration:
            pass
    fresh = MappingEngine()
    for mapping_id, some in script.items():
        fresh.catalogue.put_mapping(mapping_id, some)
    fresh.catalogue.put_object(table)
    assert shaped(engine) == shaped(fresh)


async def test_an_update_while_plans_are_made_is_in_force():
    engine = MappingEngine()
    catalogue = engine.catalogue
    catalogue.put_mapping(1, rows(300))
    catalogue.put_object(spec())
    async with making(catalogue) as maker:
        assert maker.plans("t1") is None
        told = asyncio.Event()
        maker.when_ready("t1", told.set)
        for factor in range(3, 9):
            await asyncio.sleep(0.01)
            catalogue.put_mapping(1, rows(300, factor=factor))
        await told.wait()
        await ready(maker, "t1")
        assert shaped(engine) == [{f"V{number}": 80 for number in range(3)}]


async def test_a_mapping_that_is_none_and_one_that_is_gone_keep_nobody_waiting():
    catalogue = MappingCatalogue()
    catalogue.put_mapping(1, [["A"]] * 900)
    catalogue.put_object(spec())
    async with making(catalogue) as maker:
        await ready(maker, "t1")
        assert catalogue.plans("t1") == ()
        catalogue.put_mapping(1, rows(900))
        assert maker.plans("t1") is None
        catalogue.put_mapping(1, None)
        await ready(maker, "t1")
        assert catalogue.plans("t1") == ()
        catalogue.put_mapping(1, rows(900))
        assert maker.plans("t1") is None
        catalogue.put_object(ObjectSpec(id=1, company_id=1, mapping_id=1, terminals=("t1",), is_available=False))
        await ready(maker, "t1")
        assert catalogue.is_ready("t1")


async def test_without_a_process_it_is_compiled_all_the_same():
    engine = MappingEngine()
    engine.catalogue.put_object(spec())
    async with making(engine.catalogue) as maker:
        engine.catalogue.put_mapping(1, rows(100))
        await ready(maker, "t1")
        process = maker._compiler.process._process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        engine.catalogue.put_mapping(1, rows(100, factor=3))
        await ready(maker, "t1")
        assert shaped(engine)[0]["V0"] == 30
        await maker._compiler.close()
        maker._compiler = compiler.PlanCompiler(("/nowhere",))
        engine.catalogue.put_mapping(1, rows(100, factor=4))
        await ready(maker, "t1")
        assert shaped(engine)[0]["V0"] == 40


async def test_the_process_ends_when_it_is_idle(monkeypatch: pytest.MonkeyPatch):
    one = compiler.PlanCompiler()
    monkeypatch.setattr(one.process, "_idle_s", 0.01)
    assert (await one.compile("n = 3")).co_names == ("n",)
    process = one.process._process
    assert process is not None
    await until(lambda: process.returncode is not None)
    assert (await one.compile("n = 4")).co_names == ("n",)
    assert one.process._process is not process
    await one.close()


async def test_who_looks_on_sees_a_large_mapping_when_it_is_read():
    engine = MappingEngine()
    catalogue = engine.catalogue
    catalogue.put_mapping(1, rows(500))
    catalogue.put_object(spec())
    assert engine.state(1) is None, "it is not read for a look"
    read: list[int] = []
    async with making(catalogue) as maker:
        maker.read.listen(read.append)
        maker.on_changed()
        await until(lambda: read == [1])
    assert engine.state(1) is not None
    catalogue.put_mapping(1, rows(2))
    assert engine.state(1) is not None, "a short one is"


def test_to_know_a_mapping_costs_nothing():
    catalogue = MappingCatalogue()
    large = rows(1_000)
    began_s = time.thread_time()
    for number in range(20):
        catalogue.put_mapping(number, large)
    assert time.thread_time() - began_s < 0.3, "a start with four of them took 13 s"


@pytest.mark.parametrize(
    ("field", "script", "wrong"),
    [
        (MAPPING.fields["script"], rows(1_000), ["V0", "", "", "STA", "t1.p", "x +"]),
        (CALCULATE.fields["script"], [[f"N{n}", " + ".join(["A * 2"] * 12)] for n in range(1_000)], ["X", "1 +"]),
    ],
)
async def test_an_update_is_checked_in_slices(field: Any, script: list[Any], wrong: list[str]):
    async with longest_turn() as longest:
        assert await in_turns(field.parsing(script)) == script
        with pytest.raises(BadParameter, match="row 1000"):
            await in_turns(field.parsing([*script[:-1], wrong]))
    assert longest.cpu_s < 0.05, "half a second in all"


async def test_calculations_are_read_in_slices():
    formulas = Formulas([(f"N{n}", " + ".join(["A * 2"] * 12)) for n in range(1_000)])
    async with longest_turn() as longest:
        found = await in_turns(formulas.reading())
        assert (await in_turns(formulas.reading())) is found
        for each in found[:3]:
            assert each.expression is not None
            assert each.expression.evaluate({"A": 1}) == 24
    assert longest.cpu_s < 0.05


def test_steps_stop_for_a_long_text_until_its_code_is_there():
    catalogue = MappingCatalogue()
    catalogue.put_mapping(1, rows(100))
    catalogue.put_object(spec())
    slices, asked = Slices(catalogue.preparation("t1")), 0
    while not slices.run():
        if slices.wanted is not None:
            asked += 1
            assert not slices.run()
            slices.give(compile_source(slices.wanted))
    assert asked == 2
    assert catalogue.is_ready("t1")
