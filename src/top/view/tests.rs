//! Pictures of every view, in three sizes.

use super::{Scene, Under};
use crate::top::columns;
use crate::top::model::example::second_look;
use crate::top::model::history::History;
use crate::top::model::{Calls, Frame, Single};
use crate::top::once;
use crate::top::state::{Page, Question, State, Tape, Theme};
use crossterm::event::KeyCode;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;
use std::time::Duration;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn picture((width, height): (u16, u16), frame: &Frame, history: &History, state: &State) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut state = state.clone();
    let draw = |screen: &mut ratatui::Frame| {
        let area = screen.area();
        let room = Scene {
            frame,
            history,
            state: &state,
        }
        .room(area);
        state.settle(frame, room);
        Scene {
            frame,
            history,
            state: &state,
        }
        .draw(area, screen.buffer_mut());
    };
    terminal.draw(draw).unwrap();
    once::text(terminal.backend().buffer())
}

fn look(name: &str, change: impl Fn(&mut State)) {
    let (frame, history) = second_look();
    let mut state = State::new(Duration::from_secs(1));
    change(&mut state);
    for size in SIZES {
        let picture = picture(size, &frame, &history, &state);
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), picture);
    }
}

#[test]
fn devices_and_processes() {
    look("main", |_| {});
}

#[test]
fn what_the_chosen_process_does() {
    look("pane", |state| {
        state.pane = true;
        state.selected = Some(4711);
    });
}

#[test]
fn calls_that_failed_are_shown_with_when_that_was_last_seen() {
    let (mut frame, history) = second_look();
    let process = frame.processes.iter_mut().find(|process| process.pid == 4720).unwrap();
    let failure = process.failures[0].clone();
    let ages = [None, Some(700.0), Some(12.4), Some(0.0)];
    process.failures = ages
        .map(|last_seconds| crate::top::model::Failure {
            last_seconds,
            ..failure.clone()
        })
        .to_vec();
    let mut state = State::new(Duration::from_secs(1));
    (state.pane, state.selected) = (true, Some(4720));
    insta::assert_snapshot!("failed", picture((80, 24), &frame, &history, &state));
}

#[test]
fn allocations_are_shown_one_by_one() {
    let (mut frame, history) = second_look();
    let one = |address: u64, bytes: u64, age_seconds| Single {
        address: Some(format!("{address:#x}")),
        bytes,
        age_seconds,
        function: "cuMemAlloc_v2".to_owned(),
        place: Some("train.py:9 load\u{1b}".to_owned()),
        family: "device".to_owned(),
        device: Some(0),
    };
    let closeup = frame.closeup.as_mut().unwrap();
    closeup.single = Some(vec![
        one(0x7f2a_4000_0000, 50 << 30, 61.5),
        one(0x7f36_c000_0000, 2 << 30, 12.0),
    ]);
    closeup.single_left_out = 10;
    let mut state = State::new(Duration::from_secs(1));
    (state.pane, state.selected, state.single) = (true, Some(4711), Some(Duration::from_secs(10)));
    for size in SIZES {
        let picture = picture(size, &frame, &history, &state);
        insta::assert_snapshot!(format!("single_{}x{}", size.0, size.1), picture);
    }
}

#[test]
fn what_is_wrong_is_looked_for_where_it_is_asked_for() {
    let (mut frame, history) = second_look();
    frame.findings = None;
    let mut state = State::new(Duration::from_secs(1));
    (state.pane, state.selected) = (true, Some(4711));
    assert!(picture((80, 60), &frame, &history, &state).contains("not looked for: f does"));
    state.findings = Some(4711);
    assert!(picture((80, 60), &frame, &history, &state).contains("its calls are traced from now on"));
    frame.findings = Some(crate::top::model::Findings::refused(
        4711,
        "no \u{1b}[31mrights".to_owned(),
    ));
    let refused = picture((80, 60), &frame, &history, &state);
    assert!(
        refused.contains("not looked for: no ") && !refused.contains('\u{1b}'),
        "{refused}"
    );
}

#[test]
fn a_pane_of_a_process_that_is_not_traced_says_why() {
    let (frame, history) = second_look();
    let mut state = State::new(Duration::from_secs(1));
    (state.pane, state.selected) = (true, Some(900));
    insta::assert_snapshot!("pane_not_traced", picture((120, 40), &frame, &history, &state));
}

#[test]
fn a_tree_with_a_filter_in_another_order() {
    look("tree", |state| {
        state.tree = true;
        state.filter = "PYTHON".to_owned();
        state.reversed = true;
    });
}

#[test]
fn pages_of_words() {
    look("help", |state| state.page = Some(Page::Help));
    look("notes", |state| state.page = Some(Page::Notes));
}

#[test]
fn columns_are_chosen_on_a_page_and_by_name() {
    look("setup", |state| {
        state.columns = Some(columns::named("pid,user,held,launch/s,command").unwrap());
        state.page = Some(Page::Setup(2));
    });
    look("columns", |state| {
        state.columns = Some(columns::named("PID, err/s,command,enc,dec").unwrap());
    });
    for (wrong, why) in [
        ("pid,launches", "there is no column \"launches\""),
        (", ", "names no column"),
    ] {
        let said = columns::named(wrong).unwrap_err();
        assert!(said.starts_with(why) && said.contains("launch/s"), "{said}");
    }
}

#[test]
fn what_to_order_by_is_chosen_on_a_page() {
    look("order", |state| state.page = Some(Page::Order(3)));
}

#[test]
fn where_not_everything_is_seen_nobody_says_that_there_is_nothing() {
    let state = State::new(Duration::from_secs(1));
    let frame = Frame {
        partial: true,
        ..Frame::default()
    };
    assert!(picture((80, 24), &frame, &History::default(), &state).contains("not all can be seen"));
}

#[test]
fn on_paper_notes_are_in_full() {
    let (mut frame, history) = second_look();
    frame.notes = vec![format!("{}the cure", "long words ".repeat(20))];
    let state = State::new(Duration::from_secs(1));
    assert!(once::page(&frame, &history, &state, 80).contains("the cure"));
    assert!(!picture((80, 24), &frame, &history, &state).contains("the cure"));
}

#[test]
fn questions_and_the_place_in_a_recording() {
    let (frame, history) = second_look();
    let mut state = State::new(Duration::from_secs(1));
    let mut last_line = |change: fn(&mut State)| {
        change(&mut state);
        let picture = picture((80, 24), &frame, &history, &state);
        picture.lines().last().unwrap_or_default().to_owned()
    };
    let lines = [
        last_line(|state| state.question = Some(Question::Filter)),
        last_line(|state| state.question = Some(Question::Search("tr\u{1b}".to_owned()))),
        last_line(|state| state.question = Some(Question::Kill { pid: 4711, sure: true })),
        last_line(|state| state.question = None),
        last_line(|state| {
            state.tape = Some(Tape {
                at: 4,
                of: 10,
                paused: true,
            })
        }),
        last_line(|state| state.message = Some("a\u{1b}[31mb".to_owned())),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn before_anything_is_known_it_says_so() {
    let state = State::new(Duration::from_secs(1));
    insta::assert_snapshot!(picture((80, 24), &Frame::default(), &History::default(), &state));
}

#[test]
fn while_probes_are_attached_it_shows_what_is_known_without() {
    let (mut frame, history) = second_look();
    frame.attaching = true;
    frame.processes.retain(|process| process.pid == 900);
    let state = State {
        pane: true,
        selected: Some(900),
        ..State::new(Duration::from_secs(1))
    };
    insta::assert_snapshot!("attaching", picture((100, 30), &frame, &history, &state));
    frame = Frame {
        attaching: true,
        ..Frame::default()
    };
    insta::assert_snapshot!("attaching_first", picture((80, 10), &frame, &history, &state));
}

#[test]
fn a_terminal_that_is_too_small_is_told() {
    let (frame, history) = second_look();
    let state = State::new(Duration::from_secs(1));
    for size in [(39, 24), (80, 7), (1, 1)] {
        let picture = picture(size, &frame, &history, &state);
        assert!(
            "too small".starts_with(picture.trim_end_matches(['…', '\n']).get(..9).unwrap_or("")),
            "{picture}"
        );
    }
}

#[test]
fn no_size_of_a_terminal_is_a_problem() {
    let (frame, history) = second_look();
    let mut state = State::new(Duration::from_secs(1));
    for pane in [false, true] {
        state.pane = pane;
        for width in (1..=300).step_by(13) {
            for height in 1..=40 {
                picture((width, height), &frame, &history, &state);
            }
        }
    }
}

#[test]
fn nothing_that_a_terminal_obeys_is_drawn() {
    let (frame, history) = second_look();
    let mut state = State::new(Duration::from_secs(1));
    (state.pane, state.selected) = (true, Some(5000));
    let picture = picture((200, 60), &frame, &history, &state);
    assert!(!picture.contains('\u{1b}') && !picture.contains('\u{7}'), "{picture}");
    assert!(picture.contains("訓練") && picture.contains("e\u{301}vil"), "{picture}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let (frame, history) = second_look();
    let coloured = |theme| {
        let state = State {
            theme,
            ..State::new(Duration::from_secs(1))
        };
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let scene = Scene {
            frame: &frame,
            history: &history,
            state: &state,
        };
        terminal
            .draw(|screen| scene.draw(screen.area(), screen.buffer_mut()))
            .unwrap();
        let buffer = terminal.backend().buffer().clone();
        buffer
            .content
            .iter()
            .any(|cell| cell.fg != ratatui::style::Color::Reset)
    };
    assert!(coloured(Theme::Dark) && coloured(Theme::Light) && !coloured(Theme::Mono));
}

#[test]
fn a_page_of_text_has_every_process() {
    let (frame, history) = second_look();
    let state = State::new(Duration::from_secs(1));
    insta::assert_snapshot!(once::page(&frame, &history, &state, once::WIDTH));
}

#[test]
fn calls_are_shown_as_they_come_the_newest_last() {
    let (mut frame, history) = second_look();
    let mut state = State::new(Duration::from_secs(1));
    (state.pane, state.selected, state.calls) = (true, Some(4711), Some(4711));
    assert!(picture((80, 24), &frame, &history, &state).contains("its calls are traced from now on"));
    let mut calls = Calls::of(4711);
    (0..40).for_each(|number| calls.take(format!("call {number}\n").as_bytes()));
    frame.calls = Some(calls);
    insta::assert_snapshot!("calls", picture((80, 24), &frame, &history, &state));
    state.pane_scroll = 30;
    let back = picture((80, 24), &frame, &history, &state);
    assert!(back.contains("call 9\n") && !back.contains("call 10\n"), "{back}");
    frame.calls.as_mut().unwrap().why = Some("no \u{1b}[31mrights".to_owned());
    let refused = picture((80, 24), &frame, &history, &state);
    assert!(refused.contains("not traced: no \\u{1b}[31mrights"), "{refused}");
}

#[test]
fn what_the_mouse_points_at_is_what_is_drawn_there() {
    let (frame, history) = second_look();
    let state = State::new(Duration::from_secs(1));
    for (width, height) in SIZES {
        let picture = picture((width, height), &frame, &history, &state);
        let area = Rect::new(0, 0, width, height);
        let scene = Scene {
            frame: &frame,
            history: &history,
            state: &state,
        };
        let place = |word: &str| {
            let (y, line) = picture
                .lines()
                .enumerate()
                .filter(|(_, line)| line.contains(word))
                .last()
                .unwrap();
            let before = &line[..line.find(word).unwrap()];
            (unicode_width::UnicodeWidthStr::width(before) as u16, y as u16)
        };
        let under = |word: &str| {
            let (x, y) = place(word);
            scene.under(area, x, y)
        };
        let launches = columns::COLUMNS.iter().position(|column| column.title == "launch/s");
        assert_eq!(under("launch/s"), Under::Heading(launches.unwrap()));
        assert_eq!(under("python train"), Under::Process(4711));
        assert_eq!(scene.under(area, 1, height - 1), Under::Key(KeyCode::F(1)));
        let last = picture.lines().last().unwrap();
        let at = last.find("F6").unwrap() as u16;
        assert_eq!(scene.under(area, at, height - 1), Under::Key(KeyCode::F(6)));
        assert_eq!(scene.under(area, 0, 0), Under::Nothing);
    }
}
