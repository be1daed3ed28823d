"""Persistent sessions and wills of several nodes, kept in the log.

============= =====================================================================
view          which sessions there are, by what all nodes read; who queues for them
queue_sender  puts what waits for sessions into the log
record_writer changes one record of the log, as long as nobody else does
journal       a session whose state is in the log, and what is written of it
feeder        hands a session what waits for it in the log
storage       ``LogStorage``: the broker's storage at a front
leader_storage ``LeaderStorage``: that of a leader, whose folder has what is retained
former        moves what a folder has of sessions into the log
log           ``SessionLog``: follows the log; what runs out, and what dead nodes have left
============= =====================================================================
"""
