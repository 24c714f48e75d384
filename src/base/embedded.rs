//! Files that the program carries: `build.rs` compresses them, the first use unpacks them.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// Path and bytes of every file that `build.rs` put into `packed`, in its order. They live as long as the program:
/// call it once, from a static.
pub(crate) fn unpack(packed: &[u8]) -> Vec<(&'static str, &'static [u8])> {
    let mut all = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut all).expect("made by the build script");
    let mut rest: &'static [u8] = all.leak();
    let mut files = Vec::new();
    while !rest.is_empty() {
        let name = take_line(&mut rest);
        let length = take_line(&mut rest).parse().expect("made by the build script");
        let (bytes, next) = rest.split_at(length);
        files.push((name, bytes));
        rest = next;
    }
    files
}

/// [`unpack`] for files of text.
pub(crate) fn unpack_texts(packed: &[u8]) -> Vec<(&'static str, &'static str)> {
    let text = |bytes| str::from_utf8(bytes).expect("files of text are UTF-8");
    unpack(packed).into_iter().map(|(name, bytes)| (name, text(bytes))).collect()
}

/// The text up to the next line feed, which goes, too.
fn take_line(rest: &mut &'static [u8]) -> &'static str {
    let end = memchr::memchr(b'\n', rest).expect("made by the build script");
    let (line, next) = rest.split_at(end);
    *rest = &next[1..];
    str::from_utf8(line).expect("names are UTF-8")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    #[test]
    fn files_come_out_as_they_went_in() {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(b"a/b.txt\n7\nx\n12\nyzempty\n0\nc\n3\n\0\n\xff").unwrap();
        let files = unpack(&packed.finish().unwrap());
        assert_eq!(files, [("a/b.txt", &b"x\n12\nyz"[..]), ("empty", b""), ("c", b"\0\n\xff")]);
    }
}
