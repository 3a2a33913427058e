"""Restricted worker kernels, seen from the host and from inside."""
