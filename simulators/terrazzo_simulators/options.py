"""The command line of a fleet: options, their bounds, and the ``Run`` that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from .device import Habits
from .faults import Faults
from .fleet import TERMINALS_MOST, FleetOptions
from .link import LinkOptions
from .spec import FORMATS, MIXED, PROTOCOLS, TYPES, Naming, SpecError, TerminalSpec, generate_specs, read_specs
from .tls import CertificateMaker, Tls

_Number = TypeVar("_Number", int, float)

LOGINS = ("pwd", "auto", "cert", "scram-sha-1", "scram-sha-256")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A parsed command line of ``run``."""

    specs: list[TerminalSpec]
    fleet: FleetOptions
    duration_s: float  # 0: until a signal
    summary_s: float
    as_json: bool
    ends_with_input: bool


def parse_run(arguments: list[str]) -> Run:
    """Parses the command line of ``run``. Ends the process with status 2 and a message that names a bad option."""
    parser = make_parser("simulate" if arguments[:1] == ["simulate"] else "run")
    given = parser.parse_args(arguments)
    try:
        specs = _specs(given)
        tls = _tls(given, specs)
    except SpecError as error:
        parser.error(str(error))
    if given.claim_key and any(spec.dixie for spec in specs):
        parser.error("--claim-key: what is claimed logs in by pwd or auto, not by SCRAM")
    if tls is not None and any(spec.dixie for spec in specs):
        parser.error("--tls-ca: SCRAM goes over plain TCP here")
    faults_share = given.loss + given.disconnect + given.malformed
    if faults_share > 1:
        parser.error(f"--loss, --disconnect and --malformed must not be more than 1 together, got {faults_share:g}")
    return Run(
        specs=specs,
        fleet=_fleet(given, tls),
        duration_s=given.duration,
        summary_s=given.summary,
        as_json=given.json,
        ends_with_input=given.ends_with_input,
    )


def make_parser(command: str = "run") -> argparse.ArgumentParser:
    """The parser of ``python -m terrazzo_simulators run``, or, as ``simulate``, of ``terrazzo simulate``."""
    program = "terrazzo" if command == "simulate" else "python -m terrazzo_simulators"
    parser = argparse.ArgumentParser(prog=program, description="Simulated terminals over real sockets.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        command,
        help="connect a fleet and let it report",
        description="Connects a fleet of simulated terminals, which report until SIGTERM or Ctrl-C.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    _add_broker(run.add_argument_group("broker"))
    _add_terminals(run.add_argument_group("terminals"))
    _add_habits(run.add_argument_group("habits"))
    _add_faults(run.add_argument_group("faults"))
    return parser


def _add_broker(group: Any) -> None:
    group.add_argument("--host", type=_host, default="127.0.0.1", help="the broker's address")
    group.add_argument("--port", type=_whole(1, 65_535), default=1883, help="the broker's TCP port")
    group.add_argument("--keep-alive", type=_whole(0, 65_535), default=60, metavar="S", help="0: none")
    group.add_argument("--session-expiry", type=_whole(0, 2**32 - 1), default=0, metavar="S", help="0: clean sessions")
    group.add_argument("--connect-rate", type=_number(0, 1e6), default=200, metavar="N", help="per second; 0: no limit")
    group.add_argument("--tls-ca", type=Path, metavar="FILE", help="TLS; PEM, who has signed the server's certificate")
    group.add_argument("--timeout", type=_number(0.1, 60), default=5, metavar="S", help="for connecting")


def _add_terminals(group: Any) -> None:
    group.add_argument("--terminals", type=Path, metavar="FILE", help="JSON list of terminals, instead of patterns")
    group.add_argument("--count", type=_whole(1, TERMINALS_MOST), default=10, help="how many to generate")
    group.add_argument("--first", type=_whole(0, 10**9), default=1, help="the first n of the patterns")
    group.add_argument("--uid", default=Naming().uid, metavar="PATTERN", help="up to 64 characters")
    group.add_argument("--username", default=Naming().username, metavar="PATTERN", help="up to 32 characters")
    group.add_argument("--pin", default=Naming().pin, metavar="PATTERN", help="up to 16 characters")
    group.add_argument("--claim-key", default="", metavar="KEY", help="ask for user name, pin and mode with it")
    group.add_argument("--certificates", type=Path, metavar="FOLDER", help="<uid>.pem and <uid>.key, for --mode cert")
    group.add_argument("--cert-authority", type=Path, metavar="FILE", help="PEM; signs certificates that are missing")
    group.add_argument("--cert-authority-key", type=Path, metavar="FILE", help="PEM, its key")
    group.add_argument("--type", choices=(*TYPES, "mixed"), default="mixed")
    group.add_argument("--mode", choices=LOGINS, default="pwd", help="how to log in")
    group.add_argument("--protocol", choices=PROTOCOLS, default="5.0", help="MQTT version; SCRAM needs 5.0")
    group.add_argument("--format", choices=FORMATS, default="json", help="of the payloads")
    group.add_argument("--encrypt", action="store_true", help="seal payloads as JWE")
    group.add_argument("--rsa-publickey", type=Path, metavar="FILE", help="PEM; seal with RSA-OAEP-256 instead of dir")


def _add_habits(group: Any) -> None:
    group.add_argument("--interval", type=_number(0.01, 86_400), default=5, metavar="S", help="between two reports")
    group.add_argument("--qos", type=int, choices=(0, 1, 2), default=1)
    group.add_argument("--seed", type=_whole(0, 2**63), default=1, help="the same seed gives the same signals")
    group.add_argument("--clock", type=_moment, metavar="ISO", help="a seeded clock from this time, not the real one")
    group.add_argument("--duration", type=_number(0, 1e9), default=0, metavar="S", help="0: until SIGTERM or SIGINT")
    group.add_argument("--reboot", type=_number(0, 3_600), default=2, metavar="S", help="how long a reboot takes")
    group.add_argument("--upgrade", type=_number(0, 3_600), default=3, metavar="S", help="how long an upgrade takes")
    group.add_argument(
        "--download",
        type=_whole(0, 2**30),
        default=0,
        metavar="BYTES",
        help="fetch firmware in such pieces; 0: pretend",
    )
    group.add_argument("--summary", type=_number(0.1, 3_600), default=5, metavar="S", help="between two summary lines")
    group.add_argument(
        "--ends-with-input", action="store_true", help="ends when standard input does: with who began it"
    )
    group.add_argument("--json", action="store_true", help="summaries as one JSON object a line")


def _add_faults(group: Any) -> None:
    share = _number(0, 1)
    group.add_argument("--loss", type=share, default=0, metavar="SHARE", help="of messages that are never sent")
    group.add_argument("--disconnect", type=share, default=0, metavar="SHARE", help="of messages cut with the line")
    group.add_argument("--malformed", type=share, default=0, metavar="SHARE", help="of messages with a broken payload")
    group.add_argument("--upgrade-failure", type=share, default=0, metavar="SHARE", help="of upgrades that fail")
    group.add_argument(
        "--upgrade-defect", type=share, default=0, metavar="SHARE", help="of terminals that never upgrade"
    )
    group.add_argument("--upgrade-power-cut", type=share, default=0, metavar="SHARE", help="of downloads that are cut")
    group.add_argument("--skew", type=_number(0, 1e9), default=0, metavar="S", help="clocks are off by up to so much")
    group.add_argument("--storm-every", type=_number(0, 86_400), default=0, metavar="S", help="reconnect storms")
    group.add_argument("--storm-share", type=share, default=0.5, metavar="SHARE", help="of the fleet, in a storm")


def _specs(given: argparse.Namespace) -> list[TerminalSpec]:
    if given.terminals is not None:
        specs = read_specs(given.terminals)
        if len(specs) > TERMINALS_MOST:
            raise SpecError(f"{given.terminals}: a fleet has at most {TERMINALS_MOST} terminals, got {len(specs)}")
        return specs
    scram = given.mode.startswith("scram")
    return generate_specs(
        given.count,
        naming=Naming(uid=given.uid, username=given.username, pin=given.pin, first=given.first),
        types=MIXED if given.type == "mixed" else (given.type,),
        mode="pwd" if scram else given.mode,
        dixie=scram,
        scram=given.mode.upper() if scram else "SCRAM-SHA-1",
        format=given.format,
        encryption=given.encrypt,
        rsa_publickey=_public_key(given.rsa_publickey),
        protocol=given.protocol,
    )


def _public_key(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text("ascii")
    except (OSError, ValueError) as error:
        raise SpecError(f"--rsa-publickey: {path} cannot be read: {error}") from error


def _tls(given: argparse.Namespace, specs: list[TerminalSpec]) -> Tls | None:
    """What connections need of TLS; certificates that are missing are made, where there is an authority for them."""
    uids = [spec.uid for spec in specs if spec.mode == "cert"]
    if given.tls_ca is None:
        if uids or given.certificates:
            raise SpecError("--tls-ca: is needed for certificates")
        return None
    if not given.tls_ca.is_file():
        raise SpecError(f"--tls-ca: there is no file {given.tls_ca}")
    if bool(uids) != bool(given.certificates):
        raise SpecError("--certificates: belongs to terminals of mode cert, and they need it")
    if bool(given.cert_authority) != bool(given.cert_authority_key):
        raise SpecError("--cert-authority: needs --cert-authority-key, and the other way round")
    if given.cert_authority is not None and uids:
        CertificateMaker(given.cert_authority, given.cert_authority_key).make_missing(given.certificates, uids)
    for uid in uids:
        if not (given.certificates / f"{uid}.key").is_file():
            raise SpecError(f"--certificates: there is no {given.certificates / uid}.key")
    return Tls(ca=given.tls_ca, certificates=given.certificates)


def _fleet(given: argparse.Namespace, tls: Tls | None) -> FleetOptions:
    faults = Faults(
        message_loss=given.loss,
        connection_loss=given.disconnect,
        malformed=given.malformed,
        upgrade_failure=given.upgrade_failure,
        upgrade_defect=given.upgrade_defect,
        upgrade_power_cut=given.upgrade_power_cut,
        skew_s=given.skew,
        storm_every_s=given.storm_every,
        storm_share=given.storm_share,
    )
    habits = Habits(
        interval_s=given.interval,
        qos=given.qos,
        seed=given.seed,
        reboot_s=given.reboot,
        upgrade_s=given.upgrade,
        download_bytes=given.download,
        faults=faults,
    )
    link = LinkOptions(
        host=given.host,
        port=given.port,
        keep_alive_s=given.keep_alive,
        session_expiry_s=given.session_expiry,
        tls=tls,
        timeout_s=given.timeout,
    )
    return FleetOptions(
        link=link, habits=habits, connect_rate=given.connect_rate, clock_start_s=given.clock, claim_key=given.claim_key
    )


def _host(text: str) -> str:
    try:
        text.encode("idna")
    except UnicodeError:
        raise argparse.ArgumentTypeError(f"must be a host name or address, got {text!r}") from None
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _whole(low: int, high: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None
        return _bounded(value, low, high)

    return whole


def _number(low: float, high: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
        return _bounded(value, low, high)

    return number


def _bounded(value: _Number, low: _Number, high: _Number) -> _Number:
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"must be from {low:g} to {high:g}, got {value}")
    return value


def _moment(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a time such as 2026-01-01T00:00:00Z, got {text!r}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
