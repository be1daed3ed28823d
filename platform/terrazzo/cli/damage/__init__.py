"""What a disk has damaged in the data folder, for ``terrazzo doctor``."""
