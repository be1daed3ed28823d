"""Why terminals are refused: the last refusals of each, folded, bounded, and kept over restarts."""
