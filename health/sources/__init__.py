"""Sources of telemetry: who asks them and when, what they need to be asked, and where the newest frame is kept."""
