"""What the operations work on: every seam they use, handed in by the composition file."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Protocol

import msgspec
from prometheus_client.registry import Collector

from terrazzo.access.api_keys import ApiKeys
from terrazzo.access.lockouts import Lockouts
from terrazzo.access.password_reset import PasswordResets
from terrazzo.access.second_factor_setup import SecondFactorSetup
from terrazzo.access.single_sign_on import SingleSignOn
from terrazzo.access.tokens import HeldToken
from terrazzo.access.wall_links import WallLinks
from terrazzo.analysis.analysis import Analysis
from terrazzo.api.kernel.command_service import CommandService
from terrazzo.api.kernel.long_answers.lists import AnswerStats
from terrazzo.api.kernel.long_answers.remembered import RememberedAnswers
from terrazzo.api.kernel.replica.seams import ALONE, ClusterPart
from terrazzo.attention.attention import Attention
from terrazzo.audit.entry import AuditEntry
from terrazzo.backup.status import BackupStatus
from terrazzo.bulk.unfinished import UnfinishedImports
from terrazzo.campaigns.download_links import Ticket
from terrazzo.commands.pusher import ObjectRequest
from terrazzo.company_turns import CompanyTurns
from terrazzo.compute_thread import ComputeThread
from terrazzo.configurations.delivery import ConfigStatus
from terrazzo.database.port import EVERYTHING, Conditions, Repository, Row, Rows
from terrazzo.domain.actor import Actor
from terrazzo.domain.calendar_days import Days
from terrazzo.domain.campaigns.rollout import CampaignState
from terrazzo.domain.refusals.entry import RefusalEntry
from terrazzo.domain.registry import Registry
from terrazzo.domain.stored_file import StoredFile
from terrazzo.events.definitions import EventDefinitions
from terrazzo.events.events import EventRecords
from terrazzo.events.handovers import Handovers
from terrazzo.events.labels import LabelRecords
from terrazzo.events.object_log import ObjectLog
from terrazzo.ingest.backlog import Intake
from terrazzo.ingest.report_reader import ReportReader
from terrazzo.live.hub import LiveHub
from terrazzo.mapping.catalogue import MappingLimits
from terrazzo.mapping.replay.runner import ReplayRunner
from terrazzo.mapping.trials import MappingTrials
from terrazzo.memory_shares import MemoryShares
from terrazzo.messenger.messenger import Messenger
from terrazzo.metadata.company_limits import CompanyLimits
from terrazzo.metadata.former_terminals import FormerTerminal
from terrazzo.metadata.name_search import NameSearch
from terrazzo.metadata.out_of_service import OutOfServiceRecords
from terrazzo.metadata.registration import TerminalRegistration
from terrazzo.metadata.repositories.claim_keys import ClaimKeyRepository
from terrazzo.metadata.repositories.terminal_batches import TerminalBatches
from terrazzo.objects.flags import FlagSource
from terrazzo.objects.variable_definitions import VariableDefinitions
from terrazzo.ports.bridge import Bridge
from terrazzo.ports.bus import BrokerView, MessageBus
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import TaskHealth
from terrazzo.ports.tracing import Tracing
from terrazzo.rules.command_store import RuleCommandRecords
from terrazzo.terminals.presence_log import PresenceLog
from terrazzo.terminals.remote_access import RemoteAccess
from terrazzo.terminals.search import TerminalSearch
from terrazzo.terminals.tracing import TerminalTraces
from terrazzo.terminals.unknown import UnknownTerminals
from terrazzo.work_process import WorkProcess
from terrazzo_broker.peer_address import TrustedProxies

ReadinessCheck = Callable[[], Awaitable[None]]
"""Returns when a part accepts work and raises otherwise; the error's text is shown to operators."""


class Scripts(Repository, Protocol):
    """Stored scripts, which are started and stopped."""

    async def set_active(self, actor: Actor, key: int | str, is_active: bool) -> Row:
        """Starts or stops a script.

        Returns:
            Its row.

        Raises:
            NotFound: there is none of this id or uid in the actor's company.
        """


class StampedRecords(Repository, Protocol):
    """Records that can be counted by the day of their creation."""

    async def tally(self, actor: Actor, days: Days, conditions: Conditions, *, by: str) -> dict[tuple[Any, ...], int]:
        """``(day, value of the column by)`` to count."""


class CampaignRecords(Repository, Protocol):
    """Firmware campaigns, which are started, paused and aborted."""

    async def set_state(self, actor: Actor, key: int | str, state: CampaignState, *, reason: str = "") -> Row:
        """Brings a campaign into a state, and says why.

        Raises:
            NotFound: there is none of this id or uid in the actor's company.
            Conflict: it can't come from its state into this one.
        """


class EntityStores(Protocol):
    """The repositories of the stored entities, one for each."""

    @property
    def companies(self) -> Repository: ...

    @property
    def users(self) -> Repository: ...

    @property
    def terminals(self) -> Repository: ...

    @property
    def configurations(self) -> Repository: ...

    @property
    def authorities(self) -> Repository: ...

    @property
    def mappings(self) -> Repository: ...

    @property
    def controls(self) -> Repository: ...

    @property
    def customers(self) -> Repository: ...

    @property
    def objects(self) -> Repository: ...

    @property
    def retainers(self) -> Scripts: ...

    @property
    def statistics(self) -> Scripts: ...

    @property
    def calculates(self) -> Scripts: ...

    @property
    def balances(self) -> Scripts: ...

    @property
    def dashboards(self) -> Repository: ...

    @property
    def projects(self) -> Scripts: ...

    @property
    def campaigns(self) -> CampaignRecords: ...

    @property
    def services(self) -> StampedRecords: ...

    @property
    def collects(self) -> Repository: ...

    @property
    def collected(self) -> Repository: ...

    @property
    def groups(self) -> Repository: ...

    @property
    def group_maps(self) -> Repository: ...

    @property
    def object_dashboards(self) -> Repository: ...

    @property
    def files(self) -> Repository: ...

    @property
    def uploads(self) -> Repository: ...

    @property
    def rules(self) -> Scripts: ...

    @property
    def api_keys(self) -> Repository: ...


class LoginService(Protocol):
    """Turns a name and a password into a token."""

    async def login(self, username: str, password: str, address: str, *, code: str | None = None) -> tuple[Row, str]:
        """The user's record and a new token.

        Raises:
            NotAuthenticated: wrong credentials, or a deactivated user.
            SecondFactorNeeded: they are right, and a code of the second factor is needed.
            Throttled: too many failures of this user or address.
        """

    async def change_password(self, actor: Actor, old_password: str, password: str) -> str:
        """Gives the actor another password; a new token, all others have ended.

        Raises:
            BadParameter: the old one is wrong, or the new one can't be one.
            NotPermitted: an API key asks.
            Throttled: too many wrong ones.
        """


class TokenService(Protocol):
    """Checks and ends tokens, and checks API keys, which go wherever a token goes."""

    @property
    def version(self) -> int:
        """Rises with all that may make a good token (no API key) a bad one, but for its time."""

    def verify(self, token: str) -> Actor:
        """Raises ``NotAuthenticated`` for a token that is malformed, expired or revoked."""

    def session(self, token: str) -> str:
        """The first token of a session, which can be renewed, of a token that was just issued."""

    def renewed(self, token: str) -> str | None:
        """The next token of a session, None where there is none to be had now; raises as ``verify`` does."""

    def hold(self, token: str) -> HeldToken:
        """Checks a token for a connection that stays; raises as ``verify`` does."""

    def verify_held(self, held: HeldToken) -> Actor:
        """Whose it is, though it may have expired since; raises ``NotAuthenticated`` once it is ended."""

    async def revoke(self, token: str, *, held: HeldToken | None = None, address: str = "") -> None:
        """Ends a token, as somebody at ``address`` asks, one that a connection holds also after its time; raises as
        ``verify`` does."""


class ConfigStatuses(Protocol):
    """How far terminals are with the configurations that they ought to have."""

    def status(self, uid: str) -> ConfigStatus | None:
        """One terminal's; None: its configuration isn't delivered."""


class AuditLogReader(Protocol):
    """Who changed or commanded what. Changes of records are in it by themselves."""

    async def note(self, entry: AuditEntry) -> None:
        """Adds an entry; call it before doing what it tells, which must not be done when this fails."""

    async def page(
        self,
        actor: Actor,
        *,
        page_index: int = 1,
        page_size: int = 20,
        conditions: Conditions = EVERYTHING,
        order_by: tuple[str, bool] | None = None,
    ) -> Rows:
        """Entries of the actor's company, newest first."""


class PusherService(Protocol):
    """Turns commands for objects into commands to their terminals."""

    async def publish(self, actor: Actor, requests: Sequence[ObjectRequest]) -> Sequence[Row]:
        """Journals all commands or, where one of them is wrong, none; returns their rows."""


class FileService(Protocol):
    """The files that users upload."""

    async def add(self, actor: Actor, name: str, pieces: AsyncIterator[bytes]) -> Row:
        """Stores a file that arrives in ``pieces``; returns its row."""

    async def open_for(self, actor: Actor, uid: str) -> StoredFile:
        """Where a file stands, and what it is."""

    async def remove(self, actor: Actor, uid: str) -> None:
        """Deletes a file that no record names."""


class CampaignProgress(Protocol):
    """How the terminals of campaigns fare."""

    async def counts(self, campaign_ids: Sequence[int]) -> Mapping[int, dict[str, int]]:
        """How many terminals are in each state, by the campaign's id."""

    async def wave_counts(self, campaign_ids: Sequence[int]) -> Mapping[int, list[dict[str, int]]]:
        """The same by wave, the first wave first."""

    async def page(self, campaign_id: int, *, state: str | None, page_index: int, page_size: int) -> Rows:
        """Terminals in the order of their waves."""


class FirmwareService(Protocol):
    """The files that terminals download under signed addresses."""

    async def redeem(self, ticket: Ticket, signature: str) -> StoredFile:
        """The file that a signed address leads to."""


class ApiLimits(Protocol):
    """What the APIs need of the section ``limits``."""

    @property
    def body_bytes(self) -> int: ...

    @property
    def field_values(self) -> int: ...

    @property
    def import_bytes(self) -> int: ...

    @property
    def file_bytes(self) -> int: ...

    @property
    def answer_bytes(self) -> int: ...

    @property
    def company_answer_bytes(self) -> int: ...

    @property
    def api_connections(self) -> int: ...

    @property
    def connections_of_apis(self) -> int: ...

    @property
    def unauthenticated_connections(self) -> int: ...

    @property
    def pipelined_requests(self) -> int: ...

    @property
    def request_timeout_s(self) -> int: ...

    @property
    def idle_timeout_s(self) -> int: ...

    @property
    def influx_points(self) -> int: ...

    @property
    def influx_s(self) -> int: ...

    @property
    def reading_s(self) -> int: ...

    @property
    def ws_subscriptions(self) -> int: ...


class MqttPorts(msgspec.Struct):
    """Where terminals log in, as soon as the broker listens; None: that listener is off."""

    plain: int | None = None
    tls: int | None = None
    websocket: int | None = None
    websocket_tls: int | None = None


class MapTiles(msgspec.Struct, frozen=True):
    """Whose pictures the console's map has; ``address`` with ``{z}``, ``{x}`` and ``{y}`` in it, empty: none."""

    address: str = ""
    attribution: str = ""


class Refusals(Protocol):
    """Why terminals were refused."""

    def of_terminal(self, terminal_id: int) -> list[RefusalEntry]:
        """The last refusals of a terminal (its record id), the last one first."""

    def at_addresses(self, addresses: Iterable[str]) -> list[RefusalEntry]:
        """What was refused at addresses before it was known who is there, the last one first."""


class FormerTerminals(Protocol):
    """The terminals that were deleted."""

    async def find(self, actor: Actor, terminal_id: int) -> FormerTerminal | None: ...

    async def page(
        self, actor: Actor, *, uid: str | None, page_index: int, page_size: int
    ) -> tuple[list[FormerTerminal], int]: ...


class BrokerAsking(msgspec.Struct, frozen=True, kw_only=True):
    """Brokers beside the platform that ask who may log in, and what answers them.

    Attributes:
        token: what they show; empty: nothing.
        askers: the addresses that may ask; empty: any.
    """

    access: RemoteAccess
    token: str = ""
    askers: TrustedProxies = msgspec.field(default_factory=TrustedProxies)


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What the operations may use: the parts of the platform, one field each."""

    entities: EntityStores
    registry: Registry
    former_terminals: FormerTerminals
    registration: TerminalRegistration
    claim_keys: ClaimKeyRepository
    unknown_terminals: UnknownTerminals
    terminal_search: TerminalSearch
    terminal_batches: TerminalBatches
    store: TimeSeriesStore
    bus: MessageBus
    broker: BrokerView
    commands: CommandService
    configurations: ConfigStatuses
    pusher: PusherService
    object_flags: FlagSource
    files: FileService
    campaigns: CampaignProgress
    firmware: FirmwareService
    events: EventRecords
    handovers: Handovers
    attention: Attention
    intake: Callable[[str | None], Intake]  # of an owner of reports, of all for None
    traces: TerminalTraces
    presence_log: PresenceLog
    search: NameSearch
    object_log: ObjectLog
    out_of_service: OutOfServiceRecords
    unfinished_imports: UnfinishedImports
    rule_commands: RuleCommandRecords
    event_definitions: EventDefinitions
    variable_definitions: VariableDefinitions
    report_reader: ReportReader
    labels: LabelRecords
    messenger: Messenger
    login: LoginService
    tokens: TokenService
    api_keys: ApiKeys
    wall_links: WallLinks
    password_resets: PasswordResets
    second_factors: SecondFactorSetup
    single_sign_on: SingleSignOn
    lockouts: Lockouts
    refusals: Refusals
    audit: AuditLogReader
    live: LiveHub
    analysis: Analysis
    replays: ReplayRunner
    limits: ApiLimits
    zone: tzinfo
    own_limits: CompanyLimits = msgspec.field(default_factory=CompanyLimits)  # of companies' records
    answer_stats: AnswerStats = msgspec.field(default_factory=AnswerStats)
    remembered: RememberedAnswers = msgspec.field(default_factory=RememberedAnswers)
    tracing: Tracing | None = None  # None: off
    session_s: float = 7_200.0  # for which a browser's session may stay unused
    command_expiry_s: float = 86_400.0  # for which a command waits for its terminal
    version: str = ""  # of the platform
    mqtt: MqttPorts = msgspec.field(default_factory=MqttPorts)
    instance: str = ""  # what tells this platform from others of the same host; no secret
    mapping_limits: MappingLimits = msgspec.field(default_factory=MappingLimits)
    trials: MappingTrials = msgspec.field(default_factory=MappingTrials)
    prefixes: Mapping[str, str] = msgspec.field(default_factory=dict)  # grid_base -> /grid, where not the default
    readiness: Mapping[str, ReadinessCheck] = msgspec.field(default_factory=dict)  # part -> check
    tasks: TaskHealth | None = None  # told of in /readyz
    collectors: Sequence[Collector] = ()
    influx_series: Counter[str] = msgspec.field(default_factory=Counter)  # that InfluxQL read, by how: digest or rows
    imports: CompanyTurns = msgspec.field(default_factory=lambda: CompanyTurns("imports", at_once=3, waiting=4))
    exports: CompanyTurns = msgspec.field(
        default_factory=lambda: CompanyTurns("exports", at_once=64, of_company=4, waiting=16)
    )
    computing: ComputeThread = msgspec.field(default_factory=ComputeThread)
    export_process: WorkProcess | None = None  # which makes rows where there are many; None: ``computing`` does
    queries: CompanyTurns = msgspec.field(
        default_factory=lambda: CompanyTurns("queries", at_once=8, of_company=3, waiting=64)
    )
    proxies: TrustedProxies = msgspec.field(default_factory=TrustedProxies)  # whose X-Forwarded-For is believed
    allowed_origins: Sequence[str] = ()  # whose pages may ask, beside those of the server itself
    memory: MemoryShares = msgspec.field(default_factory=MemoryShares)
    backups: BackupStatus | None = None
    bridges: Sequence[Bridge] = ()
    began_s: float = msgspec.field(default_factory=time.monotonic)
    map_tiles: MapTiles = msgspec.field(default_factory=MapTiles)
    metrics_token: str = ""  # what ``/metrics`` asks for; empty: nothing
    broker_asking: BrokerAsking | None = None  # brokers beside the platform that ask who may log in; None: none do
    cluster: ClusterPart = ALONE  # of several nodes
