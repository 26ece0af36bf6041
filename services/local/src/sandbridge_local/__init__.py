"""The sandbridge command: every service in one process."""
