"""The seeded rollouts of `bin/bench safety`."""
