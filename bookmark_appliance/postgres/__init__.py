"""How PostgreSQL is reached, waited for, migrated, and run as a process of ours; others use `database`."""
