"""MLPerf Training: logs, their scores, published results, descriptions of systems."""
