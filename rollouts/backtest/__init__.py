"""Evaluates gates again on the recorded evidence of a plan: other gates, or other options of its gates."""
