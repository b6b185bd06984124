//! What a theme makes of what a text is.

use crate::serve::display::Look;
use crate::top::state::Theme;
use ratatui::style::{Color, Modifier, Style};

impl Theme {
    /// By colour on a dark background, on a light one, and by something else where there is none.
    fn tinted(self, dark: Color, light: Color, mono: Modifier) -> Style {
        match self {
            Theme::Dark => Style::new().fg(dark),
            Theme::Light => Style::new().fg(light),
            Theme::Mono => Style::new().add_modifier(mono),
        }
    }

    pub(super) fn heading(self) -> Style {
        self.tinted(Color::Cyan, Color::Blue, Modifier::BOLD)
            .add_modifier(Modifier::BOLD)
    }

    pub(super) fn wrong(self) -> Style {
        self.tinted(Color::LightRed, Color::Red, Modifier::BOLD)
    }

    pub(super) fn doubt(self) -> Style {
        self.tinted(Color::Yellow, Color::Magenta, Modifier::empty())
    }

    pub(super) fn of(self, look: Look) -> Style {
        match look {
            Look::Heading => self.heading(),
            Look::Plain => Style::new(),
            Look::Wrong => self.wrong(),
        }
    }
}
