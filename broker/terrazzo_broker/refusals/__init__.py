"""What the broker refuses and whom it ends, and why: told to the embedding program one by one."""

from .causes import TOLD, Cause, cause_of
from .refusal import OnRefused, Refusal

__all__ = ["TOLD", "Cause", "OnRefused", "Refusal", "cause_of"]
