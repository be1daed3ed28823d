"""What happened to objects, as people see and handle it: events and labels, listed, counted, acknowledged, closed.

It raises nothing: the mapping engine does.
"""
