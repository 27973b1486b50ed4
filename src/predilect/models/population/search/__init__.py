"""Choice of basis and hyper-parameters (docs/math/population.md section 4, "The prior"). Open ``selection.py`` first.

``evidence`` sets the scales, then ``moves``, a table, go on as long as answers held out (``folds``) gain; calibration
follows. It may import what the fit of the population may.
"""
