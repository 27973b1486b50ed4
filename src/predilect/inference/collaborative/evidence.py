"""Evidence of the collaborative Gaussian process by expectation propagation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from predilect.posteriors.sites import Sites

__all__ = ["gaussian_divergence", "process_divergence"]

FloatArray = npt.NDArray[np.float64]

# With q(h_d) = N(h_d; 0, K) Π exp(messages) / Z_d, the four ln s̃ of collaborative.md 3 and the log-partitions G add up
# to
#
#   ln Z = Σ_p [ln Ẑ_p + G(cavity_p) - G(posterior_p) + E_Q log f̂1_p]          sites.answer_evidence
#          + Σ_d (ln Z_d - E_Q log messages_d)  for the functions, and likewise for the weights
#
# since every G of a weight or a value meets itself with the other sign once f̂2 = Q/f̂3, Q/f̂4. The sums in brackets are
# minus the Kullback-Leibler divergence of q(h_d) from its prior; nothing is divided by a precision, which may be 0.


def process_divergence(log_z: float, sites: Sites, mean: FloatArray, var: FloatArray) -> float:
    """E_Q log messages - ln Z_d of one function or of one weight of all people; messages f̂2, moments under Q."""
    return float(sites.linear @ mean - 0.5 * (sites.precision @ (mean * mean + var))) - log_z


def gaussian_divergence(mean: FloatArray, var: FloatArray, prior_var: FloatArray) -> float:
    """Σ KL(N(mean, var) || N(0, prior_var)); entries of prior variance 0 do not count."""
    free = prior_var > 0.0
    m, v, p = mean[free], var[free], prior_var[free]
    return 0.5 * float(np.sum(np.log(p / v) + (v + m * m) / p - 1.0))
