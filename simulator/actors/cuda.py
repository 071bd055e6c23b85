"""The CUDA that each driver branch brings."""

OF_BRANCH = {"535": "12.2", "550": "12.4", "570": "12.8", "580": "13.0", "590": "13.1", "595": "13.2"}


def cuda_of(driver_version: str) -> str:
    return OF_BRANCH.get(driver_version.partition(".")[0], "13.0")
