"""Prove: benchmarks, comparisons, published results and what things cost."""
