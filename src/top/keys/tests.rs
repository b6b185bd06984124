//! What keys do, as they are typed one after the other.

use super::*;
use crate::top::model::Process;
use crate::top::state::Tape;
use crate::top::view::Under;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

fn frame() -> Arc<Frame> {
    let process = |pid| Process {
        pid,
        ..Process::default()
    };
    Arc::new(Frame {
        processes: vec![process(1), process(2), process(3)],
        ..Frame::default()
    })
}

fn named() -> Arc<Frame> {
    let process = |(pid, command, user): (u32, &str, &str)| Process {
        pid,
        command: command.to_owned(),
        user: Some(user.to_owned()),
        ..Process::default()
    };
    let all = [
        (1, "python train.py", "ann"),
        (2, "server", "bob"),
        (3, "Trainer", "ann"),
    ];
    Arc::new(Frame {
        processes: all.map(process).to_vec(),
        ..Frame::default()
    })
}

fn state() -> State {
    State {
        selected: Some(2),
        ..State::new(Duration::from_secs(1))
    }
}

fn type_in(state: &mut State, keys: &str) -> Vec<Action> {
    let code = |key: char| match key {
        '\n' => KeyCode::Enter,
        '\x1b' => KeyCode::Esc,
        other => KeyCode::Char(other),
    };
    let one = |key: char| press(KeyEvent::from(code(key)), state, &frame(), 10);
    keys.chars().map(one).collect()
}

#[test]
fn killing_is_asked_twice_and_anything_but_yes_is_no() {
    let mut state = state();
    let done = type_in(&mut state, "kyy");
    assert_eq!(done, [Action::Nothing, Action::Nothing, Action::Kill(2)]);
    for refusal in ["kn", "kyn", "ky\n", "k\x1b"] {
        assert!(
            type_in(&mut state, refusal)
                .iter()
                .all(|action| *action == Action::Nothing)
        );
        assert_eq!(state.question, None, "{refusal:?}");
    }
}

#[test]
fn who_is_killed_is_in_sight() {
    let mut state = state();
    assert_eq!(type_in(&mut state, "/3\nkyy").last(), Some(&Action::Kill(3)));
    let nobody = type_in(&mut state, "/no such process\nkyy");
    assert!(nobody.iter().all(|action| *action == Action::Nothing));
}

#[test]
fn what_is_typed_into_the_filter_is_no_command() {
    let mut state = state();
    assert!(
        type_in(&mut state, "/qk\n")
            .iter()
            .all(|action| *action == Action::Nothing)
    );
    assert_eq!((state.filter.as_str(), &state.question), ("qk", &None));
    type_in(&mut state, "/\x1b");
    assert_eq!(state.filter, "");
}

#[test]
fn a_frozen_screen_stays_until_the_key_comes_again() {
    let mut state = state();
    type_in(&mut state, " ");
    assert!(state.frozen.is_some());
    type_in(&mut state, " ");
    assert!(state.frozen.is_none());
}

#[test]
fn escape_closes_what_was_opened_last() {
    let mut state = state();
    type_in(&mut state, "/a\n\n");
    assert!(state.pane);
    type_in(&mut state, "\x1b");
    assert!(!state.pane && !state.filter.is_empty());
    type_in(&mut state, "\x1b");
    assert!(state.filter.is_empty());
}

#[test]
fn findings_are_looked_for_of_the_chosen_process_as_long_as_its_pane_is_open() {
    let mut state = state();
    type_in(&mut state, "f");
    assert_eq!((state.findings, state.pane), (Some(2), true));
    type_in(&mut state, "f");
    assert_eq!((state.findings, state.pane), (None, true));
    type_in(&mut state, "f\x1b");
    assert_eq!(state.findings, None, "the pane was closed");
    type_in(&mut state, "f");
    press(KeyEvent::from(KeyCode::Down), &mut state, &frame(), 10);
    assert_eq!(state.findings, None, "another one was chosen");
}

#[test]
fn allocations_are_listed_all_then_the_old_ones_and_then_none() {
    let mut state = state();
    let ages: Vec<Option<u64>> = (0..6)
        .map(|_| {
            type_in(&mut state, "a");
            state.single.map(|age| age.as_secs())
        })
        .collect();
    assert_eq!(ages, [Some(0), Some(1), Some(10), Some(60), Some(600), None]);
}

#[test]
fn columns_are_hidden_and_shown_and_themes_go_round() {
    let mut state = state();
    let press = |state: &mut State, code: KeyCode| press(KeyEvent::from(code), state, &frame(), 10);
    press(&mut state, KeyCode::F(2));
    press(&mut state, KeyCode::Down);
    type_in(&mut state, " ");
    let hidden = state.columns.clone().unwrap();
    assert!(!hidden.contains(&1) && hidden.len() == COLUMNS.len() - 1);
    type_in(&mut state, " ");
    assert_eq!(state.columns, None, "as they were");
    press(&mut state, KeyCode::End);
    type_in(&mut state, " ");
    assert_eq!(state.theme.name(), "light");
    type_in(&mut state, "\x1b");
    assert_eq!((state.page, state.pane), (None, false), "Esc closes the page alone");
}

#[test]
fn order_and_pace_go_round_within_their_bounds() {
    let mut state = state();
    let first = state.sort;
    type_in(&mut state, "><");
    assert_eq!(state.sort, first);
    type_in(&mut state, "DDDDDDDDDD");
    assert_eq!(state.delay, Duration::from_millis(100));
    type_in(&mut state, "dddddddddd");
    assert_eq!(state.delay, Duration::from_secs(60));
}

#[test]
fn plus_puts_the_lowest_first_and_minus_the_highest_whatever_the_column_does_by_itself() {
    let mut state = state();
    let frame = |pid: u32, held: f64| Process {
        pid,
        held_bytes: Some(held),
        ..Process::default()
    };
    let frame = Arc::new(Frame {
        processes: vec![frame(1, 10.0), frame(2, 20.0)],
        ..Frame::default()
    });
    let mut first = |title: &str, key: char| {
        state.sort = COLUMNS.iter().position(|column| column.title == title).unwrap();
        press(KeyEvent::from(KeyCode::Char(key)), &mut state, &frame, 10);
        state.rows(&frame)[0].1.pid
    };
    assert_eq!([first("held", '+'), first("held", '-')], [1, 2]);
    assert_eq!([first("pid", '+'), first("pid", '-')], [1, 2]);
}

#[test]
fn a_search_goes_to_rows_and_leaves_all_of_them_there() {
    let mut state = state();
    let press = |state: &mut State, code: KeyCode| press(KeyEvent::from(code), state, &named(), 10);
    press(&mut state, KeyCode::F(3));
    for letter in "train".chars() {
        press(&mut state, KeyCode::Char(letter));
    }
    assert_eq!(state.selected, Some(3), "the first one below");
    press(&mut state, KeyCode::F(3));
    assert_eq!(state.selected, Some(1), "around the end");
    press(&mut state, KeyCode::Enter);
    assert_eq!((state.question.clone(), state.rows(&named()).len()), (None, 3));
    press(&mut state, KeyCode::F(3));
    press(&mut state, KeyCode::Char('?'));
    assert_eq!(
        (state.selected, state.page),
        (Some(1), None),
        "nothing is found, and nothing else happens"
    );
}

#[test]
fn the_users_processes_alone_and_everybodys_again() {
    let mut state = state();
    let press = |state: &mut State| press(KeyEvent::from(KeyCode::Char('u')), state, &named(), 10);
    press(&mut state);
    assert_eq!((state.user.as_deref(), state.rows(&named()).len()), (Some("bob"), 1));
    press(&mut state);
    assert_eq!((state.user.as_deref(), state.rows(&named()).len()), (None, 3));
}

#[test]
fn what_to_order_by_is_chosen_on_a_page() {
    let mut state = state();
    let press = |state: &mut State, code: KeyCode| press(KeyEvent::from(code), state, &frame(), 10);
    for (code, column) in [(KeyCode::Enter, 0), (KeyCode::Esc, 0), (KeyCode::Down, 1)] {
        state.sort = 0;
        press(&mut state, KeyCode::F(6));
        press(&mut state, code);
        press(
            &mut state,
            if code == KeyCode::Down {
                KeyCode::Enter
            } else {
                KeyCode::Esc
            },
        );
        assert_eq!((state.sort, state.page), (column, None));
    }
}

#[test]
fn what_was_chosen_is_said_as_options() {
    let mut state = state();
    state.columns = Some(vec![0, 1]);
    press(KeyEvent::from(KeyCode::F(12)), &mut state, &frame(), 10);
    let said = state.message.unwrap();
    assert!(
        said.ends_with("gpuscope top --columns pid,user --delay 1000ms"),
        "{said}"
    );
}

#[test]
fn in_a_recording_nobody_is_killed_and_arrows_go_through_time() {
    let mut state = state();
    state.tape = Some(Tape::default());
    let right = press(KeyEvent::from(KeyCode::Right), &mut state, &frame(), 10);
    assert_eq!(right, Action::Seek(1));
    assert!(
        type_in(&mut state, "krl")
            .iter()
            .all(|action| *action == Action::Nothing)
    );
    assert_eq!(state.question, None);
}

#[test]
fn control_keys_go_before_everything() {
    let mut state = state();
    state.page = Some(Page::Help);
    let press = |state: &mut State, key| {
        press(
            KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL),
            state,
            &frame(),
            10,
        )
    };
    assert_eq!(press(&mut state, 'c'), Action::Quit);
    assert_eq!(press(&mut state, 'z'), Action::Suspend);
}

#[test]
fn what_is_typed_is_emptied_as_in_a_shell() {
    let mut state = state();
    type_in(&mut state, "/train");
    press(
        KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL),
        &mut state,
        &frame(),
        10,
    );
    assert_eq!((state.filter.as_str(), &state.question), ("", &Some(Question::Filter)));
}

#[test]
fn a_key_that_does_nothing_says_so() {
    let mut state = state();
    for (code, name) in [(KeyCode::F(7), "F7"), (KeyCode::Tab, "Tab"), (KeyCode::Char('i'), "i")] {
        press(KeyEvent::from(code), &mut state, &frame(), 10);
        let said = state.message.clone().unwrap();
        assert_eq!(said, format!("{name} does nothing here: ? shows what keys do"));
    }
}

#[test]
fn calls_are_shown_by_the_second_enter_and_escape_ends_that_first() {
    let mut state = state();
    type_in(&mut state, "\n");
    assert_eq!((state.pane, state.calls), (true, None), "totals cost less");
    type_in(&mut state, "\n");
    assert_eq!((state.pane, state.calls), (true, Some(2)));
    type_in(&mut state, "\x1b");
    assert_eq!((state.pane, state.calls), (true, None));
    type_in(&mut state, "s");
    press(KeyEvent::from(KeyCode::Down), &mut state, &frame(), 10);
    assert_eq!(
        (state.pane, state.calls),
        (true, None),
        "of another process nobody asked for them"
    );
}

#[test]
fn calls_are_read_backwards_with_page_up() {
    let mut state = state();
    type_in(&mut state, "s");
    let press = |state: &mut State, code| press(KeyEvent::from(code), state, &frame(), 10);
    press(&mut state, KeyCode::PageUp);
    assert_eq!(state.pane_scroll, 5);
    press(&mut state, KeyCode::PageDown);
    press(&mut state, KeyCode::PageDown);
    assert_eq!(state.pane_scroll, 0);
}

#[test]
fn the_age_of_allocations_is_forgotten_with_the_pane() {
    let mut state = state();
    type_in(&mut state, "aa\x1b");
    assert_eq!((state.pane, state.single), (false, None));
}

fn click(state: &mut State, under: Under) -> Action {
    let event = MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 0,
        row: 0,
        modifiers: KeyModifiers::NONE,
    };
    point(event, state, &frame(), 10, under)
}

#[test]
fn a_click_on_a_heading_orders_by_it_and_another_one_turns_it_round() {
    let mut state = state();
    click(&mut state, Under::Heading(0));
    assert_eq!((state.sort, state.reversed), (0, false));
    click(&mut state, Under::Heading(0));
    assert_eq!((state.sort, state.reversed), (0, true));
}

#[test]
fn a_click_on_a_key_presses_it_and_one_on_a_page_closes_that() {
    let mut state = state();
    click(&mut state, Under::Key(KeyCode::F(1)));
    assert_eq!(state.page, Some(Page::Help));
    assert_eq!(click(&mut state, Under::Key(KeyCode::F(10))), Action::Nothing);
    assert_eq!(state.page, None);
    assert_eq!(click(&mut state, Under::Key(KeyCode::F(10))), Action::Quit);
    click(&mut state, Under::Process(3));
    click(&mut state, Under::Process(3));
    assert_eq!((state.selected, state.pane), (Some(3), true));
}
