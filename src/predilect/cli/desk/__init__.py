"""``predilect open``: pages on this machine that read a file, run ``predilect rank``, and show what it wrote.

Above everything else: it runs the command itself. Look first at ``app.py``, which has the pages.
"""
