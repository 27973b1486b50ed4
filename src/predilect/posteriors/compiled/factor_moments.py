"""Mean and variance of margins that are sums of products of Gaussians."""

from __future__ import annotations

from predilect._compile import kernel

__all__ = ["add_products"]


@kernel
def add_products(user, pair, delta, D, mu, Sigma, mean, var):
    """Add the components' part of the margins of rows (user, pair) to ``mean``, ``var`` (n,): modern.md (3.1).

    ``delta``, ``D`` (n_pairs, C): moments of v_c(left) - v_c(right); ``Sigma`` (n_users, C, C), or (n_users, C, 1).
    """
    C = mu.shape[1]
    full = Sigma.shape[2] == C and C > 1
    for p in range(user.shape[0]):
        u, q = user[p], pair[p]
        m = 0.0
        v = 0.0
        for c in range(C):
            d = delta[q, c]
            own = Sigma[u, c, c] if full else Sigma[u, c, 0]
            m += mu[u, c] * d
            cross = 0.5 * own * d
            if full:
                for k in range(c):
                    cross += Sigma[u, c, k] * delta[q, k]
            v += (mu[u, c] * mu[u, c] + own) * D[q, c] + 2.0 * cross * d
        mean[p] += m
        var[p] += v
