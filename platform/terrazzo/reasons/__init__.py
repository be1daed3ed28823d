"""Every reason that a client is told: a code, and the English sentence with places for what differs.

A sentence is made by ``say("longer_than", most=64)``: it is a ``str``, so that whatever carries text carries it, and it
knows its code and parameters, which answers carry beside the text (``reason``). A sentence within another one is a
parameter with code and parameters of its own. ``say`` is called with the code written out; a test reads all calls.
"""

from terrazzo.reasons.catalogue import CATALOGUE
from terrazzo.reasons.reason import Reason, reason_of, retold
from terrazzo.reasons.said import SEVERAL, Said, say, say_each, told_by

__all__ = ["CATALOGUE", "SEVERAL", "Reason", "Said", "reason_of", "retold", "say", "say_each", "told_by"]
