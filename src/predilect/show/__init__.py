"""What people look at: charts, drawn once for two renderers, and reports, whose sections are data.

May import all that stands below ``models``. Open first: ``report/sections.py``.
"""
