"""What the APIs do on a node that stands by and answers reads, and on the leader for those who read there.

========== ====================================================================================
placement  which operation a replica answers itself, which the leader answers for it, and which
           change something
position   how far a store and the registry are, as a header says it
seams      what the APIs need of a replica and of the leader
performers ``Performer``, ``Gateway`` and ``Components`` of a replica, and those of the leader
answering  the leader's answers to what replicas ask
========== ====================================================================================
"""
