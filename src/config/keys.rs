//! The keys of an experiment's TOML file: what its errors list and what the reference describes.
//!
//! The keys of `[[sweep]]` are [`AXES`](crate::config::AXES), those of `[measure]`
//! [`SETTINGS`](crate::config::measure::SETTINGS).

/// A key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value is.
    pub value: &'static str,
    /// What it means.
    pub help: &'static str,
}

const fn key(name: &'static str, value: &'static str, help: &'static str) -> Key {
    Key { name, value, help }
}

/// A table of the file with its keys.
#[derive(Debug)]
pub struct Table {
    /// Its name; empty for the file itself.
    pub name: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// Keys of the file itself.
pub const FILE: Table = Table {
    name: "",
    help: "The file itself.",
    keys: &[
        key("title", "text", "title of its table"),
        key("notes", "texts", "remarks below the table"),
        key(
            "inferred",
            "texts",
            "settings that a paper does not state, each with the reason: `rtol 1e-6: not stated`",
        ),
        key("measure", "table", "how to measure"),
        key("sweep", "tables", "what is run, one sweep after the other; at least one"),
        key("published", "table", "printed iterations and times of solves"),
        key("history", "table", "a printed residual history"),
        key("phases", "table", "printed times of phases per grid point"),
        key("figure", "table", "the figure of the experiment"),
    ],
};

/// Keys of `[published]`.
pub const PUBLISHED: Table = Table {
    name: "published",
    help: "Printed iterations and times, a row of the CSV file for each case.",
    keys: &[
        key("csv", "file", "beside the TOML file"),
        key("citation", "text", "where the numbers come from"),
        key(
            "keys",
            "table",
            "setting = column: what tells the rows apart, `{ block-size = \"b\", fill = \"k\" }`",
        ),
        key("iterations", "column", "column of the iterations"),
        key("tolerance-percent", "number", "deviation up to which iterations are ok, 0 to 100"),
        key("slow", "device", "the paper's slow device"),
        key("fast", "device", "its fast device"),
    ],
};

/// Keys of the devices of `[published]` and `[phases]`.
pub const DEVICE: Table = Table {
    name: "published.slow, published.fast, phases.slow",
    help: "A device of a paper.",
    keys: &[
        key("device", "text", "what the paper calls it"),
        key("backend", "name", "the backend that stands for it"),
        key("seconds", "column", "column of its times; not in `[phases]`"),
    ],
};

/// Keys of `[history]`.
pub const HISTORY: Table = Table {
    name: "history",
    help: "Printed sums of squares of the residual per correction.",
    keys: &[
        key("csv", "file", "beside the TOML file: the correction, then a column for each method"),
        key("citation", "text", "where the numbers come from"),
        key("corrections", "whole number", "corrections up to which backends have to agree"),
        key("digits", "whole number", "digits to which they have to, 1 to 16"),
    ],
};

/// Keys of `[phases]`.
pub const PHASES: Table = Table {
    name: "phases",
    help: "Printed times of factorisation, solve and residual per grid point.",
    keys: &[
        key("show", "name", "`times` (default), `work` or `series`"),
        key("csv", "file", "beside the TOML file, a row for each task"),
        key("citation", "text", "where the numbers come from"),
        key("slow", "device", "the paper's slow device and the backend that stands for it"),
        key("fast", "text", "the paper's fast device; every GPU backend stands beside it"),
    ],
};

/// Keys of `[figure]`.
pub const FIGURE: Table = Table {
    name: "figure",
    help: "The figure that `reproduce` and `plot` draw.",
    keys: &[
        key("marks", "name", "`lines` (default) or `bars`"),
        key("x", "quantity", "what the horizontal axis shows"),
        key("x-axis", "name", "`linear` (default) or `log`"),
        key("y", "quantities", "what the vertical axes show, a panel for each"),
        key("y-axis", "name", "`linear` (default) or `log`"),
        key("panels", "settings", "settings whose values have panels of their own"),
        key("citation", "text", "where the published points come from"),
        key(
            "csv",
            "file",
            "published points, `quantity,series,x,y`; without x a value holds for all",
        ),
    ],
};

/// All tables but `[[sweep]]` and `[measure]`.
pub const TABLES: [&Table; 6] = [&FILE, &PUBLISHED, &DEVICE, &HISTORY, &PHASES, &FIGURE];

impl Table {
    /// The names of its keys.
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}
