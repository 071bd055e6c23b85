"""A nudge to look at the plans that rest on a cluster. Beat's sweep finds what is due where it is lost."""

from fleet.messages.wake import Coalesced

plans_of = Coalesced("rollouts.tasks.wake_plans_of", "rollouts", at_most_every_s=0.5)
