"""Failures over time, and plots of them."""
