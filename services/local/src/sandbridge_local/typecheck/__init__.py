"""Checking a script's types before it runs."""
