"""A Prometheus as a source: asked over HTTP, bounded in time and size, its answers decoded into columns."""
