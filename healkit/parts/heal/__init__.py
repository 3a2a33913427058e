"""Healing: the loop, its advisors, and the policies on both."""
