"""Demo data and a simulated fleet: the plant that ``terrazzo serve --demo`` shows.

``site`` and ``scripts`` say what there is, ``records`` puts it into the database, ``fleet`` runs the terminals, which
bring the history of the last week with them, and ``week`` does what people would have done, once that is there.
"""
