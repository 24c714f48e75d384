//! The modules are layers without circles: read from the `use` lines and paths of `src`.
//!
//! A path counts for the module that defines what it names: re-exports are followed, and only those of a
//! module's own parts are no dependencies themselves. Tests within `src` may use everything.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// From the ground up: a module uses its own layer and those before it.
const LAYERS: [&str; 13] = [
    "base", "matrix", "symbolic", "compute", "methods", "obstacle", "problem", "case", "record",
    "config", "bench", "report", "cli",
];

type Names = Vec<String>;

/// What a file says of others.
#[derive(Default)]
struct Module {
    /// Names that it exports, or imports, and what they stand for.
    aliases: HashMap<String, Names>,
    /// Modules of which everything is exported.
    globs: Vec<Names>,
    /// Paths from the root of the crate.
    paths: Vec<Names>,
    /// Items that are defined here.
    items: BTreeSet<String>,
}

/// Reads a file of the module `at`.
struct Reader<'a> {
    at: Names,
    /// Inline modules around.
    inner: usize,
    found: Module,
    /// Modules that are tests.
    tests: &'a mut BTreeSet<String>,
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        let text = match &a.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        a.path().is_ident("cfg")
            && (text == "test" || text.starts_with("all (test") || text.starts_with("all(test"))
    })
}

impl Reader<'_> {
    /// From the root of the crate, where the path does not begin with another crate or a local name.
    fn absolute(&self, path: &[String]) -> Option<Names> {
        let mut from = self.at.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" | "$crate" => return Some(rest[1..].to_vec()),
            "self" => rest = &rest[1..],
            "super" => {}
            first => {
                let known = self.found.aliases.get(first);
                return known.map(|of| [of, &rest[1..]].concat());
            }
        }
        while rest.first().is_some_and(|word| word == "super") {
            from.pop()?;
            rest = &rest[1..];
        }
        from.extend_from_slice(rest);
        Some(from)
    }

    fn tree(&mut self, tree: &UseTree, before: &mut Names, exported: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before, exported);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.tree(item, before, exported));
            }
            UseTree::Name(name) if name.ident == "self" => {
                let alias = before.last().cloned().unwrap_or_default();
                self.used(before, Some(alias), exported);
            }
            UseTree::Name(name) => {
                let path = [before.as_slice(), &[name.ident.to_string()]].concat();
                self.used(&path, Some(name.ident.to_string()), exported);
            }
            UseTree::Rename(rename) => {
                let path = [before.as_slice(), &[rename.ident.to_string()]].concat();
                self.used(&path, Some(rename.rename.to_string()), exported);
            }
            UseTree::Glob(_) => self.used(before, None, exported),
        }
    }

    fn used(&mut self, path: &[String], alias: Option<String>, exported: bool) {
        // a path in a `use` may begin with a module of this one
        let local = [self.at.as_slice(), path].concat();
        let Some(absolute) = self.absolute(path).or(Some(local)) else { return };
        match alias {
            Some(alias) => {
                self.found.aliases.insert(alias, absolute.clone());
            }
            None if exported => self.found.globs.push(absolute.clone()),
            None => {}
        }
        if !exported || !absolute.starts_with(&self.at) {
            self.found.paths.push(absolute);
        }
    }

    fn path(&mut self, path: &[String]) {
        if path.len() > 1
            && let Some(absolute) = self.absolute(path)
        {
            self.found.paths.push(absolute);
        }
    }

    /// Paths among the words of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if colons == 2 || path.is_empty() => {
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => colons += 1,
                other => {
                    self.path(&std::mem::take(&mut path));
                    colons = 0;
                    match other {
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        TokenTree::Ident(word) => path.push(word.to_string()),
                        _ => {}
                    }
                }
            }
        }
        self.path(&path);
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        let (attributes, name) = match item {
            Item::Fn(i) => (&i.attrs, i.sig.ident.to_string()),
            Item::Struct(i) => (&i.attrs, i.ident.to_string()),
            Item::Enum(i) => (&i.attrs, i.ident.to_string()),
            Item::Const(i) => (&i.attrs, i.ident.to_string()),
            Item::Static(i) => (&i.attrs, i.ident.to_string()),
            Item::Trait(i) => (&i.attrs, i.ident.to_string()),
            Item::Type(i) => (&i.attrs, i.ident.to_string()),
            Item::Use(i) => (&i.attrs, String::new()),
            Item::Impl(i) => (&i.attrs, String::new()),
            Item::Mod(i) => (&i.attrs, String::new()),
            _ => return visit::visit_item(self, item),
        };
        if let (true, Item::Mod(m)) = (is_test(attributes), item) {
            self.tests.insert([self.at.as_slice(), &[m.ident.to_string()]].concat().join("::"));
        }
        if is_test(attributes) {
            return;
        }
        if self.inner == 0 {
            self.found.items.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, m: &'a ItemMod) {
        if m.content.is_some() {
            self.at.push(m.ident.to_string());
            self.inner += 1;
            visit::visit_item_mod(self, m);
            self.inner -= 1;
            self.at.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        let exported = !matches!(item.vis, Visibility::Inherited);
        self.tree(&item.tree, &mut Vec::new(), exported);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Names = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.path(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, m: &'a Macro) {
        self.tokens(m.tokens.clone());
        visit::visit_macro(self, m);
    }
}

/// Which module uses which, by what.
type Edges = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Of the texts of modules, which are called as in paths; that of the root is empty.
fn edges(texts: &BTreeMap<String, String>) -> Edges {
    let mut tests = BTreeSet::new();
    let mut modules: BTreeMap<String, Module> = BTreeMap::new();
    for (name, text) in texts {
        let at = name.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let mut reader = Reader { at, inner: 0, found: Module::default(), tests: &mut tests };
        let file = syn::parse_file(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        // imports first: paths are read with them
        for item in &file.items {
            if let Item::Use(item) = item
                && !is_test(&item.attrs)
            {
                reader.visit_item_use(item);
            }
        }
        reader.visit_file(&file);
        modules.insert(name.clone(), reader.found);
    }
    let of_tests = |name: &str| {
        // a file that `#[path]` names
        name.ends_with("_tests")
            || tests.iter().any(|t| name == t || name.starts_with(&format!("{t}::")))
    };
    modules.retain(|name, _| !of_tests(name));
    let mut edges = Edges::new();
    for (name, module) in &modules {
        for path in &module.paths {
            let Some(to) = defining(&modules, path, 0) else { continue };
            if to != *name && !to.is_empty() {
                let what = path[path.len().saturating_sub(2)..].join("::");
                edges.entry(name.clone()).or_default().entry(to).or_default().insert(what);
            }
        }
    }
    edges
}

/// The module that defines what a path names.
fn defining(modules: &BTreeMap<String, Module>, path: &[String], depth: usize) -> Option<String> {
    let length = (0..=path.len()).rev().find(|&n| modules.contains_key(&path[..n].join("::")))?;
    let name = path[..length].join("::");
    let (module, Some(next)) = (&modules[&name], path.get(length)) else { return Some(name) };
    if module.items.contains(next) || depth > 9 {
        return Some(name);
    }
    if let Some(of) = module.aliases.get(next) {
        let path = [of, &path[length + 1..]].concat();
        return defining(modules, &path, depth + 1);
    }
    let holds = |glob: &&Names| {
        modules.get(&glob.join("::")).is_some_and(|module| module.items.contains(next))
    };
    Some(module.globs.iter().find(holds).map_or(name, |glob| glob.join("::")))
}

fn sources() -> BTreeMap<String, String> {
    fn read(folder: &Path, name: &str, texts: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let below =
                |stem: &str| if name.is_empty() { stem.into() } else { format!("{name}::{stem}") };
            if path.is_dir() {
                read(&path, &below(stem), texts);
            } else if path.extension().is_some_and(|e| e == "rs") && stem != "main" {
                let name =
                    if ["mod", "lib"].contains(&stem) { name.to_owned() } else { below(stem) };
                texts.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut texts = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut texts);
    texts
}

fn layer(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

/// Uses of a higher layer, in words.
fn upward(edges: &Edges, layers: &[&str]) -> Vec<String> {
    let height = |module: &str| layers.iter().position(|l| *l == layer(module));
    let mut found = Vec::new();
    for (from, uses) in edges.iter().filter(|(from, _)| !from.is_empty()) {
        for (to, what) in uses.iter().filter(|(to, _)| height(to) > height(from)) {
            found.push(format!("{from} uses {to}: {what:?}"));
        }
    }
    found
}

/// Circles between the modules of one folder, what is below each counted as its own. A folder and what lies in
/// it are one unit: its file names its parts and holds what they share.
fn circles(edges: &Edges) -> Vec<String> {
    let mut folders: BTreeMap<String, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (from, uses) in edges {
        for to in uses.keys() {
            let (a, b): (Vec<&str>, Vec<&str>) =
                (from.split("::").collect(), to.split("::").collect());
            let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (a.get(common), b.get(common))
                && !a.is_empty()
            {
                let folder = from.split("::").take(common).collect::<Vec<_>>().join("::");
                folders.entry(folder).or_default().entry(a).or_default().insert(b);
            }
        }
    }
    let mut found = Vec::new();
    for (folder, mut uses) in folders {
        // what uses nothing that is left is in no circle, nor is what nothing that is left uses
        loop {
            let used: BTreeSet<&str> = uses.values().flatten().copied().collect();
            let before = uses.len();
            let names: BTreeSet<&str> = uses.keys().copied().collect();
            for to in uses.values_mut() {
                to.retain(|b| names.contains(b));
            }
            uses.retain(|a, to| !to.is_empty() && used.contains(a));
            if uses.len() == before {
                break;
            }
        }
        if !uses.is_empty() {
            found.push(format!("in `{folder}`: {uses:?}"));
        }
    }
    found
}

#[test]
fn no_module_uses_a_layer_above_its_own() {
    let edges = edges(&sources());
    for module in edges.keys().filter(|module| !module.is_empty()) {
        assert!(LAYERS.contains(&layer(module)), "`{module}` belongs to no layer");
    }
    let found = upward(&edges, &LAYERS);
    assert!(found.is_empty(), "{} uses upward:\n{}", found.len(), found.join("\n"));
}

#[test]
fn there_are_no_circles_between_modules() {
    let found = circles(&edges(&sources()));
    assert!(found.is_empty(), "{} circles:\n{}", found.len(), found.join("\n"));
}

#[test]
fn upward_uses_and_circles_are_found_through_re_exports() {
    let texts = [
        ("", "pub mod low; pub mod high;"),
        ("low", "pub mod a; pub mod b; pub mod c; pub use a::A;"),
        ("low::a", "pub struct A; fn f() { super::b::g() }"),
        ("low::b", "use crate::low::A; pub fn g() { let _ = crate::high::H; }"),
        ("low::c", "pub use crate::high::H;"),
        ("high", "pub struct H; #[cfg(test)] mod tests { use crate::low::A; }"),
    ];
    let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let edges = edges(&texts);
    let found = ["b", "c"].map(|part| format!(r#"low::{part} uses high: {{"high::H"}}"#));
    assert_eq!(upward(&edges, &["low", "high"]), found);
    assert_eq!(circles(&edges), [r#"in `low`: {"a": {"b"}, "b": {"a"}}"#]);
}

/// The picture in `docs/architecture.md`: each layer with the layers that it uses, without those that these
/// use in turn.
fn picture(edges: &Edges) -> String {
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges.iter().filter(|(from, _)| !from.is_empty()) {
        let others = to.keys().map(|to| layer(to)).filter(|to| *to != layer(from));
        uses.entry(layer(from)).or_default().extend(others);
    }
    let mut text = String::from("```mermaid\ngraph BT\n");
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for from in LAYERS {
        let direct = uses.get(from).cloned().unwrap_or_default();
        let through: BTreeSet<&str> =
            direct.iter().flat_map(|to| reached.get(to).cloned().unwrap_or_default()).collect();
        for to in direct.difference(&through) {
            writeln!(text, "  {from} --> {to}").unwrap();
        }
        reached.insert(from, direct.union(&through).copied().collect());
    }
    text + "```\n"
}

#[test]
fn the_picture_of_the_layers_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let start = text.find("```mermaid\n").expect("a picture");
    let end = start + text[start + 3..].find("```\n").expect("its end") + 7;
    let new = picture(&edges(&sources()));
    if std::env::var_os("BILU_BENCH_WRITE_DOCS").is_some() {
        std::fs::write(&path, [&text[..start], &new, &text[end..]].concat()).unwrap();
    } else {
        assert_eq!(text[start..end], new, "run this test with BILU_BENCH_WRITE_DOCS=1");
    }
}
