"""Questions to the worker of a failed run.

- `post_mortem`: what the user has; `retained`: the workers that are kept. Both in the host.
- `questions`: what host and worker say to each other.
- `stack_inspector`: answers in the worker, with `previews` of values.
"""
