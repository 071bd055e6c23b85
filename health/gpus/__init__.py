"""The GPU table: every GPU that a user sees, filtered and sorted, for its page, REST and files."""
