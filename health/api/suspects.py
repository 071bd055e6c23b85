from rest_framework import serializers


class SuspectPropertySerializer(serializers.Serializer):
    name = serializers.CharField()
    value = serializers.CharField()


class SuspectSerializer(serializers.Serializer):
    """A property, or several properties that the same nodes have."""

    properties = SuspectPropertySerializer(many=True)
    failed_with = serializers.IntegerField(help_text="Number of failed nodes with these properties.")
    good_with = serializers.IntegerField(help_text="Number of good nodes with these properties.")
    p = serializers.FloatField(help_text="p-value of Fisher's exact test, one-sided.")
    corrected_p = serializers.FloatField(help_text="p-value, corrected by Holm's method over all splits.")
    is_cause = serializers.BooleanField(help_text="True: the corrected p-value is at most 0.05.")


class SuspectsSerializer(serializers.Serializer):
    """The properties that failed nodes share and good nodes lack."""

    title = serializers.CharField()
    summary = serializers.CharField()
    failed = serializers.IntegerField(help_text="Number of failed nodes.")
    good = serializers.IntegerField(help_text="Number of good nodes.")
    compared = serializers.IntegerField(help_text="Number of properties whose value is known on every node.")
    unknown = serializers.ListField(child=serializers.CharField(), help_text="Properties that are not compared.")
    suspects = SuspectSerializer(many=True, help_text="Suspected properties, the least likely by chance first.")
