-- Rows as the first release wrote them. Never edited: later versions must read them.
INSERT INTO codevault (hash, code, type, created_at)
VALUES ('fd384806703f2ec4dd18ad70d487adc7aeceb11b506c233a9de56f56305f3730', 'def fibonacci(n): return n', 'python', '2026-01-02 03:04:05.000006');
INSERT INTO toolregistry (tool_name, target_persona, description, input_schema, active_hash, active_revision,
  group_name, flags, grants, examples, created_at, updated_at)
VALUES ('fibonacci', 'default', 'old', '{"type": "object"}', 'fd384806703f2ec4dd18ad70d487adc7aeceb11b506c233a9de56f56305f3730', 1,
  'lessons', '{"side_effects": false, "derived": []}', '{}', '[]',
  '2026-01-02 03:04:05.000006', '2026-01-02 03:04:05.000006');
INSERT INTO revision (tool_name, target_persona, number, code_hash, author, reason, draft, created_at)
VALUES ('fibonacci', 'default', 1, 'fd384806703f2ec4dd18ad70d487adc7aeceb11b506c233a9de56f56305f3730', 'person', '', 0, '2026-01-02 03:04:05.000006');
INSERT INTO executionlog (timestamp, tool_name, persona, arguments, status, error_traceback, trace_id, origin, revision,
  last_output)
VALUES ('2026-01-02 03:04:05.000006', 'fibonacci', 'default', '{"n": 10}', 'FAILURE', 'Traceback: ZeroDivisionError',
  '019b7c3e-0000-7000-8000-000000000001', 'python', 1, '');
