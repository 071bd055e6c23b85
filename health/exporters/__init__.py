"""GPU telemetry and allocations without a Prometheus: exporters read through the API server's pod proxy."""
