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

/// Declares tables: name and help, and a line for each key: its name, its value and its help.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident, $name:literal, $about:literal {
        $($key:literal: $value:literal, $help:literal;)*
    })*) => {
        $($(#[$doc])* pub const $table: Table = Table {
            name: $name,
            help: $about,
            keys: &[$(Key { name: $key, value: $value, help: $help }),*],
        };)*
    };
}

tables! {
    /// Keys of the file itself.
    FILE, "", "Keys at the top level." {
        "title": "text", "title of its table";
        "notes": "texts", "remarks printed below the table";
        "inferred": "texts",
            "settings that the paper does not state, each with the reason for its value: `rtol 1e-6: not stated`";
        "measure": "table", "how cases are timed";
        "settings": "table", "keys of `[[sweep]]` for all sweeps that have no value of their own";
        "sweep": "tables", "sweeps to run, in this order; at least one";
        "published": "table", "published iterations and solve times";
        "history": "table", "published residual history";
        "phases": "table", "published times of the phases per grid point";
        "figure": "table", "figure of the experiment";
    }

    /// Keys of `[published]`.
    PUBLISHED, "published", "Published iterations and times, one row of the CSV file per case." {
        "csv": "file", "CSV file in the folder of the TOML file";
        "citation": "text", "source of the values";
        "keys": "table",
            "setting = column: the settings that identify a row, `{ block-size = \"b\", fill = \"k\" }`";
        "iterations": "column", "column with the iterations";
        "tolerance-percent": "number", "largest deviation of the iterations that counts as ok, 0 to 100";
        "slow": "device", "slow device of the paper";
        "fast": "device", "fast device of the paper";
    }

    /// Keys of the devices of `[published]` and `[phases]`.
    DEVICE, "published.slow, published.fast, phases.slow", "A device of a paper." {
        "device": "text", "name of the device in the paper";
        "backend": "name", "corresponding backend";
        "seconds": "column", "column with its times; not in `[phases]`";
    }

    /// Keys of `[history]`.
    HISTORY, "history", "Published sums of squares of the residual after each correction." {
        "csv": "file", "CSV file in the folder of the TOML file: the correction, then one column per method";
        "citation": "text", "source of the values";
        "corrections": "whole number", "number of corrections over which backends must agree";
        "digits": "whole number", "decimal digits to which they must agree, 1 to 16";
    }

    /// Keys of `[phases]`.
    PHASES, "phases", "Published times of factorisation, solve and residual per grid point." {
        "show": "name", "`times` (default), `work` or `series`";
        "csv": "file", "CSV file in the folder of the TOML file, one row per task";
        "citation": "text", "source of the values";
        "slow": "device", "slow device of the paper and the corresponding backend";
        "fast": "text", "fast device of the paper, to which every GPU backend is compared";
    }

    /// Keys of `[figure]`.
    FIGURE, "figure", "Figure drawn by `reproduce` and `plot`." {
        "marks": "name", "`lines` (default) or `bars`";
        "x": "quantity", "quantity on the horizontal axis";
        "x-axis": "name", "`linear` (default) or `log`";
        "y": "quantities", "quantities on the vertical axes, one panel each";
        "y-axis": "name", "`linear` (default) or `log`";
        "panels": "settings", "settings with one panel per value";
        "citation": "text", "source of the published points";
        "csv": "file", "published points, `quantity,series,x,y`; a point without x holds for all x";
    }
}

/// All tables but `[[sweep]]` and `[measure]`.
pub(crate) const TABLES: [&Table; 6] = [&FILE, &PUBLISHED, &DEVICE, &HISTORY, &PHASES, &FIGURE];

impl Table {
    /// The names of its keys.
    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }
}
