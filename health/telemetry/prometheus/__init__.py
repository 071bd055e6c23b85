"""Prometheus as a source: HTTP queries bounded in time and size, and answers decoded into columns."""
