"""Rehearses a rollout in virtual time: the product's own decisions and gates on a fleet that exists in memory."""
