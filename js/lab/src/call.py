# The code that a kernel is asked to run: this file as it is. What is asked for is in the request's metadata, as JSON.
#
# The notebook's folder is on the kernel's path, so healkit itself is imported without it. From then on healkit takes
# its dependencies from where they are installed (healkit/core/own_imports.py).
def _healkit_call():
    import os
    import sys

    if "healkit" not in sys.modules:
        path = sys.path[:]
        here = os.path.realpath(os.curdir)
        first = os.path.realpath(path[0])  # the folder, in a kernel that was started by `python -m`
        sys.path[:] = filter(os.path.isabs, path[1:] if first == here else path)
        try:
            import healkit  # noqa: F401 - from now on it is the one that is imported
        finally:
            sys.path[:] = path
    from healkit.faces.notebook.page_calls import answer

    answer()


try:
    _healkit_call()
finally:
    del _healkit_call
