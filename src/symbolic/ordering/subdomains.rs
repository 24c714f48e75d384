//! The order in which ILU(k) over subdomains eliminates (`exact:interface`), on one device: interiors first, then
//! interfaces by colours (Hysom and Pothen 1999, 2001).

use std::fmt;

use super::{Method, Parameter, Task};
use crate::base::choices::{MAX_SUBDOMAINS, Partition};
use crate::base::error::{Error, Kind, Result};
use crate::base::parse::{choice, choice_name, whole};
use crate::symbolic::interfaces::FillLevels;
use crate::symbolic::partition::divide_exactly;

pub(super) const METHOD: Method = Method {
    name: "subdomains",
    summary: "interiors of N subdomains, then interfaces: `subdomains:N`, or with `,partition=HOW`",
    make: order,
    parameter: Some(parse),
    ..Method::PLAIN
};

/// How the blocks are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Division {
    count: usize,
    /// None: boxes where there is a grid that can be cut into as many, else parts of the graph.
    partition: Option<Partition>,
    /// Fill level of the factors.
    fill: usize,
}

impl Division {
    pub(super) fn for_fill(self, fill: usize) -> Self {
        Self { fill, ..self }
    }
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        match &self.partition {
            Some(how) => write!(f, ",partition={}", choice_name(how)),
            None => Ok(()),
        }
    }
}

fn parse(text: Option<&str>) -> Result<Parameter> {
    let text = text.ok_or_else(|| {
        Error::input("it needs a number of subdomains")
            .hint("as in `subdomains:8`, or `subdomains:8,partition=graph`")
    })?;
    let (count, how) = match text.split_once(',') {
        Some((count, how)) => (count, Some(how)),
        None => (text, None),
    };
    let partition = |how: &str| match how.split_once('=') {
        Some(("partition", how)) => choice("partition", how),
        _ => Err(Error::unknown("parameter", how, &["partition=HOW"])),
    };
    Ok(Parameter::Division(Division {
        count: whole(count, 1, MAX_SUBDOMAINS)?,
        partition: how.map(partition).transpose()?,
        fill: 0,
    }))
}

fn order(task: &Task) -> Result<Vec<u32>> {
    let Parameter::Division(Division { count, partition, fill }) = task.parameter else {
        unreachable!("it is read with its number");
    };
    let of = |how| divide_exactly(task.matrix, how, task.grid, count, FillLevels::of(fill));
    let found = match partition {
        Some(how) => of(how),
        None => of(Partition::Boxes).or_else(|_| of(Partition::Graph)),
    };
    let (divided, elimination) = found.map_err(|why| match why.kind() {
        Kind::Input => {
            Error::input(format!("ordering `{}:{count}`: {}", METHOD.name, why.message()))
        }
        _ => why,
    })?;
    let mut order = elimination.order();
    if let Some(old) = divided.order {
        for row in &mut order {
            *row = old[*row as usize];
        }
    }
    Ok(order)
}
