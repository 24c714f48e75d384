//! The same generated matrix on a smaller grid.

use crate::error::{Error, Result};

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

    /// The generator `spec` on a smaller grid: every dimension is scaled, options stay. A preset
    /// (`convdiff3d:atmosmodd`) is expanded first.
    pub fn apply(self, spec: &str) -> Result<String> {
        let expanded = expand(spec);
        let cannot = || {
            Error::input(format!("`{spec}` has no grid that could be scaled"))
                .hint("only generators such as `poisson3d:120` or `poisson3d:60x50x40` have one")
        };
        let (name, rest) = expanded.split_once(':').ok_or_else(cannot)?;
        let end = rest.find([',', ':']).unwrap_or(rest.len());
        let (grid, options) = rest.split_at(end);
        let edges: Vec<usize> = grid
            .split('x')
            .map(|edge| edge.parse().ok().filter(|e| *e > 0))
            .collect::<Option<_>>()
            .ok_or_else(cannot)?;
        let longest = edges.iter().copied().max().ok_or_else(cannot)?;
        let factor = match self {
            Self::Factor(factor) => factor,
            Self::LongestEdge(edge) => edge as f64 / longest as f64,
        };
        let smaller: Vec<String> = edges
            .iter()
            .map(|&edge| ((edge as f64 * factor).round() as usize).max(2).min(edge.max(2)))
            .map(|edge| edge.to_string())
            .collect();
        Ok(format!("{name}:{}{options}", smaller.join("x")))
    }
}

fn expand(spec: &str) -> String {
    spec.to_owned()
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
        assert_eq!(scaled("0.5", "g:8x4,p=1,q=2").unwrap(), "g:4x2,p=1,q=2");
        assert_eq!(scaled("0.01", "poisson3d:120").unwrap(), "poisson3d:2");
        assert_eq!(scaled("1", "poisson3d:120").unwrap(), "poisson3d:120");
    }

    #[test]
    fn nonsense_is_refused() {
        let message = |scale, spec| scaled(scale, spec).unwrap_err().to_string();
        assert_eq!(message("0", "poisson3d:120"), "`0` is no scale");
        assert_eq!(message("-1", "poisson3d:120"), "`-1` is no scale");
        assert_eq!(message("1.5", "poisson3d:120"), "`1.5` is no scale");
        assert_eq!(message("nan", "poisson3d:120"), "`nan` is no scale");
        assert_eq!(message("30", "a.mtx"), "`a.mtx` has no grid that could be scaled");
        assert_eq!(
            message("30", "poisson3d:ax9"),
            "`poisson3d:ax9` has no grid that could be scaled"
        );
    }
}
