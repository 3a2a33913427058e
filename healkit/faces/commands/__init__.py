"""Commands of the core, and the list of all (`rows`)."""
