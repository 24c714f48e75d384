//! Structs that Rust and the kernels share, compared by the kernels' compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bilu_bench::compute::cuda::layout::{Field, Layout};
use bilu_bench::compute::cuda::sources::{self, HEADERS, Source, Variant};
use bilu_bench::compute::cuda::{in_kernel_variants, nvrtc};
use bilu_bench::methods::solver;
use bilu_bench::{compute, obstacle};
use rayon::prelude::*;

use super::{ARCH, has_nvrtc};

pub(super) fn layouts() -> impl Iterator<Item = &'static Layout> {
    compute::cuda::layouts().chain(obstacle::cuda::layouts())
}

/// Assertions by file of the kernels.
type Assertions = BTreeMap<&'static str, String>;

fn assertions<'a>(layouts: impl IntoIterator<Item = &'a Layout>) -> Assertions {
    let mut all = Assertions::new();
    for layout in layouts {
        for (name, file) in layout.declared {
            all.entry(file).or_default().push_str(&layout.assertions(name));
        }
    }
    all
}

/// What the compiler objects to when the files end in `assertions`.
fn objections(source: &Source, variant: &Variant, assertions: &Assertions) -> Vec<String> {
    let with = |file: &str, text: &str| {
        format!("{text}\n{}", assertions.get(file).map_or("", String::as_str))
    };
    let headers: Vec<(&str, String)> =
        HEADERS.iter().map(|(name, text)| (*name, with(name, text))).collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, text)| (*n, text.as_str())).collect();
    let text = with(&format!("{}.cu", source.name), source.text());
    nvrtc::objections(source, &text, &headers, variant.clone(), ARCH).unwrap()
}

/// Every source, and a solver in one kernel with triangular factors, which are a struct there.
fn programs() -> Vec<(&'static Source, Variant)> {
    let plain = sources::ALL.iter().map(|source| (*source, Variant::from(4)));
    let factors = solver::persistent().flat_map(|method| in_kernel_variants(method, 4));
    let factors = factors.filter(|(_, variant)| variant.defines.contains(&("PRECOND", 2)));
    plain.chain(factors.take(1)).collect()
}

fn all_objections(assertions: &Assertions) -> BTreeSet<String> {
    let of = |(source, variant): &(&Source, Variant)| objections(source, variant, assertions);
    programs().par_iter().flat_map_iter(of).collect()
}

#[test]
fn structs_are_laid_out_as_the_kernels_declare_them() {
    if !has_nvrtc() {
        return;
    }
    let found = all_objections(&assertions(layouts()));
    assert!(found.is_empty(), "{}", found.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_wrong_offset_is_found() {
    if !has_nvrtc() {
        return;
    }
    let mut expected = BTreeSet::new();
    let mut wrong = Vec::new();
    for layout in layouts() {
        let mut fields = layout.fields.to_vec();
        for field in &mut fields {
            field.offset += 1;
        }
        // words have no fields
        let size = layout.size + usize::from(fields.is_empty());
        for (name, _) in layout.declared {
            let rust = layout.rust;
            if fields.is_empty() {
                expected.insert(format!("size of {name} is {size} in {rust}"));
            }
            for field in fields.iter().filter(|field| field.name != "base") {
                let (field, offset) = (field.name, field.offset);
                expected.insert(format!("offset of {name}::{field} is {offset} in {rust}"));
            }
        }
        wrong.push(Layout { size, fields: fields.leak(), ..layout.clone() });
    }
    let found = all_objections(&assertions(&wrong));
    let failed = "static assertion failed with \"";
    let quoted = |line: &String| Some(line.split_once(failed)?.1.trim_end_matches('"').to_owned());
    assert_eq!(found.iter().filter_map(quoted).collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_field_that_one_side_lacks_is_found() {
    if !has_nvrtc() {
        return;
    }
    // it has its place in what is padding without it
    let text = "struct S { unsigned a; double b; unsigned c, d; };";
    let source = Source { name: "s", text: Some(text), sizes: None };
    let field = |(name, offset, size)| Field { name, offset, size };
    let fields = [("a", 0, 4), ("b", 8, 8), ("c", 16, 4), ("d", 20, 4)].map(field);
    let with = |count: usize| Layout {
        module: file!(),
        rust: "S",
        declared: &[("S", "s.cu")],
        condition: "",
        size: 24,
        fields: fields[..count].to_vec().leak(),
    };
    let found = |count| objections(&source, &0.into(), &assertions(&[with(count)]));
    assert_eq!(found(4), [""; 0]);
    let missing = "there are more elements than there are binding names";
    assert_eq!(found(3), [format!("s.cu(9): error: {missing}")]);
}

/// Every file below `folder` that ends in `.rs`, with its text.
fn read(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push((path.clone(), std::fs::read_to_string(path).unwrap()));
        }
    }
}

#[test]
fn every_struct_of_the_kernels_is_compared() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    read(&root.join("src"), &mut files);
    let with = |word: &str| -> BTreeSet<&str> {
        let found = files.iter().filter(|(_, text)| text.contains(word));
        found.map(|(path, _)| path.strip_prefix(root).unwrap().to_str().unwrap()).collect()
    };
    let compared: BTreeSet<&str> = layouts().map(|layout| layout.module).collect();
    assert_eq!(with("\nshared! {"), compared);
    // no other struct can be an argument of a kernel
    for word in ["repr(C)", "DeviceRepr for"] {
        assert_eq!(with(word), BTreeSet::from(["src/compute/cuda/layout.rs"]), "{word}");
    }
}
