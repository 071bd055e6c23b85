"""A rule run over what is stored of the past: what it would have found, before it may tell anybody."""
