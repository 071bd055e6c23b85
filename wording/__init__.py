"""Spelling of numbers, lists and durations in sentences. Pure; every app may import it."""
