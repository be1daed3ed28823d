"""Several nodes, one of which serves: what its store does goes through a log, from which the others do it too.

============== =====================================================================
checked_bytes  kind, version and checksum, with which each frame begins
frame          an operation of a store to frames of the log and back
position       how far a store is in which log; may it follow this one
applying       does an operation in a store, together with its place in the log
follower       follows the log into a store
freshness      how old what a follower has may be
leading        ``ReplicatedStore``: a store whose changes go through the log
lease          who leads: one record, changed by compare-and-set
members        which nodes there are, and how far each is
in_frame       what fronts have taken from terminals, to frames and back
in_position    how far the leader is in these
============== =====================================================================
"""
