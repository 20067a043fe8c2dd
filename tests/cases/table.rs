//! The table.

use std::fmt;

/// A case, or one variant of it.
#[derive(Debug)]
pub(crate) struct Case {
    /// The row.
    pub(crate) id: &'static str,
    /// Its letter, or which part of the row it is.
    pub(crate) variant: &'static str,
    pub(crate) shown: Shown,
}

/// Whether it is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    /// By all of these, `binary::module::test`.
    By(&'static [&'static str]),
    /// By none, for this reason.
    Not(Reason),
}

/// Why a case is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reason {
    /// It needs something that is not there yet.
    Needs(Missing),
    /// There is no way to say it, for the reason given.
    CannotBeSaid(&'static str),
    /// What it tries is not there, on purpose, for the reason given.
    ByDesign(&'static str),
}

/// What is not there yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Missing {
    Selectors,
    Authorisation,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs(missing) => write!(f, "it needs {missing:?}"),
            Self::CannotBeSaid(why) => write!(f, "it cannot be said: {why}"),
            Self::ByDesign(why) => write!(f, "it is not there on purpose: {why}"),
        }
    }
}

const fn shown(id: &'static str, variant: &'static str, by: &'static [&'static str]) -> Case {
    Case { id, variant, shown: Shown::By(by) }
}

const fn left_out(id: &'static str, variant: &'static str, reason: Reason) -> Case {
    Case { id, variant, shown: Shown::Not(reason) }
}

use Missing::{Authorisation, Selectors};
use Reason::{ByDesign, CannotBeSaid, Needs};

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    shown("C-02", "a consumer that closes", &[
        "client::redelivery::what_only_sat_in_a_buffer_never_counts_as_delivered",
        "delivery::cases::a_neighbour_that_rolls_back_counts_for_nobody_who_sat_in_the_buffer",
        "durability::counting::what_only_sat_in_a_buffer_is_not_counted_by_a_restart",
        "listeners::prefetch::what_sat_behind_a_failing_message_is_neither_counted_nor_out_of_order",
    ]),
    shown("C-02", "a connection that is dropped", &[
        "remote::cut::what_only_sat_in_the_buffer_of_a_client_that_is_cut_off_is_not_counted",
    ]),
    shown("C-03", "(a)", &[
        "client::back_off::without_blocking_each_poison_message_waits_on_its_own_clock_and_the_good_one_on_none",
        "delivery::cases::delays_grow_with_a_message_s_own_failures_and_not_with_its_neighbours",
    ]),
    shown("C-03", "(b)", &[
        "client::back_off::blocking_the_next_of_many_poison_messages_comes_when_the_one_before_is_dead",
        "delivery::cases::a_blocking_consumer_gets_nothing_while_its_message_waits",
    ]),
    shown("C-03", "(c)", &[
        "client::back_off::forty_tenfold_delays_are_capped_and_overflow_nothing",
        "client::back_off::forty_tenfold_delays_without_a_cap_end_beyond_the_calendar_and_not_in_the_past",
    ]),
    shown("C-05", "", &[
        "listeners::in_progress::one_message_that_cannot_be_read_leaves_those_in_progress_on_its_session_alone",
        "listeners::failures::a_body_that_cannot_be_read_is_dead_at_once_and_alone",
    ]),
    shown("C-07", "(a)", &["client::acknowledging::a_second_acknowledgement_changes_nothing_and_the_next_one_works", "client::individual::a_second_individual_acknowledgement_says_nothing"]),
    shown("C-07", "(b)", &["client::acknowledging::a_message_can_be_acknowledged_after_its_consumer_was_closed"]),
    shown("C-07", "(c)", &["client::acknowledging::an_acknowledgement_after_the_session_was_closed_is_an_error_and_the_message_comes_again"]),
    shown("C-07", "(d)", &[
        "client::out_of_order::an_acknowledgement_from_another_thread_after_the_connection_closed_is_an_error_and_hangs_nobody",
        "client::individual::an_individual_acknowledgement_after_the_connection_was_lost_is_an_error_and_does_not_hang",
        "remote::cut::an_acknowledgement_after_the_network_was_cut_is_an_error_and_its_message_comes_again",
    ]),
    shown("C-08", "(a)", &[
        "client::listening::sessions_that_finish_out_of_order_acknowledge_without_error",
        "delivery::cases::acknowledgements_out_of_order_are_no_error",
    ]),
    shown("C-08", "(b)", &[
        "client::out_of_order::listeners_that_finish_out_of_order_acknowledge_each_its_own_without_error",
        "delivery::cases::acknowledgements_out_of_order_are_no_error",
    ]),
    shown("C-08", "(c)", &[
        "client::individual::individual_acknowledgements_settle_these_messages_and_a_close_brings_back_the_others_in_order",
        "delivery::cases::what_was_not_acknowledged_one_by_one_comes_back_in_order",
    ]),
    shown("C-09", "a clean restart", &[
        "client::acknowledging::a_close_flags_what_was_handed_over_and_nothing_else",
        "durability::counting::a_stop_in_order_loses_no_count_and_no_flag",
        "durability::counting::what_is_in_hand_while_the_broker_stops_is_counted",
    ]),
    shown("C-09", "a crash", &["durability::counting::after_a_crash_no_count_is_lost_that_was_settled_and_none_is_too_high"]),
    shown("C-10", "recover inside the listener", &[
        "client::acknowledging::a_listener_that_recovers_every_time_gets_every_delivery_and_then_it_is_a_dead_letter",
        "listeners::settling::a_listener_that_recovers_its_session_is_redelivered_up_to_the_limit",
    ]),
    shown("C-10", "recover with others waiting", &["client::acknowledging::what_is_recovered_comes_again_in_order_before_what_waited"]),
    shown("C-12", "commit, rollback and recover where they are not", &[
        "client::misuse::a_transaction_is_ended_only_where_there_are_transactions",
        "client::misuse::a_transacted_session_is_rolled_back_and_not_recovered",
    ]),
    shown("C-12", "a transaction inside a transaction", &["machine::commands::numbers_that_are_taken_are_refused"]),
    left_out("C-12", "a send with no message", CannotBeSaid("a send takes a message")),
    shown("C-12", "a send to no destination", &["client::misuse::a_send_to_nowhere_is_an_invalid_destination"]),
    shown("C-12", "a priority or a delivery mode that there is not", &[
        "client::misuse::a_priority_outside_zero_to_nine_is_out_of_range",
        "config::refused::a_priority_or_a_delivery_mode_that_jms_does_not_have_is_refused_with_what_there_is",
    ]),
    shown("C-12", "what is closed", &["client::misuse::whatever_is_closed_refuses_by_its_name_and_leaves_its_session_usable"]),
    shown("C-12", "a second close", &["client::connection::a_second_close_is_silent"]),
    shown("C-13", "a send that finds no room", &[
        "client::transactions::a_send_that_is_refused_makes_the_commit_a_rollback",
        "durability::full_store::one_send_that_found_no_room_makes_the_commit_a_rollback",
    ]),
    left_out("C-13", "a send that is not allowed", Needs(Authorisation)),
    shown("C-13", "an acknowledgement that is refused", &[
        "client::refused_acknowledgements::one_acknowledgement_that_is_refused_makes_the_commit_a_rollback",
    ]),
    shown("C-14", "a success at the third delivery", &[
        "application::templates_in_handlers::what_a_joined_template_sends_is_visible_once_and_only_when_the_handler_succeeds",
        "templates::transactions::what_a_failed_handler_sent_is_never_seen_and_a_success_is_seen_once",
        "listeners::replies::what_a_transacted_listener_sends_is_visible_only_when_it_succeeds",
    ]),
    shown("C-14", "a handler that always fails", &[
        "application::templates_in_handlers::what_a_joined_template_sends_is_never_visible_when_the_handler_fails_to_the_dead_letters",
        "templates::transactions::a_handler_that_always_fails_sends_nothing_and_its_message_is_a_dead_letter",
        "listeners::replies::what_a_transacted_listener_sends_is_never_visible_when_it_always_fails",
    ]),
    shown("C-14", "a template of its own", &[
        "application::templates_in_handlers::what_a_template_apart_sends_is_visible_at_once_and_for_each_delivery",
        "templates::transactions::a_template_on_another_factory_or_detached_sends_every_time",
        "listeners::replies::a_session_of_its_own_sends_beside_the_transaction",
    ]),
    shown("C-16", "a template", &[
        "templates::receive_timeouts::without_waiting_an_empty_queue_gives_nothing",
        "templates::receive_timeouts::without_waiting_a_message_that_is_there_is_always_found",
        "templates::receive_timeouts::a_timeout_is_waited_out_and_not_longer",
        "templates::receive_timeouts::waiting_for_ever_ends_with_the_first_message",
        "config::accepted::a_receive_timeout_is_a_text_or_milliseconds",
    ]),
    shown("C-16", "a consumer", &[
        "client::receiving::a_timeout_of_zero_does_not_wait",
        "client::receiving::a_timeout_ends_when_its_time_has_come_and_not_before",
        "client::receiving::the_longest_timeout_does_not_overflow",
        "client::receiving::a_receive_that_does_not_wait_always_gets_the_message_that_is_there",
    ]),
    shown("C-17", "a broker that is restarted, and one that is away for longer", &[
        "remote::coming_back::a_template_and_a_container_resume_after_every_outage_and_nothing_is_done_twice",
        "listeners::reconnecting::a_container_goes_on_when_its_broker_is_back",
        "templates::concurrency::a_lost_connection_fails_the_call_and_is_replaced_for_the_next",
    ]),
    shown("C-17", "a connection that is cut", &[
        "remote::coming_back::a_template_and_a_container_resume_after_every_outage_and_nothing_is_done_twice",
    ]),
    shown("C-17", "a durable subscription of the container", &[
        "remote::coming_back::a_durable_container_gets_once_what_was_published_while_it_or_its_broker_was_away",
    ]),
    left_out("C-17", "tasks that are refused for a while", CannotBeSaid("a container spawns on tokio's runtime, which refuses none")),
    shown("C-19", "(a)", &["client::expiry::what_expires_in_the_buffer_leaves_the_window_open"]),
    shown("C-19", "(b)", &["client::expiry::what_expires_in_the_buffer_leaves_the_window_open"]),
    shown("C-19", "(c)", &["client::expiry::what_expires_in_the_buffer_between_others_leaves_the_window_open"]),
    shown("C-19", "(d)", &["client::expiry::a_client_whose_clock_is_ahead_leaves_nothing_in_flight"]),
    shown("C-22", "what expired and is sent again", &[
        "client::dead_letters::a_dead_letter_that_expired_can_expire_again",
        "durability::dead_letters::what_expired_goes_to_the_dead_letters_once_whether_the_broker_ran_then_or_not",
    ]),
    shown("C-22", "what failed and is sent again", &[
        "client::dead_letters::a_dead_letter_names_its_origin_and_the_last_cause",
        "client::dead_letters::a_dead_letter_that_is_sent_again_begins_anew_and_dies_of_its_own_cause",
        "durability::dead_letters::a_dead_letter_keeps_its_origin_and_its_cause_over_restarts_and_dies_anew_of_another",
        "application::templates_in_handlers::a_dead_letter_of_a_listener_that_is_sent_again_dies_of_its_new_cause",
    ]),
    shown("C-23", "(a)", &["client::window::a_consumer_never_has_more_than_its_prefetch_and_what_it_was_handed"]),
    shown("C-23", "(b)", &[
        "client::window::after_many_rollbacks_the_window_is_as_wide_as_before",
        "delivery::cases::a_window_is_the_same_after_ten_rollbacks_and_leaves_others_their_share",
    ]),
    shown("C-23", "(c)", &["client::window::a_consumer_that_joins_in_the_middle_gets_its_share"]),
    shown("C-29", "names that are set", &["remote::properties::a_legal_name_arrives_and_any_other_is_refused_when_it_is_set"]),
    shown("C-29", "headers of templates and listeners", &[
        "templates::sending::a_name_that_no_property_may_have_fails_the_send_and_is_named",
        "listeners::header_names::a_reply_under_a_name_that_no_property_may_have_is_a_dead_letter_that_names_it",
        "listeners::header_names::a_listener_reads_names_that_only_others_may_give",
        "remote::properties::a_name_that_only_others_may_give_arrives_as_it_came",
    ]),
    left_out("C-29", "names in a selector", Needs(Selectors)),
    shown("C-30", "", &[
        "remote::properties::every_type_arrives_bit_for_bit_and_reads_as_its_table_says",
        "remote::properties::text_reads_as_a_number_only_as_a_whole_and_what_is_missing_as_none",
        "remote::properties::a_received_message_is_read_only_until_it_is_cleared_and_may_then_be_sent_again",
    ]),
    shown("C-33", "(a)", &["client::unsubscribing::a_subscription_that_there_is_not_is_no_subscription_to_remove"]),
    shown("C-33", "(b)", &[
        "client::unsubscribing::a_subscription_that_a_consumer_has_cannot_be_removed_and_goes_on",
        "client::unsubscribing::a_subscription_of_which_an_open_transaction_has_a_message_cannot_be_removed_and_goes_on",
    ]),
    shown("C-33", "(c)", &["durability::unsubscribing::a_subscription_that_was_removed_stays_gone_and_its_messages_leave_the_disk"]),
    shown("C-33", "(d)", &["client::unsubscribing::without_a_client_id_there_is_no_durable_subscription"]),
    shown("C-33", "(e)", &["remote::coming_and_going::a_durable_subscriber_that_comes_and_goes_gets_every_message_once_and_in_order"]),
    shown("C-34", "a second connection", &[
        "client::connection::a_client_id_belongs_to_one_connection_at_a_time",
        "remote::cut::the_ghost_of_a_client_gives_its_id_free_and_all_that_it_had",
    ]),
    shown("C-34", "a ghost", &[
        "remote::cut::the_ghost_of_a_client_gives_its_id_free_and_all_that_it_had",
        "remote::cut::the_ghost_of_a_durable_subscriber_gives_its_subscription_free_and_nothing_is_lost",
    ]),
    left_out("C-34", "an id that is set late, or twice", CannotBeSaid("a client id stands in the factory's URL only")),
    shown("C-34", "a pool", &["templates::concurrency::a_template_of_five_sessions_has_its_client_id_once_and_a_second_template_is_refused"]),
    shown("C-41", "(a)", &["listeners::stopping::a_stop_waits_for_the_run_that_is_under_way"]),
    shown("C-41", "(b)", &["listeners::prefetch::a_stop_of_an_idle_container_is_quick_whatever_its_prefetch"]),
    shown("C-41", "(c)", &[
        "listeners::stopping::a_run_that_hangs_is_ended_at_the_deadline_and_named",
        "application::shutdown::a_stop_ends_at_its_deadline_and_names_what_was_at_work",
    ]),
    shown("C-41", "(d)", &[
        "listeners::stopping::a_stop_waits_for_the_run_that_is_under_way",
        "listeners::reconnecting::a_container_may_be_started_before_its_broker_and_stopped_without_one",
    ]),
    shown("C-41", "(e), not accepting while it stops", &[
        "listeners::prefetch::a_message_caught_by_a_stop_is_handled_or_still_there_untouched",
        "listeners::every_mode::a_message_that_is_handed_over_while_a_stop_begins_is_handled_or_still_there",
    ]),
    left_out("C-41", "(e), accepting while it stops", ByDesign("a container takes nothing new once its stop has begun")),
    shown("C-41", "(f)", &["application::shutdown::sigterm_drains_and_ends"]),
    shown("C-55", "at every station", &[
        "durability::large_bodies::they_are_whole_at_every_station_from_nothing_to_twice_the_memory",
        "durability::large_bodies::an_expired_one_is_whole_among_the_dead_letters",
        "durability::large_bodies::many_of_them_need_no_more_memory_than_there_is",
        "client::bodies::bodies_from_nothing_to_64_mib_arrive_whole_through_redelivery_and_dead_letter",
        "client::bodies::two_consumers_share_large_bodies",
    ]),
    shown("C-55", "half sent", &[
        "remote::cut::of_a_large_body_whose_sender_is_cut_off_half_way_nothing_is_there",
        "durability::large_bodies::a_sender_that_dies_half_way_leaves_all_of_it_or_nothing",
    ]),
    shown("C-55", "half received", &["remote::cut::a_large_body_whose_consumer_is_cut_off_half_way_comes_again_whole"]),
    shown("C-55", "the limit of a frame", &["remote::cut::a_body_beyond_the_limit_of_a_frame_is_refused_by_name_and_other_sessions_go_on"]),
    shown("C-56", "auto", &[
        "remote::wrong_types::a_text_that_is_asked_for_as_bytes_is_still_there_as_text",
        "remote::wrong_types::in_auto_and_dups_ok_the_first_failed_conversion_leaves_the_same_message_next_and_unflagged",
    ]),
    shown("C-56", "dups-ok", &[
        "remote::wrong_types::a_text_that_is_asked_for_as_bytes_is_still_there_as_text",
        "remote::wrong_types::in_auto_and_dups_ok_the_first_failed_conversion_leaves_the_same_message_next_and_unflagged",
    ]),
    shown("C-56", "client and transacted", &[
        "remote::wrong_types::in_client_and_transacted_a_failed_conversion_is_a_delivery_that_only_the_application_undoes",
    ]),
    shown("C-56", "no body, null and empty", &["remote::wrong_types::no_body_is_none_of_any_type_and_absent_and_empty_stay_apart"]),
    shown("C-56", "a template", &[
        "templates::conversion::the_first_failed_conversion_leaves_no_trace",
        "templates::conversion::further_failed_conversions_count_until_the_message_is_a_dead_letter",
        "templates::conversion::in_a_transaction_a_failed_conversion_is_a_delivery_like_any_other",
        "templates::conversion::every_kind_of_body_is_read_or_refused_and_none_is_lost",
        "templates::conversion::an_absent_text_stays_absent_and_an_empty_one_empty",
    ]),
    shown("Spring 1", "", &[
        "application::templates_in_handlers::what_a_joined_template_sends_is_visible_once_and_only_when_the_handler_succeeds",
        "application::templates_in_handlers::what_a_joined_template_sends_is_never_visible_when_the_handler_fails_to_the_dead_letters",
    ]),
    shown("Spring 2", "", &["listeners::every_mode::a_message_that_fails_once_comes_again_before_those_behind_it_and_none_is_lost"]),
    shown("Spring 3", "", &[
        "listeners::every_mode::a_message_that_is_handed_over_while_a_stop_begins_is_handled_or_still_there",
        "listeners::every_mode::what_is_sent_beside_a_stop_is_handled_or_still_there_and_never_both",
        "listeners::prefetch::a_message_caught_by_a_stop_is_handled_or_still_there_untouched",
    ]),
    shown("Spring 6", "auto", &[
        "templates::conversion::the_first_failed_conversion_leaves_no_trace",
        "templates::conversion::further_failed_conversions_count_until_the_message_is_a_dead_letter",
        "templates::conversion::every_kind_of_body_is_read_or_refused_and_none_is_lost",
    ]),
    shown("Spring 6", "transacted", &["templates::conversion::in_a_transaction_a_failed_conversion_is_a_delivery_like_any_other"]),
    left_out("Spring 6", "client", ByDesign("a template's sessions are auto or transacted, so there is nothing of it in client")),
    shown("Spring 7", "", &["templates::transactions::one_call_of_a_transacted_template_is_sent_as_a_whole_or_not_at_all"]),
    shown("Spring 8", "a transaction around it that rolls back", &["templates::transactions::what_a_failed_handler_sent_is_never_seen_and_a_success_is_seen_once"]),
    shown("Spring 8", "after a commit", &["application::templates_in_handlers::what_is_sent_after_a_commit_within_a_handler_is_committed_with_its_success"]),
    shown("Spring 14", "", &[
        "remote::coming_back::a_template_and_a_container_resume_after_every_outage_and_nothing_is_done_twice",
        "listeners::reconnecting::a_container_goes_on_when_its_broker_is_back",
        "listeners::reconnecting::a_container_may_be_started_before_its_broker_and_stopped_without_one",
    ]),
    shown("Spring 15", "", &[
        "templates::transactions::a_receive_without_end_that_is_dropped_at_a_deadline_holds_up_no_transaction_and_loses_nothing",
        "application::templates_in_handlers::a_handler_that_waits_for_ever_for_a_message_is_ended_by_the_deadline_of_a_stop",
    ]),
    shown("Spring 16", "", &["listeners::broker_errors::an_error_of_the_brokers_kind_or_a_failing_error_handler_keeps_the_connection_and_is_reported"]),
];
