"""Asking a draft's cluster itself before a start: the questions, and the round of a worker that puts them."""
