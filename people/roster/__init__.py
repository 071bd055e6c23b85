"""Who there is, in which groups, with which roles and tokens; each change is kept as a decision."""
