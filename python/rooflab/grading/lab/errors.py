"""The error of everything that deals with labs."""


class LabError(Exception):
    """Something wrong that the user can fix, said in one sentence."""
