//! Compressed files: through pipes, in the cache, and those that are far larger unpacked.

use std::path::Path;
use std::process::Command;

use super::formats::path;
use crate::common::program::{limited, program, ran, text};

#[test]
fn archives_come_through_pipes() {
    for (file, entries) in
        [("csr.npz", 20), ("system.petsc", 20), ("a.mtx.xz", 20), ("dense.npy", 19)]
    {
        let script = format!("cat {} | \"$0\" matrix info - --fill none", path(file));
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_bilu-bench")]).env("NO_COLOR", "1");
        let output = text(&ran(&mut command, 0).stdout);
        assert!(output.contains(&format!("entries            {entries}, ")), "{file}: {output}");
    }
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.npz");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let script = format!(
        "cat {} > {pipe} & \"$0\" matrix info {pipe} --fill none; wait",
        path("plain.npz"),
        pipe = pipe.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_bilu-bench")]).env("NO_COLOR", "1");
    let output = text(&ran(&mut command, 0).stdout);
    assert!(output.contains("entries            20, "), "{output}");
}

/// An archive of so many times 2^20 zeros, all at one place, deflated a thousandfold.
fn bomb(folder: &Path, name: &str, megabytes: usize) -> String {
    // `zeros` megabytes, of which one was deflated
    let npy = |kind: &str, shape: &str, data: &[u8], zeros: usize| {
        let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((head.len() as u16).to_le_bytes());
        bytes.extend(head.bytes());
        bytes.extend(data);
        let deflated = |bytes: &[u8], flush| {
            let mut out = Vec::with_capacity(1 << 16);
            let mut deflate = flate2::Compress::new(flate2::Compression::best(), false);
            deflate.compress_vec(bytes, &mut out, flush).unwrap();
            assert_eq!(deflate.total_in(), bytes.len() as u64);
            out
        };
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        let mut out = deflated(&bytes, flate2::FlushCompress::Full);
        let zeros_of_megabyte = vec![0; 1 << 20];
        let megabyte = deflated(&zeros_of_megabyte, flate2::FlushCompress::Full);
        let mut of_megabyte = flate2::Crc::new();
        of_megabyte.update(&zeros_of_megabyte);
        for _ in 0..zeros {
            out.extend(&megabyte);
            crc.combine(&of_megabyte);
        }
        out.extend(deflated(&[], flate2::FlushCompress::Finish));
        (out, crc.sum(), crc.amount())
    };
    let n = megabytes << 20;
    let members = [
        ("format", npy("|S3", "()", b"coo", 0)),
        ("shape", npy("<i8", "(2,)", &[9_u64.to_le_bytes(); 2].concat(), 0)),
        ("row", npy("|u1", &format!("({n},)"), &[], megabytes)),
        ("col", npy("|u1", &format!("({n},)"), &[], megabytes)),
        ("data", npy("<f8", &format!("({n},)"), &[], 8 * megabytes)),
    ];
    // by hand: the sizes must be those of zip, without a library that checks them
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (part, (packed, crc, size)) in &members {
        let name = format!("{part}.npy");
        let mut head = Vec::new();
        for number in [20_u16, 0, 8, 0, 0] {
            head.extend(number.to_le_bytes());
        }
        for number in [*crc, packed.len() as u32, *size] {
            head.extend(number.to_le_bytes());
        }
        head.extend((name.len() as u16).to_le_bytes());
        head.extend(0_u16.to_le_bytes());
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&head);
        directory.extend([0; 10]);
        directory.extend((file.len() as u32).to_le_bytes());
        directory.extend(name.bytes());
        file.extend(b"PK\x03\x04");
        file.extend(&head);
        file.extend(name.bytes());
        file.extend(packed);
    }
    let start = file.len() as u32;
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([5_u16.to_le_bytes(); 2].concat());
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0; 2]);
    let path = folder.join(name);
    std::fs::write(&path, file).unwrap();
    path.display().to_string()
}

#[test]
fn a_bomb_takes_no_more_memory_than_there_is() {
    let folder = tempfile::tempdir().unwrap();
    // indices of 160 MB each: 0.4 GB of addresses are too few for all
    let file = bomb(folder.path(), "large.npz", 40);
    assert!(std::fs::metadata(&file).unwrap().len() < 1_500_000);
    let mut command = limited("-v 400000", &["matrix", "info", &file]);
    let output = ran(command.env("RAYON_NUM_THREADS", "2"), 1);
    let said = text(&output.stderr);
    assert!(said.starts_with(&format!("error: {file}: the matrix takes 0.")), "{said}");
    assert!(said.contains(" GB, but only 0."), "{said}");
    // one that fits is summed up
    let file = bomb(folder.path(), "small.npz", 1);
    let output = ran(&mut program(&["matrix", "info", &file, "--fill", "none"]), 0);
    let said = text(&output.stdout);
    assert!(said.contains("entries            1, 1 of them zero\n"), "{said}");
    assert!(said.contains("remark             1048575 duplicate entries summed\n"), "{said}");
}

#[test]
fn a_compressed_matrix_is_kept_in_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let [file, cache] = ["p.mtx", "cache"].map(|name| folder.path().join(name));
    let name = file.display().to_string();
    ran(&mut program(&["matrix", "generate", "convdiff3d:40,px=0.37", "-o", &name]), 0);
    let packed = format!("{name}.xz");
    let mut out = Vec::new();
    // stored, in chunks of LZMA2 without compression
    xz(&std::fs::read(&file).unwrap(), &mut out);
    std::fs::write(&packed, out).unwrap();
    let info = |spec: &str| {
        let mut command = program(&["matrix", "info", spec, "--fill", "none"]);
        text(&ran(command.env("BILU_BENCH_CACHE", &cache), 0).stdout)
    };
    let plain = info(&name);
    assert!(!cache.exists());
    assert_eq!(info(&packed), plain);
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
    assert_eq!(info(&packed), plain);
}

/// A file of xz that holds `data` as they are, without a check of the content.
fn xz(data: &[u8], out: &mut Vec<u8>) {
    let crc = |bytes: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        crc.sum().to_le_bytes()
    };
    let number = |mut value: u64| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    out.extend(b"\xfd7zXZ\0\0\0");
    out.extend(crc(&[0, 0]));
    // a block of LZMA2 with a dictionary of 8 MiB
    let head = [2, 0, 0x21, 1, 22, 0, 0, 0];
    out.extend(head);
    out.extend(crc(&head));
    let begin = out.len();
    for (at, chunk) in data.chunks(1 << 16).enumerate() {
        out.push(if at == 0 { 1 } else { 2 });
        out.extend(((chunk.len() - 1) as u16).to_be_bytes());
        out.extend(chunk);
    }
    out.push(0);
    let unpadded = (12 + out.len() - begin) as u64;
    out.resize(out.len().next_multiple_of(4), 0);
    let mut index = vec![0, 1];
    index.extend(number(unpadded));
    index.extend(number(data.len() as u64));
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(crc(&index));
    let mut footer = ((index.len() / 4 - 1) as u32).to_le_bytes().to_vec();
    footer.extend([0, 0]);
    out.extend(index);
    out.extend(crc(&footer));
    out.extend(footer);
    out.extend(b"YZ");
}
