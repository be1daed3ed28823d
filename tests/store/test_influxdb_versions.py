"""InfluxDB 2.x and 3: only 1.x can be installed here, so a front that answers as they do stands before a real 1.x."""

from __future__ import annotations

import pytest
from store_locations import InfluxLocation

from influx_front import Front
from terrazzo.ports.store import NotReplaceable, Record, Seen, StoreUnavailable

T0 = 1_700_000_000_000_000
RECORD = Record("g/T1/r", T0, b'{"P":1}')


@pytest.fixture
async def front(request, influxd):
    async with Front(influxd.url, request.param) as front:
        yield front


@pytest.mark.parametrize("front", ["2.7.1"], indirect=True)
async def test_a_2x_bucket_is_made_and_mapped_once(front, influxd, tmp_path):
    database = tmp_path.name
    influxd.query(f'CREATE DATABASE "{database}"')
    for round_ in range(2):
        store = await InfluxLocation(front.url, database, tmp_path).open(token="secret", org="acme", bucket="terrazzo")
        await store.append([RECORD])
        assert (await store.page(["g/T1/r"], T0, T0, offset=0, limit=9)).total == round_ + 1
        await store.drop_before(T0)
        mosaic = Record("m/1", T0, b'{"A":%d}' % round_)
        assert store.is_replaceable
        assert await store.replace("m/1", T0, T0, [mosaic], given=Seen(["g/T1/r"], round_ + 1))
        assert await store.latest(["m/1"], 9) == [mosaic]
        await store.close()
    [(_, bucket_path, bucket), (_, mapping_path, mapping)] = front.calls
    assert bucket_path == "/api/v2/buckets"
    assert (bucket["name"], bucket["orgID"]) == ("terrazzo", "0123456789abcdef")
    assert mapping_path == "/api/v2/dbrps"
    assert (mapping["database"], mapping["bucketID"], mapping["default"]) == (database, "0" * 16, True)
    assert front.tokens == {"Token secret"}


@pytest.mark.parametrize("front", ["2.7.1"], indirect=True)
async def test_an_unknown_organisation_is_named(front, tmp_path):
    store = await InfluxLocation(front.url, "db", tmp_path).open(token="secret", org="nobody", bucket="b")
    with pytest.raises(StoreUnavailable, match="no organisation 'nobody'"):
        await store.check()
    await store.close()


@pytest.mark.parametrize("front", ["3.0.1"], indirect=True)
async def test_3_takes_records_and_says_that_it_cant_delete_or_replace(front, influxd, tmp_path):
    database = tmp_path.name
    influxd.query(f'CREATE DATABASE "{database}"')
    store = await InfluxLocation(front.url, database, tmp_path).open(token="secret")
    await store.append([RECORD])
    assert await store.latest(["g/T1/r"], 9) == [RECORD]
    with pytest.raises(StoreUnavailable, match="InfluxDB 3 has no DELETE"):
        await store.drop_before(T0 + 1)
    assert not store.is_replaceable
    with pytest.raises(NotReplaceable, match="InfluxDB 3 has no DELETE"):
        await store.replace("g/T1/r", 0, T0, [], given=Seen(["g/T1/r"], 1))
    assert await store.latest(["g/T1/r"], 9) == [RECORD]
    await store.close()
