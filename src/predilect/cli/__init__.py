"""The command ``predilect``: one file a command; nothing heavy is imported before a command runs."""
