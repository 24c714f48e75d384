//! Layouts of the structs that Rust shares with kernels, and the assertions by which the kernels' compiler
//! compares them with its own (`tests/kernels`).

use std::fmt::Write as _;

/// A struct as Rust lays it out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Rust file that declares it.
    pub module: &'static str,
    /// Its name in Rust.
    pub rust: &'static str,
    /// What it is to the kernels: names of structs, each with its file below `kernels/`.
    pub declared: &'static [(&'static str, &'static str)],
    /// Where it is declared so, for the preprocessor; empty for everywhere.
    pub condition: &'static str,
    /// Bytes.
    pub size: usize,
    /// In their order; `base` is a base class there. None of what are words in Rust.
    pub fields: &'static [Field],
}

/// A field of a [`Layout`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The same on both sides.
    pub name: &'static str,
    /// Bytes before it.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

impl Layout {
    /// C++ that compiles behind the declaration of `name` only if it is laid out as here and has no other
    /// fields.
    #[must_use]
    pub fn assertions(&self, name: &str) -> String {
        let conditional = !self.condition.is_empty();
        let mut text =
            if conditional { format!("#if {}\n", self.condition) } else { String::new() };
        let mut same = |what: &str, subject: &str, bytes: usize| {
            let rust = self.rust;
            writeln!(text, "static_assert({what} == {bytes}, \"{subject} is {bytes} in {rust}\");")
                .expect("a string grows");
        };
        same(&format!("sizeof({name})"), &format!("size of {name}"), self.size);
        for Field { name: field, offset, size } in self.fields.iter().filter(|f| f.name != "base") {
            let subject = format!("{name}::{field}");
            // what `offsetof` stands for, which NVRTC has no header for
            let at = format!("__INTADDR__(&((({name}*)0)->{field}))");
            same(&at, &format!("offset of {subject}"), *offset);
            same(&format!("sizeof({subject})"), &format!("size of {subject}"), *size);
        }
        if !self.fields.is_empty() && self.fields.iter().all(|f| f.name != "base") {
            // a name for each field, no more and no less
            let names: Vec<String> = (0..self.fields.len()).map(|n| format!("f{n}")).collect();
            let names = names.join(", ");
            let function = format!("__device__ inline void fields_of({name}& s)");
            writeln!(text, "{function} {{ [[maybe_unused]] auto& [{names}] = s; }}")
                .expect("a string grows");
        }
        text.push_str(if conditional { "#endif\n" } else { "" });
        text
    }
}

/// Declares structs that Rust shares with kernels, with what they are called there, and lists them as
/// `LAYOUTS`, which [`layouts`](super::layouts) or that of the obstacle problem collects. `words` are structs of
/// which Rust knows no more than the size.
macro_rules! shared {
    ($(words $type:ty = $struct:literal of $file:literal;)+) => {
        /// What the words are to the kernels.
        pub(crate) const LAYOUTS: &[$crate::compute::cuda::layout::Layout] = &[$(
            $crate::compute::cuda::layout::Layout {
                module: file!(),
                rust: stringify!($type),
                declared: &[($struct, $file)],
                condition: "",
                size: size_of::<$type>(),
                fields: &[],
            }
        ),+];
    };
    ($(
        $(#[$meta:meta])*
        $visible:vis $name:ident = $($struct:literal of $file:literal),+ $(if $condition:literal)? {
            $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)?
        }
    )*) => {
        $(
            #[doc = concat!($("`", $struct, "` of `", $file, "`. "),+)]
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Default)]
            $visible struct $name { $($(#[$field_meta])* $visible $field: $type),* }

            // SAFETY: plain numbers in C layout, as the kernels declare them: `tests/kernels` compares
            #[allow(unsafe_code, reason = "what kernels are given")]
            unsafe impl cudarc::driver::DeviceRepr for $name {}
        )*

        /// The structs above.
        pub(crate) const LAYOUTS: &[$crate::compute::cuda::layout::Layout] = &[$(
            $crate::compute::cuda::layout::Layout {
                module: file!(),
                rust: stringify!($name),
                declared: &[$(($struct, $file)),+],
                condition: concat!($($condition)?),
                size: size_of::<$name>(),
                fields: &[$($crate::compute::cuda::layout::Field {
                    name: stringify!($field),
                    offset: std::mem::offset_of!($name, $field),
                    size: size_of::<$type>(),
                }),*],
            }
        ),*];
    };
}
pub(crate) use shared;
