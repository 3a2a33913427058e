"""Reports on healkit, its database and this machine."""
