"""Mail servers and HTTP providers, as the messenger needs them."""

from terrazzo_adapters.messenger.addresses import Guard
from terrazzo_adapters.messenger.http import GuardedHttp
from terrazzo_adapters.messenger.smtp import MailServer, SmtpMailer

__all__ = ["Guard", "GuardedHttp", "MailServer", "SmtpMailer"]
