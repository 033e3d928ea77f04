"""Tests of rows under real noise, which get a second run, and what noise can do to them.

Their bounds break once in many thousand runs. What is promised must hold in every run.
"""

SECOND_RUN = {
    "contract/test_answers.py": {
        "test_both_doors_say_how_sure_a_statistic_and_a_regression_are": "few repetitions"
    },
    "contract/test_found_ranges.py": {
        "test_numbers_of_a_billionth_keep_their_size": "ends of a range are found under noise"
    },
    "contract/test_formats_and_extremes.py": {
        "test_an_infinite_category_is_one_like_others": "a share of few rows",
        "test_infinite_numbers_are_missing_and_told_of": "a share of few rows",
    },
    "contract/test_missing_cells.py": {
        "test_missing_cells_of_a_declared_column_come_back_in_each_fit": "a share of few rows"
    },
    "contract/test_own_queries.py": {
        "test_what_rows_are_about_comes_out_where_noise_is_small": "questions are chosen at random"
    },
    "contract/test_rows_in_order.py": {
        "test_a_row_depends_on_the_row_before": "shares of few rows with one code before them"
    },
    "contract/test_stays.py": {
        "test_stays_are_as_long_as_they_were": "quantiles of noisy lengths",
        "test_stays_depend_on_the_other_columns": "a correlation under noise",
    },
    "contract/test_undeclared.py": {"test_nothing_declared_is_enough": "values found under noise"},
    "contract/test_weighed_people.py": {"test_of_sdv": "a share of few people"},
    "e2e/test_adult.py": {
        "test_private_rows_of_adult_beat_independent_columns": "errors under noise"
    },
    "e2e/test_types.py": {
        "test_dates_have_the_real_ones_range_and_format": "ends that few noisy rows have"
    },
    "e2e/test_undeclared_tables.py": {
        "test_ten_thousand_categories_are_fitted_in_small_tables": "values found under noise"
    },
    "unit/releases/test_combination.py": {
        "test_private_numbers_of_rows_add_up_with_their_noise": "a noisy number of rows",
        "test_sums_of_money_of_two_sites_keep_their_zeros_and_their_mean": "a long tail",
    },
}
"""By file, the reason for each test."""
