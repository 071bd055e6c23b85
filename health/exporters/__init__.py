"""Which pod holds which GPU where there is no Prometheus: exporters' metrics, by the API server's pod proxy."""
