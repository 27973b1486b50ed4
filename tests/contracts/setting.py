"""What a setting of another model keeps, or another loop of it: of the whole contract, the tests that it can fail."""

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

# What a second loop of an estimator may get wrong: the order of rows, random numbers, threads, and its report.
OF_A_LOOP = {
    "test_comparisons_and_frames_are_one_and_the_same",
    "test_cross_val_score",
    "test_left_and_right_with_the_outcome_flipped",
    "test_nothing_in_it_is_pickled_and_strict_json_can_be_read",
    "test_the_number_of_threads",
    "test_the_order_of_rows",
    "test_the_report_is_plain_json",
    "test_the_same_model_is_saved_as_the_same_bytes",
    "test_the_same_seed_gives_the_same_bits",
    "test_without_a_seed_one_is_drawn_at_the_fit_and_kept",
}


class SettingContract(PredictionContract, SavingContract):
    """Inherit, and say what the whole contract asks for."""


_ALL = {name for name in dir(SettingContract) if name.startswith("test_")}
if not _ALL >= KEPT | OF_A_LOOP:
    raise AssertionError(f"not in the contract: {', '.join(sorted((KEPT | OF_A_LOOP) - _ALL))}")
for _name in _ALL - KEPT:
    setattr(SettingContract, _name, None)  # pytest passes over what cannot be called


def another_loop(contract: type) -> type:
    """Of the contract that a class inherits from the same estimator with its usual loop, what another can fail."""
    for name in _ALL - KEPT - OF_A_LOOP:
        setattr(contract, name, None)
    return contract
