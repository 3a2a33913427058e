"""Frozen data that crosses borders; standard library and msgspec only."""
