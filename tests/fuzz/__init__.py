"""Throwing at the package what nobody would write: `python -m tests.fuzz`, see `tests.fuzz.__main__`."""
