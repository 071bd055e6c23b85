"""The state of the fleet: findings and their rules, telemetry, and causes of failing operands and pods."""
