"""Restricted kernels for whole notebooks.

Kernelspec, provisioner, and a session of one notebook.
"""
