"""Reports that bridges bring take turns by company, and are its memory while they wait."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from own_platform import Ports
from platform_site import Company, Site, running_site
from terrazzo.embedded.bridges import EmbeddedBridges
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ports.bridge import BridgeMessage
from waiting import until

BRIDGES = 8  # of the company that floods
MESSAGES = 320
TURN = 32 * 1024 // 4_000 + 3  # messages of a company's turn, and of what was begun before


def bridges_of(site: Site) -> EmbeddedBridges:
    parts = {"ingest": site.ingest, "presence": site.presence, "bus": site.bus}
    of_site = site.platform
    local = EmbeddedBridges("here", registry=of_site.metadata.registry, seals=of_site.messaging.seals, **parts)
    local.attach(site.broker)
    return local


@pytest.mark.parametrize("have_companies", [True, False])
async def test_the_bridges_of_a_company_have_one_turn_and_anothers_bridge_has_its_own(
    tmp_path: Path, have_companies: bool
) -> None:
    """Without companies the terminals' are asked: a bridge may bring reports of many."""
    ports = Ports(intake_limits=IngestLimits(group_messages=1))
    async with running_site(tmp_path, ports=ports) as site:
        companies: dict[str, Company] = {}
        for uid in ("a1", "b1"):
            companies[uid] = await site.company(uid)
            await companies[uid].terminal(uid)
        local, taken = bridges_of(site), list[str]()
        report = json.dumps({"text": "x" * 4_000}).encode()

        def bring(bridge: str, uid: str) -> None:
            company_id = companies[uid].actor.company_id if have_companies else 0
            message = BridgeMessage(f"g/{uid}/r", report, 1)
            local.publish(bridge, message, partial(taken.append, uid), company_id=company_id)

        for number in range(MESSAGES):
            bring(f"bridge {number % BRIDGES}", "a1")
        bring("bridge 0" if not have_companies else "of b", "b1")
        owners = {str(each.actor.company_id) for each in companies.values()}
        assert site.ingest.taken.by_owner().keys() == owners, "whose memory it is"
        await until(lambda: len(taken) == MESSAGES + 1, "all are taken")
        assert taken.index("b1") <= TURN
