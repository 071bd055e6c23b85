from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, PasswordResetConfirmView
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from edges.transition_errors import LostRace
from people.roster.accounts import set_password
from people.sign_in.password_links import links


@method_decorator([login_not_required, never_cache], name="dispatch")
class SetPassword(PasswordResetConfirmView):
    """Where a one-time link leads. The link itself is left at once: no page after it, and no log of one, has it."""

    template_name = "people/sign_in/set_password.html"
    token_generator = links

    def form_valid(self, form: SetPasswordForm) -> HttpResponse:
        """Not by the form's own `save`: that writes all of a row which was read before the password was hashed."""
        try:
            set_password(form.user, form.cleaned_data["new_password1"], now=timezone.now())
        except LostRace:
            self.validlink = False
            return self.render_to_response(self.get_context_data())
        del self.request.session[INTERNAL_RESET_SESSION_TOKEN]
        return redirect("sign-in")
