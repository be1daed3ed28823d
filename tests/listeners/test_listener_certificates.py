"""The files of a TLS listener: what is wrong with them is said by name, and new ones come into force while it runs."""

from __future__ import annotations

import ssl

import pytest
from listener_stand import ACCEPTED_4, PINGREQ, PINGRESP

from certificate_authority import Authority
from terrazzo_broker import CertificateError, TlsFiles


async def refused(start, **files) -> str:
    """How listening with these files is refused; the same over WebSocket."""
    broker = start()
    with pytest.raises(CertificateError) as over_tcp:
        await broker.listen_tls("127.0.0.1", 0, **files)
    with pytest.raises(CertificateError) as over_websocket:
        await broker.listen_websocket("127.0.0.1", 0, tls=TlsFiles(**files))
    assert str(over_tcp.value) == str(over_websocket.value)
    assert not broker.is_listening
    return str(over_tcp.value)


async def test_missing_files(start, authority, tmp_path):
    pair, missing = authority.issue("server"), tmp_path / "missing.pem"
    for setting, files in {
        "tls_cert": {"cert": missing, "key": pair.key},
        "tls_key": {"cert": pair.cert, "key": missing},
        "tls_client_ca": {"cert": pair.cert, "key": pair.key, "client_ca": missing},
    }.items():
        assert await refused(start, **files) == f"{setting}: {missing}: No such file or directory"


async def test_a_folder_is_no_file(start, authority, tmp_path):
    message = await refused(start, cert=authority.issue("server").cert, key=tmp_path)
    assert message == f"tls_key: {tmp_path}: Is a directory"


async def test_a_key_of_another_certificate(start, authority):
    server, other = authority.issue("server"), authority.issue("other")
    assert (
        await refused(start, cert=server.cert, key=other.key)
        == f"tls_key: {other.key}: is not the key of {server.cert}"
    )


async def test_an_encrypted_key_asks_nobody(start, authority):
    pair = authority.issue("server", passphrase=b"secret")
    message = await refused(start, cert=pair.cert, key=pair.key)
    assert message == f"tls_key: {pair.key}: is encrypted; keep it without a passphrase"


@pytest.mark.parametrize("content", [b"", b"\xff\x00 no PEM", b"-----BEGIN NONSENSE-----\n"])
async def test_files_that_are_no_pem(start, authority, tmp_path, content):
    pair, nonsense = authority.issue("server"), tmp_path / "nonsense.pem"
    nonsense.write_bytes(content)
    assert (await refused(start, cert=nonsense, key=pair.key)).startswith(f"tls_cert: {nonsense}: holds no PEM")
    assert (await refused(start, cert=pair.cert, key=nonsense)).startswith(f"tls_key: {nonsense}, with tls_cert")
    message = await refused(start, cert=pair.cert, key=pair.key, client_ca=nonsense)
    assert message == f"tls_client_ca: {nonsense}: holds no PEM certificate"


async def test_a_broken_certificate(start, authority):
    pair = authority.issue("server")
    pair.cert.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert str(pair.cert) in await refused(start, cert=pair.cert, key=pair.key)


def serial_number(peer) -> str:
    """Of the certificate that the broker has shown."""
    return peer.writer.get_extra_info("peercert")["serialNumber"]


async def test_reloading_leaves_connections_alone(start, dial, authority):
    broker, pair, context = start(), authority.issue("server"), authority.client_context()
    tls = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key)
    websocket = await broker.listen_websocket("127.0.0.1", 0, tls=TlsFiles(cert=pair.cert, key=pair.key))
    old = await dial(tls, ssl=context)
    assert await old.login("old") == ACCEPTED_4
    authority.issue("server")  # overwrites the files
    assert serial_number(await dial(tls, ssl=context)) == serial_number(old)
    broker.reload_certificates()
    new = await dial(tls, ssl=context)
    assert await new.login("new") == ACCEPTED_4
    assert serial_number(new) != serial_number(old)
    assert serial_number(await dial(websocket, ssl=context)) == serial_number(new)
    old.send(PINGREQ)
    assert await old.receive() == PINGRESP


async def test_a_bad_reload_changes_nothing(start, dial, authority, tmp_path):
    broker, pair, other = start(), authority.issue("server"), authority.issue("other")
    first = await broker.listen_tls("127.0.0.1", 0, cert=other.cert, key=other.key)
    second = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key)
    before = [serial_number(await dial(port, ssl=authority.client_context())) for port in (first, second)]
    authority.issue("other")
    pair.key.write_bytes(other.key.read_bytes())
    with pytest.raises(CertificateError, match=r"^tls_key: .* is not the key of"):
        broker.reload_certificates()
    assert [serial_number(await dial(port, ssl=authority.client_context())) for port in (first, second)] == before


async def test_the_client_authority_reloads_too(start, dial, authority, tmp_path):
    broker, pair = start(), authority.issue("server")
    elsewhere = Authority(tmp_path / "elsewhere", "Elsewhere")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(authority.ca.read_bytes())
    port = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key, client_ca=trusted)
    stranger = authority.client_context(elsewhere.issue("terminal 1"))
    stranger.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await dial(port, ssl=stranger)
    trusted.write_bytes(authority.ca.read_bytes() + elsewhere.ca.read_bytes())
    broker.reload_certificates()
    assert await (await dial(port, ssl=stranger)).login("c") == ACCEPTED_4
    assert broker.hooks.requests[-1].certificate_name == "terminal 1"
