"""The order of least harm: idle nodes, then fewest GPU-hours of whole jobs; the nodes of one job follow each other."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from operations.tenants.disruption_cost import UNKNOWN, Harm, Job, costs, hours, loading, order_by_disruption, total


def a_job(name: str, gpu_hours: float, *, nodes: int = 2) -> Job:
    return Job(f"PyTorchJob team-a/{name}", 8 * nodes, gpu_hours, nodes)


def with_jobs(*jobs: Job, loads: float = 0.0) -> Harm:
    restarts = int(bool(loads))
    return Harm(jobs=jobs, services_loading_gpu_hours=loads, restarts=restarts, pods=len(jobs) + restarts)


JOBS = [a_job(name, cost) for name, cost in (("a", 5.0), ("b", 50.0), ("c", 500.0))]
HARMS = st.dictionaries(
    st.sampled_from([f"n{number}" for number in range(9)]),
    st.one_of(
        st.just(Harm()),
        st.builds(
            lambda jobs, loads: with_jobs(*jobs, loads=loads) if jobs or loads else Harm(),
            st.lists(st.sampled_from(JOBS), unique=True, max_size=2),
            st.sampled_from([0.0, 3.0, 30.0]),
        ),
    ),
)


@given(HARMS)
def test_every_node_is_named_once_and_idle_ones_come_first(harms):
    order = order_by_disruption(harms)

    assert sorted(order) == sorted(harms)
    busy = [bool(harms[key].pods) for key in order]
    assert busy == sorted(busy)


@given(HARMS)
def test_a_node_that_ends_no_further_job_never_waits_for_one_that_does(harms):
    """Z14: once a job is lost, the others of its nodes go before another job is."""
    order, lost = order_by_disruption(harms), set()
    for number, key in enumerate(order):
        new = {job.name for job in harms[key].jobs} - lost
        touched = [other for other in order[number + 1 :] if {job.name for job in harms[other].jobs} & lost]
        assert not (new and touched and not {job.name for job in harms[key].jobs} & lost), f"{key} before {touched}"
        lost |= new


def test_fewest_gpu_hours_of_the_whole_job_go_first():
    old, young = a_job("old", 900.0), a_job("young", 20.0)
    harms = {"n1": with_jobs(old), "n2": with_jobs(a_job("other", 100.0)), "n3": with_jobs(young), "n4": Harm()}

    assert order_by_disruption(harms) == ["n4", "n3", "n2", "n1"]


def test_the_nodes_of_one_job_go_next_to_each_other():
    big, small = a_job("big", 900.0), a_job("small", 300.0)
    harms = {
        "n1": with_jobs(small),
        "n2": with_jobs(big),
        "n3": with_jobs(small, loads=500.0),
        "n4": with_jobs(big),
    }

    assert order_by_disruption(harms) == ["n1", "n3", "n2", "n4"]


def test_of_equals_the_order_stays_but_for_free_gpus():
    harms = {"n1": Harm(pods=1), "n2": Harm(pods=1), "n3": Harm(pods=1, gpus_free=4)}

    assert order_by_disruption(harms) == ["n3", "n1", "n2"]


def test_a_job_on_two_nodes_is_lost_once():
    job = a_job("a", 100.0)

    assert total([with_jobs(job), with_jobs(job, a_job("b", 7.0))]) == 107.0


def test_what_it_costs_is_said_in_one_sentence():
    assert Harm().sentence == "Idle."
    assert Harm(restarts=2, pods=2).sentence == "Restarts 2 pods of services."
    assert with_jobs(a_job("llama", 1234.5, nodes=1)).sentence == (
        "Ends PyTorchJob team-a/llama (8 GPUs on 1 node): 1,234 GPU-hours at most."
    )
    assert [hours(number) for number in (0.0, 1.0, 0.26, 12.4)] == [
        "0 GPU-hours", "1 GPU-hour", "0.3 GPU-hours", "12 GPU-hours",
    ]  # fmt: skip


def test_what_loads_for_long_counts_as_harm():
    """Z16: as much work is lost on both, and the pods of one need an hour until they are Ready again."""
    harms = {
        "n1": with_jobs(a_job("b", 10.0), loads=8.0),
        "n2": with_jobs(a_job("c", 10.0)),
        "n3": with_jobs(replace(a_job("a", 5.0), loading_gpu_hours=1.0)),
    }

    assert order_by_disruption(harms) == ["n3", "n2", "n1"]
    assert harms["n1"].sentence == (
        "Ends PyTorchJob team-a/b (16 GPUs on 2 nodes): 10 GPU-hours at most. "
        "Restarts 1 pod of a service. 8 GPU-hours until Ready again."
    )


def test_of_a_job_what_loads_is_counted_once():
    """Z16, Z14."""
    job = replace(a_job("a", 100.0), loading_gpu_hours=16.0)

    both = [with_jobs(job), with_jobs(job, loads=2.0)]

    assert loading(both) == 18.0
    assert costs(both) == (
        "Costs 100 GPU-hours at most, and 18 GPU-hours until Ready again: "
        "1 job ends, 1 pod of a service restarts, 0 of 2 nodes are idle."
    )


def test_of_nodes_that_only_restart_pods_the_one_with_fewest_goes_first():
    harms = {"n1": Harm(pods=8, restarts=8), "n2": Harm(pods=2, restarts=2)}

    assert order_by_disruption(harms) == ["n2", "n1"]


def test_nodes_on_which_nothing_works_go_after_idle_ones_and_before_the_others():
    """Z14: what a notebook did a week ago is less than what a job does now."""
    idle_job, half = replace(a_job("b", 500.0), does_nothing=True), a_job("c", 1.0)
    harms = {
        "works": with_jobs(a_job("d", 1.0)),
        "does nothing": Harm(pods=2, pods_idle=2, restarts=2, services_loading_gpu_hours=900.0),
        "its job works elsewhere": replace(with_jobs(half), pods_idle=1),
        "its job does nothing": replace(with_jobs(idle_job), pods_idle=1),
        "free": Harm(),
    }

    order = order_by_disruption(harms)

    assert order == ["free", "its job does nothing", "does nothing", "works", "its job works elsewhere"]
    assert harms["does nothing"].sentence.endswith("900 GPU-hours until Ready again. Its GPUs are allocated and idle.")
    assert "idle" not in harms["its job works elsewhere"].sentence


def test_of_nodes_that_cost_about_as_much_the_one_with_more_stranded_gpus_goes_first():
    """Z14: costs are fractions, so that no two are ever equal. One that costs twice as much waits all the same."""
    harms = {
        "full": with_jobs(a_job("a", 65.0)),
        "stranded": replace(with_jobs(a_job("b", 99.5)), gpus_free=7),
        "dear and stranded": replace(with_jobs(a_job("c", 200.0)), gpus_free=7),
    }

    assert order_by_disruption(harms) == ["stranded", "full", "dear and stranded"]


def test_a_node_of_which_nothing_is_known_is_no_idle_one():
    assert not UNKNOWN.ends_no_work
    assert not Harm().ends_no_work
