from rollouts.preflight.rules.cuda import check_cuda
from tests.rollouts.make import lines_of
from tests.rollouts.preflight.make import a_pod, facts

OLD, NEW = "570.172.08", "580.95.05"


def said(*pods, to=OLD, back=NEW) -> dict:
    return {check.code: check for check in check_cuda(facts(*pods, to_version=to, from_version=back))}


def test_an_image_whose_cuda_is_too_new_for_an_older_driver_is_named_with_what_it_needs():
    check = said(a_pod(cuda="13.0"))["cuda-too-new"]

    assert check.title == f"team-a/model-0 needs a newer driver than {OLD}"
    assert lines_of(check)[0].startswith(
        "team-a/model-0 on node-1: CUDA 13.0 needs driver 580.65.06 or newer (https://"
    )
    assert check.is_grave


def test_a_newer_driver_runs_older_cuda_and_what_is_not_known_is_no_matter():
    assert said(a_pod(cuda="12.8"), a_pod("team-a/b"), to=NEW, back=OLD) == {}


def test_what_says_no_cuda_is_unknown_on_a_way_to_an_older_driver():
    check = said(a_pod(image="team/serve:1"), a_pod("team-a/b", cuda="29.1"), a_pod("team-a/c", cuda="12.8"))

    assert list(check) == ["cuda-unknown"]
    assert check["cuda-unknown"].title == "The CUDA version of 2 pods is unknown"
    assert lines_of(check["cuda-unknown"]) == (
        "team-a/b on node-1: CUDA 29.1, which the matrix does not know",
        "team-a/model-0 on node-1: team/serve:1",
    )


def test_pods_that_use_no_gpu_need_no_cuda():
    assert said(a_pod(is_tenant=False, cuda="13.0"), a_pod(is_tenant=False)) == {}


def test_a_plan_from_no_version_says_only_what_it_knows():
    assert said(a_pod(), back="") == {}
    assert list(said(a_pod(cuda="13.0"), back="")) == ["cuda-too-new"]


def test_an_image_that_runs_on_that_driver_already_is_known_to():
    seen = facts(
        a_pod(image="team/serve:1"), a_pod("team-a/new", cuda="13.0", image="team/new:1"),
        to_version=OLD, from_version=NEW, proven_images=frozenset({"team/serve:1", "team/new:1"}),
    )  # fmt: skip

    assert [check.code for check in check_cuda(seen)] == ["cuda-too-new"]
