"""Factor models f_u(i) = t(i) + Σ_c w_uc v_c(i): variational state, sweeps, posterior."""
