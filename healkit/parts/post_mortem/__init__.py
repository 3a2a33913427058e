"""Questions to the worker of a failed run.

- `post_mortem`: the user's interface, in the host.
- `retained`: the workers that are kept, in the host.
- `questions`: the messages between host and worker.
- `stack_inspector`: answers in the worker, with `previews` of values.
"""
