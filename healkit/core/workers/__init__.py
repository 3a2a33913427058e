"""Restricted worker kernels; `inside` runs in the worker."""
