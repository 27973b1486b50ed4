"""Inference for the factor model f_u(i) = t(i) + Σ_c w_uc v_c(i): crowdGPPL, its variants and its modern form."""
