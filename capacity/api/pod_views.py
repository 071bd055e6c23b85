from capacity.pods.views import POD_VIEWS
from health.api.saved_views import SavedViewDetail, SavedViewList


class PodViewList(SavedViewList):
    """Lists the caller's saved views of the list of GPU pods by name."""

    table = POD_VIEWS


class PodViewDetail(SavedViewDetail):
    table = POD_VIEWS
