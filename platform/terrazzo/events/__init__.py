"""Events and labels as users handle them: listed, counted, acknowledged, cleared, commented and closed.

They are raised and opened by the capability ``mapping``.
"""
