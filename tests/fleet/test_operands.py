from fleet.operands import BY_APP, TITLES, operand_of


def test_driver_pods_are_told_by_their_component_however_they_are_named():
    labels = {"app": "nvidia-gpu-driver-ubuntu22.04-7c6d7f", "app.kubernetes.io/component": "nvidia-driver"}

    assert operand_of(labels) == "driver"


def test_the_others_are_told_by_their_app():
    assert operand_of({"app": "nvidia-operator-validator"}) == "operator-validator"


def test_a_tenants_pod_is_no_operand():
    assert operand_of({"app": "nvidia-cuda-validator"}) == ""
    assert operand_of({}) == ""


def test_every_operand_has_a_title():
    assert set(BY_APP.values()) == set(TITLES)
