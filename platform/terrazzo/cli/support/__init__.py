"""``terrazzo support-bundle``: what somebody who helps has to know about a platform, without its secrets."""

from terrazzo.cli.support.command import register

__all__ = ["register"]
