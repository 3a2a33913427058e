"""The gallery of broken tools, and what seeds a vault with it."""
