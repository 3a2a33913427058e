"""Healing: policy, and what decides under it."""
