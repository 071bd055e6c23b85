"""Somebody new, a new group, a role for a person and a member for a group, as their pages spell them."""

from collections.abc import Iterable

from django import forms
from django.http import QueryDict

from people.models import Role, User
from people.places import Place
from people.roster import accounts, groups

CHOOSE = "Choose a role, and the place that it is for."
NOBODY = "Choose somebody who is there."
ONE_WORD = {"autocomplete": "off", "autocapitalize": "none", "required": True}


class PersonForm(forms.Form):
    name = forms.CharField(
        required=False,  # that there is none, the rule of names says
        strip=False,
        label="Name",
        help_text="Letters, digits and @ . + - _ only. They set their own password by a link that is shown next.",
        widget=forms.TextInput(ONE_WORD | {"maxlength": accounts.LONGEST_NAME}),
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="%s")

    def clean_name(self) -> str:
        return accounts.spelt_name(self.cleaned_data["name"])


class GroupForm(forms.Form):
    name = forms.CharField(
        required=False,
        label="Name",
        help_text=(
            "One word, as plans write it: sre. Who is in it approves only where they have the role approver or admin."
        ),
        widget=forms.TextInput(ONE_WORD | {"maxlength": groups.LONGEST_NAME}),
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="%s")

    def clean_name(self) -> str:
        return groups.spelt_name(self.cleaned_data["name"])


class RoleForm(forms.Form):
    """`places`: all that who asks knows of; `offered`: those on which they give roles."""

    role = forms.ChoiceField(choices=[(role, role) for role in Role.values], label="Role")
    place = forms.CharField(widget=forms.Select, label="Place")

    def __init__(
        self, data: QueryDict | None = None, *, places: Iterable[Place], offered: Iterable[Place] = ()
    ) -> None:
        super().__init__(data, auto_id="%s")
        self.places = {place.name: place for place in places}
        self.fields["place"].widget.choices = [(place.name, place.words) for place in offered]
        for field in self.fields.values():
            field.error_messages |= dict.fromkeys(("required", "invalid_choice"), CHOOSE)

    def clean_place(self) -> Place:
        try:
            return self.places[self.cleaned_data["place"]]
        except KeyError as missing:
            raise forms.ValidationError(CHOOSE) from missing


class MemberForm(forms.Form):
    """`among`: those who are offered; anybody who is there may be named. One a group stands on a page."""

    person = forms.CharField(widget=forms.Select, label="Person", error_messages={"required": NOBODY})

    def __init__(self, data: QueryDict | None = None, *, group_id: int, among: Iterable[User] = ()) -> None:
        super().__init__(data, auto_id=f"%s-{group_id}")
        self.fields["person"].widget.choices = [(each.username, each.username) for each in among]

    def clean_person(self) -> User:
        person = User.objects.filter(username=self.cleaned_data["person"]).first()
        if person is None:
            raise forms.ValidationError(NOBODY)
        return person
