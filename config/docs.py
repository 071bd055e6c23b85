from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularSwaggerSplitView


@method_decorator(csp_update({"style-src": [UNSAFE_INLINE]}), name="dispatch")  # Swagger UI writes style attributes
class Docs(SpectacularSwaggerSplitView):
    """The interactive documentation of the REST API. Its script has its own URL, so no script is inline."""

    template_name = "docs/page.html"
