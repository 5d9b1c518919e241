"""Needs a library that is not there."""

import a_library_that_is_not_there  # noqa: F401
