"""What stands below everything: arguments, files, forks, storage, text, types, progress, compilation.

Imports ``predilect.errors`` alone. Open first: ``stored``, how what is learned is written; ``compile``, how loops are.
"""
