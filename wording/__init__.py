"""How sentences say numbers, lists and durations: one way everywhere. Pure, and below everything."""
