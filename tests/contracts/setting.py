"""What a model that is a setting of another keeps: of the whole contract, the tests that a setting can fail."""

from __future__ import annotations

from contracts.prediction import PredictionContract
from contracts.saving import SavingContract

# Its own are the constructor, what becomes of the arguments, prior and kernel of the posterior. Reading answers,
# boards, frames and files on disk are those of the model of which it is a setting, which keeps the whole contract.
KEPT = {
    "test_the_constructor_keeps_what_it_is_given",
    "test_a_clone_is_alike_and_unfitted",
    "test_set_params",
    "test_fit_returns_the_estimator_and_leaves_its_parameters_alone",
    "test_left_and_right_of_some_rows",
    "test_the_names_of_items_and_people",
    "test_a_duplicate_is_a_weight_of_two",
    "test_no_convergence_is_a_warning",
    "test_no_convergence_is_an_error_where_strict",
    "test_probabilities",
    "test_margins",
    "test_someone_unknown_gets_the_prediction_of_the_population",
    "test_something_unknown_without_features_gets_the_prior",
    "test_features_tell_where_something_unknown_lies",
    "test_an_item_with_features_and_no_answers_is_ranked",
    "test_it_comes_back_with_the_same_bits",
    "test_features_are_saved_too",
    "test_parameters_that_json_cannot_hold_come_back",
}


class SettingContract(PredictionContract, SavingContract):
    """Inherit, and say what the whole contract asks for."""


_ALL = {name for name in dir(SettingContract) if name.startswith("test_")}
if not _ALL >= KEPT:
    raise AssertionError(f"not in the contract: {', '.join(sorted(KEPT - _ALL))}")
for _name in _ALL - KEPT:
    setattr(SettingContract, _name, None)  # pytest passes over what cannot be called
