//! The arguments of each `launch!` and `run!` against the parameters of the kernels that it may launch: how many
//! there are and, where the source tells their types, of which size or struct.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bilu_bench::compute::cuda::sources::{self, HEADERS};
use bilu_bench::methods::solver;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::structs::layouts;

/// What an argument or a parameter is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A pointer or a number of so many bytes.
    Bytes(usize),
    /// A struct, or a type that a macro chooses.
    Struct(String),
}

type Signatures = BTreeMap<String, Vec<Vec<Kind>>>;

/// The parameters of the kernels in CUDA C++.
fn signatures(text: &str, found: &mut Signatures) {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap().to_owned() + "\n").collect();
    for kernel in code.split("__global__ void").skip(1) {
        let bounds = kernel.trim_start().strip_prefix("__launch_bounds__");
        let rest = bounds.map_or(kernel, |rest| rest.split_once(')').unwrap().1);
        let (name, rest) = rest.split_once('(').unwrap();
        let parameters = rest.split_once(')').unwrap().0;
        let kind = |parameter: &str| {
            let word = |w: &&str| !["const", "__grid_constant__", "__restrict__"].contains(w);
            match parameter.split_whitespace().find(word).unwrap() {
                _ if parameter.contains('*') => Kind::Bytes(8),
                "double" | "size_t" | "u64" => Kind::Bytes(8),
                "u32" | "int" => Kind::Bytes(4),
                name => Kind::Struct(name.to_owned()),
            }
        };
        let parameters = parameters.split(',').map(kind).collect();
        found.entry(name.trim().to_owned()).or_default().push(parameters);
    }
}

/// The kernels of a source, with those of the headers that it includes.
fn kernels_of(file: &str, text: &str) -> Signatures {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let (mut all, mut seen) = (Signatures::new(), BTreeSet::new());
    let mut left = vec![(folder.to_owned(), text)];
    while let Some((folder, text)) = left.pop() {
        signatures(text, &mut all);
        for line in text.lines().filter_map(|line| line.trim().strip_prefix("#include \"")) {
            let name = line.trim_end_matches('"');
            let beside = folder.join(name);
            let header = HEADERS.iter().find(|(h, _)| Path::new(h) == beside || *h == name);
            if let Some((path, text)) = header.filter(|(path, _)| seen.insert(*path)) {
                left.push((Path::new(path).parent().unwrap().to_owned(), text));
            }
        }
    }
    all
}

/// What a file of Rust says of its kernels.
#[derive(Default)]
struct File {
    /// Words and string literals: constants of sources and names of kernels are among them.
    words: BTreeSet<String>,
    /// Literals in what fields and variables are given, each time.
    bound: BTreeMap<String, Vec<BTreeSet<String>>>,
    /// What fields, parameters and variables are; `None` where a variable is something else.
    kinds: BTreeMap<String, Vec<Option<Kind>>>,
    /// Kernel and arguments.
    launches: Vec<(Tokens, Vec<Tokens>)>,
}

type Tokens = Vec<TokenTree>;

fn is(token: Option<&TokenTree>, text: &str) -> bool {
    token.is_some_and(|t| !matches!(t, TokenTree::Group(_)) && t.to_string() == text)
}

/// Tokens between those that are `mark`.
fn split(tokens: &[TokenTree], mark: &str) -> Vec<Tokens> {
    let parts = tokens.split(|t| is(Some(t), mark)).map(<[TokenTree]>::to_vec);
    parts.filter(|part| !part.is_empty()).collect()
}

fn inside(token: &TokenTree, delimiter: Delimiter) -> Option<Tokens> {
    let TokenTree::Group(group) = token else { return None };
    (group.delimiter() == delimiter).then(|| group.stream().into_iter().collect())
}

/// All words, and the texts of literals.
fn words(tokens: &[TokenTree], found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(g) => words(&g.stream().into_iter().collect::<Tokens>(), found),
            TokenTree::Punct(_) => {}
            other => drop(found.insert(other.to_string())),
        }
    }
}

fn literals(tokens: &[TokenTree]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    words(tokens, &mut all);
    literals_of(&all)
}

fn literals_of(words: &BTreeSet<String>) -> BTreeSet<String> {
    let text = |word: &String| word.strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
    words.iter().filter_map(text).collect()
}

/// What a type is, of which `tokens` may be the begin.
fn of_type(tokens: &[TokenTree]) -> Option<Kind> {
    let mut names = tokens.iter().map(ToString::to_string);
    let name = names.find(|name| !["&", "mut", "'", "a", "crate"].contains(&name.as_str()))?;
    match name.as_str() {
        "u32" | "i32" => Some(Kind::Bytes(4)),
        "f64" | "u64" | "usize" | "Address" | "CudaSlice" => Some(Kind::Bytes(8)),
        "Rc" if names.nth(1)? == "CudaSlice" => Some(Kind::Bytes(8)),
        of if of.ends_with("Arg") => Some(Kind::Struct(name)),
        _ => None,
    }
}

impl File {
    fn read(text: &str) -> Self {
        let mut file = Self::default();
        let tests = text.split("#[cfg(test)]").next().unwrap();
        let tokens: TokenStream = tests.parse().unwrap();
        let tokens: Tokens = tokens.into_iter().collect();
        words(&tokens, &mut file.words);
        file.tokens(&tokens);
        file
    }

    fn tokens(&mut self, tokens: &[TokenTree]) {
        for (i, token) in tokens.iter().enumerate() {
            let rest = &tokens[i + 1..];
            if let TokenTree::Group(group) = token {
                self.tokens(&group.stream().into_iter().collect::<Tokens>());
            } else if is(Some(token), "let") {
                let statement = split(rest, ";").swap_remove(0);
                if let Some(at) = statement.iter().position(|t| is(Some(t), "=")) {
                    self.pattern(&statement[..at], &statement[at + 1..]);
                }
            } else if let (true, [TokenTree::Ident(name), ..]) = (is(Some(token), "for"), rest) {
                self.kinds.entry(name.to_string()).or_default().push(None);
            } else if let TokenTree::Ident(name) = token
                && is(rest.first(), ":")
                && !is(rest.get(1), ":")
                && !is(i.checked_sub(1).map(|before| &tokens[before]), ":")
            {
                let value = split(&rest[1..], ",").swap_remove(0);
                let (name, kind) = (name.to_string(), of_type(&value));
                if kind.is_some() || !literals(&value).is_empty() {
                    self.bind(name, &value, kind);
                }
            } else if let ("launch" | "run", Some(TokenTree::Group(group)), true) =
                (token.to_string().as_str(), rest.get(1), is(rest.first(), "!"))
            {
                let all: Tokens = group.stream().into_iter().collect();
                if let [head, arguments] = &split(&all, ";")[..] {
                    let kernel = split(head, ",").swap_remove(1);
                    self.launches.push((kernel, split(arguments, ",")));
                }
            }
        }
    }

    fn pattern(&mut self, pattern: &[TokenTree], value: &[TokenTree]) {
        let pattern = if is(pattern.first(), "mut") { &pattern[1..] } else { pattern };
        if let [TokenTree::Ident(name)] = pattern {
            let kind = self.kind(value);
            return self.bind(name.to_string(), value, kind);
        }
        if let ([names], [values]) = (pattern, value) {
            for delimiter in [Delimiter::Parenthesis, Delimiter::Bracket] {
                if let (Some(names), Some(values)) =
                    (inside(names, delimiter), inside(values, delimiter))
                {
                    let both = split(&names, ",").into_iter().zip(split(&values, ","));
                    return both.for_each(|(name, value)| self.pattern(&name, &value));
                }
            }
        }
        // taken from a value whose parts are not to be seen
        let mut names = BTreeSet::new();
        words(pattern, &mut names);
        for name in names {
            self.kinds.entry(name).or_default().push(None);
        }
    }

    fn bind(&mut self, name: String, value: &[TokenTree], kind: Option<Kind>) {
        let found = literals(value);
        if !found.is_empty() {
            self.bound.entry(name.clone()).or_default().push(found);
        }
        self.kinds.entry(name).or_default().push(kind);
    }

    /// What a value is, where that is to be seen.
    fn kind(&self, value: &[TokenTree]) -> Option<Kind> {
        let texts: Vec<String> = value.iter().map(ToString::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match &texts[..] {
            [.., "as", _] => of_type(&value[value.len() - 1..]),
            ["address", _] | [.., ".", "address", "()"] => Some(Kind::Bytes(8)),
            [name, group] if group.starts_with('{') && name.ends_with("Arg") => of_type(value),
            _ if value.iter().any(|t| matches!(t, TokenTree::Group(_))) => None,
            [.., name] => match &self.kinds.get(*name)?[..] {
                [first, others @ ..] if others.iter().all(|other| other == first) => first.clone(),
                _ => None,
            },
            [] => None,
        }
    }
}

/// Whether the arguments suit the parameters; and how many of them were compared.
fn suits(file: &File, arguments: &[Tokens], parameters: &[Kind], compared: &mut usize) -> bool {
    let mut same = |argument: &Tokens, parameter: &Kind| {
        let Some(kind) = file.kind(argument) else { return true };
        *compared += 1;
        match (&kind, parameter) {
            (Kind::Bytes(a), Kind::Bytes(b)) => a == b,
            (Kind::Struct(rust), Kind::Struct(there)) => layouts()
                .any(|l| l.rust == rust && l.declared.iter().any(|(name, _)| name == there)),
            // a name for another type, by macros
            (Kind::Bytes(_), Kind::Struct(there)) => layouts()
                .all(|l| !l.condition.is_empty() || l.declared.iter().all(|(of, _)| of != there)),
            (Kind::Struct(_), Kind::Bytes(_)) => false,
        }
    };
    let lengths = arguments.len() == parameters.len();
    lengths && arguments.iter().zip(parameters).map(|(a, p)| same(a, p)).fold(true, |x, y| x & y)
}

/// What is wrong with the launches of a file, and how many arguments were compared.
fn faults(path: &str, text: &str, kernels: &BTreeMap<String, Signatures>) -> (Vec<String>, usize) {
    let file = File::read(text);
    let of_file = |source: &str| file.words.contains(source);
    let mut known: Vec<&Signatures> =
        kernels.iter().filter(|(source, _)| of_file(source)).map(|(_, all)| all).collect();
    if known.is_empty() {
        known = kernels.values().collect();
    }
    let (mut faults, mut compared) = (Vec::new(), 0);
    for (kernel, arguments) in &file.launches {
        let last = kernel.iter().rev().find(|t| matches!(t, TokenTree::Ident(_)));
        let last = last.map(ToString::to_string).unwrap_or_default();
        let at_once = literals(kernel);
        let (names, all) = match file.bound.get(&last) {
            _ if !at_once.is_empty() => (at_once, true),
            Some(bound) => (bound.iter().flatten().cloned().collect(), bound.len() == 1),
            // a method names its kernel
            None if path == "compute/cuda/in_kernel.rs" => {
                (solver::persistent().map(|kernel| kernel.name.to_owned()).collect(), false)
            }
            None => (literals_of(&file.words), false),
        };
        let mut fits = |name: &String| {
            let mut found = known.iter().filter_map(|of| of.get(name)).flatten();
            found.any(|parameters| suits(&file, arguments, parameters, &mut compared))
        };
        let exists = |name: &&String| known.iter().any(|of| of.contains_key(*name));
        let mut names = names.iter().filter(exists).peekable();
        let fit =
            names.peek().is_some() && if all { names.all(&mut fits) } else { names.any(fits) };
        // `run!` itself
        if !fit && path != "compute/cuda/compressed.rs" {
            let kernel: TokenStream = kernel.iter().cloned().collect();
            faults
                .push(format!("src/{path}: {} arguments do not suit `{kernel}`", arguments.len()));
        }
    }
    (faults, compared)
}

/// The kernels of each source, by the constant that stands for it.
fn kernels() -> BTreeMap<String, Signatures> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("src/compute/cuda/sources.rs")).unwrap();
    let lines = table.lines().filter_map(|line| line.trim().split_once(", \""));
    let named = lines.filter_map(|(constant, rest)| Some((constant, rest.split_once('"')?.0)));
    let source = |(constant, name): (&str, &str)| {
        let source = sources::ALL.iter().find(|source| source.name == name)?;
        Some((constant.to_owned(), kernels_of(name, source.text())))
    };
    named.filter_map(source).collect()
}

#[test]
fn launches_have_the_arguments_that_kernels_take() {
    fn read(folder: &Path, at: &str, texts: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let below = format!("{at}{}", path.file_name().unwrap().to_str().unwrap());
            if path.is_dir() {
                read(&path, &format!("{below}/"), texts);
            } else {
                texts.insert(below, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut texts = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut texts);
    let kernels = kernels();
    assert_eq!(kernels.len(), sources::ALL.len());
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (path, text) in
        texts.iter().filter(|(_, text)| text.contains("launch!(") || text.contains("run!("))
    {
        if path == "compute/cuda/launch.rs" {
            continue;
        }
        let (of_file, count) = faults(path, text, &kernels);
        wrong.extend(of_file);
        compared += count;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 100, "types of {compared} arguments were seen");
}

#[test]
fn wrong_arguments_are_found() {
    let mut all = Signatures::new();
    signatures(
        "struct X;\nextern \"C\" __global__ void __launch_bounds__(128, 2)\n\
         k(Triangle t, const u32* __restrict__ a, u32 n) {}\n__global__ void other(double x) {}",
        &mut all,
    );
    let kernels = [("SOURCE".to_owned(), all)].into();
    let launch = |arguments: &str, name: &str| {
        let text = format!(
            "struct S {{ kernel: CudaFunction, a: CudaSlice<u32> }}
             fn f(s: &S, t: TriangleArg, x: f64) {{
                 let s = S {{ kernel: d.kernel(&SOURCE, 0, {name:?})? }};
                 let (n, m) = (3 as u32, 4);
                 launch!(d, &s.kernel, config; {arguments});
             }}"
        );
        faults("a.rs", &text, &kernels).0.len()
    };
    for right in ["t, s.a, n", "t, address(&s.a), 3 as u32", "t, s.b.address(), m", "unknown, y, z"]
    {
        assert_eq!(launch(right, "k"), 0, "{right}");
    }
    for wrong in
        ["t, s.a", "t, s.a, n, n", "t, s.a, x", "t, n, n", "s.a, s.a, n", "PatternArg {}, s.a, n"]
    {
        assert_eq!(launch(wrong, "k"), 1, "{wrong}");
    }
    assert_eq!((launch("x", "other"), launch("n", "other"), launch("n", "absent")), (0, 1, 1));
}
