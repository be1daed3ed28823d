"""Makes what decides on users' logins, and what slows down whoever guesses the credentials of users or terminals."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from terrazzo.access.lockouts import Lockouts
from terrazzo.access.password_reset import PasswordResets, ResetMail, ResetSettings, SendMail
from terrazzo.access.refusals import WINDOW_S, RefusalLog
from terrazzo.access.second_factor import SecondFactors
from terrazzo.access.second_factor_setup import SecondFactorSetup
from terrazzo.access.single_sign_on import SingleSignOn
from terrazzo.access.users import UserLogin
from terrazzo.config.sections import Config
from terrazzo.domain.registry import Registry
from terrazzo.logins.limiter import LoginLimiter
from terrazzo.logins.places import KnownPlaces
from terrazzo.messenger.message import Message
from terrazzo.messenger.messenger import Messenger
from terrazzo.ports.providers import HttpCaller, SendOutcome
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.assembly.metadata import Metadata, ReplicaMetadata
from terrazzo.runtime.lifetime import Lifetime

if TYPE_CHECKING:
    from terrazzo.access.oidc import OidcProvider


class Logins(msgspec.Struct, frozen=True):
    """Users' logins, what administrators see and lift, and the limits of terminals' logins."""

    users: UserLogin
    password_resets: PasswordResets
    second_factors: SecondFactorSetup
    single_sign_on: SingleSignOn
    lockouts: Lockouts
    of_terminals: LoginLimiter


def open_logins(
    config: Config,
    lifetime: Lifetime,
    *,
    metadata: Metadata,
    messenger: Messenger,
    caller: HttpCaller,
    clock: Callable[[], int],
) -> Logins:
    """Reads where users and terminals are known to come from; ``caller`` asks the provider of single sign-on.

    Raises:
        OSError: the files can't be written.
    """
    of_terminals = open_terminal_limiter(config, lifetime, metadata.registry)
    users, of_users, factors, refusals = open_user_login(config, lifetime, metadata=metadata, clock=clock)
    setup = SecondFactorSetup(users, factors, metadata.entities.users, metadata.tokens, metadata.audit)
    lockouts = Lockouts(metadata.tokens, metadata.registry, of_users=of_users, of_terminals=of_terminals, clock=clock)
    resets = _start_resets(config, lifetime, metadata=metadata, messenger=messenger, clock=clock)
    single_sign_on = SingleSignOn(
        config.sso,
        _new_provider(config, caller, clock) if config.sso.issuer else None,
        entities=metadata.entities,
        tokens=metadata.tokens,
        audit=metadata.audit,
        refusals=refusals,
        clock=clock,
    )
    return Logins(
        users=users,
        password_resets=resets,
        second_factors=setup,
        single_sign_on=single_sign_on,
        lockouts=lockouts,
        of_terminals=of_terminals,
    )


def _new_provider(config: Config, caller: HttpCaller, clock: Callable[[], int]) -> OidcProvider:
    from terrazzo.access.oidc import OidcProvider  # its library takes a while to load

    return OidcProvider(config.sso, caller, clock=clock)


class UserLogins(NamedTuple):
    """What decides on users' logins by name and password."""

    users: UserLogin
    limiter: LoginLimiter
    factors: SecondFactors
    refusals: RefusalLog


def open_user_login(
    config: Config, lifetime: Lifetime, *, metadata: Metadata | ReplicaMetadata, clock: Callable[[], int]
) -> UserLogins:
    """Reads where users are known to come from; raises as ``open_logins``."""
    limiter = _open_limiter(config, lifetime, "user-places", metadata.tokens.epoch_of)
    refusals = RefusalLog(metadata.audit, clock=clock)
    flushing = lifetime.tasks.repeat("refused logins", WINDOW_S, refusals.flush, OnFailure.RESTART)
    lifetime.push_async_callback(refusals.flush)
    lifetime.push_async_callback(flushing.stop)
    factors = SecondFactors(metadata.database, metadata.secrets, clock=clock)
    users = UserLogin(
        metadata.entities,
        metadata.tokens,
        metadata.audit,
        refusals=refusals,
        limiter=limiter,
        factors=factors,
        clock=clock,
    )
    return UserLogins(users, limiter, factors, refusals)


def _start_resets(
    config: Config, lifetime: Lifetime, *, metadata: Metadata, messenger: Messenger, clock: Callable[[], int]
) -> PasswordResets:
    section = config.users
    resets = PasswordResets(
        metadata.database,
        metadata.entities,
        metadata.tokens,
        metadata.audit,
        send=_mail_sender(messenger, section.reset_project, clock) if section.reset_project else None,
        settings=ResetSettings(section.reset_minutes, section.reset_url),
        clock=clock,
    )
    if resets.is_configured:
        working = lifetime.tasks.spawn("password resets", resets.work, OnFailure.RESTART)
        lifetime.push_async_callback(working.stop)
    return resets


def _mail_sender(messenger: Messenger, project_id: int, clock: Callable[[], int]) -> SendMail:
    """Sends by a project's mail server, past the journal: there administrators read what was sent."""
    project = messenger.projects.get(project_id)
    assert project is not None  # the configuration was checked
    channel = project.channels["email"]

    async def send(mail: ResetMail) -> str:
        now = clock()
        message = Message(
            id=0,
            uid=secrets.token_hex(16),
            project_id=project_id,
            channel="email",
            recipients=(mail.to,),
            pending=(mail.to,),
            content={"EmailSubject": mail.subject, "EmailContent": mail.text},
            object_id=None,
            rule_id=None,
            company_id=0,
            attempts=1,
            created=now,
            expires_us=now,
            response=None,
        )
        receipt = await channel.send(message, ())
        return "" if receipt.outcome in (SendOutcome.SENT, SendOutcome.UNKNOWN) else receipt.reason or receipt.svc_msg

    return send


def open_terminal_limiter(config: Config, lifetime: Lifetime, registry: Registry) -> LoginLimiter:
    """Who of the terminals has to wait before the next try; raises ``OSError`` where its file can't be written."""
    return _open_limiter(config, lifetime, "terminal-places", lambda each: _epoch_of(registry, each))


def _open_limiter(
    config: Config, lifetime: Lifetime, file_name: str, epoch_of: Callable[[int], int | None]
) -> LoginLimiter:
    places = KnownPlaces(config.data_dir / file_name, epoch_of=epoch_of)
    lifetime.callback(places.close)
    return LoginLimiter(config.limits.login_failures, config.limits.login_window_s, places)


def _epoch_of(registry: Registry, terminal_id: int) -> int | None:
    """Terminals' credentials are not numbered: their places are forgotten when they change."""
    return None if registry.terminal_by_id(terminal_id) is None else 0
