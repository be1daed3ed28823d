"""Who may connect: every mode of login, and every way to fail."""

from __future__ import annotations

import hashlib
import hmac

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqtt5 import ConnAckReasonCode as Reason
from scramp import ScramClient, ScramException

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.terminals.login import TerminalLogin
from terrazzo.throttle import Throttle
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
        self.login = TerminalLogin(self.registry, failures=Throttle(failures, 300), clock=self.clock)

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

    async def test_upper_case_digits_are_digits_too(self):
        assert isinstance(await Door(mode="auto").knock(password=auto_password(int(NOW_S)).upper()), Accept)


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


class TestThrottling:
    async def test_by_terminal(self):
        door = Door(failures=3)
        for last in range(3):
            await door.knock(password=b"wrong", address=f"10.0.0.{last}")
        assert reason_of(await door.knock(address="10.0.0.9")) is Reason.CONNECTION_RATE_EXCEEDED
        door.clock.now_s += 301
        assert isinstance(await door.knock(address="10.0.0.9"), Accept)

    async def test_by_address(self):
        door = Door(failures=3)
        for guess in range(3):
            await door.knock(client_id=f"guess-{guess}")
        assert reason_of(await door.knock()) is Reason.CONNECTION_RATE_EXCEEDED
        assert isinstance(await door.knock(address="10.0.0.2"), Accept)

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
