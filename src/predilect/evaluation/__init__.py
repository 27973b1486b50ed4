"""How good predictions are: metrics, calibration, paired differences."""
