"""Imports as actions; and what the paths under ``/bulk`` perform: imports of uploads, and exports."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import READS_TEXT, Flag
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.pieces import begun, in_turn
from terrazzo.api.kernel.services import Services
from terrazzo.bulk.columns import Columns
from terrazzo.bulk.entities import BULK_ENTITIES, BulkEntity
from terrazzo.bulk.exporting import MEDIA_TYPES, Format, export
from terrazzo.bulk.importing import Importer, Mode, OnProgress
from terrazzo.bulk.report import Report
from terrazzo.bulk.rows import decoded, read_objects, read_text
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import NotPermitted
from terrazzo.loop_pauses import in_turns
from terrazzo.reasons import say

Grow = Callable[[int], object]
"""Told of bytes of memory that are taken beside those before; raises ``Throttled`` where there are too many."""

_FILE_COPIES = 3  # of each byte of a file that is read: as it came, and twice as text
_Objects = Annotated[list[dict[str, Any]], Meta(description="objects, one a record", extra=READS_TEXT)]
_Text = Annotated[str, Meta(description="CSV with a header, JSON, or JSON lines")]


class ImportOptions(msgspec.Struct, kw_only=True):
    """How to import. ``progress``: the answer is lines of JSON, the last of which is the envelope."""

    dry_run: Flag = 0
    mode: Mode = "create"
    progress: Flag = 0


class ImportRecords(msgspec.Struct, kw_only=True):
    """``rows`` are imported all together or not at all; ``dry_run`` only says what would be."""

    rows: _Objects | _Text
    dry_run: Flag = 0
    mode: Mode = "create"


class ExportOptions(msgspec.Struct, kw_only=True):
    """``secrets`` are an administrator's to ask for."""

    format: Format = "csv"
    secrets: Flag = 0


class BulkUpload(msgspec.Struct, frozen=True):
    """A body that is read once it is known that the caller may import; ``read`` tells of the bytes as they come."""

    options: ImportOptions
    read: Callable[[Grow], Awaitable[bytes | bytearray]]
    on_progress: OnProgress


class BulkOperations(msgspec.Struct, frozen=True):
    """What can be done with one entity's records in bulk."""

    of: BulkEntity
    import_name: str  # the action, and the name of what POST at ``path`` does
    export_name: str
    path: str

    def action(self) -> Operation:
        """The import of what fits into one request of the gateway."""
        return Operation(
            name=self.import_name,
            summary=f"Imports {self.of.title}, all or none",
            request=ImportRecords,
            result=Report,
            permission=Role.ADMIN,
            handler=self.handle_import,
            tries_first=True,
        )

    def upload(self) -> Operation:
        """The import of a body of its own."""
        return replace(self.action(), request=ImportOptions, handler=self.handle_upload, method="POST", path=self.path)

    def export(self) -> Operation:
        """All records as a file, as an import takes them."""
        return Operation(
            name=self.export_name,
            summary=f"Exports {self.of.title} as an import takes them",
            request=ExportOptions,
            result=str,
            permission=Role.VIEWER,
            handler=self.handle_export,
            method="GET",
            path=self.path,
            media_types=tuple(MEDIA_TYPES.values()),
        )

    async def handle_import(self, services: Services, actor: Actor, request: ImportRecords) -> Report:
        """Imports the rows of a request, all together or, where one is wrong, none."""
        given, company_id = request.rows, actor.company_id
        async with services.imports.turn(company_id):
            with services.memory.holding("imports", company_id) as holding:
                rows = read_text(given) if isinstance(given, str) else read_objects(given)
                importer = self._importer(services, actor, request, _unheard)
                return await importer.run(rows, holding.grow)

    async def handle_upload(self, services: Services, actor: Actor, request: BulkUpload) -> Report:
        """Imports an uploaded file, which is read here: only whoever may import uploads anything."""
        company_id = actor.company_id
        async with services.imports.turn(company_id):
            with services.memory.holding("imports", company_id) as holding:
                data = await request.read(lambda size: holding.grow(_FILE_COPIES * size))
                rows = read_text(*await in_turns(decoded(data)))
                importer = self._importer(services, actor, request.options, request.on_progress)
                return await importer.run(rows, holding.grow)

    async def handle_export(
        self, services: Services, actor: Actor, request: ExportOptions
    ) -> AsyncGenerator[bytes, None]:
        """All records of the actor's company as the pieces of a file.

        Raises:
            NotPermitted: asks for secrets without being an administrator.
            Throttled: too many exports of the company wait.
        """
        if request.secrets and not actor.may(Role.ADMIN):
            raise NotPermitted(say("secrets_need_admin", user=actor.username, is_role=actor.role.name.lower()))
        repository, company_id = self.of.repository(services.entities), actor.company_id
        pieces = export(repository, actor, format=request.format, secrets=bool(request.secrets))
        holding = services.memory.holding("exports", company_id)
        return await begun(in_turn(pieces, services.exports.turn(company_id), holding))

    def _importer(
        self, services: Services, actor: Actor, options: ImportRecords | ImportOptions, on_progress: OnProgress
    ) -> Importer:
        return Importer(
            self.of.repository(services.entities),
            Columns(self.of.entity, self.of.ignored),
            actor,
            services.unfinished_imports,
            mode=options.mode,
            dry_run=bool(options.dry_run),
            on_progress=on_progress,
        )


_NAMES = {
    "terminal_configs": ("import_terminal_configs", "export_terminal_configs", "/bulk/terminal_configs"),
    "terminals": ("import_terminals", "export_terminals", "/bulk/terminals"),
    "mappings": ("import_mappings", "export_mappings", "/bulk/mappings"),
    "controls": ("import_controls", "export_controls", "/bulk/controls"),
    "customers": ("import_customers", "export_customers", "/bulk/customers"),
    "objects": ("import_objects", "export_objects", "/bulk/objects"),
}
"""By entity: the action that imports, what exports, and the path of both."""

BULK = tuple(BulkOperations(each, *_NAMES[each.name]) for each in BULK_ENTITIES)
"""One for each entity, those that others refer to first."""


def _unheard(stage: str, done: int, total: int) -> None:
    """Takes the progress of an import that nobody follows: an action's."""


OPERATIONS = tuple(each.action() for each in BULK)
