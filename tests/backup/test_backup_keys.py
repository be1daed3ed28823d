"""Files of keys in backups."""

from __future__ import annotations

import pytest

from terrazzo.backup.key_sealing import KeySealer, PassphraseUnusable

PASSPHRASE = b"correct horse battery"


def test_a_sealed_file_opens_with_the_passphrase_alone():
    sealed = KeySealer(PASSPHRASE).seal(b"secret", "secrets-key")
    assert b"secret" not in sealed
    assert KeySealer(PASSPHRASE).open(sealed, "secrets-key") == b"secret"
    with pytest.raises(PassphraseUnusable, match=r"secrets-key: was sealed with another passphrase"):
        KeySealer(b"wrong horse battery").open(sealed, "secrets-key")


def test_one_file_is_not_another():
    sealer = KeySealer(PASSPHRASE)
    with pytest.raises(PassphraseUnusable):
        sealer.open(sealer.seal(b"secret", "token-key"), "secrets-key")


@pytest.mark.parametrize("damaged", [b"", b"TZK1", b"TZK2" + bytes(60), b"TZK1" + bytes(60)])
def test_what_is_no_sealed_file_is_refused(damaged):
    with pytest.raises(PassphraseUnusable, match="token-key"):
        KeySealer(PASSPHRASE).open(damaged, "token-key")


def test_a_passphrase_has_a_least_length(tmp_path):
    (tmp_path / "short").write_text("short\n")
    with pytest.raises(PassphraseUnusable, match=r"backup\.passphrase_file: expected at least 12 bytes"):
        KeySealer.read(str(tmp_path / "short"))
    with pytest.raises(PassphraseUnusable, match=r"backup\.passphrase_file: .*none: No such file"):
        KeySealer.read(str(tmp_path / "none"))


def test_line_ends_around_it_do_not_count(tmp_path):
    (tmp_path / "one").write_bytes(PASSPHRASE + b"\r\n")
    sealed = KeySealer.read(str(tmp_path / "one")).seal(b"x", "token-key")
    assert KeySealer(PASSPHRASE).open(sealed, "token-key") == b"x"
