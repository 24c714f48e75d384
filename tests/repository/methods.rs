//! A method says itself what it is: its name is a string in its own file and nowhere else in `src`.
//!
//! What is asked of a method is a property that it declares, and a default names the method's `METHOD`. Tests
//! within `src` may name methods. `compute`, which lies below the methods and cannot use them, may have their
//! names, which are those of kernels; the algorithms of triangular solves and factorisations, which are its own,
//! are named once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bilu_bench::compute::{self, trisolve};
use bilu_bench::methods::{precond, solver};
use bilu_bench::problem::generators::GENERATORS;
use bilu_bench::symbolic::ordering;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ExprBinary, FieldValue, Ident, Item, LitStr, Macro, Member};

/// Files whose comments must use a name as a word for it to be one: fewer may mean the method.
const ORDINARY: usize = 5;

/// What holds or asks for methods: a comparison with one of these is one with a method.
const HOLDERS: [&str; 8] =
    ["precond", "solver", "ordering", "matrix", "spec", "generator", "trisolve", "factorisation"];

/// A name, and how its file or folder is called.
struct Named {
    name: &'static str,
    file: String,
    /// Whether the name alone says that the method is meant. It does not where it is an ordinary word (none,
    /// random: comments of the sources use it as one, outside backticks), nor for generators, whose names
    /// stand in the systems that are generated. These count only beside one of [`HOLDERS`].
    unmistakable: bool,
}

/// String literals of a file, and whether they are compared with, or stored as, one of [`HOLDERS`].
#[derive(Default)]
struct Literals {
    found: Vec<(String, bool)>,
    asked: usize,
}

struct Mentions(bool);

impl<'a> Visit<'a> for Mentions {
    fn visit_ident(&mut self, ident: &'a Ident) {
        self.0 |= HOLDERS.iter().any(|word| ident == word);
    }
}

fn mentions(expr: &Expr) -> bool {
    let mut found = Mentions(false);
    found.visit_expr(expr);
    found.0
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        let text = match &a.meta {
            syn::Meta::List(list) => list.tokens.to_string().replace(' ', ""),
            _ => String::new(),
        };
        a.path().is_ident("cfg") && (text == "test" || text.starts_with("all(test"))
    })
}

impl Literals {
    fn within(&mut self, asked: bool, visit: impl FnOnce(&mut Self)) {
        self.asked += usize::from(asked);
        visit(self);
        self.asked -= usize::from(asked);
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<LitStr>(&literal.to_string()) {
                        self.visit_lit_str(&text);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'a> Visit<'a> for Literals {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            Item::Fn(i) => &i.attrs,
            Item::Mod(i) => &i.attrs,
            Item::Const(i) => &i.attrs,
            Item::Impl(i) => &i.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    // doc comments are attributes
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_lit_str(&mut self, text: &'a LitStr) {
        self.found.push((text.value(), self.asked > 0));
    }

    fn visit_expr_binary(&mut self, expr: &'a ExprBinary) {
        let compares = matches!(expr.op, BinOp::Eq(_) | BinOp::Ne(_));
        let asked = compares && (mentions(&expr.left) || mentions(&expr.right));
        self.within(asked, |l| visit::visit_expr_binary(l, expr));
    }

    fn visit_expr_match(&mut self, expr: &'a syn::ExprMatch) {
        // of the arms, the patterns alone
        let asked = mentions(&expr.expr);
        self.visit_expr(&expr.expr);
        for arm in &expr.arms {
            self.within(asked, |l| l.visit_pat(&arm.pat));
            self.visit_expr(&arm.body);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let compares = ["contains", "starts_with", "eq"].iter().any(|name| call.method == name);
        let asked = compares && (mentions(&call.receiver) || call.args.iter().any(mentions));
        self.within(asked, |l| visit::visit_expr_method_call(l, call));
    }

    /// `Trisolve::LEVELS` names `levels`.
    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if let [.., of, name] = &names[..]
            && of == "Trisolve"
            && name.chars().all(|c| c.is_ascii_uppercase())
        {
            self.found.push((name.to_lowercase(), true));
        }
        visit::visit_path(self, path);
    }

    fn visit_field_value(&mut self, field: &'a FieldValue) {
        let asked = match &field.member {
            Member::Named(name) => HOLDERS.iter().any(|word| name == word),
            Member::Unnamed(_) => false,
        };
        self.within(asked, |l| visit::visit_field_value(l, field));
    }

    fn visit_macro(&mut self, m: &'a Macro) {
        self.tokens(m.tokens.clone());
    }
}

/// Texts of the files of `src` that are no tests, by their paths.
fn sources() -> BTreeMap<String, String> {
    fn read(folder: &Path, at: &str, texts: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let below = if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
            let stem = name.trim_end_matches(".rs");
            if stem == "tests" || stem.ends_with("_tests") {
                continue;
            }
            if path.is_dir() {
                read(&path, &below, texts);
            } else if path.extension().is_some_and(|e| e == "rs") {
                texts.insert(below, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut texts = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut texts);
    texts
}

/// Words of the comments, in how many files each: as they are written, without what is in backticks.
fn words(texts: &BTreeMap<String, String>) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for text in texts.values() {
        let mut found = BTreeSet::new();
        for line in text.lines().map(str::trim).filter(|line| line.starts_with("//")) {
            for part in line.split('`').step_by(2) {
                let words = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
                found.extend(words.map(str::to_owned));
            }
        }
        for word in found {
            *count.entry(word).or_insert(0) += 1;
        }
    }
    count
}

/// Every method of the registries.
fn methods(words: &BTreeMap<String, usize>) -> Vec<Named> {
    let ordinary = |name: &str| words.get(name).is_some_and(|files| *files >= ORDINARY);
    let registered = [
        (precond::NAMES, "methods/precond"),
        (solver::NAMES, "methods/solver"),
        (ordering::NAMES, "symbolic/ordering"),
        // between the choice among them and `all` of them
        (&trisolve::NAMES[1..trisolve::NAMES.len() - 1], "compute/cuda/sptrsv"),
    ];
    #[cfg(feature = "cuda")]
    let factorisations: Vec<_> =
        compute::cuda::factorisations().map(|about| (about.name, about.summary)).collect();
    #[cfg(not(feature = "cuda"))]
    let factorisations = Vec::new();
    let backend = |name: &str| compute::NAMES.iter().any(|of| of.0 == name);
    let named = |(name, folder): (&'static str, &str), unmistakable| Named {
        name,
        file: format!("{folder}/{}", name.replace('-', "_")),
        unmistakable,
    };
    let of_all = registered.iter().flat_map(|(names, at)| names.iter().map(|n| (n.0, *at)));
    let of_all = of_all.chain(factorisations.iter().map(|n| (n.0, "compute/cuda/ilu")));
    let mut all: Vec<Named> =
        of_all.map(|of| named(of, !ordinary(of.0) && !backend(of.0))).collect();
    all.extend(GENERATORS.iter().map(|g| named((g.name, "problem"), false)));
    all
}

/// Where names stand outside their files.
fn outside(texts: &BTreeMap<String, String>, methods: &[Named]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in texts {
        let mut literals = Literals::default();
        literals.visit_file(&syn::parse_file(text).unwrap_or_else(|e| panic!("{path}: {e}")));
        for (text, asked) in literals.found {
            let named = |m: &&Named| {
                let parameters = m.unmistakable && text.split(':').next() == Some(m.name);
                let below = path.starts_with("compute/") && !m.file.starts_with("compute/");
                (text == m.name || parameters) && (m.unmistakable || asked) && !below
            };
            let own = |m: &Named| {
                path.strip_prefix(&m.file)
                    .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            };
            let others: Vec<&Named> = methods.iter().filter(named).collect();
            if !others.is_empty() && !others.iter().any(|m| own(m)) {
                found.push(format!("src/{path}: {text:?}"));
            }
        }
    }
    found
}

#[test]
fn names_of_methods_stand_in_their_own_files() {
    let texts = sources();
    let methods = methods(&words(&texts));
    for m in &methods {
        let file = [".rs", "/mod.rs"].map(|end| format!("{}{end}", m.file));
        assert!(file.iter().any(|f| texts.contains_key(f)), "`{}` has no file of its own", m.name);
    }
    let known = |name: &str| methods.iter().find(|m| m.name == name).unwrap().unmistakable;
    assert!(known("gmres") && known("bilu") && known("rcm") && !known("none") && !known("random"));
    let found = outside(&texts, &methods);
    assert!(
        found.is_empty(),
        "let the methods declare what is asked of them:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_name_outside_its_file_is_found_and_an_ordinary_word_is_none() {
    let method = |name, unmistakable| Named { name, file: format!("methods/{name}"), unmistakable };
    let levels = Named { file: "compute/levels".into(), ..method("levels", false) };
    let methods = [method("cg", true), method("none", false), levels];
    let text = r#"
        /// "cg" in a comment
        fn f(case: &Case) -> bool {
            println!("{}", ["cg:m=1", "a cg"]);
            let _ = Case { solver: "none".into(), title: "none" };
            let _ = match case.precond { "none" => 1, _ => "none".len() };
            "none" != title && case.precond.name() == "none" && case.trisolve != Trisolve::LEVELS
        }
        #[cfg(test)]
        mod tests { const A: &str = "cg"; }
    "#;
    let texts = [("case.rs", text), ("methods/cg.rs", text), ("compute/a.rs", text)];
    let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let [cg, none, levels] = ["cg:m=1", "none", "levels"].map(|s| format!("src/case.rs: {s:?}"));
    let other = |s: &str| s.replace("case.rs", "methods/cg.rs");
    let below = format!("src/compute/a.rs: {:?}", "levels");
    let (none_there, levels_there) = (other(&none), other(&levels));
    let want = [
        &cg,
        &none,
        &none,
        &none,
        &levels,
        &below,
        &none_there,
        &none_there,
        &none_there,
        &levels_there,
    ];
    assert_eq!(outside(&texts, &methods).iter().collect::<Vec<_>>(), want);
}
