"""What the bench counts, with its unit. Every one of these must be 0."""

FIGURES = {
    "double_releases": "releases",  # of a node that had begun to change before
    "lost_halts": "halts",  # answered, or seen, and in force no more without a person's word
    "lost_pauses": "pauses",
    "releases_after_halt": "releases",  # or after the plan was given up, turned back, or stopped in its cluster
    "releases_while_frozen": "releases",
    "releases_to_others": "releases",  # to a version that somebody else had written, by nobody's word
    "leaked_labels": "nodes",  # held by a plan that is over, with nothing to be held for
    "leaked_cordons": "nodes",
    "leaked_optouts": "nodes",  # a neighbour is kept off after the plan or while a stage is judged, or theirs is lost
    "untested_nodes": "nodes",  # take pods before their test Job has run, where their stage asks for that first
    "leaked_leases": "leases",  # turns, nodes and places that a plan has not given back at its end
    "leaked_jobs": "jobs",  # made twice, left, or not ours and deleted
    "over_budget": "releases",  # past the stage's budget or the operator's slots
    "stuck_plans": "plans",  # without an end but that somebody gives it up, or without a sentence
    "unapproved_releases": "releases",
    "unheld_writes": "writes",  # of the new version, while a node could have taken it unbidden
    "foreign_labels_touched": "nodes",  # somebody else's hold taken off
    "writes_beside_another": "writes",  # where another Quarterdeck drives the cluster
    "writes_to_another": "writes",  # to another cluster that is at the same address now
    "versions_overwritten": "writes",  # over one that somebody else had set since we read it
    "writes_out_of_turn": "writes",  # by a worker, after another one has begun
    "foreign_cordons_removed": "nodes",  # by a release: a cordon that no operation of ours has written
    "acts_after_stop": "writes",  # evictions, cordons and Jobs of an operation after its end, a pause, stop or freeze
    "evictions_over_budget": "pods",  # fewer left than their budget wants, or deleted past it
    "wrong_evictions": "pods",  # that are on no node of the operation
    "unvalidated_returns": "nodes",  # back in service without a pass newer than the last fault and repair
    "repeated_repairs": "repairs",  # an actor has a request twice, or a machine asks again after an unclear answer
    "tests_beside_pods": "jobs",  # test Jobs on a node that takes pods
    "automatic_past_people": "steps",  # of a machine, after a person took the case over or switched them off
    "wrong_taints": "nodes",  # out of service while they report or take pods, unapproved, or after all is over
    "wrong_cancels": "nodes",  # NVSentinel's break-fix ended for events that nobody saw, or another's cordon with it
    "repeated_requests": "jobs",  # whose owner one drain asked twice
    "jobs_ended_early": "pods",  # evicted within the time that their owner was given
    "begun_beside_others": "nodes",  # on which an operation began while a remediator was seen at work
    "breaker_passed": "cases",  # opened automatically past a limit of the breaker
    "stuck_cases": "schedules",  # with a node that people do not get back into service
    "bugs": "rounds",  # that ended by an exception which nobody expects
}
