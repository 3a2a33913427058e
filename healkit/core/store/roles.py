"""Roles of a shared database: a reader, a writer, an owner.

Each has the fewest possible rights. The owner makes and changes the tables, so that its default privileges also apply
to tables of later versions. Triggers protect append-only tables from changes; here, a writer also loses the right.
"""

from __future__ import annotations

import re

from healkit.errors import UsageInvalid

_ROLES = """\
-- The roles of a healkit database. Run it as a superuser, in a PostgreSQL database that is healkit's alone. Run it
-- again once the owner has opened the database, and after each upgrade: it takes from a writer what only the owner may.
--   «name»_reader   reads the log, the vault and the audit
--   «name»_writer   executes, heals, deletes what retention deletes
--   «name»_owner    makes and changes the tables: logs in itself, for `healkit status` after an upgrade
-- A person is in one of the first two: CREATE ROLE ana LOGIN IN ROLE «name»_writer;  then  \\password ana
DO $$
DECLARE
    reader CONSTANT name := '«name»_reader';
    writer CONSTANT name := '«name»_writer';
    owner CONSTANT name := '«name»_owner';
    later text := format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA public GRANT ', owner);
    found name;
BEGIN
    FOREACH found IN ARRAY ARRAY[reader, writer, owner] LOOP
        IF to_regrole(found::text) IS NULL THEN EXECUTE format('CREATE ROLE %I', found); END IF;
    END LOOP;
    EXECUTE format('ALTER ROLE %I LOGIN', owner);
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I, %I, %I', current_database(), reader, writer, owner);
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    EXECUTE format('GRANT USAGE ON SCHEMA public TO %I, %I, %I', reader, writer, owner);
    EXECUTE format('GRANT CREATE ON SCHEMA public TO %I', owner);
    -- Tables that are there, whoever made them.
    FOR found IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE format('ALTER TABLE public.%I OWNER TO %I', found, owner);
        EXECUTE format('GRANT SELECT ON public.%I TO %I, %I', found, reader, writer);
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON public.%I TO %I', found, writer);
        IF found ~ '^healkit_(.*_)?version$' OR found = 'traceauditchain' THEN
            EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON public.%I FROM %I', found, writer);
        ELSIF found = 'traceauditentry' THEN
            EXECUTE format('REVOKE UPDATE, DELETE ON public.%I FROM %I', found, writer);
        END IF;
    END LOOP;
    FOR found IN SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname ~ '^healkit_' LOOP
        EXECUTE format('ALTER FUNCTION public.%I OWNER TO %I', found, owner);
    END LOOP;
    EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO %I', writer);
    -- Tables that the owner is yet to make.
    EXECUTE later || format('SELECT ON TABLES TO %I, %I', reader, writer);
    EXECUTE later || format('INSERT, UPDATE, DELETE ON TABLES TO %I', writer);
    EXECUTE later || format('USAGE ON SEQUENCES TO %I', writer);
END $$;
"""


def roles_sql(name: str) -> str:
    """Return the SQL that makes the roles, safe to run again. name: Prefix of their names; raises `UsageInvalid`."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
        raise UsageInvalid(
            f"Roles cannot begin with {name!r}.", hint="Give lower-case letters, digits and _, as healkit."
        )
    return _ROLES.replace("«name»", name)
