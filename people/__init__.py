"""People, roles, groups and tokens, and the audit chain of decisions."""
