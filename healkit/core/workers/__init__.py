"""Restricted worker kernels: host side, and `inside` them."""
