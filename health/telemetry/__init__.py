"""GPU telemetry decoded from metrics. Pure: fetching it is the task of other packages."""
