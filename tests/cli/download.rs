//! `matrix get` against a server on this machine.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use bilu_bench::base::error::Error;
use bilu_bench::matrix::market;
use bilu_bench::problem::download;
use flate2::Compression;
use flate2::write::GzEncoder;
use tiny_http::{Response, Server};

/// Serves `archive` at the address of `sherman1`, and nothing else.
fn serve(archive: Vec<u8>) -> String {
    let server = Server::http("127.0.0.1:0").unwrap();
    let base = format!("http://{}", server.server_addr());
    thread::spawn(move || {
        for request in server.incoming_requests() {
            let answer = match request.url() {
                "/MM/HB/sherman1.tar.gz" => Response::from_data(archive.clone()),
                _ => Response::from_data(Vec::new()).with_status_code(404),
            };
            _ = request.respond(answer);
        }
    });
    base
}

/// A file of the size of `sherman1`: the lower triangle of 1000 rows, 3750 entries in all.
fn sherman(stored: usize) -> String {
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n1000 1000 {stored}\n");
    for i in 1..=1000 {
        _ = writeln!(text, "{i} {i} 6");
    }
    for i in 0..stored - 1000 {
        let column = i % 990 + 1;
        _ = writeln!(text, "{} {column} -1", column + 1 + i / 990);
    }
    text
}

/// A gzipped archive of the members; the path is written as it is.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in members {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn get(name: &str, base: &str, folder: &Path) -> Result<std::path::PathBuf, Error> {
    download::get(name, base, folder, &mut |_, _| {})
}

fn files(folder: &Path) -> Vec<String> {
    let name =
        |f: std::io::Result<std::fs::DirEntry>| f.unwrap().file_name().into_string().unwrap();
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().map(name).collect();
    all.sort();
    all
}

/// The error for an archive; nothing may be left behind.
fn refused(archive: Vec<u8>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let base = serve(archive);
    let error = get("sherman1", &base, folder.path()).unwrap_err();
    assert_eq!(files(folder.path()), [""; 0]);
    assert_eq!(error.exit_code(), 2);
    error.to_string().replace(&base, "")
}

#[test]
fn a_good_archive_is_unpacked_under_its_names() {
    let text = sherman(2375);
    let rhs = b"%%MatrixMarket matrix array real general\n1 1\n1\n";
    let archive = archive(&[
        ("sherman1/sherman1.mtx", text.as_bytes()),
        ("sherman1/sherman1_b.mtx", rhs),
        ("sherman1/sherman1_coord.mtx", b"not wanted"),
    ]);
    let size = archive.len() as u64;
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("new/folder");
    let mut told = Vec::new();
    let path =
        download::get("sherman1", &serve(archive), &to, &mut |at, of| told.push((at, of))).unwrap();
    assert_eq!(path, to.join("sherman1.mtx"));
    assert_eq!(files(&to), ["sherman1.mtx", "sherman1.mtx.sha256", "sherman1_b.mtx"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(told.last(), Some(&(size, Some(size))));
    let read = market::read_matrix(&path, bilu_bench::case::ReadAs::Expanded).unwrap();
    assert_eq!(read.matrix.nnz(), 3750);
    let note = std::fs::read_to_string(to.join("sherman1.mtx.sha256")).unwrap();
    let digest = <sha2::Sha256 as sha2::Digest>::digest(text.as_bytes());
    let mut expected = String::new();
    for byte in digest {
        _ = write!(expected, "{byte:02x}");
    }
    assert_eq!(note, expected + "  sherman1.mtx\n");
}

#[test]
fn archives_with_other_content_are_refused() {
    let url = "/MM/HB/sherman1.tar.gz";
    let good = sherman(2375);
    assert_eq!(
        refused(archive(&[("sherman1/sherman1.mtx", sherman(2376).as_bytes())])),
        format!(
            "{url} is not usable: it declares 1000 x 1000 with 2376 entries, \
             which is not the sherman1 of the catalogue"
        )
    );
    assert_eq!(
        refused(archive(&[("sherman1/other.mtx", good.as_bytes())])),
        format!("{url} is not usable: it does not hold `sherman1/sherman1.mtx`")
    );
    assert_eq!(
        refused(archive(&[("sherman1/sherman1.mtx", b"hello")])),
        format!("{url} is not usable: not a Matrix Market file: its first line is `hello`")
    );
    for evil in ["../sherman1.mtx", "/tmp/sherman1.mtx", "sherman1/../../x"] {
        assert_eq!(
            refused(archive(&[("sherman1/sherman1.mtx", good.as_bytes()), (evil, b"x")])),
            format!("{url} is not usable: it holds the path `{evil}`")
        );
    }
    let large = vec![b' '; 2 << 20];
    assert_eq!(
        refused(archive(&[("sherman1/sherman1.mtx", &large)])),
        format!(
            "{url} is not usable: `sherman1/sherman1.mtx` is too large: \
             2097152 bytes, at most 1428576"
        )
    );
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "sherman1/sherman1.mtx", "/etc/passwd").unwrap();
    assert_eq!(
        refused(tar.into_inner().unwrap().finish().unwrap()),
        format!("{url} is not usable: `sherman1/sherman1.mtx` is not a regular file")
    );
}

#[test]
fn damaged_archives_are_refused() {
    let good = archive(&[("sherman1/sherman1.mtx", sherman(2375).as_bytes())]);
    let half = refused(good[..good.len() / 2].to_vec());
    assert!(
        half.starts_with("/MM/HB/sherman1.tar.gz is not usable: the archive is damaged: "),
        "{half}"
    );
    let mut flipped = good;
    let at = flipped.len() - 6;
    flipped[at] ^= 1;
    let checksum = refused(flipped);
    assert!(checksum.contains("is not usable: the archive is damaged: "), "{checksum}");
}

#[test]
fn a_broken_connection_and_a_missing_file_are_told() {
    let folder = tempfile::tempdir().unwrap();
    // announces 1000 bytes and sends 10
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        _ = stream.read(&mut [0; 1024]);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789").unwrap();
    });
    let error = get("sherman1", &base, folder.path()).unwrap_err();
    let start = format!("cannot fetch {base}/MM/HB/sherman1.tar.gz: broken off");
    assert!(error.to_string().starts_with(&start), "{error}");

    let base = serve(Vec::new());
    let error = get("atmosmodd", &base, folder.path()).unwrap_err();
    let url = format!("{base}/MM/Bourchtein/atmosmodd.tar.gz");
    assert_eq!(error.to_string(), format!("cannot fetch {url}: http status: 404"));
    let hint = "use the twin `convdiff3d:atmosmodd`, which needs no download";
    assert_eq!((error.hint_text(), error.exit_code()), (Some(hint), 2));
    assert_eq!(files(folder.path()), [""; 0]);
}

/// Answers every request with `302` to what `to` makes of its own address.
fn redirecting(to: impl Fn(&str) -> String + Send + 'static) -> String {
    let server = Server::http("127.0.0.1:0").unwrap();
    let base = format!("http://{}", server.server_addr());
    let own = base.clone();
    thread::spawn(move || {
        for request in server.incoming_requests() {
            let place = format!("{}{}", to(&own), request.url());
            let header = tiny_http::Header::from_bytes("Location", place).unwrap();
            _ = request.respond(Response::empty(302).with_header(header));
        }
    });
    base
}

#[test]
fn a_redirection_is_followed_and_one_without_end_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let text = sherman(2375);
    let elsewhere = serve(archive(&[("sherman1/sherman1.mtx", text.as_bytes())]));
    let base = redirecting(move |_| elsewhere.clone());
    get("sherman1", &base, folder.path()).unwrap();
    assert_eq!(files(folder.path()), ["sherman1.mtx", "sherman1.mtx.sha256"]);

    let folder = tempfile::tempdir().unwrap();
    let base = redirecting(str::to_owned);
    let error = get("sherman1", &base, folder.path()).unwrap_err();
    let start = format!("cannot fetch {base}/MM/HB/sherman1.tar.gz: ");
    assert!(error.to_string().starts_with(&start), "{error}");
    assert!(error.to_string().contains("redirect"), "{error}");
    assert_eq!(files(folder.path()), [""; 0]);
}

#[test]
fn without_a_server_or_an_address_the_error_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    // a port that was free a moment ago
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = get("parabolic_fem", &format!("http://{port}"), folder.path()).unwrap_err();
    let start = format!("cannot fetch http://{port}/MM/Wissgott/parabolic_fem.tar.gz: ");
    assert!(error.to_string().starts_with(&start), "{error}");
    let hint = "use the twin `fem-p1:parabolic_fem`, which needs no download";
    assert_eq!(error.hint_text(), Some(hint));

    let error = get("spe1_b3", "http://unused", folder.path()).unwrap_err();
    assert_eq!(error.to_string(), "`spe1_b3` cannot be fetched: it is not in SuiteSparse");
    let error = get("parabolic_fen", "http://unused", folder.path()).unwrap_err();
    assert_eq!(error.to_string(), "unknown catalogue matrix `parabolic_fen`");
    let hint = "did you mean `parabolic_fem`? `bilu-bench matrix list` shows all";
    assert_eq!(error.hint_text(), Some(hint));
}
