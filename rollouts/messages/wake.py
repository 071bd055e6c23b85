"""A hint to look at the plans of a cluster. If it is lost, beat's sweep finds what is due."""

from fleet.messages.wake import Coalesced

plans_of = Coalesced("rollouts.tasks.wake_plans_of", "rollouts", at_most_every_s=0.5)
