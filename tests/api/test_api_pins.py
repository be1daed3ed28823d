"""``limits.pin_chars``: the shortest pin that a terminal may be given, however it is given."""

from __future__ import annotations

from pathlib import Path

from api_rig import open_rig, terminal_fields

from own_platform import own_platform


async def test_a_new_pin_has_to_be_long_enough(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.add_terminal("old", pin="1")  # the default: what terminals in the field have
    async with own_platform(tmp_path, limits={"pin_chars": 8}) as (platform, _):
        assert platform.metadata.entities.terminals.pin_chars == 8
    async with open_rig(tmp_path / "other", limits={"pin_chars": 8}) as rig:
        config = await rig.add_config()
        refused = await rig.ask("create_terminal", **(terminal_fields("t1", config) | {"pin": "1234567"}))
        assert refused["code"] == 10401
        assert refused["info"].startswith("pin: expected at least 8 characters (limits.pin_chars), got 7")
        await rig.add_terminal("t1", config_id=config, pin="12345678")
        refused = await rig.ask("update_terminal", **(terminal_fields("t1", config) | {"pin": "short"}))
        assert "limits.pin_chars" in refused["info"]
        rows = [terminal_fields("t2", config) | {"pin": "a"}, terminal_fields("t3", config) | {"pin": "long-enough"}]
        report = await rig.ask("import_terminals", rows=rows)
        assert report["code"] == 10401
        assert [(issue["row"], issue["column"]) for issue in report["result"]["errors"]] == [(1, "pin")]
        report = await rig.ask("import_terminals", rows=[{"uid": "t1", "pin": "b"}], mode="upsert")
        assert "limits.pin_chars" in report["result"]["errors"][0]["reason"]


async def test_a_short_one_that_a_terminal_has_stays_good(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        config = await rig.add_config()
        await rig.add_terminal("t1", config_id=config, pin="1")
        rig.platform.metadata.entities.terminals.pin_chars = 8
        await rig.call("update_terminal", **(terminal_fields("t1", config) | {"name": "renamed", "pin": "1"}))
        assert (await rig.call("import_terminals", rows=[{"uid": "t1", "pin": "1"}], mode="upsert"))["unchanged"] == 1


async def test_a_new_uid_is_no_channels_letter(tmp_path: Path) -> None:
    """``g/r/a`` is the short form of everybody's topic; a terminal that is called so already goes on."""
    async with open_rig(tmp_path) as rig:
        config = await rig.add_config()
        refused = await rig.ask("create_terminal", **terminal_fields("r", config))
        assert refused["code"] == 10401
        assert refused["info"].startswith("uid: 'r' is a channel's letter")
        report = await rig.ask("import_terminals", rows=[terminal_fields("n", config)])
        assert [(issue["row"], issue["column"]) for issue in report["result"]["errors"]] == [(1, "uid")]
        await rig.add_terminal("rr", config_id=config)
