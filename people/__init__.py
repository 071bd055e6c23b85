"""Who may do what: people, roles, groups and tokens, and the audit chain of what they did."""
