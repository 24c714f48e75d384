//! The style sheet of the page. Its colours are those of the figures.

use std::fmt::Write;

use crate::report::plot::style::INKS;

/// Everything but colours.
const RULES: &str = include_str!("page.css");

/// The style sheet: colours for light and dark pages, paper is always light.
pub(super) fn sheet() -> String {
    let mut light = String::new();
    let mut dark = String::new();
    let mut classes = String::new();
    for ink in INKS {
        let name = ink.name;
        // writing to a string cannot fail
        let _ = write!(light, "--{name}:{};", ink.light());
        let _ = write!(dark, "--{name}:{};", ink.dark());
        let _ = write!(classes, ".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}");
    }
    format!(
        ":root{{color-scheme:light;{light}}}\
         @media screen and (prefers-color-scheme:dark){{:root{{color-scheme:dark;{dark}}}}}\
         {classes}{}",
        RULES.lines().map(str::trim).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_has_both_forms_and_a_class() {
        let sheet = sheet();
        for part in ["--blue:#0072B2;", "--blue:#3F97E8;", ".f-blue{fill:var(--blue)}"] {
            assert_eq!(sheet.matches(part).count(), 1, "{part}");
        }
        assert_eq!(sheet.matches('{').count(), sheet.matches('}').count());
    }
}
