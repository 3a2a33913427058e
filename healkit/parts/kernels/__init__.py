"""Restricted kernels for whole notebooks: kernelspec and provisioner."""
