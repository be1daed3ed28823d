"""A node that stands by and answers reads, and what its leader does for it.

======== ===============================================================================
leader   the leader's position, and its answers to what replicas ask
store    a store that is read and not changed
absent   stands for what the leader alone has
views    live frames of what a follower has stored
services what operations use on a replica
node     ``ReadsNode``: how fresh it is, who leads, what the leader is asked
replica  ``Replica``: the APIs of a node that stands by, from their start to their stop
work     ``ReadsWork``: keeps a replica up
======== ===============================================================================
"""
