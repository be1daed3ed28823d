"""Who may connect: every mode of login, and every way to fail."""

from __future__ import annotations

import hashlib
import hmac
import time

import msgspec
import pytest
import scramp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqtt5 import ConnAckReasonCode as Reason
from scramp import ScramClient, ScramException

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.logins import turns
from terrazzo.logins.limiter import LoginLimiter
from terrazzo.terminals import scram
from terrazzo.terminals.login import TerminalLogin
from terrazzo.terminals.scram import REFUSED_S
from terrazzo_broker.hooks import Accept, Challenge, ConnectRequest, Refuse

NOW_S = 1_780_000_000.0
TERMINAL = Terminal(
    id=1, uid="t1", name="t", company_id=1, type="Other", mode="pwd", username="user", pin="pin", keep_alive_s=0
)


class Clock:
    now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


class Door:
    """A login with one terminal, and requests to it."""

    def __init__(self, failures: int = 0, **changes) -> None:
        self.clock = Clock()
        self.registry = Registry()
        self.terminal = msgspec.structs.replace(TERMINAL, **changes)
        self.registry.put_terminal(self.terminal)
        self.login = TerminalLogin(self.registry, limiter=LoginLimiter(failures, 300), clock=self.clock)

    async def knock(self, username="user", password=b"pin", client_id="t1", address="10.0.0.1", **more):
        request = ConnectRequest(client_id=client_id, username=username, password=password, address=address, **more)
        return await self.login.authenticate(request)

    async def scram(
        self, *, username="user", pin="pin", method="SCRAM-SHA-1", connect_name=None, client_id="t1", **more
    ):
        """A whole exchange by an independent client: the verdict, and whether the server proved itself."""
        client = ScramClient([method], username, pin)
        first = client.get_client_first().encode()
        verdict = await self.knock(connect_name, None, client_id, auth_method=method, auth_data=first, **more)
        if isinstance(verdict, Challenge):
            client.set_server_first(verdict.data.decode())
            verdict = await verdict.proceed(client.get_client_final().encode())
        if isinstance(verdict, Accept):
            client.set_server_final(verdict.auth_data.decode())
        return verdict


def reason_of(verdict) -> Reason | None:
    assert isinstance(verdict, Accept | Refuse)
    return verdict.reason if isinstance(verdict, Refuse) else None


def auto_password(seconds, *, pin="pin", uid="t1") -> bytes:
    digest = hmac.new(pin.encode(), f"{uid}.{seconds}".encode(), hashlib.sha256).hexdigest()
    return f"{seconds}.{digest}".encode()


class TestPassword:
    async def test_the_right_one(self):
        door = Door()
        verdict = await door.knock()
        assert isinstance(verdict, Accept)
        assert verdict.identity.terminal is door.terminal
        assert (verdict.keep_alive_s, verdict.session_expiry_s) == (None, None)

    async def test_what_the_record_says_about_keep_alive_and_expiry(self):
        verdict = await Door(keep_alive_s=30, session_expiry_s=3600).knock()
        assert (verdict.keep_alive_s, verdict.session_expiry_s) == (30, 3600)

    @pytest.mark.parametrize(
        ("username", "password", "client_id"),
        [
            ("user", b"wrong", "t1"),
            ("user", b"", "t1"),
            ("user", b"pi", "t1"),
            ("user", b"pin\0", "t1"),
            ("other", b"pin", "t1"),
            ("", b"pin", "t1"),
            ("user", b"pin", "t2"),
            ("user", b"\xff\xfe", "t1"),
        ],
    )
    async def test_wrong_ones(self, username, password, client_id):
        verdict = await Door().knock(username, password, client_id)
        assert reason_of(verdict) is Reason.BAD_USER_NAME_OR_PASSWORD

    @pytest.mark.parametrize(("username", "password"), [(None, None), ("user", None), (None, b"pin")])
    async def test_missing_ones(self, username, password):
        assert reason_of(await Door().knock(username, password)) is Reason.NOT_AUTHORIZED

    async def test_a_disabled_terminal(self):
        assert reason_of(await Door(is_available=False).knock()) is Reason.NOT_AUTHORIZED

    async def test_the_right_one_does_not_help_where_scram_is_due(self):
        door = Door(dixie=True)
        assert reason_of(await door.knock()) is Reason.NOT_AUTHORIZED
        assert reason_of(await door.knock(protocol=4)) is Reason.NOT_AUTHORIZED


class TestAuto:
    @pytest.mark.parametrize("offset_s", [0, -300, 300])
    async def test_within_the_window(self, offset_s):
        assert isinstance(await Door(mode="auto").knock(password=auto_password(int(NOW_S) + offset_s)), Accept)

    @pytest.mark.parametrize("offset_s", [-301, 301])
    async def test_outside_the_window(self, offset_s):
        verdict = await Door(mode="auto").knock(password=auto_password(int(NOW_S) + offset_s))
        assert reason_of(verdict) is Reason.BAD_USER_NAME_OR_PASSWORD

    async def test_no_password_serves_twice_and_none_older_than_the_last(self):
        door = Door(mode="auto")
        assert isinstance(await door.knock(password=auto_password(int(NOW_S))), Accept)
        for seconds in (int(NOW_S), int(NOW_S) - 1):
            assert reason_of(await door.knock(password=auto_password(seconds))) is Reason.BAD_USER_NAME_OR_PASSWORD
        assert isinstance(await door.knock(password=auto_password(int(NOW_S) + 1)), Accept)

    async def test_a_refused_login_uses_no_time_up(self):
        door = Door(mode="auto")
        await door.knock(username="other", password=auto_password(int(NOW_S) + 5))
        assert isinstance(await door.knock(password=auto_password(int(NOW_S))), Accept)

    @pytest.mark.parametrize(
        "password",
        [
            b"pin",
            b"",
            b".",
            auto_password(int(NOW_S), pin="wrong"),
            auto_password(int(NOW_S), uid="t2"),
            auto_password("+1780000000"),
            auto_password("1780000000.0"),
            auto_password(" 1780000000"),
            auto_password("١٧٨٠٠٠٠٠٠٠"),
            auto_password("0" * 5000),
            auto_password(int(NOW_S)) + b"0",
            auto_password(int(NOW_S)).split(b".")[0],
        ],
    )
    async def test_malformed_and_forged_ones(self, password):
        assert reason_of(await Door(mode="auto").knock(password=password)) is Reason.BAD_USER_NAME_OR_PASSWORD

    @pytest.mark.parametrize("offset_ms", [0, 1, -300_000, 300_000])
    async def test_milliseconds_within_the_window(self, offset_ms):
        password = auto_password(int(NOW_S) * 1_000 + offset_ms)
        assert isinstance(await Door(mode="auto").knock(password=password), Accept)

    @pytest.mark.parametrize(
        ("ahead_ms", "told"),
        [
            (-3_602_000, "your clock is 3 602 s behind"),
            (-300_500, "your clock is 300 s behind"),
            (86_400_000, "your clock is 86 400 s ahead"),
            (-int(NOW_S) * 1_000 + 1_000_000_000_000, "your clock is 780 000 000 s behind"),
        ],
    )
    async def test_a_clock_that_is_off_is_told_how_far(self, ahead_ms, told):
        verdict = await Door(mode="auto").knock(password=auto_password(int(NOW_S) * 1_000 + ahead_ms))
        assert (reason_of(verdict), verdict.message) == (Reason.BAD_USER_NAME_OR_PASSWORD, told)

    async def test_seconds_and_milliseconds_are_one_order(self):
        door = Door(mode="auto")
        milliseconds = int(NOW_S) * 1_000
        for digits, is_later in (
            (int(NOW_S), True),
            (milliseconds, False),
            (milliseconds + 1, True),
            (milliseconds + 1, False),
            (int(NOW_S), False),
            (milliseconds + 999, True),
            (int(NOW_S) + 1, True),
        ):
            verdict = await door.knock(password=auto_password(digits))
            assert isinstance(verdict, Accept) is is_later
            assert is_later or "used before" in verdict.message

    async def test_fourteen_digits_are_neither(self):
        assert reason_of(await Door(mode="auto").knock(password=auto_password(int(NOW_S) * 10_000))) is not None

    async def test_upper_case_digits_are_digits_too(self):
        assert isinstance(await Door(mode="auto").knock(password=auto_password(int(NOW_S)).upper()), Accept)


class TestStrangers:
    """Whoever has proven nothing learns nothing of who exists."""

    @pytest.fixture
    def hashes(self, monkeypatch):
        """What the login hashes and compares, call by call."""
        calls = []
        for name in ("digest", "compare_digest"):
            real = getattr(hmac, name)
            monkeypatch.setattr(hmac, name, lambda *given, real=real, name=name: (calls.append(name), real(*given))[1])
        return calls

    async def test_the_same_hashes_are_made_for_each_client_id(self, hashes):
        """What is hashed depends on the form of what was given, a signature's or another, and on nothing else."""
        plain, signed = {}, {}
        door, signing, scram_only = Door(), Door(mode="auto"), Door(dixie=True)
        disabled, closed = Door(is_available=False), Door(company_is_available=False)
        forged = auto_password(int(NOW_S), pin="guess")
        for which, (at, username, password, client_id) in {
            "wrong pin": (door, "user", b"guess", "t1"),
            "wrong name": (door, "guess", b"pin", "t1"),
            "wrong signature": (signing, "user", forged, "t1"),
            "a signature where none is due": (door, "user", forged, "t1"),
            "a signature and a wrong name": (signing, "guess", forged, "t1"),
            "no signature": (signing, "user", b"guess", "t1"),
            "scram is due": (scram_only, "user", b"guess", "t1"),
            "disabled": (disabled, "user", b"guess", "t1"),
            "its company is closed": (closed, "user", b"guess", "t1"),
            "disabled, and a signature": (disabled, "user", forged, "t1"),
            "its company is closed, and a signature": (closed, "user", forged, "t1"),
            "nobody": (door, "user", b"guess", "t2"),
            "nobody's signature": (signing, "user", auto_password(int(NOW_S), pin="guess", uid="t2"), "t2"),
        }.items():
            hashes.clear()
            verdict = await at.knock(username, password, client_id)
            seen = signed if b"." in password else plain
            seen[which] = tuple(hashes), int(verdict.reason), verdict.message
        assert len(set(signed.values())) == 1, signed
        assert len(set(plain.values())) == 1, plain
        assert {told[1:] for told in signed.values()} == {told[1:] for told in plain.values()}
        assert len(next(iter(plain.values()))[0]) == 2
        assert len(next(iter(signed.values()))[0]) == 4

    async def test_what_is_told_before_the_proof_hangs_on_no_record(self):
        """Throttling, missing credentials and methods that nobody has read the same for each client id."""
        for knock in (
            {"username": None},
            {"password": None},
            {"auth_method": "PLAIN", "auth_data": b"x"},
        ):
            found = {
                str(await Door(mode=mode).knock(client_id=uid, **knock))
                for mode in ("pwd", "auto")
                for uid in ("t1", "t2")
            }
            assert len(found) == 1
        for uid in ("t1", "t2"):
            door = Door(failures=3)
            verdicts = [await door.knock(password=b"guess", client_id=uid) for _ in range(4)]
            assert [verdict.reason for verdict in verdicts[2:]] == [
                Reason.BAD_USER_NAME_OR_PASSWORD,
                Reason.CONNECTION_RATE_EXCEEDED,
            ]

    async def test_the_operator_is_told_what_the_stranger_is_not(self):
        door, told = Door(), []
        door.login.refused.listen(told.append)
        for username, password, client_id in (("x", b"pin", "t1"), ("user", b"x", "t1"), ("user", b"pin", "t2")):
            await door.knock(username, password, client_id, address="10.0.0.7", listener="tls")
        assert [(each.reason.name, each.client_id, each.username, each.terminal) for each in told] == [
            ("wrong_user_name", "t1", "x", door.terminal),
            ("wrong_pin", "t1", "user", door.terminal),
            ("unknown_terminal", "t2", "user", None),
        ]
        assert {(each.address, each.listener, each.protocol, each.is_proven) for each in told} == {
            ("10.0.0.7", "tls", 5, False)
        }

    async def test_a_place_that_is_known_is_told(self):
        door, told = Door(failures=10), []
        door.login.refused.listen(told.append)
        assert isinstance(await door.knock(), Accept)
        await door.knock(password=b"x")
        await door.knock(password=b"x", address="10.9.9.9")
        assert [(each.is_known, each.is_proven) for each in told] == [(True, False), (False, False)]


class TestScram:
    @pytest.mark.parametrize("method", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
    @pytest.mark.parametrize("connect_name", [None, "", "user"])
    async def test_the_right_pin(self, method, connect_name):
        verdict = await Door(dixie=True).scram(method=method, connect_name=connect_name)
        assert isinstance(verdict, Accept)  # and the client has checked the server's proof

    async def test_names_and_pins_that_need_escaping_or_preparation(self):
        verdict = await Door(dixie=True, username="a=b,c", pin="pä\u00adß").scram(username="a=b,c", pin="päß")
        assert isinstance(verdict, Accept)

    async def test_client_first_may_come_in_the_first_auth(self):
        door = Door(dixie=True)
        asked = await door.knock(None, None, auth_method="SCRAM-SHA-256")
        assert isinstance(asked, Challenge)
        assert asked.data == b""
        client = ScramClient(["SCRAM-SHA-256"], "user", "pin")
        challenge = await asked.proceed(client.get_client_first().encode())
        client.set_server_first(challenge.data.decode())
        assert isinstance(await challenge.proceed(client.get_client_final().encode()), Accept)

    async def test_reauthentication(self):
        assert isinstance(await Door(dixie=True).scram(reauthentication=True), Accept)

    @pytest.mark.parametrize(
        "wrong",
        [{"pin": "wrong"}, {"username": "other"}, {"connect_name": "other"}, {"client_id": "t2"}],
    )
    async def test_wrong_credentials_fail_at_the_proof(self, wrong):
        verdict = await Door(dixie=True).scram(**wrong)
        assert reason_of(verdict) is Reason.BAD_USER_NAME_OR_PASSWORD

    async def test_an_unknown_terminal_gets_a_salt_that_stays(self):
        door = Door(dixie=True)
        salts = set()
        for _ in range(3):
            first = ScramClient(["SCRAM-SHA-1"], "user", "x").get_client_first().encode()
            verdict = await door.knock(None, None, "t2", auth_method="SCRAM-SHA-1", auth_data=first)
            salts.add(verdict.data.decode().split(",")[1])
        assert len(salts) == 1

    async def test_terminals_without_dixie_may_use_it(self):
        assert isinstance(await Door(dixie=False).scram(), Accept)

    async def test_a_disabled_terminal(self):
        assert reason_of(await Door(dixie=True, is_available=False).scram()) is Reason.NOT_AUTHORIZED

    async def test_a_record_that_changes_between_two_steps(self):
        door = Door(dixie=True)
        client = ScramClient(["SCRAM-SHA-1"], "user", "pin")
        first = client.get_client_first().encode()
        challenge = await door.knock(None, None, auth_method="SCRAM-SHA-1", auth_data=first)
        door.registry.put_terminal(msgspec.structs.replace(door.terminal, pin="new"))
        client.set_server_first(challenge.data.decode())
        verdict = await challenge.proceed(client.get_client_final().encode())
        assert reason_of(verdict) is Reason.NOT_AUTHORIZED

    async def test_a_pin_that_no_client_could_prepare_opens_nothing(self):
        with pytest.raises(ScramException):
            ScramClient(["SCRAM-SHA-1"], "user", "\ue000")
        verdict = await Door(dixie=True, pin="\ue000").scram(pin="pin")
        assert reason_of(verdict) is Reason.BAD_USER_NAME_OR_PASSWORD

    @pytest.mark.parametrize("method", ["SCRAM-SHA-512", "SCRAM-SHA-1-PLUS", "PLAIN", ""])
    async def test_other_methods(self, method):
        verdict = await Door(dixie=True).knock(auth_method=method, auth_data=b"x")
        assert reason_of(verdict) is Reason.BAD_AUTHENTICATION_METHOD

    @given(st.binary(max_size=60) | st.text("nry=,pca1é\0", max_size=40).map(str.encode), st.binary(max_size=40))
    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_no_bytes_do_more_than_fail(self, first, final):
        door = Door(dixie=True)
        verdict = await door.knock(None, None, auth_method="SCRAM-SHA-1", auth_data=first)
        while isinstance(verdict, Challenge):
            verdict = await verdict.proceed(final)
        assert reason_of(verdict) is Reason.BAD_USER_NAME_OR_PASSWORD

    @pytest.mark.parametrize(
        "final", [b"", b"c=biws", b"c=biws,r=x,p=eA==", b"c=!,r=x,p=!", b"c=biws,r=x,m=1,p=eA==", b"\xff"]
    )
    async def test_bad_final_messages(self, final):
        door = Door(dixie=True)
        first = ScramClient(["SCRAM-SHA-1"], "user", "pin").get_client_first().encode()
        challenge = await door.knock(None, None, auth_method="SCRAM-SHA-1", auth_data=first)
        assert reason_of(await challenge.proceed(final)) is Reason.BAD_USER_NAME_OR_PASSWORD


class TestScramStrangers:
    """A stranger learns nothing of who exists, and costs little."""

    @pytest.fixture
    def derivations(self, monkeypatch):
        """The salts that keys were derived with by the server."""
        salts = []
        derive = scramp.ScramMechanism.make_auth_info

        def counting(mechanism, password, iterations=None, salt=None):
            salts.append(salt)
            return derive(mechanism, password, iterations, salt)

        monkeypatch.setattr(scramp.ScramMechanism, "make_auth_info", counting)
        return salts

    async def test_unknown_names_cost_no_derivation(self, derivations):
        door = Door(dixie=True)
        for number in range(20):
            await door.scram(client_id=f"guess-{number}")
            await door.scram(username=f"guess-{number}")
        assert derivations == []

    async def test_exchanges_that_are_only_begun_cost_no_derivation(self, derivations):
        door = Door(dixie=True)
        first = ScramClient(["SCRAM-SHA-1"], "user", "pin").get_client_first().encode()
        assert isinstance(await door.knock(None, None, auth_method="SCRAM-SHA-1", auth_data=first), Challenge)
        assert derivations == []

    async def test_keys_are_derived_once_for_a_terminal_and_strangers_do_not_push_them_out(
        self, derivations, monkeypatch
    ):
        monkeypatch.setattr(scram, "_MAX_CACHED", 3)
        door = Door(dixie=True)
        for number in range(10):
            door.registry.put_terminal(msgspec.structs.replace(door.terminal, id=100 + number, uid=f"other-{number}"))
        assert isinstance(await door.scram(), Accept)
        for number in range(10):
            await door.scram(client_id=f"guess-{number}")
            await door.scram(client_id=f"other-{number}", pin="wrong")
        del derivations[:]
        assert isinstance(await door.scram(), Accept)
        assert derivations == []
        door.login.forget(door.terminal)
        assert not door.login._scram_keys._cache

    async def test_another_pin_is_derived_anew(self):
        door = Door(dixie=True)
        assert isinstance(await door.scram(), Accept)
        door.registry.put_terminal(msgspec.structs.replace(door.terminal, pin="new"))
        assert reason_of(await door.scram()) is Reason.BAD_USER_NAME_OR_PASSWORD
        assert isinstance(await door.scram(pin="new"), Accept)

    async def test_unknown_terminals_are_answered_like_known_ones(self):
        """The form of server-first, and how long a refusal takes at least: a busy machine may slow each of them."""
        door, took, shapes, salts = Door(dixie=True), {"t1": [], "t2": []}, set(), set()
        for _ in range(15):
            for client_id, seconds in took.items():
                client = ScramClient(["SCRAM-SHA-1"], "user", "wrong")
                first = client.get_client_first().encode()
                asked = await door.knock(None, None, client_id, auth_method="SCRAM-SHA-1", auth_data=first)
                client.set_server_first(asked.data.decode())
                fields = asked.data.decode().split(",")
                shapes.add((*((field[:2], len(field)) for field in fields), fields[2]))
                salts.add(fields[1])
                final = client.get_client_final().encode()
                began = time.perf_counter()
                assert reason_of(await asked.proceed(final)) is Reason.BAD_USER_NAME_OR_PASSWORD
                seconds.append(time.perf_counter() - began)
        assert len(shapes) == 1
        assert len(salts) == 2
        known, unknown = (min(seconds) for seconds in took.values())
        assert min(known, unknown) >= REFUSED_S * 0.99
        assert abs(known - unknown) < 0.0015, "a derivation takes 2 ms"

    async def test_a_line_for_derivations_that_is_full_is_said_and_counts_as_no_failure(self, monkeypatch):
        monkeypatch.setattr(turns, "WAITING_OF_ADDRESS", 0)
        door = Door(failures=2, dixie=True)
        async with door.login._scram_keys.turns.turn("10.0.0.1", is_known=False):
            for _ in range(5):
                assert reason_of(await door.scram()) is Reason.SERVER_BUSY
        assert isinstance(await door.scram(), Accept)
        assert door.login.stats.busy == 5


class TestThrottling:
    async def test_by_terminal_at_an_address(self):
        door = Door(failures=3)
        for _ in range(3):
            await door.knock(password=b"wrong")
        assert reason_of(await door.knock()) is Reason.CONNECTION_RATE_EXCEEDED
        assert isinstance(await door.knock(address="10.0.0.9"), Accept)
        door.clock.now_s += 301
        assert isinstance(await door.knock(), Accept)

    async def test_by_terminal_from_everywhere_it_is_slow(self):
        door = Door(failures=3)
        for last in range(30):
            await door.knock(password=b"wrong", address=f"10.0.1.{last}")
        assert reason_of(await door.knock(address="10.0.0.9")) is Reason.CONNECTION_RATE_EXCEEDED
        door.clock.now_s += 10
        assert isinstance(await door.knock(address="10.0.0.9"), Accept)

    async def test_by_address_it_is_slow(self):
        door = Door(failures=3)
        for guess in range(30):
            await door.knock(client_id=f"guess-{guess}")
        assert reason_of(await door.knock()) is Reason.CONNECTION_RATE_EXCEEDED
        assert isinstance(await door.knock(address="10.0.0.2"), Accept)
        door.clock.now_s += 10
        assert isinstance(await door.knock(), Accept)

    async def test_a_64_of_ipv6_is_one_address(self):
        door = Door(failures=3)
        for last in range(3):
            await door.knock(password=b"wrong", address=f"2001:db8:1:2::{last}")
        assert reason_of(await door.knock(address="2001:db8:1:2:3::4")) is Reason.CONNECTION_RATE_EXCEEDED
        assert isinstance(await door.knock(address="2001:db8:1:3::1"), Accept)

    async def test_exchanges_that_are_not_finished_count(self):
        door = Door(failures=3, dixie=True)
        first = ScramClient(["SCRAM-SHA-1"], "user", "pin").get_client_first().encode()
        for data in (first, b"", first):
            asked = await door.knock(None, None, auth_method="SCRAM-SHA-1", auth_data=data)
            assert isinstance(asked, Challenge)
        assert reason_of(await door.scram()) is Reason.CONNECTION_RATE_EXCEEDED
        door.clock.now_s += 301
        for _ in range(5):
            assert isinstance(await door.scram(), Accept)

    async def test_exchanges_that_one_address_begins_are_bounded_whatever_it_calls_itself(self):
        door = Door(failures=3, dixie=True)
        asked = [
            await door.knock(None, None, f"guess-{number}", auth_method="SCRAM-SHA-1", auth_data=b"")
            for number in range(100)
        ]
        assert sum(isinstance(each, Challenge) for each in asked) == 30

    async def test_scram_failures_count_too(self):
        door = Door(failures=2, dixie=True)
        for _ in range(2):
            await door.scram(pin="wrong")
        assert reason_of(await door.scram()) is Reason.CONNECTION_RATE_EXCEEDED

    async def test_strangers_and_neighbours_do_not_lock_a_known_terminal_out(self):
        door = Door(failures=3)
        assert isinstance(await door.knock(), Accept)
        for _ in range(5):
            await door.knock(password=b"wrong", address="10.9.9.9")
            await door.knock(client_id="neighbour")
        for last in range(100):
            await door.knock(password=b"wrong", address=f"10.9.8.{last % 10}")
            await door.knock(client_id=f"neighbour-{last}")
        assert reason_of(await door.knock(address="10.9.9.9")) is Reason.CONNECTION_RATE_EXCEEDED
        assert isinstance(await door.knock(), Accept)

    async def test_a_known_terminal_that_fails_is_throttled_at_its_own_address(self):
        door = Door(failures=3)
        await door.knock()
        for _ in range(3):
            await door.knock(password=b"wrong")
        assert reason_of(await door.knock()) is Reason.CONNECTION_RATE_EXCEEDED

    async def test_a_success_forgets_the_failures_of_the_terminal(self):
        door = Door(failures=3)
        for _ in range(3):
            await door.knock(password=b"wrong")
            await door.knock(password=b"wrong")
            assert isinstance(await door.knock(), Accept)
