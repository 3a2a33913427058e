"""Run folders: `trace.jsonl`, the manifest, the audit of decisions, the timeline."""
