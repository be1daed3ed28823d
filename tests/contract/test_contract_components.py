"""Each resource of the component interfaces: its fields, lengths and shapes, its lists, and what is refused."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import pytest
from component_tables import BY_NAME, DOCUMENTED, RESOURCES, Field, Resource
from contract_world import World, filled_platform

from support import interface_description

WRONG: dict[str, tuple[Any, ...]] = {
    "text": (7, True, {}, []),
    "choice": (7, True, {}, [], "neither"),
    "int": ("one", 1.5, {}, [], True),
    "flag": ("one", 1.5, {}, 2, -1, True),
    "bool": ("perhaps", 1.5, {}, 2),
    "array": (7, True, "{broken"),
    "object": (7, True, "{broken"),
    "json": (7, True, "{broken"),
    "keys": (7, {}, "[broken", [{}]),
    "ref": (True, 1.5, {}, 987_654_321, "no such record"),
}
"""Values that are none of the type's."""

TYPES: dict[str, Any] = {
    "text": str,
    "choice": str,
    "int": int,
    "flag": int,
    "bool": bool,
    "array": list,
    "object": (dict, list),
    "json": (dict, list, type(None)),
    "keys": str,
    "time": str,
    "iso": str,
    "ref": int,
}
_TIME = {"time": r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)?", "iso": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"}
CHANGED = {"code": 200, "msg": "success", "info": ""}
_numbers = itertools.count(1)


class Client:
    """The components over HTTP, as the administrator, with a record of each resource to refer to."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._http = HTTPConnection("127.0.0.1", world.platform.http, timeout=30)
        self.known: dict[str, int] = {}

    def ask(self, method: str, path: str, *, form: bool = False, **fields: Any) -> dict[str, Any]:
        """The answer's envelope."""
        status, answer = self.send(method, path, fields, form=form)
        assert status == 200, answer
        return answer

    def send(self, method: str, path: str, fields: Mapping[str, Any], *, form: bool = False) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self._world.token}"}
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
        if method == "GET":
            self._http.request("GET", f"{path}?{urlencode(texts)}", headers=headers)
        elif form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            self._http.request(method, path, urlencode(texts), headers)
        else:
            headers["Content-Type"] = "application/json"
            self._http.request(method, path, json.dumps(fields).encode(), headers)
        response = self._http.getresponse()
        return response.status, json.loads(response.read())

    def example(self, resource: Resource) -> dict[str, Any]:
        """What can be added, with numbers of records that are there."""
        text = json.dumps(resource.example, ensure_ascii=False).replace("{new}", f"new-{next(_numbers)}")
        refs = {field.name: self.record_of(field.of) for field in resource.fields if field.type == "ref"}
        if resource.name == "groupmap":
            refs["group_id"] = self.add(BY_NAME["group"])
        return {**json.loads(text), **refs}

    def record_of(self, name: str) -> int:
        if name not in self.known:
            self.known[name] = self.add(BY_NAME[name])
        return self.known[name]

    def add(self, resource: Resource, **fields: Any) -> int:
        """A new record's number."""
        answer = self.ask("POST", f"{resource.at}/add", **{**self.example(resource), **fields})
        assert answer == CHANGED, (resource.name, answer)
        return int(self.newest(resource)["id"])

    def newest(self, resource: Resource) -> dict[str, Any]:
        answer = self.ask("GET", f"{resource.at}/getList", order_by=["id", "desc"], page_size=1)
        assert answer["code"] == 200, answer
        return dict(answer["result"]["data"][0])

    def item(self, resource: Resource, number: int) -> dict[str, Any]:
        answer = self.ask("GET", f"{resource.at}/getItem", id=number)
        assert answer["code"] == 200, answer
        return dict(answer["result"])

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="module")
def client(
    each_database_of_module: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    with ExitStack() as stack:
        if each_database_of_module == "sqlite":
            world = request.getfixturevalue("world")
        else:
            world = stack.enter_context(filled_platform(tmp_path_factory.mktemp("contract") / "data"))
        opened = Client(world)
        stack.callback(opened.close)
        yield opened


def refused(answer: dict[str, Any], field: str) -> bool:
    named = [part.split(":")[0].split("[")[0] for part in answer["info"].split("; ")]
    return (answer["code"], answer["result"]) == (500, {}) and field in named


each_resource = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.name)


@pytest.mark.parametrize(("method", "path"), DOCUMENTED)
def test_every_path_is_there(client: Client, method: str, path: str) -> None:
    status, answer = client.send(method, path, {})
    assert status == 200, answer
    assert isinstance(answer["code"], int)
    assert isinstance(answer["msg"], str)
    assert isinstance(answer["info"], str)
    status, answer = client.send("PUT", path, {})
    assert (status, answer["code"]) == (405, 10401)


@each_resource
def test_a_record_has_these_fields_and_types(client: Client, resource: Resource) -> None:
    record = client.item(resource, client.add(resource))
    assert set(record) == {field.name for field in resource.fields}
    for field in resource.fields:
        value = record[field.name]
        is_empty = value is None and field.type in ("ref", "int")  # a number that was not given
        assert is_empty or isinstance(value, TYPES[field.type]), (field, value)
        assert field.type in ("bool",) or not isinstance(value, bool), (field, value)
        if field.type in _TIME:
            assert re.fullmatch(_TIME[field.type], value), (field, value)


@each_resource
def test_what_is_written_is_read(client: Client, resource: Resource) -> None:
    sent = client.example(resource)
    number = client.add(resource, **sent)
    record = client.item(resource, number)
    for name, value in sent.items():
        kind = next(field.type for field in resource.fields if field.name == name)
        expected = json.loads(value) if kind in ("array", "object", "json") else value
        assert record[name] == expected, name
    listed = client.ask("GET", f"{resource.at}/getList", where_and=[["id", "=", number]])["result"]
    assert listed == {"page_index": 1, "page_size": 20, "total_pages": 1, "total_records": 1, "data": [record]}


@each_resource
def test_texts_fit_to_their_length_and_not_beyond(client: Client, resource: Resource) -> None:
    fields = [field for field in resource.fields if field.type == "text" and field.length]
    longest = {field.name: "ü" * (field.length or 0) for field in fields}
    number = client.add(resource, **longest)
    record = client.item(resource, number)
    assert {name: record[name] for name in longest} == longest
    example = client.example(resource)
    for name, text in longest.items():
        for verb, more in (("add", example), ("edit", {"id": number})):
            answer = client.ask("POST", f"{resource.at}/{verb}", **{**more, name: text + "x"})
            assert refused(answer, name), (verb, name, answer)
    assert client.item(resource, number) == record


@each_resource
def test_mistyped_fields_are_named(client: Client, resource: Resource) -> None:
    example = client.example(resource)
    for field in resource.fields:
        if field.is_read_only:
            continue
        for value in WRONG[field.type]:
            answer = client.ask("POST", f"{resource.at}/add", **{**example, field.name: value})
            assert refused(answer, field.name), (field.name, value, answer)


@each_resource
def test_edit_changes_what_is_given_and_nothing_else(client: Client, resource: Resource) -> None:
    number = client.add(resource)
    before = client.item(resource, number)
    has_reference = any(field.name == "reference" for field in resource.fields)
    name, value = ("reference", "R-1") if has_reference else ("description", "other")
    assert client.ask("POST", f"{resource.at}/edit", id=number, **{name: value}) == CHANGED
    after = client.item(resource, number)
    apart = {name, "last_modified", "last_modified_by"}
    assert {key: after[key] for key in after if key not in apart} == {
        key: before[key] for key in before if key not in apart
    }
    assert after[name] == value


@each_resource
def test_what_was_read_can_be_written_back(client: Client, resource: Resource) -> None:
    number = client.add(resource)
    record = client.item(resource, number)
    assert client.ask("POST", f"{resource.at}/edit", **record) == CHANGED
    after = client.item(resource, number)
    assert (
        {**after, "last_modified": ""} == {**record, "last_modified": ""}
        if "last_modified" in record
        else after == record
    )


@each_resource
def test_delete_and_records_that_are_not_there(client: Client, resource: Resource) -> None:
    number = client.add(resource)
    assert client.ask("POST", f"{resource.at}/delete", id=number) == CHANGED
    for method, verb in (("POST", "delete"), ("POST", "edit"), ("GET", "getItem")):
        for key in (number, "nothing", 987_654_321):
            answer = client.ask(method, f"{resource.at}/{verb}", id=key)
            assert refused(answer, "id"), (verb, key, answer)
        assert refused(client.ask(method, f"{resource.at}/{verb}"), "id")


@each_resource
def test_the_misspelling_and_forms_are_accepted(client: Client, resource: Resource) -> None:
    example = client.example(resource)
    answer = client.ask("POST", f"{resource.at}/add", form=True, **{**example, "is_availabel": 0})
    assert answer == CHANGED, answer
    assert client.newest(resource)["is_available"] in (0, False)


@each_resource
def test_lists_take_conditions_orders_and_pages(client: Client, resource: Resource) -> None:
    numbers = [client.add(resource) for _ in range(3)]
    within = {"where_in": ["id", ",".join(map(str, numbers))]}

    def ids(**query: Any) -> list[int]:
        answer = client.ask("GET", f"{resource.at}/getList", **query)
        assert answer["code"] == 200, answer
        return [record["id"] for record in answer["result"]["data"]]

    assert ids(**within) == numbers
    assert ids(**within, order_by=["id", "desc"]) == numbers[::-1]
    assert ids(**within, where_and=[["id", ">", numbers[0]]]) == numbers[1:]
    assert ids(**within, where_and=[["id", "<>", numbers[1]]]) == [numbers[0], numbers[2]]
    assert ids(**within, where_or=[["id", "=", numbers[0]], ["id", "=", numbers[2]]]) == [numbers[0], numbers[2]]
    assert ids(**within, where_and=[["is_available", "=", 0]]) == []
    page = client.ask("GET", f"{resource.at}/getList", **within, page_index=2, page_size=2)["result"]
    assert {**page, "data": len(page["data"])} == {
        "page_index": 2, "page_size": 2, "total_pages": 2, "total_records": 3, "data": 1,
    }  # fmt: skip
    assert ids(**within, page_index=9) == []
    for name, value in (("where_and", [["nothing", "=", 1]]), ("order_by", ["nothing", "asc"]), ("page_size", 0)):
        assert refused(client.ask("GET", f"{resource.at}/getList", **{name: value}), name)


def test_like_finds_texts(client: Client) -> None:
    config = BY_NAME["config"]
    number = client.add(config, name="100% north")
    found = client.ask("GET", f"{config.at}/getList", where_and=[["name", "LIKE", "%\u0025 nor%"]])["result"]["data"]
    assert number in [record["id"] for record in found]


def test_a_terminal_is_named_by_its_id_here(client: Client) -> None:
    terminal = BY_NAME["terminal"]
    number = client.add(terminal, terminal_id="T-77")
    found = client.ask(
        "GET", f"{terminal.at}/getList", where_and=[["terminal_id", "=", "T-77"]], order_by=["terminal_id", "asc"]
    )
    assert [record["id"] for record in found["result"]["data"]] == [number]
    answer = client.ask("POST", f"{terminal.at}/add", **{**client.example(terminal), "terminal_id": "T-77"})
    assert (answer["code"], answer["info"]) == (500, "terminal_id: T-77 is taken")
    answer = client.ask("POST", f"{terminal.at}/add", **{**client.example(terminal), "terminal_id": "a/b"})
    assert refused(answer, "terminal_id")


def test_terminal_lists_in_each_form(client: Client) -> None:
    uids = [client.item(BY_NAME["terminal"], client.add(BY_NAME["terminal"]))["terminal_id"] for _ in range(2)]
    for given in (json.dumps(uids), ",".join(uids), uids):
        number = client.add(BY_NAME["object"], terminal_list=given)
        assert client.item(BY_NAME["object"], number)["terminal_list"] == ",".join(uids)


def test_dashboards_on_objects(client: Client) -> None:
    at, board, other = BY_NAME["object"].at, client.add(BY_NAME["dashboard"]), client.add(BY_NAME["dashboard"])
    object_id = client.add(BY_NAME["object"])
    pair = {"dashboard_id": board, "object_id": object_id}
    assert client.ask("POST", f"{at}/addDashboard", **pair, category="tv") == CHANGED
    found = client.ask("GET", f"{at}/getDashboardByCategory", object_id=object_id, category="tv")["result"]
    assert found == {**client.item(BY_NAME["dashboard"], board), "category": "tv"}
    assert refused(client.ask("POST", f"{at}/addDashboard", **pair, category="pro"), "dashboard_id")
    assert refused(client.ask("GET", f"{at}/getDashboardByCategory", object_id=object_id, category="pro"), "category")
    assert refused(client.ask("POST", f"{at}/addDashboard", **pair, category="x" * 17), "category")
    missing = {**pair, "dashboard_id": 987_654_321}
    assert refused(client.ask("POST", f"{at}/addDashboard", **missing, category="tv"), "dashboard_id")
    assert refused(client.ask("POST", f"{at}/deleteDashboard", dashboard_id=other, object_id=object_id), "dashboard_id")
    assert client.ask("POST", f"{at}/deleteDashboard", **pair) == CHANGED
    assert refused(client.ask("GET", f"{at}/getDashboardByCategory", object_id=object_id, category="tv"), "category")


@pytest.mark.parametrize("resource", [each for each in RESOURCES if each.heading], ids=lambda resource: resource.name)
def test_the_tables_are_those_of_the_interface_description(resource: Resource) -> None:
    assert {field.name: field.length for field in resource.fields} == dict(_described(resource))


def _described(resource: Resource) -> Iterator[tuple[str, int | None]]:
    text = interface_description("2-components.md").partition(f"\n{resource.heading}\n")[2].partition("\n### ")[0]
    tabled = {field.name: field for field in resource.fields}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if not line.startswith("| ") or cells[0] == "Field":
            continue
        length = re.search(r"[Uu]p to (\d+)", line)
        for name in cells[0].split(", "):
            yield name, int(length.group(1)) if length else _undocumented(tabled.get(name))


def _undocumented(field: Field | None) -> int | None:
    """Lengths of ours where the description has none."""
    return None if field is None else field.length


def test_the_paths_are_those_of_the_interface_description() -> None:
    text = interface_description("2-components.md")
    for _, path in DOCUMENTED:
        assert path.rpartition("/")[2] in text, path
