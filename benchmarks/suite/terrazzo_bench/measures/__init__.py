"""The benchmarks, a module each."""
