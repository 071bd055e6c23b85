"""How long a test waits for a fact at most. It is long: what it waits for costs nothing where the machine is fast."""

PATIENCE_S = 180.0
PATIENCE_MS = PATIENCE_S * 1000
