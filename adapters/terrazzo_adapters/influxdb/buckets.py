"""Organisation and bucket of InfluxDB 2.x, and the mapping (DBRP) by which a bucket answers as a database."""

from __future__ import annotations

from typing import Any

import influxdb_client
from influxdb_client.rest import ApiException
from urllib3.exceptions import HTTPError

from terrazzo.ports.store import StoreUnavailable
from terrazzo.userinfo import shown_address
from terrazzo_adapters.influxdb.settings import InfluxSettings

_library: Any = influxdb_client  # its calls carry no types
_TIMEOUT_MS = 15_000
_RETENTION_POLICY = "autogen"


def ensure_bucket(settings: InfluxSettings) -> None:
    """Creates the bucket and its mapping if they are missing. Blocks.

    Raises:
        StoreUnavailable: no such organisation, no permission, no answer.
    """
    name, shown = settings.bucket or settings.database_name, shown_address(settings.url)
    try:
        with _library.InfluxDBClient(
            url=settings.url, token=settings.token, org=settings.org, timeout=_TIMEOUT_MS
        ) as client:
            _ensure_bucket(client, settings, name)
    except ApiException as error:
        raise StoreUnavailable(f"InfluxDB at {shown}, bucket {name}: {error.status} {error.reason}") from None
    except (HTTPError, OSError) as error:
        raise StoreUnavailable(f"InfluxDB at {shown} does not answer: {error}") from None


def _ensure_bucket(client: Any, settings: InfluxSettings, name: str) -> None:
    organisations = client.organizations_api().find_organizations(org=settings.org)
    if not organisations:
        shown = shown_address(settings.url)
        raise StoreUnavailable(f"store.org: InfluxDB at {shown} has no organisation {settings.org!r}")
    org_id = organisations[0].id
    bucket = client.buckets_api().find_bucket_by_name(name)
    if bucket is None:
        bucket = client.buckets_api().create_bucket(bucket_name=name, org=organisations[0])
    _ensure_mapping(client, org_id=org_id, bucket_id=bucket.id, database=settings.database_name)


def _ensure_mapping(client: Any, *, org_id: str, bucket_id: str, database: str) -> None:
    service = _library.DBRPsService(client.api_client)
    known = service.get_dbr_ps(org_id=org_id, db=database).content or []
    if any(mapping.bucket_id == bucket_id for mapping in known):
        return
    service.post_dbrp(
        _library.DBRPCreate(
            org_id=org_id, bucket_id=bucket_id, database=database, retention_policy=_RETENTION_POLICY, default=True
        )
    )
