"""The stand-alone client: its parts in JavaScript, joined with the table of some APIs."""
