"""Questions about the past: grid, mosaic, charts, exports, rejects."""
