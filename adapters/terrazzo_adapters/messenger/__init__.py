"""The ports ``terrazzo.ports.providers``: e-mail over SMTP, and HTTP requests to checked addresses."""

from terrazzo_adapters.messenger.addresses import Guard
from terrazzo_adapters.messenger.http import GuardedHttp
from terrazzo_adapters.messenger.smtp import MailServer, SmtpMailer

__all__ = ["Guard", "GuardedHttp", "MailServer", "SmtpMailer"]
