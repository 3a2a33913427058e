"""Many inputs for one tool: one execution each, on record."""
