"""Approvals of stages: who may give them, who has given them, and which stages need none."""
