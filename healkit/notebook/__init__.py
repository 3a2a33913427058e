"""The notebook face: extension, magics, completion."""
