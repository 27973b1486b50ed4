"""The posterior on the items or a basis, with own parts and traits, against dense Gaussian conditioning over items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predilect.data.features import FeatureSpace
from predilect.inference.gaussian.design import Sites
from predilect.inference.people.expectation import converge
from predilect.inference.people.law import Basis, Effects
from predilect.inference.people.posterior import PopulationPosterior
from predilect.models.population.prior import Functions, Hyperparameters
from predilect.models.population.train import extend
from referees.dense_basis import nobody
from referees.dense_population import centred
from simulate import answers, crowd, random_covariance
from simulate_basis import PARTS, law_of, people_of, truth_of
from tolerances import CONVERGED, EXACT

N_ITEMS, N_USERS, SILENT = 7, 6, 3
# Pair space (4, 1), its edge (7), item space (20, 12), and nobody's (person 3).
ROWS = crowd(1, N_USERS, N_ITEMS, [4, 20, 1, 0, 7, 12], delta=0.4)
EVERYBODY = range(-1, N_USERS)
ON_ITEMS = {"items": False, "items, traits": True}  # without a basis; with traits of people


def posterior_of(truth, rows=ROWS, *, heavy=False) -> PopulationPosterior:
    people = people_of(rows, truth, heavy=heavy)
    sites = Sites.flat(people.n_rows)
    converge(people, sites, law_of(truth), truth.delta, tolerance=1e-14)
    on_items = np.array_equal(truth.Phi, np.eye(truth.Phi.shape[0]))
    basis = None if on_items else Basis(truth.Phi, truth.rho, truth.offset, truth.offset_variance, truth.own_scale)
    effects = Effects(truth.B, truth.C_B) if truth.B.size else None
    return PopulationPosterior(truth.m, truth.C_m, truth.Sigma, people, sites, basis, effects)


def truth_on_items(rows=ROWS, *, traits):
    return replace(truth_of(rows, own=False, traits=traits, n_functions=N_ITEMS), Phi=np.eye(N_ITEMS))


@pytest.fixture(scope="module", params=[*ON_ITEMS, *PARTS])
def truth(request):
    if request.param in ON_ITEMS:
        return truth_on_items(traits=ON_ITEMS[request.param])
    own, traits = PARTS[request.param]
    return truth_of(ROWS, own=own, traits=traits)


@pytest.fixture(scope="module")
def referees(truth):
    """Mean and covariance of everybody's utilities, the stranger with average traits last (code -1)."""
    known = [truth.utilities(p, x) for p, x in zip(truth.people(ROWS), truth.traits, strict=True)]
    return [*known, truth.utilities(nobody(N_ITEMS), np.zeros(truth.traits.shape[1]))]


@pytest.fixture(scope="module", params=[False, True], ids=["light", "heavy"])
def posterior(request, truth):
    return posterior_of(truth, heavy=request.param)


def test_one_persons_utilities(posterior, referees):
    for user in EVERYBODY:
        mean, covariance = posterior.person(user).dense()
        np.testing.assert_allclose(mean, referees[user][0], atol=CONVERGED)
        np.testing.assert_allclose(covariance, referees[user][1], atol=CONVERGED)
        np.testing.assert_array_equal(covariance, covariance.T)
        for one, other in zip(posterior.utilities(user), (mean, covariance), strict=True):
            np.testing.assert_array_equal(one, other)


def test_margins(posterior, referees):
    own = posterior.basis is not None and posterior.basis.has_own  # then no item is asked about against itself
    pairs = np.array([(a, b) for a in range(N_ITEMS) for b in range(N_ITEMS) if not own or a != b])
    users = np.repeat(np.arange(-1, N_USERS), len(pairs))
    left, right = (np.tile(pairs[:, side], N_USERS + 1) for side in (0, 1))
    shuffled = np.random.default_rng(0).permutation(len(users))
    users, left, right = users[shuffled], left[shuffled], right[shuffled]
    mean, var = posterior.margins(users, left, right)
    f = np.array([mean for mean, _ in referees])
    S = np.array([covariance for _, covariance in referees])
    np.testing.assert_allclose(mean, f[users, left] - f[users, right], atol=CONVERGED)
    expected = S[users, left, left] + S[users, right, right] - 2 * S[users, left, right]
    np.testing.assert_allclose(var, expected, atol=CONVERGED)
    np.testing.assert_allclose(var[left == right], 0.0, atol=EXACT)
    alone = posterior.margins(users[:50], right[:50], left[:50])
    np.testing.assert_allclose(alone, (-mean[:50], var[:50]), atol=EXACT)


def test_traits_of_someone_without_answers(posterior, truth):
    x = np.random.default_rng(5).standard_normal((4, truth.traits.shape[1]))
    left, right, users = np.array([0, 2, 4, 1]), np.array([1, 5, 6, 0]), np.array([-1, -1, -1, SILENT])
    mean, var = posterior.margins(users, left, right, traits=x)
    for i in range(4):
        # Who is known keeps the traits that the model knows, answers or not.
        own = truth.traits[SILENT] if users[i] >= 0 else x[i]
        f, S = truth.utilities(nobody(N_ITEMS), own)
        a, b = left[i], right[i]
        assert abs(mean[i] - (f[a] - f[b])) < EXACT
        assert abs(var[i] - (S[a, a] + S[b, b] - 2 * S[a, b])) < EXACT
        for one, other in zip(posterior.person(users[i], x[i]).dense(), (f, S), strict=True):
            np.testing.assert_allclose(one, other, atol=EXACT)


def test_centred_utilities(posterior, referees):
    users = np.array([4, 0, SILENT, 1, 5, 2])
    mean, var = posterior.centred_utilities(users)
    for row, user in enumerate(users):
        f, S = centred(*referees[user])
        np.testing.assert_allclose(mean[row], f, atol=CONVERGED)
        np.testing.assert_allclose(var[row], np.diagonal(S), atol=CONVERGED)


def test_the_crowd_is_its_functions_and_its_offsets(posterior, truth):
    mean, covariance = posterior.crowd().dense()
    nothing = np.zeros(truth.traits.shape[1])
    np.testing.assert_allclose(mean, truth.mean(nothing), atol=EXACT)
    np.testing.assert_allclose(covariance, truth.C(nothing), atol=EXACT)
    np.testing.assert_array_equal(posterior.crowd().dense()[1], covariance)


def test_the_factored_form_is_the_dense_one(posterior):
    left, right = np.triu_indices(N_ITEMS, 1)
    for utilities in (posterior.person(1), posterior.person(2), posterior.person(-1), posterior.crowd()):
        mean, covariance = utilities.dense()
        X = np.eye(N_ITEMS)[left] - np.eye(N_ITEMS)[right]
        found = utilities.margins(left, right)
        np.testing.assert_allclose(found, (X @ mean, np.diagonal(X @ covariance @ X.T)), atol=EXACT)
        f, S = centred(mean, covariance)
        np.testing.assert_allclose(utilities.centred_marginals(), (f, np.diagonal(S)), atol=EXACT)


def test_the_items_as_basis_are_the_items():
    plain = posterior_of(truth_on_items(traits=True))
    on_basis = replace(plain, basis=Basis(np.eye(N_ITEMS), np.zeros(0), np.zeros(0), np.zeros(0), 0.7))
    asked = np.arange(N_USERS), np.array([0, 1, 2, 3, 4, 5]), np.array([6, 5, 4, 2, 1, 0])
    np.testing.assert_allclose(plain.centred_utilities(asked[0]), on_basis.centred_utilities(asked[0]), atol=EXACT)
    np.testing.assert_allclose(plain.margins(*asked), on_basis.margins(*asked), atol=EXACT)


# New items


def more(rows):
    """The same answers in a world of two more items."""
    return answers(rows.user, rows.left, rows.right, rows.outcome, n_items=N_ITEMS + 2, n_users=rows.n_users)


@pytest.mark.parametrize("truth", PARTS, indirect=True)
def test_new_items_are_their_functions_and_the_prior_of_what_they_have_to_themselves(truth):
    # The law: mean φm, variance φ(Σ + C_m)φᵀ + own_scale share + s_t share; with it, a known person is conditioned as
    # ever. The second new item has no features: no functions, and all of the prior variance to itself.
    posterior = posterior_of(truth)
    phi = np.vstack([np.random.default_rng(6).standard_normal(3), np.zeros(3)])
    share, s_t = np.array([0.3 * bool(len(truth.share)), 1.0]), 4.0
    extended = posterior.with_items(phi, share, s_t)
    assert extended.n_items == extended.people.n_items == N_ITEMS + 2
    nothing = np.zeros(0 if len(truth.share) else N_ITEMS)
    wider = replace(
        truth, Phi=np.vstack([truth.Phi, phi]), share=np.r_[truth.share, nothing, share],
        offset=np.r_[truth.offset, nothing, 0.0, 0.0],
        offset_variance=np.r_[truth.offset_variance, nothing, s_t * share],
    )  # fmt: skip
    people = wider.people(more(ROWS))
    for user in EVERYBODY:
        x = truth.traits[user] if user >= 0 else np.zeros(truth.traits.shape[1])
        f, S = wider.utilities(nobody(N_ITEMS + 2) if user < 0 else people[user], x)
        found = extended.utilities(user)
        np.testing.assert_allclose(found[0], f, atol=CONVERGED)
        np.testing.assert_allclose(found[1], S, atol=CONVERGED)
        left, right = np.array([0, N_ITEMS, N_ITEMS]), np.array([N_ITEMS, 2, N_ITEMS + 1])
        mean, var = extended.margins(np.full(3, user), left, right)
        np.testing.assert_allclose(mean, f[left] - f[right], atol=CONVERGED)
        expected = S[left, left] + S[right, right] - 2 * S[left, right]
        np.testing.assert_allclose(var, expected, atol=CONVERGED)
    stranger = extended.utilities(-1)
    assert stranger[0][-1] == 0.0
    assert abs(stranger[1][-1, -1] - (truth.own_scale + s_t)) < EXACT
    np.testing.assert_allclose(stranger[1][-1, :-1], 0.0, atol=EXACT)


def test_new_items_with_features_only_need_no_own_parts():
    truth = truth_of(ROWS, own=False, traits=False)
    extended = posterior_of(truth).with_items(np.ones((1, 3)), np.zeros(0), 4.0)
    assert not extended.basis.has_own
    expected = np.ones(3) @ (truth.Sigma + truth.C_m) @ np.ones(3)
    assert abs(extended.utilities(-1)[1][-1, -1] - expected) < EXACT


def test_features_of_a_new_item_place_it_on_the_functions():
    # extend() goes by the rows of the functions: an item with the features of another has its functions.
    space = FeatureSpace(np.random.default_rng(2).standard_normal((N_ITEMS, 2)), np.ones(N_ITEMS, dtype=bool))
    functions = Functions.of("attributes+inducing", space, space.matrix[:1], 1.0)
    h = Hyperparameters(10.0, 2.0, 4.0, 0.5, 1.0)
    Phi = functions.rows(space)
    share = functions.own_share(Phi, space.known, 0.5)
    truth = replace(truth_of(ROWS, own=True, traits=False), Phi=Phi, share=share)
    new = FeatureSpace(np.vstack([space.matrix[4], [0.0, 0.0]]), np.array([True, False]))
    extended = extend(posterior_of(truth), h, space, new, functions)
    np.testing.assert_allclose(extended.law.mean[N_ITEMS:], [Phi[4] @ truth.m, 0.0], atol=EXACT)
    S = extended.law.covariance(np.array([4, N_ITEMS, N_ITEMS + 1]))
    np.testing.assert_allclose(S[0, 1], Phi[4] @ truth.Sigma @ Phi[4], atol=EXACT)
    np.testing.assert_allclose(S[1, 1], S[0, 1] + 0.7 * share[4], atol=EXACT)
    np.testing.assert_allclose(S[2], [0.0, 0.0, 0.7], atol=EXACT)
    np.testing.assert_allclose(extended.basis.offset_variance[N_ITEMS:], [4.0 * share[4], 4.0], atol=EXACT)


def test_effects_of_traits_on_new_items_are_gaussian_conditioning():
    # Where the items are the basis, the effect of a trait is N(0, s_b K_t) over all items, K_t with the consensus's
    # share of features; what answers say of the old ones, with information H, conditions the new ones.
    rng = np.random.default_rng(4)
    space = FeatureSpace(rng.standard_normal((N_ITEMS + 2, 2)), np.ones(N_ITEMS + 2, dtype=bool))
    old = FeatureSpace(space.matrix[:N_ITEMS], space.known[:N_ITEMS])
    new = FeatureSpace(space.matrix[N_ITEMS:], space.known[N_ITEMS:])
    h = Hyperparameters(10.0, 2.0, 4.0, 0.9, 1.0, consensus_feature_weight=0.2, trait_scale=0.3)
    prior = h.trait_scale * space.covariance(h.consensus_weight, h.length_scale)
    H, linear = random_covariance(rng, N_ITEMS, 3.0), rng.standard_normal((N_ITEMS, 2))
    C_B = np.linalg.inv(np.linalg.inv(prior[:N_ITEMS, :N_ITEMS]) + H)
    truth = replace(truth_on_items(traits=True), B=C_B @ linear, C_B=C_B)
    extended = extend(posterior_of(truth), h, old, new)
    information = np.linalg.inv(prior)
    information[:N_ITEMS, :N_ITEMS] += H
    expected = np.linalg.inv(information)
    np.testing.assert_allclose(extended.effects.covariance, expected, atol=CONVERGED)
    np.testing.assert_allclose(extended.effects.B, expected[:, :N_ITEMS] @ linear, atol=CONVERGED)
