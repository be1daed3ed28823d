"""Why terminals are refused: the table of reasons, and what is told and kept of each refusal."""
