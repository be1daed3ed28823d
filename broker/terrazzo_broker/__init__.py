"""An embeddable MQTT 3.1, 3.1.1 and 5.0 broker."""

from .broker import Broker
from .hooks import (
    Accept,
    Batch,
    Challenge,
    Client,
    ConnectRequest,
    Delivery,
    FormerOwners,
    Hooks,
    Inbound,
    Outcome,
    PublishGrant,
    Refuse,
    Verdict,
)
from .listeners.certificates import CertificateError, TlsFiles
from .message import PublishProperties
from .settings import BrokerSettings
from .stats import Stats
from .topics.owners import EVERYBODY

__all__ = [
    "EVERYBODY",
    "Accept",
    "Batch",
    "Broker",
    "BrokerSettings",
    "CertificateError",
    "Challenge",
    "Client",
    "ConnectRequest",
    "Delivery",
    "FormerOwners",
    "Hooks",
    "Inbound",
    "Outcome",
    "PublishGrant",
    "PublishProperties",
    "Refuse",
    "Stats",
    "TlsFiles",
    "Verdict",
]
