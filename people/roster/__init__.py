"""People, groups, roles and tokens. Each change is recorded as a decision."""
