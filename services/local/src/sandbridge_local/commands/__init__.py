"""One module a command, each with a `run`; only the chosen one is imported, so that the small ones start fast.

Results go to standard output, everything else to standard error.
"""
