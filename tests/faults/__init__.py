"""Every read and write of a run fails once, in every way that it can."""
