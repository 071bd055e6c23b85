"""Forms for people, groups, roles and group members."""

from collections.abc import Iterable

from django import forms
from django.http import QueryDict

from people.models import Role, User
from people.models.mapped_group import LONGEST_GROUP
from people.places import Place
from people.roster import accounts, groups

CHOOSE = "Choose a role and a place."
NOBODY = "Choose a person."
ONE_WORD = {"autocomplete": "off", "autocapitalize": "none", "required": True}


class PersonForm(forms.Form):
    name = forms.CharField(
        required=False,  # the rule of names reports a missing name
        strip=False,
        label="Name",
        help_text="Letters, digits and @ . + - _ only. The next page shows a link to set the password.",
        widget=forms.TextInput(ONE_WORD | {"maxlength": accounts.LONGEST_NAME}),
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="%s")

    def clean_name(self) -> str:
        return accounts.normalized_name(self.cleaned_data["name"])


class GroupForm(forms.Form):
    name = forms.CharField(
        required=False,
        label="Name",
        help_text=("One word, such as sre. Members need the role approver or admin to approve."),
        widget=forms.TextInput(ONE_WORD | {"maxlength": groups.LONGEST_NAME}),
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="%s")

    def clean_name(self) -> str:
        return groups.normalized_name(self.cleaned_data["name"])


class RoleForm(forms.Form):
    """Form of a role. `places` are all places the user knows; `offered` are those where the user may give roles."""

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


class GroupMappingForm(RoleForm):
    group = forms.CharField(
        max_length=LONGEST_GROUP,
        label="Group",
        help_text="Name or id as the identity provider sends it, exactly.",
        widget=forms.TextInput(ONE_WORD),
    )
    field_order = ("group", "role", "place")

    def __init__(self, data: QueryDict | None = None, *, places: Iterable[Place]) -> None:
        super().__init__(data, places=(places := list(places)), offered=places)


class MemberForm(forms.Form):
    """Form of a member. `among` are the people offered; any person may be named. One form per group."""

    person = forms.CharField(widget=forms.Select, label="Person", error_messages={"required": NOBODY})

    def __init__(self, data: QueryDict | None = None, *, group_id: int, among: Iterable[User] = ()) -> None:
        super().__init__(data, auto_id=f"%s-{group_id}")
        self.fields["person"].widget.choices = [(user.username, user.username) for user in among]

    def clean_person(self) -> User:
        person = User.objects.filter(username=self.cleaned_data["person"]).first()
        if person is None:
            raise forms.ValidationError(NOBODY)
        return person
