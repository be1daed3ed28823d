"""Single sign-on against a provider on this machine: whom it logs in, and each way in which a login is refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from api_rig import PASSWORD, Rig, open_rig
from sso_provider import CLIENT_ID, CLIENT_SECRET, NEXT_KEY, OTHER_KEY, Provider

from own_platform import Ports
from terrazzo.domain.actor import SYSTEM
from terrazzo.times import now_us

BO = {"sub": "s-1", "preferred_username": "bo", "roles": ["ops", "unknown to us"]}
ROLES = {"readers": "viewer", "ops": "operator", "bosses": "admin"}


class Clock:
    """Runs with real time, and can be put forward."""

    ahead_s = 0

    def __call__(self) -> int:
        return now_us() + self.ahead_s * 1_000_000


class Site:
    """A platform with its provider, and browsers that log in."""

    def __init__(self, rig: Rig, provider: Provider, clock: Clock) -> None:
        self.rig = rig
        self.provider = provider
        self.clock = clock

    async def begin(self) -> dict[str, Any]:
        return dict(await self.rig.call("begin_single_sign_on", "nobody"))

    async def finish(self, **fields: Any) -> dict[str, Any]:
        return await self.rig.ask("finish_single_sign_on", "nobody", **fields)

    async def login(self, **claims: Any) -> dict[str, Any]:
        """The answer to a whole login."""
        begun = await self.begin()
        return await self.finish(ticket=begun["ticket"], **self.provider.log_in(begun["url"], **{**BO, **claims}))

    async def refusal(self, **claims: Any) -> tuple[int, str]:
        answer = await self.login(**claims)
        assert answer["result"] == {}
        return answer["code"], answer["info"]


@asynccontextmanager
async def open_site(folder: Path, **sso: Any) -> AsyncIterator[Site]:
    clock = Clock()
    async with Provider(now_s=lambda: clock() / 1_000_000) as provider:
        section: dict[str, Any] = {
            "issuer": provider.issuer,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "redirect_url": "https://console.example/back",
            "roles": ROLES,
            "create_users": True,
            "allow_private": ("127.0.0.0/8",),
            **sso,
        }
        async with open_rig(folder, ports=Ports(clock=clock), sso=section) as rig:
            yield Site(rig, provider, clock)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path) as opened:
        yield opened


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with open_site(tmp_path_factory.mktemp("shared")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def refusing(shared: Site) -> AsyncIterator[Site]:
    """One for all tests in which nobody gets in; the provider tells the truth again, and a minute has gone by."""
    shared.clock.ahead_s += 61
    yield shared
    shared.provider.lies, shared.provider.algorithm = {}, "RS256"


async def ping(rig: Rig, token: str) -> int:
    return int((await rig.post(b'{"action": "ping"}', token=token))[1]["code"])


async def test_a_user_comes_from_the_provider_with_a_role_by_claim(site: Site) -> None:
    answer = await site.login()
    assert answer["code"] == 200, answer
    assert (answer["result"]["username"], answer["result"]["permission_company_id"]) == ("bo", "1")
    assert await ping(site.rig, answer["result"]["token"]) == 200
    made = await site.rig.call("get_user_item", uid="bo")
    assert (made["role"], made["by_sso"], made["is_super"]) == ("operator", 1, 0)
    again = await site.login(roles="bosses")
    assert (again["result"]["id"], (await site.rig.call("get_user_item", uid="bo"))["role"]) == (made["id"], "admin")
    renamed = await site.login(preferred_username="robert")
    assert renamed["result"]["username"] == "bo", "the subject counts, names may change hands"
    told = [each for each in (await site.rig.call("get_audit_list"))["data"] if each["uid"] == "bo"]
    assert {(each["action"], each["username"]) for each in told} == {
        ("create", "single sign-on"),
        ("update", "single sign-on"),
        ("login", "bo"),
    }
    assert {"by": "single sign-on"} in [each["after"] for each in told]


async def test_who_comes_from_the_provider_has_no_password(site: Site) -> None:
    await site.login()
    for password in ("!", "", PASSWORD):
        answer = await site.rig.ask("login", "nobody", username="bo", password=password or "x")
        assert (answer["code"], answer["info"]) == (10402, "username or password is wrong")


async def test_a_login_is_finished_once_by_the_browser_that_began_it(site: Site) -> None:
    mine, theirs = await site.begin(), await site.begin()
    back = site.provider.log_in(mine["url"], **BO)
    stolen = await site.finish(ticket=theirs["ticket"], **back)
    assert (stolen["code"], stolen["info"]) == (10402, "ticket: is of another login; begin again")
    after = await site.finish(ticket=mine["ticket"], **back)
    assert after["info"] == "state: is unknown, was used already or has expired; begin again"
    begun = await site.begin()
    back = site.provider.log_in(begun["url"], **BO)
    assert (await site.finish(ticket=begun["ticket"], **back))["code"] == 200
    replayed = await site.finish(ticket=begun["ticket"], **back)
    assert (replayed["code"], replayed["info"]) == (10402, after["info"])


async def test_a_code_that_was_redeemed_is_refused_with_another_state(site: Site) -> None:
    first = await site.begin()
    back = site.provider.log_in(first["url"], **BO)
    assert (await site.finish(ticket=first["ticket"], **back))["code"] == 200
    second = await site.begin()
    other = site.provider.log_in(second["url"], **BO)
    replayed = await site.finish(ticket=second["ticket"], state=other["state"], code=back["code"])
    assert (replayed["code"], replayed["info"]) == (10402, "code: the provider refuses it: invalid_grant")


@IN_MODULE
async def test_a_code_of_another_login_is_refused(refusing: Site) -> None:
    """An attacker's code in a victim's login, or the other way round: the verifier is another one."""
    mine, theirs = await refusing.begin(), await refusing.begin()
    code = refusing.provider.log_in(theirs["url"], **BO)["code"]
    state = refusing.provider.log_in(mine["url"], **BO)["state"]
    answer = await refusing.finish(ticket=mine["ticket"], state=state, code=code)
    assert (answer["code"], answer["info"]) == (10402, "code: the provider refuses it: invalid_grant")


async def test_a_login_takes_ten_minutes_at_most(site: Site) -> None:
    begun = await site.begin()
    back = site.provider.log_in(begun["url"], **BO)
    site.clock.ahead_s += 600
    late = await site.finish(ticket=begun["ticket"], **back)
    assert late["info"] == "state: is unknown, was used already or has expired; begin again"


@IN_MODULE
@pytest.mark.parametrize(
    ("lies", "info"),
    [
        ({"aud": "another client"}, "id_token.aud: expected terrazzo, got 'another client'"),
        ({"aud": ["x", "y"]}, "id_token.aud: expected terrazzo, got ['x', 'y']"),
        ({"aud": ["x", CLIENT_ID]}, "id_token.azp: expected terrazzo, got None"),
        ({"aud": None}, "id_token.aud: is missing"),
        ({"nonce": "of another login"}, "id_token.nonce: is wrong"),
        ({"nonce": None}, "id_token.nonce: is missing"),
        ({"exp": 1_000_000_000}, "id_token.exp: has expired"),
        ({"exp": None}, "id_token.exp: is missing"),
        ({"iat": 4_000_000_000}, "id_token.iat: is wrong"),
        ({"sub": None}, "id_token.sub: is missing"),
        ({"sub": 7}, "id_token.sub: is wrong"),
        ({"preferred_username": None}, "id_token.preferred_username: is missing"),
        ({"roles": ["unknown to us"]}, "id_token.roles: gives no role here; ask an administrator"),
        ({"roles": {"ops": True}}, "id_token.roles: gives no role here; ask an administrator"),
    ],
)
async def test_a_token_that_does_not_say_what_it_should_is_refused(
    refusing: Site, lies: dict[str, Any], info: str
) -> None:
    refusing.provider.lies = lies
    assert await refusing.refusal() == (10402, info)
    assert (await refusing.rig.ask("get_user_item", uid="bo"))["code"] == 10404


async def test_a_foreign_issuer_is_refused(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.provider.lies = {"iss": "https://evil.example"}
    code, info = await site.refusal()
    assert f"a login by single sign-on from 127.0.0.1 was refused: {info}" in caplog.text
    assert (code, info) == (10402, f"id_token.iss: expected {site.provider.issuer}, got 'https://evil.example'")


@IN_MODULE
@pytest.mark.parametrize("algorithm", ["none", "HS256"])
async def test_a_token_that_nobody_or_anybody_could_have_signed_is_refused(refusing: Site, algorithm: str) -> None:
    refusing.provider.algorithm = algorithm
    code, info = await refusing.refusal()
    assert (code, info.startswith("id_token: is not signed by the provider: ")) == (10402, True)


async def test_a_key_that_is_not_the_providers_is_refused_and_a_new_one_found(site: Site) -> None:
    assert (await site.login())["code"] == 200
    site.provider.key = OTHER_KEY
    assert (await site.refusal())[1].startswith("id_token: is not signed by the provider: ")
    for _ in range(3):
        await site.refusal()
    assert site.provider.jwks_reads == 1, "once a minute at most, whatever is signed with"
    site.provider.key, site.provider.shown = NEXT_KEY, [NEXT_KEY]
    site.clock.ahead_s += 61
    assert (await site.login())["code"] == 200


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ({"issuer": "https://evil.example"}, "and the provider calls itself 'https://evil.example'"),
        ({"token_endpoint": "ftp://x"}, "token_endpoint: expected an address with http"),
        ({"jwks_uri": 7}, "jwks_uri: expected an address with http"),
    ],
)
async def test_a_provider_that_says_odd_things_of_itself_is_not_used(
    site: Site, says: dict[str, Any], told: str
) -> None:
    site.provider.says = says
    status, answer = await site.rig.post(b'{"action": "begin_single_sign_on"}')
    assert (status, told in answer["info"]) == (503, True), answer


async def test_addresses_that_are_not_public_are_not_called(tmp_path: Path) -> None:
    async with open_site(tmp_path, allow_private=()) as site:
        status, answer = await site.rig.post(b'{"action": "begin_single_sign_on"}')
        assert (status, "is not a public address" in answer["info"]) == (503, True), answer


async def test_nobody_becomes_a_user_who_is_there(site: Site) -> None:
    """Names at the provider are the provider's: they open no account here that was not meant for it."""
    for name in ("admin", "viewer-user", "stranger-user"):
        refused = await site.refusal(preferred_username=name)
        assert refused == (10402, "username: is another user's here; ask an administrator (by_sso)")
    await site.rig.call("update_user", "root", uid="stranger-user", by_sso=1)
    assert (await site.refusal(preferred_username="stranger-user"))[0] == 10402, "of another company"
    await site.rig.call("update_user", "root", uid="admin", by_sso=1)
    refused = await site.refusal(preferred_username="admin", sub="s-2")
    assert refused == (10402, "username: is a super user: log in by password")
    await site.rig.call("update_user", uid="viewer-user", by_sso=1)
    assert (await site.login(preferred_username="viewer-user"))["code"] == 200
    other = await site.refusal(preferred_username="viewer-user", sub="s-9")
    assert other == (10402, "username: is another user's here; ask an administrator (by_sso)")
    await site.rig.call("update_user", uid="viewer-user", by_sso=0)
    assert (await site.refusal())[1] == "username: may not log in by single sign-on (by_sso)"


async def test_users_who_are_deactivated_or_of_a_closed_company_are_refused(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        token = (await site.login())["result"]["token"]
        await site.rig.call("update_user", uid="bo", is_active=0)
        assert await ping(site.rig, token) == 10402
        assert await site.refusal() == (10402, "username: the user or the company is deactivated")
        await site.rig.call("update_user", uid="bo", is_active=1)
        assert (await site.login())["code"] == 200
        companies = site.rig.platform.metadata.entities.companies
        await companies.update(SYSTEM, 1, {"is_available": 0})
        assert await site.refusal() == (10402, "username: the user or the company is deactivated")


async def test_accounts_are_made_only_where_it_is_configured(tmp_path: Path) -> None:
    async with open_site(tmp_path, create_users=False) as site:
        assert await site.refusal() == (10402, "username: has no account here; ask an administrator")
        await site.rig.call("create_user", username="bo", password=PASSWORD, role="viewer", by_sso=1)
        assert (await site.login())["code"] == 200
        assert (await site.rig.call("get_user_item", uid="bo"))["role"] == "operator"


async def test_a_company_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with open_site(tmp_path, company="nowhere") as site:
        begun = await site.begin()
        back = {"ticket": begun["ticket"], **site.provider.log_in(begun["url"], **BO)}
        status, answer = await site.rig.post(json.dumps({"action": "finish_single_sign_on", **back}).encode())
        assert (status, answer["info"]) == (503, "sso.company: there is no company nowhere")


async def test_roles_in_a_tree_and_names_by_mail(tmp_path: Path) -> None:
    claims = {"role_claim": "realm_access.roles", "username_claim": "email", "default_role": "viewer"}
    async with open_site(tmp_path, **claims) as site:
        mail = {"email": "bo@x.example", "realm_access": {"roles": ["bosses"]}}
        assert (await site.refusal(**mail))[1] == "id_token.email_verified: the address has to be verified"
        user = (await site.login(**mail, email_verified=True))["result"]["username"]
        assert (user, (await site.rig.call("get_user_item", uid=user))["role"]) == ("bo@x.example", "admin")
        await site.login(email="al@x.example", email_verified=True, sub="s-2")
        assert (await site.rig.call("get_user_item", uid="al@x.example"))["role"] == "viewer"


async def test_logins_are_few_for_an_address(site: Site) -> None:
    body = json.dumps({"action": "finish_single_sign_on", "state": "s", "ticket": "t", "code": "c"}).encode()
    statuses = [(await site.rig.post(body))[0] for _ in range(70)]
    assert (statuses[0], statuses[-1]) == (200, 429)


async def test_without_a_provider_everybody_is_told_so(rig: Rig) -> None:
    for action, fields in (
        ("begin_single_sign_on", {}),
        ("finish_single_sign_on", {"state": "s", "ticket": "t", "code": "c"}),
    ):
        answer = await rig.ask(action, "nobody", **fields)
        assert (answer["code"], answer["info"]) == (10401, "action: single sign-on is not configured (sso.issuer)")
