"""Evaluates the driver against a workload's CUDA version. Newer drivers run older CUDA."""

from collections.abc import Iterator

from gpu.compatibility.case import Case
from gpu.compatibility.ranges import is_older
from gpu.compatibility.verdicts import Support, Verdict

RULE = "cuda"


def evaluate(case: Case) -> Iterator[Verdict]:
    cuda, driver = case.facts.cuda, case.facts.driver
    if not cuda or not driver:
        return
    subject = f"CUDA {cuda}, driver {driver}"
    floor = next((entry for entry in case.matrix.cuda if cuda in entry.cuda), None)
    if floor is None:
        sentence = f"The matrix does not say which driver CUDA {cuda} needs."
        yield Verdict(RULE, subject, Support.UNKNOWN, sentence, "Check NVIDIA's CUDA compatibility page.")
    elif is_older(driver, floor.driver):
        sentence = f"CUDA {cuda} needs driver {floor.driver} or newer; {driver} is older."
        action = "Update the driver first, or add the CUDA compatibility package to the image."
        yield floor.verdict(RULE, subject, Support.UNSUPPORTED, sentence, action)
    else:
        yield floor.verdict(
            RULE, subject, Support.SUPPORTED, f"CUDA {cuda} needs driver {floor.driver} or newer, and the node has it."
        )
