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
    help: "Keys at the top level.",
    keys: &[
        key("title", "text", "title of its table"),
        key("notes", "texts", "remarks printed below the table"),
        key(
            "inferred",
            "texts",
            "settings that the paper does not state, each with the reason for its value: `rtol 1e-6: not stated`",
        ),
        key("measure", "table", "how cases are timed"),
        key("sweep", "tables", "sweeps to run, in this order; at least one"),
        key("published", "table", "published iterations and solve times"),
        key("history", "table", "published residual history"),
        key("phases", "table", "published times of the phases per grid point"),
        key("figure", "table", "figure of the experiment"),
    ],
};

/// Keys of `[published]`.
pub const PUBLISHED: Table = Table {
    name: "published",
    help: "Published iterations and times, one row of the CSV file per case.",
    keys: &[
        key("csv", "file", "CSV file in the folder of the TOML file"),
        key("citation", "text", "source of the values"),
        key(
            "keys",
            "table",
            "setting = column: the settings that identify a row, `{ block-size = \"b\", fill = \"k\" }`",
        ),
        key("iterations", "column", "column with the iterations"),
        key(
            "tolerance-percent",
            "number",
            "largest deviation of the iterations that counts as ok, 0 to 100",
        ),
        key("slow", "device", "slow device of the paper"),
        key("fast", "device", "fast device of the paper"),
    ],
};

/// Keys of the devices of `[published]` and `[phases]`.
pub const DEVICE: Table = Table {
    name: "published.slow, published.fast, phases.slow",
    help: "A device of a paper.",
    keys: &[
        key("device", "text", "name of the device in the paper"),
        key("backend", "name", "corresponding backend"),
        key("seconds", "column", "column with its times; not in `[phases]`"),
    ],
};

/// Keys of `[history]`.
pub const HISTORY: Table = Table {
    name: "history",
    help: "Published sums of squares of the residual after each correction.",
    keys: &[
        key(
            "csv",
            "file",
            "CSV file in the folder of the TOML file: the correction, then one column per method",
        ),
        key("citation", "text", "source of the values"),
        key("corrections", "whole number", "number of corrections over which backends must agree"),
        key("digits", "whole number", "decimal digits to which they must agree, 1 to 16"),
    ],
};

/// Keys of `[phases]`.
pub const PHASES: Table = Table {
    name: "phases",
    help: "Published times of factorisation, solve and residual per grid point.",
    keys: &[
        key("show", "name", "`times` (default), `work` or `series`"),
        key("csv", "file", "CSV file in the folder of the TOML file, one row per task"),
        key("citation", "text", "source of the values"),
        key("slow", "device", "slow device of the paper and the corresponding backend"),
        key("fast", "text", "fast device of the paper, to which every GPU backend is compared"),
    ],
};

/// Keys of `[figure]`.
pub const FIGURE: Table = Table {
    name: "figure",
    help: "Figure drawn by `reproduce` and `plot`.",
    keys: &[
        key("marks", "name", "`lines` (default) or `bars`"),
        key("x", "quantity", "quantity on the horizontal axis"),
        key("x-axis", "name", "`linear` (default) or `log`"),
        key("y", "quantities", "quantities on the vertical axes, one panel each"),
        key("y-axis", "name", "`linear` (default) or `log`"),
        key("panels", "settings", "settings with one panel per value"),
        key("citation", "text", "source of the published points"),
        key(
            "csv",
            "file",
            "published points, `quantity,series,x,y`; a point without x holds for all x",
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
