"""Backtests: a rule runs over stored history before it may notify anybody."""
