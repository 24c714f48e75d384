//! The same generated matrix on a smaller grid.

use crate::base::error::{Error, Result};
use crate::problem::generator::Generator;

/// How the edges of a grid shrink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Every edge times this factor.
    Factor(f64),
    /// The longest edge gets this many points, the others in proportion.
    LongestEdge(usize),
}

impl Scale {
    /// Reads `0.25` (a factor above 0, up to 1) or `30` (points on the longest edge, at least 2).
    pub fn parse(text: &str) -> Result<Self> {
        if let Ok(edge) = text.parse::<usize>()
            && (2..=100_000).contains(&edge)
        {
            return Ok(Self::LongestEdge(edge));
        }
        match text.parse::<f64>() {
            Ok(factor) if factor > 0.0 && factor <= 1.0 => Ok(Self::Factor(factor)),
            _ => Err(Error::input(format!("`{text}` is no scale")).hint(
                "a factor above 0 and up to 1, such as 0.25, or the longest grid edge, such as 30",
            )),
        }
    }

    /// The generator `spec` on a smaller grid: every dimension is scaled, parameters stay. A preset
    /// (`convdiff3d:atmosmodd`) is written out first.
    pub fn apply(self, spec: &str) -> Result<String> {
        let cannot = || {
            Error::input(format!("`{spec}` has no grid that could be scaled"))
                .hint("only generated matrices such as `poisson3d:120` have one")
        };
        let (name, arguments) = spec.split_once(':').ok_or_else(cannot)?;
        let generator = crate::problem::generators::find(name).ok_or_else(cannot)?;
        generator.arguments(arguments)?;
        let arguments = written_out(generator, arguments);
        let (grid, parameters) = arguments.split_once(',').unwrap_or((&arguments, ""));
        let edges: Vec<usize> = grid
            .split('x')
            .map(|edge| edge.parse().map_err(|_| cannot()))
            .collect::<Result<_>>()?;
        let longest = edges.iter().copied().max().ok_or_else(cannot)?;
        let factor = match self {
            Self::Factor(factor) => factor,
            Self::LongestEdge(edge) => edge as f64 / longest as f64,
        };
        let smaller: Vec<String> = edges
            .iter()
            .map(|&edge| ((edge as f64 * factor).round() as usize).max(edge.min(2)).to_string())
            .collect();
        let comma = if parameters.is_empty() { "" } else { "," };
        Ok(format!("{name}:{}{comma}{parameters}", smaller.join("x")))
    }
}

/// Arguments with a preset replaced by what it stands for; parameters given after it win.
fn written_out(generator: &Generator, arguments: &str) -> String {
    let mut words = arguments.split(',').map(str::trim);
    let first = words.next().unwrap_or_default();
    let preset = generator.presets.iter().find(|p| p.name == first);
    let mut all: Vec<&str> = preset.map_or(first, |p| p.arguments).split(',').collect();
    for word in words {
        let key = word.split('=').next();
        all.retain(|old| !old.contains('=') || old.split('=').next() != key);
        all.push(word);
    }
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(scale: &str, spec: &str) -> Result<String> {
        Scale::parse(scale)?.apply(spec)
    }

    #[test]
    fn every_dimension_shrinks_and_options_stay() {
        assert_eq!(scaled("0.25", "poisson3d:120").unwrap(), "poisson3d:30");
        assert_eq!(scaled("30", "poisson3d:120").unwrap(), "poisson3d:30");
        assert_eq!(scaled("30", "poisson3d:60x120x10").unwrap(), "poisson3d:15x30x3");
        assert_eq!(scaled("0.5", "fem-p1:9x5,dt=1").unwrap(), "fem-p1:5x3,dt=1");
        assert_eq!(scaled("0.01", "poisson3d:120").unwrap(), "poisson3d:2");
        assert_eq!(scaled("1", "poisson3d:120").unwrap(), "poisson3d:120");
    }

    #[test]
    fn presets_are_written_out() {
        assert_eq!(scaled("0.25", "fem-p1:parabolic_fem").unwrap(), "fem-p1:256x128");
        assert_eq!(
            scaled("74", "convdiff3d:atmosmodd").unwrap(),
            "convdiff3d:74x74x29,cx=4,cy=1,cz=1,pz=0.05"
        );
        assert_eq!(
            scaled("74", "convdiff3d:atmosmodd,cx=2").unwrap(),
            "convdiff3d:74x74x29,cy=1,cz=1,pz=0.05,cx=2"
        );
    }

    #[test]
    fn nonsense_is_refused() {
        let message = |scale, spec| scaled(scale, spec).unwrap_err().to_string();
        assert_eq!(message("0", "poisson3d:120"), "`0` is no scale");
        assert_eq!(message("-1", "poisson3d:120"), "`-1` is no scale");
        assert_eq!(message("1.5", "poisson3d:120"), "`1.5` is no scale");
        assert_eq!(message("nan", "poisson3d:120"), "`nan` is no scale");
        assert_eq!(message("30", "a.mtx"), "`a.mtx` has no grid that could be scaled");
    }
}
