//! Every crate of `Cargo.lock` has a licence that `deny.toml` lists and comes from where it says, as `cargo deny
//! check licenses bans sources` asks, and our tests' own crates as well.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use spdx::Expression;

/// Fails where a crate's manifest is not on this machine; those of other systems come with `cargo fetch`.
const REQUIRED: &str = "BILU_BENCH_REQUIRE_CRATES";

#[derive(Deserialize)]
struct Rules {
    licenses: Licenses,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    license_file: Option<String>,
    manifest_path: String,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    kind: Option<String>,
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn in_root(name: &str) -> String {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
}

fn rules() -> Rules {
    toml::from_str(&in_root("deny.toml")).unwrap()
}

/// The crates of all features and systems; none where some were never fetched.
fn packages() -> Option<Vec<Package>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version=1", "--all-features", "--locked", "--offline"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    if output.status.success() {
        let all: Metadata = serde_json::from_slice(&output.stdout).unwrap();
        return Some(all.packages);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(std::env::var_os(REQUIRED).is_none(), "{why}");
    eprintln!("skipped: `cargo fetch` gets the crates of other systems\n{why}");
    None
}

/// The words of a licence, without the line that names its holders.
fn words(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("Copyright (c) "));
    lines.flat_map(str::split_whitespace).collect()
}

impl Package {
    /// Its licences; a file without an expression has to be the MIT licence.
    fn expression(&self) -> Result<Expression, String> {
        let text = match (&self.license, &self.license_file) {
            (Some(text), _) => text.as_str(),
            (None, Some(file)) => {
                let folder = Path::new(&self.manifest_path).parent().unwrap();
                let same = words(&read(&folder.join(file))) == words(&in_root("LICENSE-MIT"));
                if same { "MIT" } else { return Err(format!("`{file}` is another text than MIT")) }
            }
            (None, None) => return Err("it names no licence".into()),
        };
        // a slash stands for `OR` in old manifests
        let mode = spdx::ParseMode { allow_slash_as_or_operator: true, ..spdx::ParseMode::STRICT };
        Expression::parse_mode(text, mode).map_err(|e| format!("`{text}`: {}", e.reason))
    }

    /// What is wrong with it, and the licences that allow it.
    fn faults(&self, rules: &Rules, used: &mut BTreeSet<String>) -> Vec<String> {
        let mut faults = Vec::new();
        match self.expression() {
            Err(why) => faults.push(why),
            Ok(expression) => {
                let special = rules.licenses.exceptions.iter().filter(|e| e.name == self.name);
                let allowed: Vec<&String> =
                    special.flat_map(|e| &e.allow).chain(&rules.licenses.allow).collect();
                let suits = expression.evaluate(|asked| {
                    // with an addition it is a licence of its own
                    let asked = asked.to_string();
                    let found = allowed.iter().find(|name| ***name == asked);
                    used.extend(found.copied().cloned());
                    found.is_some()
                });
                if !suits {
                    faults.push(format!("`{expression}` is not allowed"));
                }
            }
        }
        match &self.source {
            Some(source) => {
                let registry = source.strip_prefix("registry+");
                if !registry.is_some_and(|r| rules.sources.allow_registry.iter().any(|a| a == r)) {
                    faults.push(format!("`{source}` is not allowed"));
                }
            }
            None if self.name == env!("CARGO_PKG_NAME") => {}
            None => faults.push("it has no source".into()),
        }
        let ours = self.source.is_none();
        let any = self.dependencies.iter().filter(|d| d.req == "*");
        let any = any.filter(|d| ours || d.kind.as_deref() != Some("dev"));
        faults.extend(any.map(|d| format!("it takes any version of `{}`", d.name)));
        faults.into_iter().map(|why| format!("{} {}: {why}", self.name, self.version)).collect()
    }
}

#[test]
fn every_crate_is_as_the_rules_say() {
    let Some(packages) = packages() else { return };
    let rules = rules();
    let mut used = BTreeSet::new();
    let faults: Vec<String> = packages.iter().flat_map(|p| p.faults(&rules, &mut used)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let lock: toml::Table = in_root("Cargo.lock").parse().unwrap();
    assert_eq!(packages.len(), lock["package"].as_array().unwrap().len());
    let exceptions = rules.licenses.exceptions.iter();
    for exception in exceptions.clone() {
        assert!(packages.iter().any(|p| p.name == exception.name), "{}", exception.name);
    }
    let listed = exceptions.flat_map(|e| &e.allow).chain(&rules.licenses.allow).cloned();
    assert_eq!(used, listed.collect(), "licences in use, and those of deny.toml");
}

#[test]
fn what_the_rules_refuse_is_found() {
    let rules = rules();
    let registry = Some(format!("registry+{}", rules.sources.allow_registry[0]));
    let found = |name: &str, license: Option<&str>, source: Option<&str>, req: &str| {
        let package = Package {
            name: name.into(),
            version: "1.0.0".into(),
            license: license.map(str::to_owned),
            license_file: None,
            manifest_path: String::new(),
            source: source.map(str::to_owned),
            dependencies: vec![Dependency { name: "d".into(), req: req.into(), kind: None }],
        };
        package.faults(&rules, &mut BTreeSet::new())
    };
    let known = registry.as_deref();
    for license in ["MIT", "GPL-3.0-only OR MIT", "MIT/Apache-2.0", "(MIT OR X11) AND ISC"] {
        assert_eq!(found("a", Some(license), known, "^1"), [""; 0], "{license}");
    }
    assert_eq!(found("option-ext", Some("MPL-2.0"), known, "^1"), [""; 0]);
    for license in
        ["MPL-2.0", "GPL-3.0-only", "MIT AND MPL-2.0", "MIT WITH Classpath-exception-2.0"]
    {
        let expected = format!("a 1.0.0: `{license}` is not allowed");
        assert_eq!(found("a", Some(license), known, "^1"), [expected]);
    }
    assert_eq!(found("a", None, known, "^1"), ["a 1.0.0: it names no licence"]);
    assert_eq!(found("a", Some("MTI"), known, "^1"), ["a 1.0.0: `MTI`: unknown term"]);
    let git = "git+https://example.org/a#0123";
    let expected = format!("a 1.0.0: `{git}` is not allowed");
    assert_eq!(found("a", Some("MIT"), Some(git), "^1"), [expected]);
    assert_eq!(found("a", Some("MIT"), None, "^1"), ["a 1.0.0: it has no source"]);
    assert_eq!(found("a", Some("MIT"), known, "*"), ["a 1.0.0: it takes any version of `d`"]);
}
