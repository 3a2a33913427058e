"""The notebook face: extension, magics, rendering."""
