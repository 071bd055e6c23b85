"""Changes of drivers: plans, stages, gates, approvals, and the engine that carries plans out."""
